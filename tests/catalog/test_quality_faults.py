"""Faults put into the bundled catalog: how many of each kind the rules find, whom they blame."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from underdog.catalog import quality, snapshot

Row = dict[str, Any]
FAULTS = 100


def times(factor: float) -> Callable[[Row], Row]:
    return lambda row: {"price_per_hour": row["price_per_hour"] * factor}


def accelerated(row: Row) -> bool:
    return (row["accelerator_count"] or 0) >= 1 and row["accelerator_memory_gib"] is not None


def plain(row: Row) -> bool:
    return row["accelerator_count"] == 0 and row["memory_gib"] is not None


# which offers, what is made of them, how many of a hundred must be found
KINDS: dict[str, tuple[Callable[[Row], bool], Callable[[Row], Row], int]] = {
    "cents as dollars": (accelerated, times(0.01), 99),
    "a bid floor": (accelerated, lambda _: {"price_per_hour": 0.01}, 99),
    "thousandths": (plain, times(0.001), 99),
    "the price of one accelerator": (
        lambda row: accelerated(row) and row["accelerator_count"] >= 4,
        lambda row: {"price_per_hour": row["price_per_hour"] / row["accelerator_count"]},
        75,  # of a model that is sold in eights only there is no price of one to compare with
    ),
    "dollars as cents": (plain, times(100), 95),
    "the total as the memory of each": (
        lambda row: accelerated(row) and row["accelerator_count"] >= 2,
        lambda row: {"accelerator_memory_gib": row["accelerator_memory_gib_total"]},
        100,
    ),
    "the accelerator's memory as the host's": (
        accelerated,
        lambda row: {"memory_gib": row["accelerator_memory_gib"]},
        80,  # 96 GiB is what plain machines of the size have too
    ),
    "bytes": (plain, lambda row: {"memory_gib": row["memory_gib"] * 2**30}, 100),
    "MiB": (plain, lambda row: {"memory_gib": row["memory_gib"] * 1024}, 100),
    "a part as none": (accelerated, lambda _: {"accelerator_count": 0.0}, 100),
    "a free machine": (plain, lambda _: {"price_per_hour": 0.0}, 100),
}


@pytest.fixture(scope="module")
def bundled() -> list[Row]:
    return snapshot.load().table.select()


@pytest.fixture(scope="module")
def doubted(bundled: list[Row]) -> set[tuple[int | None, str]]:
    return {(one.row, one.rule) for one in quality.check(bundled)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_faults_are_found(
    kind: str, bundled: list[Row], doubted: set[tuple[int | None, str]]
) -> None:
    concerned, change, least = KINDS[kind]
    pool = [n for n, row in enumerate(bundled) if row["price_per_hour"] and concerned(row)]
    chosen = set(random.Random(kind).sample(pool, FAULTS))
    rows = [row | change(row) if n in chosen else row for n, row in enumerate(bundled)]
    new = [one for one in quality.check(rows) if (one.row, one.rule) not in doubted]
    found = {one.row for one in new} & chosen
    wronged = [one for one in new if one.severity == "quarantine" and one.row not in chosen]
    assert len(found) >= least
    assert wronged == []
