"""The Pareto front of two objectives: what no other point beats on both."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Points = tuple[NDArray[np.float64], NDArray[np.float64]]


def front(points: Points) -> NDArray[np.bool_]:
    """Which points no other point dominates; more of both objectives is better.

    Args:
        points: the two objectives, each of shape (n,).

    Returns:
        Shape (n,). Equal points stand or fall together; a point with an unknown (NaN) is never
        on the front. O(n log n).
    """
    return ~(dominated(points, points) | np.isnan(points[0]) | np.isnan(points[1]))


def dominated(points: Points, others: Points) -> NDArray[np.bool_]:
    """Which of ``points`` some point of ``others`` dominates: as good on both, better on one.

    Args:
        points, others: the two objectives, shapes (n,) and (k,); more of both is better.

    Returns:
        Shape (n,); False where an objective is unknown.
    """
    known = ~(np.isnan(others[0]) | np.isnan(others[1]))
    order = np.argsort(others[0][known], kind="stable")
    first, second = others[0][known][order], others[1][known][order]
    # the best second objective among all that reach at least a given first objective
    best_from = np.concatenate((np.maximum.accumulate(second[::-1])[::-1], [-np.inf]))
    as_good = best_from[np.searchsorted(first, points[0], side="left")]
    better = best_from[np.searchsorted(first, points[0], side="right")]
    beaten: NDArray[np.bool_] = (as_good > points[1]) | (better >= points[1])
    return beaten & ~(np.isnan(points[0]) | np.isnan(points[1]))
