"""Utilities of a search: the value of a throughput at a price, higher is better.

Each is a function of throughput (..., n) in 1/s and price (n,) in USD per hour of the whole offer,
to a value (..., n); NaN where an unknown price hides it, -inf where a constraint does not hold.
"""

from __future__ import annotations

import numpy as np

from underdog.core.search_records import Floats, Utility
from underdog.errors import UsageError


def samples_per_dollar(throughput: Floats, price: Floats) -> Floats:
    """Samples per USD."""
    return np.asarray(throughput * 3600.0 / price, dtype=float)


def fastest(throughput: Floats, price: Floats) -> Floats:
    """The throughput itself, whatever it costs."""
    return np.asarray(throughput + 0.0 * np.nan_to_num(price), dtype=float)


def cheapest_above(floor: float) -> Utility:
    """The cheapest offer that makes at least ``floor`` per second: the value is 1 / price.

    Raises:
        UsageError: a floor that is not positive and finite.
    """
    _positive(floor, "throughput floor")

    def value(throughput: Floats, price: Floats) -> Floats:
        return np.where(throughput >= floor, 1.0 / price, -np.inf)

    return value


def soonest_within(samples: float, dollars: float) -> Utility:
    """The soonest end of a job of ``samples`` that costs at most ``dollars``: jobs per hour.

    Raises:
        UsageError: an amount that is not positive and finite.
    """
    _positive(samples, "number of samples")
    _positive(dollars, "budget")

    def value(throughput: Floats, price: Floats) -> Floats:
        hours = samples / throughput / 3600.0
        return np.where(hours * price <= dollars, 1.0 / hours, -np.inf)

    return value


def cheapest_within(samples: float, hours: float) -> Utility:
    """The cheapest run of a job of ``samples`` that ends within ``hours``: jobs per USD.

    Raises:
        UsageError: an amount that is not positive and finite.
    """
    _positive(samples, "number of samples")
    _positive(hours, "deadline")

    def value(throughput: Floats, price: Floats) -> Floats:
        needed = samples / throughput / 3600.0
        return np.where(needed <= hours, 1.0 / (needed * price), -np.inf)

    return value


def _positive(value: float, what: str) -> None:
    if not (np.isfinite(value) and value > 0):
        raise UsageError(f"A {what} must be positive and finite, not '{value}'.")
