"""Telling estimates apart, and estimates from repeats: cases C4 and C5 of choosing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.compare import distinguishable, from_repeats
from underdog.model import Estimate


def estimate(low: float, high: float) -> Estimate:
    return Estimate(value=(low + high) / 2, low=low, high=high, n=5)


def test_overlap_is_not_distinguishable() -> None:
    assert not distinguishable(estimate(1, 3), estimate(2, 4))
    assert not distinguishable(estimate(1, 2), estimate(2, 3))
    assert distinguishable(estimate(1, 2), estimate(2.1, 3))
    assert distinguishable(estimate(2.1, 3), estimate(1, 2))
    assert not distinguishable(estimate(1, math.nan), estimate(2, 3))


def test_students_t() -> None:
    found, caveats = from_repeats([100.0, 102.0, 98.0, 101.0, 99.0])
    assert found is not None
    half = 2.776 * math.sqrt(2.5) / math.sqrt(5)
    assert found.value == pytest.approx(100)
    assert found.high - found.value == pytest.approx(half, rel=1e-3)
    assert found.value - found.low == pytest.approx(half, rel=1e-3)
    assert (found.n, caveats) == (5, [])


def test_a_slow_first_repeat_is_warm_up() -> None:
    """Case C4."""
    found, caveats = from_repeats([80.0, 100.0, 101.0, 99.0, 100.0])
    assert found is not None
    assert (found.n, found.value) == (4, pytest.approx(100))
    assert [c.code for c in caveats] == ["warmup_repeat"]
    for kept in ([100.0, 80.0, 101.0, 99.0, 100.0], [95.0, 100.0, 101.0, 99.0, 100.0]):
        same, _ = from_repeats(kept)
        assert same is not None
        assert same.n == 5


def test_repeats_that_vary_by_37_percent_are_no_winner() -> None:
    """Case C5."""
    rates = np.array([60.0, 145.0, 75.0, 140.0, 80.0])
    assert rates.std(ddof=1) / rates.mean() == pytest.approx(0.397, abs=0.03)
    found, caveats = from_repeats(rates.tolist())
    other, _ = from_repeats((rates * 1.3).tolist())
    assert found is not None
    assert other is not None
    assert found.n == 5
    assert [c.code for c in caveats] == ["high_variance"]
    assert not distinguishable(found, other)


def test_one_value_has_an_assumed_interval_and_says_so() -> None:
    found, caveats = from_repeats([50.0])
    assert found == Estimate(value=50.0, low=47.5, high=52.5, n=1)
    assert [c.code for c in caveats] == ["single_repeat"]


@given(st.lists(st.floats(), max_size=8))
def test_no_input_gives_a_number_that_is_none(values: list[float]) -> None:
    found, _ = from_repeats(values)
    assert (found is None) == (not any(math.isfinite(v) and 1e-100 < v < 1e100 for v in values))
    if found is not None:
        assert 0 <= found.low <= found.value <= found.high < math.inf


@given(st.lists(st.floats(0.1, 1e3), min_size=1, max_size=8), st.sampled_from([0.25, 2.0, 1024.0]))
def test_scale(values: list[float], factor: float) -> None:
    one, other = from_repeats(values)[0], from_repeats([v * factor for v in values])[0]
    assert one is not None
    assert other is not None
    assert (other.value, other.low, other.high) == pytest.approx(
        (one.value * factor, one.low * factor, one.high * factor)
    )
