"""Catalog: refresh the offers from the world, check them, compare snapshots, list them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from underdog import config
from underdog.catalog import archive, snapshot
from underdog.catalog.archive import Entry
from underdog.catalog.diff import Difference, compare
from underdog.catalog.snapshot import Snapshot
from underdog.catalog.sources import FetchOptions, Progress, silent
from underdog.progress import say

if TYPE_CHECKING:  # a list of snapshots needs no rules and no network
    from underdog.catalog.quality import Finding
    from underdog.catalog.refresh import Outcome, Refreshed, Request


@dataclass(frozen=True, slots=True)
class Plan:
    """What a refresh would do: whom it asks, with what; and who is not asked, with the reason."""

    asks: dict[str, list[str]]
    skipped: list[Outcome]


@dataclass(frozen=True, slots=True)
class Checked:
    """What the quality rules say of a snapshot, and what its refreshes left out."""

    snapshot: Snapshot
    findings: list[Finding]
    left_out: list[dict[str, Any]]


def request(
    providers: Sequence[str] = (),
    *,
    regions: Sequence[str] = (),
    file: str | Path | None = None,
    accept: Sequence[str] = (),
    record: str | Path | None = None,
    replay: str | Path | None = None,
    progress: Progress = silent,
) -> Request:
    """What ``refresh`` and ``plan`` are asked.

    Args:
        providers: such as ``aws``, ``skypilot``, ``skypilot:lambda``; without any, all that can be
            asked from here.
        regions: only these.
        file: a folder of SkyPilot's catalog, or a TOML file of prices of your own.
        accept: sellers whose answer is taken although the rules reject it as a whole.
        record: a folder to write the answers into.
        replay: a folder of recorded answers, instead of the web.
        progress: told what is done, how much of it, and of how much if known.
    """
    from underdog.catalog.refresh import Request

    options = FetchOptions(
        regions=tuple(regions),
        file=None if file is None else Path(file),
        accept=tuple(accept),
        progress=progress,
        now=datetime.now(UTC),
    )
    return Request(
        providers=tuple(providers),
        options=options,
        record=None if record is None else Path(record),
        replay=None if replay is None else Path(replay),
    )


def refresh(providers: Sequence[str] = (), **given: Any) -> Refreshed:
    """Fetch offers, check them, and add a snapshot to the archive; ``request`` has what is given.

    A provider that fails raises nothing: its outcome says so, and its offers of before stay.

    Raises:
        UsageError: a provider that there is not, a file that is not there.
        CatalogError: the archive cannot be written, or there is nothing to replay.
    """
    from underdog.catalog import refresh as work
    from underdog.catalog.http import Http

    # a price list of one region may have hundreds of megabytes
    http = Http(config.data_folder() / "http-cache", timeout=300)
    return work.refresh(request(providers, **given), http)


def plan(providers: Sequence[str] = (), **given: Any) -> Plan:
    """What a refresh would ask of whom, as of ``request``; nothing is asked.

    Raises:
        UsageError: a provider that there is not, a file that is not there.
        CatalogError: there is nothing to replay.
    """
    from underdog.catalog import answers
    from underdog.catalog import refresh as work

    asked = request(providers, **given)
    chosen, skipped = work.chosen(asked)
    if asked.replay is not None:
        found = {one.provider: [f"reads its answer in '{asked.replay}'"] for one in chosen}
    else:
        found = {one.provider: answers.asks(one, asked.options) for one in chosen}
    return Plan(found, skipped)


def check(which: str | None = None) -> Checked:
    """Run the quality rules over a snapshot; prices of the user's own are judged by the list's.

    Args:
        which: as of ``pick``; the newest by default.

    Raises:
        CatalogError: there is no such snapshot, or it cannot be read.
    """
    from underdog.catalog import own, quality

    say("reading the snapshot")
    found = pick(which)
    has_own = any(one.get("provider") == "static" for one in found.sources)
    table = own.listed(found) if has_own else found.table
    findings = quality.check(table, today=datetime.now(UTC).date().isoformat())
    return Checked(found, findings, list(found.left_out))


def diff(old: str, new: str | None = None, over: float = 0.0) -> Difference:
    """What changed from one snapshot to another; see ``pick`` for what names one.

    Raises:
        CatalogError: there is no such snapshot, or it cannot be read.
    """
    say("snapshots read", 0, 2)
    before = pick(old).table
    say("snapshots read", 1, 2)
    after = pick(new).table
    say("comparing the offers")
    return compare(before, after, over)


def pick(which: str | None = None) -> Snapshot:
    """A snapshot by a day, the first letters of its hash, its path, or ``bundled``.

    Args:
        which: without it, the newest.

    Raises:
        CatalogError: there is none, or it cannot be read.
    """
    if which is not None and (which.endswith(".parquet") or "/" in which):
        return snapshot.load(which)
    return archive.load(which)


def snapshots() -> list[Entry]:
    """All snapshots that there are, the oldest first; a broken one says so."""
    return archive.entries()


def explain(finding: Finding) -> str:
    """What a rule found, what came of it, and what to do, in sentences."""
    from underdog.catalog import quality

    return quality.explain(finding)
