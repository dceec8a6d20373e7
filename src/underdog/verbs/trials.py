"""Trials of the store: list them, bring in what was measured elsewhere, hand them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from underdog.core.columns import BY_NAME
from underdog.core.problems import Problems, raise_if_any
from underdog.core.trials_file import (
    Key,
    Repeats,
    as_measured,
    build_trial,
    check_measured,
    parse_trials,
    suspects,
    trial_id,
)
from underdog.core.trials_offers import Known, Row, parse_offers
from underdog.errors import UsageError, nearest
from underdog.model import Trial
from underdog.progress import say, track
from underdog.store import Store, open_store
from underdog.store.table_file import read_rows

_AT_ONCE = 1000  # trials compared with the store at a time
_NEAR = 1000  # latest trials among which a mistyped id is looked for


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportSummary:
    """What an import did.

    ``updated`` were there with the same throughputs and other facts (an offers file added later),
    ``unchanged`` were there already. ``failed`` and ``caveats`` (by code) count over all trials of
    the file.
    """

    file: str
    added: int
    updated: int
    unchanged: int
    failed: int
    price_unknown: int
    caveats: dict[str, int]


def trials(
    store: str | None = None,
    *,
    workload: str | None = None,
    status: str | None = None,
    limit: int | None = None,
) -> list[Trial]:
    """The trials that match, oldest first; ``limit`` keeps the latest.

    Args:
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder.

    Raises:
        StoreError: the store cannot be opened or read.
    """
    with open_store(store) as opened:
        return opened.trials(workload=workload, status=status, limit=limit)


def trial(id: str, store: str | None = None) -> Trial:
    """The trial of that id.

    Raises:
        UsageError: there is none; the message names the nearest.
        StoreError: the store cannot be opened or read.
    """
    with open_store(store) as opened:
        found = opened.trials(id=id, timeline=True)
        if found:
            return found[0]
        near = nearest(id, [one.id for one in opened.trials(limit=_NEAR)])
    hint = f"Did you mean '{near}'?" if near else "underdog trials lists those that there are."
    raise UsageError(f"There is no trial '{id}' in the store.", hint)


def import_trials(
    path: str | PathLike[str],
    offers: str | PathLike[str] | None = None,
    store: str | None = None,
    *,
    workload: str | None = None,
) -> ImportSummary:
    """Bring in trials measured elsewhere; ``docs/reference/trials-format.md`` has the format.

    All of them or, where anything is wrong, none. The same file again adds nothing.

    Args:
        path: CSV (gzipped or not) or JSON: ``workload, offer, throughput`` in samples per second,
            or trials as ``measure --json`` prints them.
        offers: CSV or JSON with what the offers are and their prices of then.
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder.
        workload: take only this workload; it is the name of rows that have none.

    Raises:
        TrialsError: the files have faults; the message names row and field of the first ten.
        StoreError: the store cannot be opened or written.
    """
    with open_store(store) as opened:
        own: list[str] = []  # ids of lines that were written from trials of this store
        apart = partial(_not_there, store=opened, own=own)
        read = _read(Path(path), None if offers is None else Path(offers), workload, apart, own)
        found = _write(opened, read, str(path))
    return replace(found, unchanged=found.unchanged + len(own))


@dataclass(frozen=True, slots=True)
class _Read:
    """What the files hold: ids, and how to build the trial of each place."""

    ids: Sequence[str]
    build: Callable[[int], Trial]


def _not_there(rows: Iterator[Row], store: Store, own: list[str]) -> Iterator[Row]:
    """Pass on the rows that are no line of a trial of this store; the ids of those go to ``own``.

    A line holds less than the trial that it was written from, and must not stand beside it.
    """
    while some := list(islice(rows, _AT_ONCE)):
        ids = [str(row.get("id") or "") for _, row in some]
        asked = [id for id in ids if id]
        there = {one.id for one in store.trials(id=asked)} if asked else set()
        own += [id for id in ids if id in there]
        yield from (line for line, id in zip(some, ids, strict=True) if id not in there)


def _read(
    path: Path,
    offers: Path | None,
    workload: str | None,
    not_there: Callable[[Iterator[Row]], Iterator[Row]],
    own: Sequence[str],
) -> _Read:
    problems = Problems(path.name)
    offer_problems = Problems(offers.name if offers else path.name)
    known: dict[str, Known] | None = None
    if offers is not None:
        rows = read_rows(offers, offer_problems, ["offer"])
        known = parse_offers(rows, offer_problems, source=path.name)
    measured: list[Trial] = []
    own_offers: dict[str, Row] = {}
    required = ["offer", "throughput"] + (["workload"] if workload is None else [])
    rows = _apart(read_rows(path, problems, required), measured, problems)
    rows = _describing(not_there(_complete(rows, required, problems)), own_offers)
    found = parse_trials(rows, problems, known, workload)
    if known is None:
        known = parse_offers(own_offers.values(), problems, source=path.name)
    if not (found or measured or own or problems.count):
        about = f" of the workload '{workload}'" if workload is not None else ""
        problems.add(1, "row", f"the file has no trial{about}")
    raise_if_any(offer_problems, problems)
    if workload is not None:
        measured = [one for one in measured if one.workload == workload]
    return _lay_out(found, known, measured, path.name)


def _lay_out(
    found: Mapping[Key, Repeats], known: Mapping[str, Known], measured: list[Trial], source: str
) -> _Read:
    doubts = suspects(found, known)
    rows = list(found.items())

    def build(place: int) -> Trial:
        if place >= len(rows):
            return measured[place - len(rows)]
        key, repeats = rows[place]
        return build_trial(key, repeats, known.get(key.offer), doubts.get(key.offer), source)

    ids = [trial_id(key, repeats) for key, repeats in rows] + [one.id for one in measured]
    return _Read(ids, build)


def _apart(rows: Iterator[Row], measured: list[Trial], problems: Problems) -> Iterator[Row]:
    """Put whole trials aside, pass plain rows on."""
    ids: set[str] = set()
    for number, row in rows:
        if not ("machine" in row and "software" in row):
            yield number, row
            continue
        try:
            one = as_measured(msgspec.convert(row, Trial))
        except msgspec.ValidationError as error:
            problems.add(number, "trial", str(error))
            continue
        check_measured(number, one, problems)
        if one.id in ids:
            problems.add(number, "id", f"'{one.id}' is there twice")
        ids.add(one.id)
        measured.append(one)


def _complete(rows: Iterator[Row], required: list[str], problems: Problems) -> Iterator[Row]:
    """Pass on the rows that have all required fields, empty or not."""
    for number, row in rows:
        missing = [name for name in required if name not in row]
        if missing:
            problems.add(number, missing[0], "it is missing")
        else:
            yield number, row


def _describing(rows: Iterator[Row], own_offers: dict[str, Row]) -> Iterator[Row]:
    """Pass all rows on; keep the first of each offer that also says what the offer is."""
    for number, row in rows:
        name = str(row["offer"] or "").strip()
        if name and name not in own_offers and not row.keys().isdisjoint(BY_NAME):
            own_offers[name] = number, row
        yield number, row


def _write(store: Store, read: _Read, file: str) -> ImportSummary:
    unchanged: set[int] = set()
    updated = 0
    places = iter(range(len(read.ids)))
    while some := list(islice(places, _AT_ONCE)):
        say("trials compared", some[0], len(read.ids))
        ids = [read.ids[place] for place in some]
        there = {one.id: one for one in store.trials(id=ids, timeline=True)}
        for place in some:
            if read.ids[place] in there:
                if _says_more(read.build(place), there[read.ids[place]]):
                    updated += 1
                else:
                    unchanged.add(place)
    tally: dict[str, Any] = {"failed": 0, "price_unknown": 0, "caveats": {}}

    def counted() -> Iterator[Trial]:
        for place in track(range(len(read.ids)), "trials kept"):
            one = read.build(place)
            tally["failed"] += one.status != "ok"
            tally["price_unknown"] += one.price.per_hour is None
            for caveat in one.caveats:
                tally["caveats"][caveat.code] = tally["caveats"].get(caveat.code, 0) + 1
            if place not in unchanged:
                yield one

    written = store.save_all(counted())
    return ImportSummary(
        file=file, added=written - updated, updated=updated, unchanged=len(unchanged), **tally
    )


def _says_more(new: Trial, old: Trial) -> bool:
    """Whether an imported trial should replace the same one that is there.

    A second import without the offers file must not take the price of then away.
    """
    if new.timeline is None:  # what has none takes none away
        old = replace(old, timeline=None)
    return new != old and not (new.price.per_hour is None and old.price.per_hour is not None)


def export_trials(
    path: str | PathLike[str],
    store: str | None = None,
    *,
    workload: str | None = None,
    form: str | None = None,
) -> int:
    """Write trials for other tools, or for ``import_trials``; returns how many.

    Args:
        path: a file, which is replaced at the end, not before; of MLflow and W&B a folder, which
            is added to. JSON keeps all that is known, CSV one line for each trial.
        form: the format; by default the file's ending tells it.

    Raises:
        UsageError: no format is known by that name or ending, or the file cannot be written.
        MissingPackageError: the format's package is not installed.
        StoreError: the store cannot be opened or read.
    """
    from underdog.report import exporters  # on use

    with open_store(store) as opened:
        say("reading the trials")
        found = opened.trials(workload=workload, timeline=exporters.keeps_all(Path(path), form))
    say(f"writing {len(found):,} trials")
    exporters.export(found, Path(path), form)
    return len(found)
