"""Whether, and where, the level of a series of throughputs changed for good.

The likelihood-ratio test for one shift of the mean of normal noise of unknown variance: the largest
two-sample t over all cuts of the series in two (Worsley, Journal of the American Statistical
Association 74, 1979), on the logarithm, so that a fall and a rise by one factor weigh the same.
A single odd run is no change: each side has two at least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from underdog.core.compare import SINGLE

FEWEST = 5
SIDE = 2
# The 98 % points of the largest t of series without a change, by their length: 200,000 series of
# normal noise each (60,000 from 40 on).
_LENGTHS = (5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 40, 60)
_POINTS = (5.86, 5.14, 4.74, 4.49, 4.29, 4.15, 3.98, 3.82, 3.66, 3.58, 3.55, 3.51, 3.48)
_ROUNDING = 1e-9  # a series that varies by less is taken as constant on both sides


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """``at`` is the index of the first value of the new level, ``ratio`` new level over old."""

    at: int
    ratio: float


def change_point(values: Sequence[float]) -> ChangePoint | None:
    """The clearest change of level, None where noise explains the series.

    Where nothing changed it finds something in 2 of 100 series. A change by less than runs of one
    machine differ by is none.

    Args:
        values: positive, in order of time; fewer than five tell nothing.
    """
    size = len(values)
    if size < FEWEST:
        return None
    logs = np.log(np.asarray(values, dtype=float))
    logs = logs - logs.mean()
    cuts = np.arange(SIDE, size - SIDE + 1)
    sums = np.cumsum(logs)[cuts - 1]
    shift = -sums / (size - cuts) - sums / cuts
    between = cuts * (size - cuts) / size * shift**2
    best = int(np.argmax(between))
    within = max(float(logs @ logs - between[best]), size * _ROUNDING**2)
    t = math.sqrt(float(between[best]) / within * (size - 2))
    ratio = math.exp(float(shift[best]))
    if t < np.interp(size, _LENGTHS, _POINTS) or abs(ratio - 1) < SINGLE:
        return None
    return ChangePoint(int(cuts[best]), ratio)


def last_change(values: Sequence[float]) -> ChangePoint | None:
    """The last of several changes of level; ``ratio`` is over the level just before it."""
    found = change_point(values)
    if found is None:
        return None
    later = last_change(values[found.at :])
    return found if later is None else ChangePoint(found.at + later.at, later.ratio)
