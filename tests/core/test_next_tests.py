"""Which machines are worth a test."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.next_tests import diverse, expected_gain


def gain(value: float, width: float, best: float, sign: int = 1) -> float:
    v = np.array([value])
    return float(expected_gain(v, v / width, v * width, best=best, sign=sign)[0])


def test_a_sure_winner_gains_what_it_is_ahead() -> None:
    assert gain(200.0, 1.001, 100.0) == pytest.approx(1.0, rel=1e-3)
    assert gain(50.0, 1.001, 100.0, sign=-1) == pytest.approx(1.0, rel=1e-3)


def test_a_sure_loser_gains_nothing() -> None:
    assert gain(50.0, 1.01, 100.0) == pytest.approx(0.0, abs=1e-6)


@given(st.floats(1, 1e4), st.floats(1.05, 20), st.floats(1, 1e4), st.sampled_from([1, -1]))
def test_more_doubt_never_lowers_the_gain(
    value: float, width: float, best: float, sign: int
) -> None:
    assert 0 <= gain(value, width, best, sign) <= gain(value, width * 2, best, sign) + 1e-9


def test_an_unknown_is_not_worth_a_test() -> None:
    assert np.isnan(gain(float("nan"), 2.0, 1.0))


def test_a_utility_may_be_negative() -> None:
    value, low, high = (np.array([v]) for v in (-2.0, -6.0, 2.0))
    assert 0 < expected_gain(value, low, high, best=-4.0, sign=1)[0] < 1


def test_not_five_sizes_of_one_family() -> None:
    gains, cost = np.array([0.9, 0.8, 0.5, 0.5, 0.001]), np.array([1.0, 1.0, 9.0, 2.0, 1.0])
    assert diverse(gains, cost, ["a", "a", "b", "c", "d"], 5) == [0, 3, 2]
    assert diverse(gains, cost, ["a", "a", "b", "c", "d"], 1) == [0]


def test_the_range_of_a_double_is_not_left() -> None:
    huge = np.array([1e200])
    assert 0 < expected_gain(huge, huge / 2, huge * 2, best=1e200, sign=1)[0] < 1
