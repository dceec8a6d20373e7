"""Comparing estimates, and an estimate from repeated measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from underdog.core.caveats import caveat
from underdog.core.interval import student_point
from underdog.core.problems import LARGEST, SMALLEST
from underdog.model import Caveat, Estimate

Floats = NDArray[np.float64]

# Run-to-run spread of one machine at 95 %, for a number that came without an interval: training
# steps of the PROFET data (ddps-lab, MIT) repeat within 4 % on the same machine.
SINGLE = 0.05
FIRST_SLOWER = 0.20  # a first repeat that took longer than the others by this share may be warm-up
FIRST_APART = 3.0  # … where it is also so many standard deviations of the others off
HIGH_VARIATION = 0.10  # standard deviation over mean from which repeats say little
WIDEST = 10.0  # an interval that would reach zero ends at so small a part of the mean


def distinguishable(a: Estimate, b: Estimate) -> bool:
    """Whether two estimates differ: their 95 % intervals do not overlap.

    Stricter than a test of the difference at 5 %: for two intervals of one width it is one at
    about 0.6 % (Schenker and Gentleman, The American Statistician 55(3), 2001). So a choice among
    many offers rests on few false differences.
    """
    bounds = (a.low, a.high, b.low, b.high)
    return not any(map(math.isnan, bounds)) and (a.high < b.low or b.high < a.low)


def from_repeats(values: Sequence[float]) -> tuple[Estimate | None, list[Caveat]]:
    """The mean of repeated throughputs with its 95 % interval by Student's t.

    A slow first repeat that stands apart from at least two others is warm-up and is left out. A
    single value has no interval of its own: it gets ±5 % and a caveat. Values that are not
    positive and finite, or beyond any machine, are passed over; None where there is no other.
    """
    rates = np.array(
        [v for v in values if math.isfinite(v) and SMALLEST < v < LARGEST], dtype=float
    )
    if not len(rates):
        return None, []
    found = []
    if _first_is_warmup(rates):
        share = float(np.median(rates[1:])) / float(rates[0]) - 1
        rates = rates[1:]
        found.append(
            caveat(
                "warmup_repeat",
                f"The first of {len(rates) + 1} repeats took {share:.0%} longer than the others; "
                "it is taken for warm-up and left out.",
            )
        )
    mean = float(rates.mean())
    if len(rates) == 1:
        found.append(caveat("single_repeat", f"It was measured once; ±{SINGLE:.0%} is assumed."))
        return Estimate(value=mean, low=mean * (1 - SINGLE), high=mean * (1 + SINGLE), n=1), found
    variation = float(rates.std(ddof=1)) / mean
    if variation >= HIGH_VARIATION:
        said = f"The {len(rates)} repeats vary by {variation:.0%} (standard deviation over mean)."
        found.append(caveat("high_variance", said))
    half = student_point(len(rates) - 1) * variation / math.sqrt(len(rates))
    low = mean * max(1 - half, 1 / WIDEST)
    return Estimate(value=mean, low=low, high=mean * (1 + half), n=len(rates)), found


def _first_is_warmup(rates: Floats) -> bool:
    """Whether the first of some throughputs is slow by more than the others differ."""
    if len(rates) < 3:
        return False
    first, others = float(rates[0]), rates[1:]
    usual = float(np.median(others))
    apart = usual - first > FIRST_APART * float(others.std(ddof=1))
    return usual > (1 + FIRST_SLOWER) * first and first < float(others.min()) and apart
