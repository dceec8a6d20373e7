"""Which machines to test next: those that may beat the best measured one by the most.

The expected improvement over the best measured value (Jones, Schonlau, Welch: Efficient Global
Optimization, J. Global Optimization 13, 1998), taken on the logarithm: a prediction is lognormal,
and its mean would reward sheer ignorance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TEST_MINUTES = 10.0  # start, warm-up and a measurement to 2 %
_Z95 = 1.959964


def expected_gain(value: Floats, low: Floats, high: Floats, *, best: float, sign: int) -> Floats:
    """Expected improvement over ``best`` as a fraction of it, shape (n,); NaN where unknown.

    Args:
        value, low, high: the predicted utility with its 95 % interval, shape (n,).
        best: the best measured utility.
        sign: 1 where higher is better, -1 where lower is.
    """
    if not best > 0:
        return _normal_gain(value, low, high, best, sign)
    with np.errstate(invalid="ignore", divide="ignore"):
        sigma = (np.log(high) - np.log(low)) / (2 * _Z95)
        center = (np.log(high) + np.log(low)) / 2
        # a cost to be beaten from below is a benefit of 1 / cost
        center, level = (center, math.log(best)) if sign > 0 else (-center, -math.log(best))
        z = (center - level) / sigma
        gain = _phi(z) * sigma + (center - level) * _cdf(z)
        known = (low > 0) & (sigma > 0)
    # a sure loser's gain is zero but for rounding
    return np.where(known, np.expm1(np.clip(gain, 0.0, 50.0)), np.nan)


def _normal_gain(value: Floats, low: Floats, high: Floats, best: float, sign: int) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        sigma = (high - low) / (2 * _Z95)
        above = sign * (value - best)
        z = above / sigma
        gain = above * _cdf(z) + sigma * _phi(z)
        return np.where(sigma > 0, np.maximum(gain, 0.0) / abs(best) if best else np.nan, np.nan)


def _phi(z: Floats) -> Floats:
    return np.exp(-np.square(z) / 2) / math.sqrt(2 * math.pi)


def _cdf(z: Floats) -> Floats:
    erf = np.frompyfunc(math.erf, 1, 1)
    return (1 + np.asarray(erf(z / math.sqrt(2)), dtype=float)) / 2


def diverse(
    gain: Floats, cost: Floats, family: Sequence[str], count: int, least: float = 0.01
) -> list[int]:
    """The ``count`` most promising offers, one of each family; the cheaper test of equal gains.

    Args:
        gain: expected improvement, NaN where unknown.
        cost: of the test, in dollars; NaN where the price is unknown.
        family: what makes offers alike: the accelerator, or the processor's family.
        least: a smaller gain is not worth a test.

    Returns:
        Indices, the most promising first.
    """
    ranked = np.lexsort((cost, -np.nan_to_num(np.round(gain, 3), nan=-1.0)))
    chosen: dict[str, int] = {}
    for index in ranked:
        if not gain[index] >= least or len(chosen) == count:
            break
        chosen.setdefault(family[index], int(index))
    return list(chosen.values())
