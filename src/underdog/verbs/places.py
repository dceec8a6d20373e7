"""Where a trial is to run: an offer by its name, the runner, and how that gets at the machine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from underdog import runners
from underdog.catalog import archive, offers_file
from underdog.core.candidates import as_offer
from underdog.core.ledger import OFFER_ID
from underdog.errors import UsageError, did_you_mean, nearest
from underdog.model import Offer

ANY_CLOUD = "skypilot"  # the runner that gets at an offer of the catalog with nothing more said
RECORDED = "replay"  # the runner that runs nothing
TARGETS = "docs/reference/targets.md has the keys of each runner."
_SHOWN = 8
Entry = tuple[Mapping[str, Any], Mapping[str, Any]]  # our columns of an offer, and the others


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """An offer, its name in the user's file or its full one, and how to get a trial to it."""

    name: str
    offer: Offer
    runner: str
    target: Mapping[str, Any] = field(default_factory=dict)


def find(
    on: str | None = None, runner: str | None = None, offers: str | Path | None = None
) -> Place:
    """The place that is meant.

    Args:
        on: an offer's name in the file, its full name, or an instance type, of which the cheapest
            offer on demand is taken. Without it the file's only offer for the runner.
        runner: who carries; by default whose table the offer has, for the catalog ``ANY_CLOUD``.
        offers: a file of offers, instead of the catalog.

    Raises:
        UsageError: none or several are meant, there is no such runner, or its table has faults.
        CatalogError: the offers cannot be read.
    """
    if runner is not None and runner not in runners.names():
        raise UsageError(f"There is no runner '{runner}'.", did_you_mean(runner, runners.names()))
    if runner == RECORDED:
        raise UsageError(
            f"The runner '{RECORDED}' tells recorded trials again and runs no command.",
            f"It is for a search: underdog explore --runner {RECORDED}",
        )
    if offers is None:
        if on is None:
            raise UsageError(
                "Which machine? Nothing names it.",
                "Name an offer, as --on aws/us-east-1/g5.xlarge, or give --offers FILE.",
            )
        offer = _sold(on)
        return Place(name=offer.id, offer=offer, runner=runner or ANY_CLOUD)
    return _listed(on, runner, Path(offers))


def of_machine(machine: tuple[str, str, int], entries: Iterable[Entry]) -> Place | None:
    """The offer of a file that is such a machine; None where there is none.

    One with a table that says how to get at it goes before one without, then the cheapest one;
    of several tables the first in the file counts.

    Args:
        machine: provider, instance type, and how many.
        entries: of the file, as ``underdog.catalog.offers_file.entries`` gives them.

    Raises:
        UsageError: a table is no runner's.
    """
    provider, kind, nodes = machine
    found = []
    for row, more in entries:
        offer = as_offer(row)
        if (offer.provider, offer.instance_type) != (provider, kind):
            continue
        if offer.nodes not in (1, nodes) or offer.purchase == "reserved":
            continue
        price = offer.price.per_hour
        if price is not None and offer.nodes == 1 and nodes > 1:
            offer = replace(offer, price=replace(offer.price, per_hour=price * nodes))
        offer = replace(offer, nodes=nodes)
        runner, target = next(iter(targets(more).items()), (ANY_CLOUD, {}))
        name = str(more.get("offer") or offer.id)
        found.append(Place(name=name, offer=offer, runner=runner, target=target))
    return min(found, key=_effort, default=None)


def says_how(place: Place) -> bool:
    """Whether the user's file says how to get at a place."""
    return bool(place.target) or place.runner != ANY_CLOUD


def _effort(place: Place) -> tuple[bool, float]:
    price = place.offer.price.per_hour
    return not says_how(place), math.inf if price is None else price


def targets(row: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """By runner, the tables of an offer that say how to get at it.

    Raises:
        UsageError: a table that is no runner's.
    """
    known = runners.names()
    for name, value in row.items():
        if isinstance(value, Mapping) and name not in known:
            raise UsageError(
                f"'{row.get('offer', 'an offer')}' has a table [offer.{name}], and there is no "
                f"runner '{name}'.",
                did_you_mean(name, known),
            )
    return {k: v for k, v in row.items() if isinstance(v, Mapping)}


def reached(runner: str, entries: Sequence[Mapping[str, Any]]) -> list[int]:
    """Which offers of a file have a table of the runner, checked whole.

    Args:
        entries: of each offer what stands beyond our columns.

    Raises:
        UsageError: some of the tables have faults; all are told.
    """
    found = [i for i, entry in enumerate(entries) if runner in targets(entry)]
    problems = []
    for i in found:
        fault = runners.check_target(runner, targets(entries[i])[runner])
        if fault is not None:
            problems.append(f"  {entries[i].get('offer') or f'offer {i + 1}'}: {fault}")
    if problems:
        raise UsageError(
            "\n".join([f"These offers cannot be reached by {runner}:", *problems]), TARGETS
        )
    return found


def check(place: str, runner: str, target: Mapping[str, Any]) -> None:
    """Raise what is wrong with a target.

    Raises:
        UsageError: a key that there is not, or a value of the wrong kind.
    """
    problem = runners.check_target(runner, target)
    if problem is not None:
        raise UsageError(
            f"'{place}' cannot be reached by {runner}: {problem}.",
            TARGETS,
        )


def _sold(on: str) -> Offer:
    """The offer of the catalog of that name."""
    table = archive.load().table
    # of an instance type the cheapest, and rather one that nobody takes away
    sql = (
        f"SELECT * FROM offers WHERE lower({OFFER_ID}) = lower($name) "
        f"OR starts_with(lower({OFFER_ID}), lower($name) || '/') "
        "OR lower(instance_type) = lower($name) "
        "ORDER BY purchase = 'on-demand' DESC, price_per_hour NULLS LAST, region LIMIT 1"
    )
    found = table.connection.execute(sql, {"name": on.strip()})
    values = found.fetchone()
    if values is None:
        kinds = table.run("SELECT DISTINCT instance_type FROM offers").fetchall()
        kind = on.split("/")[2] if on.count("/") >= 2 else on
        near = nearest(kind, [row[0] for row in kinds])
        own = "A machine of yours stands in a file of offers: name that with --offers FILE."
        hint = f"Did you mean '{near}'? {own}" if near else own
        raise UsageError(f"There is no offer '{on}' in the catalog.", hint)
    return as_offer(dict(zip((d[0] for d in found.description or ()), values, strict=True)))


def _listed(on: str | None, runner: str | None, path: Path) -> Place:
    """The offer of the user's file."""
    entries = offers_file.entries(path)
    named = [(str(more.get("offer") or as_offer(row).id), row, more) for row, more in entries]
    if on is not None:
        meant = [e for e in named if on.lower() in _names(*e)]
        if not meant:
            raise UsageError(
                f"There is no offer '{on}' in '{path}'.", did_you_mean(on, (e[0] for e in named))
            )
    elif runner is not None:
        meant = [e for e in named if runner in targets(e[2])] or (named if len(named) == 1 else [])
    else:
        meant = named if len(named) == 1 else [e for e in named if targets(e[2])]
    if len(meant) != 1:
        raise UsageError(_which(meant, path, runner), "Name one with --on.")
    name, row, more = meant[0]
    runner = runner or _only(name, targets(more))
    target = targets(more).get(runner, {})
    check(name, runner, target)
    return Place(name=name, offer=as_offer(row), runner=runner, target=target)


def _names(name: str, row: Mapping[str, Any], more: Mapping[str, Any]) -> set[str]:
    return {name.lower(), as_offer(row).id.lower(), str(row["instance_type"]).lower()}


def _which(meant: Sequence[tuple[str, Any, Any]], path: Path, runner: str | None) -> str:
    if not meant:
        table = runner or "ssh"
        return f"No offer of '{path}' has an [offer.{table}] table that says how to get at it."
    shown = [name for name, *_ in meant[:_SHOWN]]
    names = ", ".join(shown if len(shown) == len(meant) else [*shown, "…"])
    return f"{len(meant):,} offers of '{path}' may be meant: {names}."


def _only(name: str, found: Mapping[str, Any]) -> str:
    if len(found) > 1:
        raise UsageError(
            f"'{name}' can be reached by {' and '.join(sorted(found))}.",
            f"Say which: --runner {min(found)}",
        )
    return next(iter(found), ANY_CLOUD)
