"""A spot price from its history: a mean over time in which the newest counts."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.catalog.providers.aws.spot import time_weighted_mean

HOUR = 3600.0


def test_an_empty_history_has_no_price() -> None:
    assert time_weighted_mean({}, 0, 10 * HOUR) is None


def test_a_single_point_is_the_price() -> None:
    for moment in (-HOUR, 0.0, 3 * HOUR, 10 * HOUR, 99 * HOUR):
        assert time_weighted_mean({moment: {0.3}}, 0, 10 * HOUR) == pytest.approx(0.3)


def test_two_points_of_one_moment_have_a_finite_mean() -> None:
    mean = time_weighted_mean({5 * HOUR: {0.3, 0.5}}, 0, 5 * HOUR)
    assert mean == pytest.approx(0.4)


def test_the_newest_price_counts_even_at_the_end_of_the_window() -> None:
    mean = time_weighted_mean({0.0: {1.0}, 10 * HOUR: {2.0}}, 0, 10 * HOUR)
    assert mean == pytest.approx((10 * 1 + 1 * 2) / 11)


def test_an_old_price_counts_from_the_start_of_the_window() -> None:
    mean = time_weighted_mean({-1000 * HOUR: {9.0}, 5 * HOUR: {1.0}}, 0, 10 * HOUR)
    assert mean == pytest.approx(5.0)


MOMENTS = st.floats(-1e9, 3e9, allow_nan=False)
HISTORIES = st.dictionaries(
    MOMENTS, st.sets(st.floats(1e-4, 1e3), min_size=1, max_size=3), min_size=1, max_size=8
)


@given(HISTORIES, MOMENTS, MOMENTS)
def test_a_mean_lies_between_the_prices(history: Any, start: float, end: float) -> None:
    mean = time_weighted_mean(history, start, end)
    everyone = [price for some in history.values() for price in some]
    assert mean is not None
    assert math.isfinite(mean)
    assert min(everyone) * 0.999 <= mean <= max(everyone) * 1.001
