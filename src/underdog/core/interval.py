"""A 95 % confidence interval of the mean of a series whose terms depend on each other.

The series is cut into batches, whose means are close to a first-order autoregression whatever the
series is (Fishman: Grouping observations in digital simulation, Management Science 24, 1978). How
strongly they depend on each other, φ, is not known well from so few: the error of the mean is
therefore taken over all φ, each weighed by its likelihood (exact, Gaussian), instead of at one
estimate of it. Given φ it is Student's t. ``benchmarks/intervals.py`` shows how often the interval
holds the truth.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Batches: many tell φ well, few leave less of a dependence that is no autoregression. From a
# thousand steps on both are had.
FEWEST_BATCHES, MOST_BATCHES, BATCH_STEPS = 32, 64, 16
ROUNDING = 1e-11  # of the largest term: differences of times, which are rounded, vary by less
CONFIDENCE = 0.95
# The prior of φ is (1 - φ²)^-PRIOR: 0 is flat, 1/2 the reference prior (Berger and Yang,
# Econometric Theory 10, 1994). Between the two, coverage at 50 steps is nearest to 95 % over all φ.
PRIOR = 0.25
_GRID = np.tanh(np.linspace(math.atanh(-0.99), math.atanh(0.999), 81))


class MeanError(NamedTuple):
    """How far the mean of a series may be from the truth."""

    half_width: float  # of the 95 % interval, in the unit of the series
    standard_error: float  # that Student's t would need for this half-width
    effective: float  # so many independent terms would tell the mean as well


def mean_error(series: Floats) -> MeanError | None:
    """The error of the mean of a series, None for fewer than three terms.

    Args:
        series: finite numbers, shape (n,).
    """
    size = len(series)
    if size < 3:
        return None
    scale = float(np.abs(series).max())
    if scale == 0 or not math.isfinite(scale):
        return MeanError(0.0, 0.0, float(size)) if scale == 0 else None
    centred = series / scale
    centred = centred - centred.mean()
    variance = float(centred.var(ddof=1))
    length = batch_length(size)
    means = batch_means(centred, length)
    if variance < ROUNDING**2 or float(np.ptp(means)) < ROUNDING:
        return MeanError(0.0, 0.0, float(size))
    weights, scales = _posterior(means - means.mean())
    scales = scales * _shrinkage(length)
    half = _quantile(weights, scales, len(means) - 1)
    spread = half / student_point(len(means) - 1)
    effective = min(float(size), max(1.0, variance / spread**2))
    return MeanError(half * scale, spread * scale, effective)


@functools.lru_cache(maxsize=256)
def student_point(freedom: int) -> float:
    """The two-sided 95 % point of Student's t."""
    return _quantile(np.ones(1), np.ones(1), freedom)


def batch_length(size: int) -> int:
    """Terms per batch for a series of that size."""
    batches = min(MOST_BATCHES, max(FEWEST_BATCHES, size // BATCH_STEPS))
    return -(-size // batches)


def batch_means(series: Floats, length: int) -> Floats:
    """Means of batches of one length; a rest at the start is left out."""
    count = len(series) // length
    means: Floats = series[len(series) - count * length :].reshape(count, length).mean(axis=1)
    return means


def _posterior(y: Floats) -> tuple[Floats, Floats]:
    """Weight of each φ of the grid, and the standard error of the mean under it.

    Args:
        y: a stationary autoregression with its mean taken off, shape (n,).
    """
    n, phi = len(y), _GRID
    head, tail = y[:-1], y[1:]
    information = (1 - phi**2) + (n - 1) * (1 - phi) ** 2  # of the mean, over the noise's variance
    squares = (
        (1 - phi**2) * y[0] ** 2 + tail @ tail - 2 * phi * (tail @ head) + phi**2 * (head @ head)
    )
    shift = (1 - phi**2) * y[0] + (1 - phi) * (tail.sum() - phi * head.sum())
    residual = np.maximum(squares - shift**2 / information, 1e-300)
    # dφ is 1 - φ² on a grid that is even in atanh φ
    log_weight = (
        0.5 * np.log(1 - phi**2)
        - 0.5 * np.log(information)
        - (n - 1) / 2 * np.log(residual)
        + (1 - PRIOR) * np.log(1 - phi**2)
    )
    weights = np.exp(log_weight - log_weight.max())
    return weights / weights.sum(), np.sqrt(residual / ((n - 1) * information))


@functools.lru_cache(maxsize=256)
def _shrinkage(length: int) -> Floats:
    """By what the standard error is less than that of an autoregression of the batch means.

    Means of an autoregression are none: behind their correlation ρ at lag 1 the others die out
    faster than ρ^k. The factor is the square root of the ratio of the two variances of a long mean,
    for each φ of the grid as ρ; it follows from the sums of φ^k over one batch and its neighbour.
    """
    inner = 1 - np.geomspace(1, 1e-5, 1000)  # φ of the terms
    m, rest = length, 1 - inner
    within = m * (1 + inner) / rest - 2 * inner * (1 - inner**m) / rest**2
    between = inner * (1 - inner**m) ** 2 / rest**2
    correlation = between / within
    true = m * (1 + inner) / rest / within
    ratio = true * (1 - correlation) / (1 + correlation)
    factor: Floats = np.sqrt(np.interp(_GRID, correlation, ratio, left=1.0))
    return factor


def _quantile(weights: Floats, scales: Floats, freedom: int) -> float:
    """The upper 2.5 % point of a mixture of Student's t, by bisection."""
    argument, probability = _student(freedom)
    target = (1 + CONFIDENCE) / 2
    low, high = 0.0, float(scales.max()) * 1000
    for _ in range(50):
        middle = (low + high) / 2
        reached = weights @ np.interp(middle / scales, argument, probability)
        low, high = (middle, high) if reached < target else (low, middle)
    return high


@functools.lru_cache(maxsize=256)
def _student(freedom: int) -> tuple[Floats, Floats]:
    """Student's distribution function for positive arguments, as a table."""
    argument = np.concatenate((np.linspace(0, 8, 801), np.geomspace(8.01, 1e4, 400)))
    constant = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))
    density = np.exp(-(freedom + 1) / 2 * np.log1p(argument**2 / freedom))
    density *= constant / math.sqrt(freedom * math.pi)
    pieces = (density[1:] + density[:-1]) / 2 * np.diff(argument)
    return argument, 0.5 + np.concatenate(([0.0], np.cumsum(pieces)))
