"""The candidates of a search: which offers, and what may be known of them beforehand."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underdog.core.columns import BY_NAME, OFFER_COLUMNS
from underdog.model import Offer, Price

Floats = NDArray[np.float64]
# what says where a number comes from, and nothing about a machine
_ABOUT_THE_PRICE = ("price_unknown_reason", "price_source", "price_date", "currency")


def facts_of(
    offers: Sequence[Mapping[str, Any]], more: Sequence[Mapping[str, Any]] = ()
) -> tuple[dict[str, Floats], dict[str, list[str | None]]]:
    """Numbers and texts by column; a column that is unknown everywhere is left out.

    Args:
        offers: rows of ``underdog.core.columns``.
        more: of the same offers in the same order, rows with other columns; a column whose known
            values are all numbers is taken as such.

    Returns:
        Of each column an array of floats of shape (offers,) with NaN for unknown; and of each
        other column its texts, None for unknown.
    """
    numbers: dict[str, Floats] = {}
    texts: dict[str, list[str | None]] = {}
    for column in OFFER_COLUMNS:
        values = [row.get(column.name) for row in offers]
        if column.name in _ABOUT_THE_PRICE or all(value is None for value in values):
            continue
        if column.kind == "number":
            numbers[column.name] = np.array(values, dtype=float)
        else:
            texts[column.name] = [None if value is None else str(value) for value in values]
    for name in dict.fromkeys(name for row in more for name in row):
        if name not in BY_NAME and name != "offer":
            _add(name, [row.get(name) for row in more], numbers, texts)
    return numbers, texts


def _add(
    name: str,
    values: Sequence[Any],
    numbers: dict[str, Floats],
    texts: dict[str, list[str | None]],
) -> None:
    known = [value for value in values if value not in (None, "")]
    if not known:
        return
    if all(_is_number(value) for value in known):
        numbers[name] = np.array([math.nan if v in (None, "") else float(v) for v in values])
    else:
        texts[name] = [None if v in (None, "") else str(v) for v in values]


def _is_number(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def one_of_each(offers: Iterable[tuple[int, Any, tuple[float, ...]]]) -> list[int]:
    """Of offers of the same machine the best, the first of equals; in the order given.

    Regions and purchase options sell the same hardware, and one test tells about all of them.

    Args:
        offers: row, what makes a machine the same, and what is to be low, such as its price: the
            first figure decides, among equals the next.

    Returns:
        The rows.
    """
    best: dict[Any, tuple[tuple[float, ...], int]] = {}
    for row, machine, figures in offers:
        here = (figures, row)
        best[machine] = min(best.get(machine, here), here, key=lambda one: one[0])
    return [row for _, row in best.values()]


def reachable(mine: Collection[str], others: Iterable[Collection[str]]) -> set[str]:
    """The offers that a recorded workload might have been tried on, of those that any was.

    Where workloads share offers, all of these count: one without a trial is a failed test. What
    only workloads without a common offer were tried on was for another job and does not count.

    Args:
        mine: offers of the workload's own trials.
        others: of each other workload of the file.
    """
    reached, rest = set(mine), [set(one) for one in others]
    while near := [one for one in rest if one & reached]:
        rest = [one for one in rest if not one & reached]
        reached = reached.union(*near)
    return reached


def as_offer(row: Mapping[str, Any]) -> Offer:
    """An offer of a row of ``underdog.core.columns``."""
    amount = row.get("price_per_hour")
    price = Price(
        per_hour=amount,
        source=row.get("price_source") or "",
        date=row.get("price_date") or "",
        unknown_reason=None if amount else row.get("price_unknown_reason") or "not known",
    )
    return Offer(
        provider=row["provider"],
        region=row.get("region") or "",
        zone=row.get("zone"),
        instance_type=row["instance_type"],
        purchase=row.get("purchase") or "on-demand",
        term=row.get("term"),
        nodes=int(row.get("nodes") or 1),
        price=price,
        vcpus=row.get("vcpus"),
        memory_gib=row.get("memory_gib"),
        arch=row.get("arch"),
        accelerator=row.get("accelerator"),
        accelerator_count=row.get("accelerator_count") or 0,
        accelerator_memory_gib=row.get("accelerator_memory_gib"),
        accelerator_usable_gib=row.get("accelerator_usable_gib"),
    )
