"""What changed from one snapshot to another."""

from __future__ import annotations

from typing import Any

import pytest

from underdog.catalog.diff import Difference, compare
from underdog.catalog.hardware import Hardware, offer_row
from underdog.core.columns import OFFER_COLUMNS
from underdog.core.table import Table
from underdog.model import Price


def offer(name: str, price: float | None, region: str = "r", **fields: Any) -> dict[str, Any]:
    reason = "not listed" if price is None else None
    given = Price(per_hour=price, unknown_reason=reason, source="s", date="2026-11-30")
    hardware = Hardware(vcpus=8, memory_gib=32)
    return {**offer_row("aws", region, name, "on-demand", hardware, price=given), **fields}


def table(*rows: dict[str, Any]) -> Table:
    return Table.from_arrays({c.name: [row[c.name] for row in rows] for c in OFFER_COLUMNS})


def test_nothing_changed() -> None:
    rows = [offer("a", 1.0), offer("a", 2.0, "r2"), offer("b", None)]
    found = compare(table(*rows), table(*rows[::-1]))
    assert found == Difference(offers={"new": 0, "gone": 0})
    assert found.is_empty


def test_types_offers_prices_and_figures() -> None:
    old = table(offer("a", 1.0), offer("a", 1.0, "r2"), offer("b", 2.0), offer("c", 1.0))
    new = table(
        offer("a", 1.5),
        offer("a", 1.01, "r2"),
        offer("b", None, memory_gib=64.0),
        offer("d", 3.0),
        offer("d", 3.0, "r2"),
    )
    found = compare(old, new, over=0.05)
    assert (found.new_types, found.gone_types) == (["aws/d"], ["aws/c"])
    assert found.offers == {"new": 2, "gone": 1}
    # what became unknown comes first, then the largest move; one of 1 % is below the limit
    assert [(move.offer, move.old, move.new) for move in found.moves] == [
        ("aws/r/b/on-demand", 2.0, None),
        ("aws/r/a/on-demand", 1.0, 1.5),
    ]
    assert found.moves[1].change == pytest.approx(0.5)
    (fact,) = found.facts
    assert (fact.instance_type, fact.column, fact.old, fact.new) == ("b", "memory_gib", 32, 64)
    assert not found.is_empty


def test_terms_and_zones_are_offers_of_their_own() -> None:
    one = offer("a", 1.0, purchase="reserved", term="1y")
    other = offer("a", 1.2, purchase="reserved", term="3y", zone="r-a")
    found = compare(table(one, other), table({**one, "price_per_hour": 2.0}, other))
    assert [move.offer for move in found.moves] == ["aws/r/a/reserved:1y"]
