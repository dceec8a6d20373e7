"""Where the transient at the start of a run ends.

Compilation, autotuning, cold caches and the start of the data loader make the first steps slower,
or faster where a queue was full, by an unknown factor and for an unknown time. The second half of
the run is the reference. Whether there is a transient is a test of the first steps against it,
with the error that correlated steps have; where it ends is the cut with the least standard error
of what is kept (MSER: White, An effective truncation heuristic for bias reduction in simulation
output, Simulation 69(6), 1997), on steps whose outliers are drawn in.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from underdog.core.interval import mean_error

Floats = NDArray[np.float64]

FEWEST = 4  # steps; below there is no reference
KEPT = 3  # steps at least: fewer have no interval
OUTLIER = 3.0  # times the distance from the median to the outer 5 % of the reference
NEAR = 0.05  # of the median: nothing nearer is an outlier, however quiet the run is
# A step of so many medians, with none like it in the reference, is a compilation.
COMPILATION = 20.0
# Standard errors: of the twelve heads that are looked at, one differs by so much in 2 of 100 steady
# runs (6 where φ = 0.9), and to cut there costs a little width, no bias.
SIGNIFICANT = 3.0
# The cut of least error leaves a rest of the transient as large as the noise; half as much again
# leaves little.
MARGIN = 1.5


class Warmup(NamedTuple):
    """How many steps to leave out, and whether the run was steady after them."""

    steps: int
    settled: bool


def find_warmup(seconds: Floats) -> Warmup:
    """The transient at the start of a run.

    Args:
        seconds: of each step, finite, not negative; shape (n,).
    """
    size = len(seconds)
    if size < FEWEST:
        return Warmup(0, False)
    half = min(size // 2, size - KEPT)
    low, median, high = _usual(seconds[half:])
    drawn_in = np.clip(seconds, low, high)
    steps = 0
    if _has_transient(drawn_in, half):
        steps = min(half, int(MARGIN * _least_error(drawn_in, half)))
    steps = max(steps, _compiled(seconds, half, median))
    while steps < half and not low <= seconds[steps] <= high:
        steps += 1
    return Warmup(steps, not _drifts(drawn_in[steps:]))


def _usual(reference: Floats) -> tuple[float, float, float]:
    """The range of what is no outlier, and the median inside it."""
    outer_low, median, outer_high = np.quantile(reference, (0.05, 0.5, 0.95))
    below = max(OUTLIER * (median - outer_low), NEAR * median)
    above = max(OUTLIER * (outer_high - median), NEAR * median)
    return float(median - below), float(median), float(median + above)


def _has_transient(seconds: Floats, half: int) -> bool:
    """Whether the first steps, however many, differ from the reference by more than chance."""
    reference = seconds[half:]
    error = mean_error(reference)
    if error is None:
        return False
    sums = np.cumsum(seconds[:half] - reference.mean())
    heads = np.unique(np.geomspace(1, half, 12).astype(int))
    spread = float(reference.std())
    of_head = np.minimum(spread, error.standard_error * np.sqrt(len(reference) / heads))
    allowed = SIGNIFICANT * np.hypot(of_head, error.standard_error)
    return bool(np.any(np.abs(sums[heads - 1] / heads) > allowed + 1e-9 * reference.mean()))


def _least_error(seconds: Floats, half: int) -> int:
    """The cut, up to half the run, after which the mean has the least standard error."""
    offset = seconds - seconds[half:].mean()
    left = np.arange(len(offset), len(offset) - half - 1, -1)
    sums = offset[::-1].cumsum()[::-1][: half + 1]
    squares = (offset**2)[::-1].cumsum()[::-1][: half + 1]
    statistic = (squares - sums**2 / left) / left.astype(float) ** 2
    least = float(statistic.min())
    return int(np.argmax(statistic <= least + 1e-12 * float(statistic[0])))


def _compiled(seconds: Floats, half: int, median: float) -> int:
    """The end of the last compilation in the first half, 0 where such steps come later too."""
    long = np.flatnonzero(seconds >= COMPILATION * median)
    if not len(long) or median == 0 or long[-1] >= half:
        return 0
    return int(long[-1]) + 1


def _drifts(seconds: Floats) -> bool:
    """Whether a straight line through the steps rises or falls by more than chance."""
    size = len(seconds)
    if size < FEWEST:
        return False
    place = np.linspace(-0.5, 0.5, size)
    # sums, not dot products: those start threads that take processors from the run
    rise = float((place * seconds).sum() / (place * place).sum())
    error = mean_error(seconds - rise * place)
    if error is None:
        return False
    # the rise over the run has √12 times the standard error of the mean
    noise = 1.5 * math.sqrt(12) * error.half_width
    return abs(rise) > noise + 0.02 * float(seconds.mean())
