"""The order of offers, and what cannot be told apart."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.rank import order, ties


def ordered(goodness: list[list[float]], tolerance: float = 0.0) -> list[int]:
    arrays = [np.array(g, dtype=float) for g in goodness]
    count = len(arrays[0])
    measured = np.ones(count, dtype=bool)
    return order(arrays, tolerance=tolerance, measured=measured).tolist()


@given(st.lists(st.integers(0, 5).map(float), max_size=30))
def test_more_is_better_and_equals_keep_their_order(values: list[float]) -> None:
    expected = sorted(range(len(values)), key=lambda i: (-values[i], i))
    assert ordered([values]) == expected


def test_the_second_term_decides_within_the_tolerance() -> None:
    cost, hours = [-10.0, -10.9, -10.5, -12.0], [-9.0, -2.0, -5.0, -1.0]
    assert ordered([cost, hours], tolerance=0.1) == [1, 2, 0, 3]
    assert ordered([cost, hours]) == [0, 2, 1, 3]


def test_no_guess_leads_while_anything_was_measured() -> None:
    cost, hours = np.array([-1.0, -10.0, -10.5]), np.array([-9.0, -9.0, -2.0])
    measured = np.array([False, True, True])
    found = order([cost, hours], tolerance=0.1, measured=measured)
    assert found.tolist() == [2, 1, 0]


def test_overlapping_intervals_are_ties() -> None:
    value, shape = np.array([10.0, 9.0, 5.0]), np.array([0, 1, 2])
    low, high = np.array([8.0, 7.0, 4.0]), np.array([12.0, 11.0, 6.0])
    assert ties(value, low, high, shape) == [[1], [0], []]


def test_one_measurement_at_two_prices_is_no_tie() -> None:
    value, shape = np.array([10.0, 9.0]), np.array([0, 0])
    assert ties(value, value * 0.5, value * 1.5, shape) == [[], []]


@given(st.lists(st.integers(2, 9), min_size=2, max_size=20), st.floats(1e-3, 1e6))
def test_rounding_does_not_choose_between_equals(parts: list[int], value: float) -> None:
    equal = np.array([value * part * 0.1 / part / 0.1 for part in parts])
    assert ordered([equal.tolist()]) == list(range(len(parts)))
