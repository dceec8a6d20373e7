"""Attempts to get machines: record them, bring them in from elsewhere, list them."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

import msgspec

from underdog.core.attempts import PURCHASES, Attempt, Place, seconds_of
from underdog.core.problems import Problems, raise_if_any, shown
from underdog.core.refusals import NEXT, Refusal, classify
from underdog.errors import UsageError, did_you_mean
from underdog.store import Store, open_store
from underdog.store.table_file import read_rows

_PLACE = ("provider", "region", "zone", "instance_type", "purchase")
_TEXTS = ("id", "words", "trial", "source")
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def record(store: Store, attempt: Attempt) -> Attempt:
    """Keep an attempt, and return it as it was kept: with its id, and why it was refused.

    A runner calls this when it was given a machine or refused one, and again, with what the first
    call returned changed by ``dataclasses.replace``, when the machine has come to its end:
    ``held`` seconds after, ``interrupted`` where the provider took it.

    Args:
        attempt: ``id`` may be empty: it is made from place, time, count and trial.
            ``words`` of the provider say why one that was not got was refused, unless ``refusal``
            says so.

    Raises:
        StoreError: the store cannot be written.
    """
    kept = named(attempt)
    if not kept.got and kept.refusal is None:
        kept = replace(kept, refusal=refusal(kept).kind)
    store.save(kept)
    return kept


def refusal(attempt: Attempt) -> Refusal:
    """Why an attempt was refused, in the provider's words, and what to do next."""
    place = attempt.place
    return classify(
        attempt.words,
        provider=place.provider,
        instance_type=place.instance_type,
        spot=place.purchase == "spot",
    )


def named(attempt: Attempt, again: int = 0) -> Attempt:
    """The attempt with an id; ``again`` tells apart those that agree in all else."""
    if attempt.id:
        return attempt
    parts = (*dataclasses.astuple(attempt.place), attempt.at, attempt.count, attempt.trial, again)
    digest = hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
    return replace(attempt, id=f"attempt-{digest[:20]}")


def attempts(
    store: str | None = None,
    *,
    provider: str | None = None,
    instance_type: str | None = None,
    limit: int | None = None,
) -> list[Attempt]:
    """The attempts that match, in the order of their first saving; ``limit`` keeps the latest.

    Args:
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder.

    Raises:
        StoreError: the store cannot be opened or read.
    """
    with open_store(store) as opened:
        return opened.attempts(provider=provider, instance_type=instance_type, limit=limit)


def add(attempt: Attempt, store: str | None = None) -> Attempt:
    """``record`` in the store at that URL or path."""
    with open_store(store) as opened:
        return record(opened, attempt)


def place_of(offer: str, zone: str = "") -> Place:
    """The place of an offer's name, ``provider/region/instance_type/purchase``.

    Without a purchase option it is on demand.

    Raises:
        UsageError: it is no such name.
    """
    parts = [part.strip() for part in offer.split("/")]
    if len(parts) == 3:
        parts.append("on-demand")
    if len(parts) != 4 or not all(parts):
        raise UsageError(
            f"'{offer}' is no name of an offer.", "Write it like aws/us-east-1/g5.xlarge/spot."
        )
    provider, region, kind, purchase = parts
    if purchase not in PURCHASES:
        raise UsageError(
            f"There is no purchase option '{purchase}'.", did_you_mean(purchase, PURCHASES)
        )
    return Place(provider=provider, region=region, zone=zone, instance_type=kind, purchase=purchase)


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """What an import did: attempts that were new, and those that were there already."""

    file: str
    added: int
    unchanged: int


def import_attempts(path: str | PathLike[str], store: str | None = None) -> Imported:
    """Bring in attempts from elsewhere; ``docs/reference/availability.md`` has the columns.

    All of them or, where anything is wrong, none. The same file again adds nothing.

    Args:
        path: CSV (gzipped or not) or JSON, as ``underdog attempts --json`` prints it.
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder.

    Raises:
        TrialsError: the file has faults; the message names row and field of the first ten.
        StoreError: the store cannot be opened or written.
    """
    path = Path(path)
    problems = Problems(path.name)
    found: dict[str, Attempt] = {}
    seen: Counter[str] = Counter()
    for number, row in read_rows(path, problems, ["at", "got"]):
        made = _attempt(number, row, problems, path.name)
        if made is None:
            continue
        kept = named(made)
        seen[kept.id] += 1
        if seen[kept.id] > 1 and not made.id:  # the same moment and place, and yet two attempts
            kept = named(made, seen[kept.id] - 1)
        if not kept.got and kept.refusal is None:
            kept = replace(kept, refusal=refusal(kept).kind)
        found[kept.id] = kept
    if not (found or problems.count):
        problems.add(1, "row", "the file has no attempt")
    raise_if_any(problems)
    with open_store(store) as opened:
        there = {one.id: one for one in opened.attempts()}
        new = [one for one in found.values() if there.get(one.id) != one]
        opened.save_all(new)
    return Imported(file=path.name, added=len(new), unchanged=len(found) - len(new))


def _attempt(number: int, row: Mapping[str, Any], problems: Problems, file: str) -> Attempt | None:
    before = problems.count
    place = _place(number, row, problems)
    text = {name: problems.text(number, name, row.get(name)) for name in _TEXTS}
    given = row.get("at")
    at = seconds_of(str(given)) if isinstance(given, str) else None
    if at is None:
        at = problems.number(number, "at", given)
        if at is None and not problems.count > before:
            problems.add(number, "at", "it is missing")
    numbers = {
        name: problems.number(number, name, _either(row, f"{name}_seconds", name), zero=True)
        for name in ("waited", "held")
    }
    count = problems.number(number, "count", row.get("count"))
    flags = {name: _flag(number, name, row.get(name), problems) for name in ("got", "interrupted")}
    if flags["got"] is None and problems.count == before:
        problems.add(number, "got", "it is missing")
    if problems.count > before or at is None:
        return None
    try:
        return Attempt(
            id=text["id"] or "",
            place=place,
            at=at,
            got=bool(flags["got"]),
            waited=numbers["waited"],
            count=int(count or 1),
            held=numbers["held"],
            interrupted=bool(flags["interrupted"]),
            words=text["words"] or "",
            trial=text["trial"],
            source=text["source"] or file,
        )
    except ValueError as error:
        problems.add(number, "row", str(error))
        return None


def _either(row: Mapping[str, Any], *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _place(number: int, row: Mapping[str, Any], problems: Problems) -> Place:
    """The place of a row: by its parts, by the name of an offer, or as JSON has it."""
    nested = row.get("place")
    source = nested if isinstance(nested, Mapping) else row
    parts = {name: problems.text(number, name, source.get(name)) or "" for name in _PLACE}
    offer = problems.text(number, "offer", row.get("offer"))
    if offer and not parts["provider"]:
        try:
            return place_of(offer, parts["zone"])
        except UsageError as error:
            problems.add(number, "offer", str(error).replace("\n", " "))
    for name in ("provider", "region", "instance_type"):
        if not parts[name] and not offer:
            problems.add(number, name, "it is missing")
    parts["purchase"] = parts["purchase"] or "on-demand"
    if parts["purchase"] not in PURCHASES:
        said = f"{shown(parts['purchase'])}: {did_you_mean(parts['purchase'], PURCHASES)}"
        problems.add(number, "purchase", said)
    return Place(**parts)


def _flag(number: int, name: str, given: Any, problems: Problems) -> bool | None:
    if isinstance(given, bool) or given is None or given == "":
        return given if isinstance(given, bool) else None
    found = _FLAGS.get(str(given).strip().lower())
    if found is None:
        problems.add(number, name, f"{shown(given)} is neither true nor false")
    return found


def plain(attempt: Attempt) -> dict[str, Any]:
    """An attempt as JSON has it, with the offer's name and, of one refused, what to do next."""
    found: dict[str, Any] = msgspec.to_builtins(attempt)
    told = None if attempt.got else refusal(attempt)
    return {
        **found,
        "offer": attempt.place.offer,
        "next_step": None if told is None else next_step(attempt, told),
    }


def next_step(attempt: Attempt, told: Refusal | None = None) -> str:
    """What to do after a refusal; '' for an attempt that was got."""
    if attempt.got:
        return ""
    told = told or refusal(attempt)
    # a runner may know more than the words tell
    return told.next_step if told.kind == attempt.refusal else NEXT[attempt.refusal or told.kind]
