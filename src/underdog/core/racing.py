"""Racing: when a running trial can no longer win, so that the rest of its test is not paid for.

The interval of a running trial is looked at again and again, and to stop at the first look that
seems to settle it would stop good trials by bad luck. So the looks share one error level: look k
gets 6 / (pi k)^2 of it, which sums to the whole over any number of looks (Bonferroni over an
infinite sequence; the boundary is that of Robbins' confidence sequences up to a constant), and the
interval is widened from its 95 % to that level by Student's t.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from underdog.core.figures import Figures
from underdog.core.quantiles import student
from underdog.model import Estimate

LEVEL = 0.05  # chance that a trial which would win is ever stopped
FEWEST_EFFECTIVE = 10.0  # independent steps' worth before an interval is believed
FEWEST_SECONDS = 5.0
GROWTH = 1.1  # of the independent steps between two looks that count
_NOMINAL = 0.975  # quantile of the 95 % interval's ends


@dataclass(frozen=True, slots=True)
class Look:
    """What a running trial shows so far.

    Attributes:
        elapsed: seconds since it was started.
        seconds: since its first step.
        rate: samples per second with a 95 % interval; None before there is one.
        effective: how many independent steps would tell the mean as well.
        settled: whether the warm-up is over and the rate no longer drifts.
        figures: all that it has shown; None where its engine does not tell.
    """

    elapsed: float
    seconds: float = 0.0
    rate: Estimate | None = None
    effective: float = 0.0
    settled: bool = False
    figures: Figures | None = None


class Race:
    """The looks at one running trial."""

    def __init__(self, level: float = LEVEL) -> None:
        self._level = level
        self._looks = 0
        self._next = FEWEST_EFFECTIVE

    def highest(self, look: Look) -> float | None:
        """The rate that the trial may have at most, or None where this look does not count.

        Valid over all looks of this race together: the chance that the true rate ever lies above
        a bound given here is at most ``level``.
        """
        rate = look.rate
        if rate is None or not look.settled or look.seconds < FEWEST_SECONDS:
            return None
        if look.effective < self._next or not 0 < rate.value <= rate.high < math.inf:
            return None
        self._looks += 1
        self._next = look.effective * GROWTH
        spent = self._level * 6 / (math.pi * self._looks) ** 2
        freedom = look.effective - 1
        widen = student(1 - spent, freedom) / student(_NOMINAL, freedom)
        # the interval of a rate is exponential: see underdog.core.stats
        return rate.value * math.exp(math.log(rate.high / rate.value) * max(widen, 1.0))


def seconds_left(look: Look, limit: float, precision: float) -> float:
    """How long the test would go on: until the interval is narrow enough, or the time is up.

    The width shrinks with the square root of the time.
    """
    rate = look.rate
    if rate is None or look.seconds <= 0:
        return max(limit - look.elapsed, 0.0)
    half = (rate.high - rate.low) / 2 / rate.value
    needed = look.seconds * max((half / precision) ** 2, 1.0) - look.seconds
    return max(min(limit - look.elapsed, needed), 0.0)
