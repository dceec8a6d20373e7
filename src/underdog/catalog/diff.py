"""What changed from one snapshot to another. Pure: tables in, values out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from underdog.core.columns import OFFER_COLUMNS
from underdog.core.table import Table

_NAMES = [column.name for column in OFFER_COLUMNS]
# what says who sells what at which price; all else is hardware
FACTS = tuple(_NAMES[_NAMES.index("vcpus") :])
_IDENTITY = ("provider", "region", "zone", "instance_type", "purchase", "term", "service")


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A price that moved; ``change`` is new over old less 1, None where either is unknown."""

    offer: str
    provider: str
    instance_type: str
    old: float | None
    new: float | None
    change: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Fact:
    """A figure of an instance type that changed."""

    provider: str
    instance_type: str
    column: str
    old: Any
    new: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """All that changed.

    ``new_types`` and ``gone_types`` are ``provider/instance_type``; ``moves`` those by more than
    ``over``, the largest first; ``offers`` counts the offers that only the new or only the old
    snapshot has.
    """

    new_types: list[str] = field(default_factory=list)
    gone_types: list[str] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    offers: dict[str, int] = field(default_factory=dict)
    over: float = 0.0

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        lists = (self.new_types, self.gone_types, self.moves, self.facts)
        return not any(lists) and not any(self.offers.values())


def compare(old: Table, new: Table, over: float = 0.0) -> Difference:
    """What changed.

    Args:
        old, new: offers.
        over: only prices that moved by more than this share, such as 0.05; a price that became
            known or unknown counts as moved.
    """
    before, after = _facts(old), _facts(new)
    was, now = _prices(old), _prices(new)
    both = was.keys() & now.keys()
    return Difference(
        new_types=sorted("/".join(key) for key in after.keys() - before.keys()),
        gone_types=sorted("/".join(key) for key in before.keys() - after.keys()),
        moves=_moves({key: (was[key], now[key]) for key in both}, over),
        facts=_changed(before, after),
        offers={"new": len(now.keys() - was.keys()), "gone": len(was.keys() - now.keys())},
        over=over,
    )


def _facts(table: Table) -> dict[tuple[str, str], tuple[Any, ...]]:
    """The hardware of each type: of the offers of one type, the first by place."""
    listed = ", ".join(f'"{name}"' for name in FACTS)
    rows = table.run(
        f"SELECT DISTINCT ON (provider, instance_type) provider, instance_type, {listed} "
        "FROM offers ORDER BY provider, instance_type, region, zone, purchase, term"
    ).fetchall()
    return {(str(row[0]), str(row[1])): row[2:] for row in rows}


def _prices(table: Table) -> dict[tuple[Any, ...], float | None]:
    listed = ", ".join(f'"{name}"' for name in _IDENTITY)
    rows = table.run(f"SELECT {listed}, price_per_hour FROM offers").fetchall()
    return {row[:-1]: row[-1] for row in rows}


def _moves(
    pairs: dict[tuple[Any, ...], tuple[float | None, float | None]], over: float
) -> list[Move]:
    found = []
    for key, (old, new) in pairs.items():
        if old == new:
            continue
        change = None if old is None or new is None else new / old - 1
        if change is None or abs(change) > over:
            found.append(
                Move(
                    offer=_offer(key),
                    provider=str(key[0]),
                    instance_type=str(key[3]),
                    old=old,
                    new=new,
                    change=change,
                )
            )
    return sorted(found, key=lambda m: (m.change is not None, -abs(m.change or 0), m.offer))


def _offer(key: Sequence[Any]) -> str:
    provider, region, zone, kind, purchase, term, _ = key
    end = f"{purchase}:{term}" if term else purchase
    return f"{provider}/{zone or region}/{kind}/{end}"


def _changed(
    before: dict[tuple[str, str], tuple[Any, ...]], after: dict[tuple[str, str], tuple[Any, ...]]
) -> list[Fact]:
    return [
        Fact(provider=key[0], instance_type=key[1], column=column, old=old, new=new)
        for key in sorted(before.keys() & after.keys())
        for column, old, new in zip(FACTS, before[key], after[key], strict=True)
        if old != new
    ]
