"""Quantiles of distributions, without scipy."""

from __future__ import annotations

from statistics import NormalDist


def student(quantile: float, freedom: float) -> float:
    """A quantile of Student's t by its expansion about the normal one.

    Abramowitz and Stegun, 26.7.5; within 1 % from 3 degrees of freedom on, 3 % low at 2.
    """
    z = NormalDist().inv_cdf(quantile)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
