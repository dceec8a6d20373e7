"""Ranking: the order of scored offers, and which of them cannot be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def order(
    goodness: Sequence[Floats],
    *,
    tolerance: float,
    measured: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """The offers from best to worst: the measured ones, then the predicted ones.

    Among thousands of guesses some are far too high, so that a guess would nearly always lead:
    none does while anything was measured. Within each half the first goodness leads. Of several,
    each later one decides among the offers that are within the tolerance of the best on all
    earlier ones. Equal offers keep the order in which they are given: by their names.

    Args:
        goodness: per term shape (n,), more is better (a cost is given negated); no NaN in the
            first, a NaN in a later one comes last.
        tolerance: fraction of the best value.
        measured: shape (n,).

    Returns:
        Shape (n,), indices.
    """
    halves = (np.flatnonzero(measured), np.flatnonzero(~measured))
    return np.concatenate([half[_order([g[half] for g in goodness], tolerance)] for half in halves])


def _order(goodness: Sequence[Floats], tolerance: float) -> NDArray[np.int64]:
    lead = np.nan_to_num(goodness[0], nan=-np.inf)
    ranked = _ranked(lead)
    if len(goodness) == 1 or not len(lead):
        return ranked
    bar = lead.max()
    close = lead[ranked] >= bar - tolerance * abs(bar)
    near, rest = np.sort(ranked[close]), ranked[~close]
    return np.concatenate((near[_order([g[near] for g in goodness[1:]], tolerance)], rest))


def _ranked(lead: Floats) -> NDArray[np.int64]:
    """Indices from the highest value down; values equal but for rounding keep their order.

    Rounding errors must not choose between equal numbers of machines.
    """
    down = np.argsort(-lead, kind="stable")
    values = lead[down]
    with np.errstate(invalid="ignore"):
        apart = values[:-1] - values[1:] > 1e-9 * np.abs(values[:-1])
    group = np.concatenate(([0], np.cumsum(apart)))[: len(lead)]
    return down[np.lexsort((down, group))]


def first_of_each(
    groups: Mapping[str, Any], ordered: NDArray[np.int64], all_regions: bool
) -> list[int]:
    """Of the numbers of machines for one offer the best measured and the best predicted one."""
    seen, kept = set(), []
    for i in ordered.tolist():
        place = groups["row"][i] if all_regions else 0
        key = (groups["shape"][i], groups["purchase"][i], groups["source"][i], place)
        if key not in seen:
            seen.add(key)
            kept.append(i)
    return kept


def ties(value: Floats, low: Floats, high: Floats, shape: NDArray[np.int64]) -> list[list[int]]:
    """For each offer the others that cannot be told from it: their intervals overlap.

    Two offers of one shape share one throughput, so only an equal value ties them.

    Args:
        value, low, high: the utility and its interval, shape (n,).
        shape: which hardware each is.

    Returns:
        n lists of indices.
    """
    tied = []
    for i in range(len(value)):
        overlap = (low <= high[i]) & (high >= low[i])
        same = shape == shape[i]
        alike = np.where(same, np.isclose(value, value[i], rtol=1e-9), overlap)
        tied.append([int(j) for j in np.flatnonzero(alike) if j != i])
    return tied
