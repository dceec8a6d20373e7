"""Changes of level: none where there is none, and where they are where there are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.change import change_point, last_change

LENGTHS = (5, 6, 8, 13, 30, 60)


def noise(size: int, seed: int, spread: float, kind: str = "normal") -> np.ndarray:
    draw = np.random.default_rng(seed)
    units = {
        "normal": lambda: draw.standard_normal(size),
        "uniform": lambda: draw.uniform(-1, 1, size) * 3**0.5,
        "laplace": lambda: draw.laplace(size=size) / 2**0.5,
    }[kind]()
    return 100 * np.exp(spread * units)


@pytest.mark.parametrize("kind", ["normal", "uniform", "laplace"])
@pytest.mark.parametrize("size", LENGTHS)
def test_at_most_one_in_twenty_alarms_on_noise_is_false(size: int, kind: str) -> None:
    # spread so wide that the least change that counts rules out next to nothing
    found = [change_point(noise(size, seed, 0.2, kind)) for seed in range(400)]
    assert sum(one is not None for one in found) <= 0.05 * len(found)


@given(size=st.integers(5, 60), seed=st.integers(0, 2**32), spread=st.floats(1e-4, 0.008))
def test_noise_of_one_percent_never_alarms(size: int, seed: int, spread: float) -> None:
    assert change_point(noise(size, seed, spread)) is None


@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_fall_of_a_fifth_is_found_where_it_is(data: st.DataObject, seed: int) -> None:
    size = data.draw(st.integers(8, 60))
    at = data.draw(st.integers(2, size - 2))
    values = noise(size, seed, 0.02)
    values[at:] *= 0.8
    found = change_point(values)
    assert found is not None
    # an odd value next to the fall may move it by one
    assert abs(found.at - at) <= 1
    assert found.ratio == pytest.approx(0.8, rel=0.08)


@given(scale=st.floats(1e-6, 1e9), seed=st.integers(0, 999))
def test_the_unit_does_not_matter(scale: float, seed: int) -> None:
    values = noise(12, seed, 0.02)
    values[7:] *= 1.3
    one, other = change_point(values), change_point(values * scale)
    assert one is not None
    assert other is not None
    assert one.at == other.at


def test_one_odd_run_is_no_change() -> None:
    assert change_point([100, 101, 100, 99, 100, 60]) is None
    assert change_point([60, 100, 101, 100, 99, 100]) is None


def test_too_few_tell_nothing() -> None:
    assert change_point([100, 100, 50, 50]) is None
    assert change_point([]) is None


def test_a_constant_series_has_no_change_and_a_clean_step_has() -> None:
    assert change_point([100.0] * 10) is None
    found = change_point([100.0] * 5 + [150.0] * 5)
    assert found is not None
    assert (found.at, round(found.ratio, 6)) == (5, 1.5)


def test_less_than_runs_differ_by_is_no_change() -> None:
    assert change_point([100.0] * 10 + [97.0] * 10) is None


def test_of_several_changes_the_last_one_counts() -> None:
    values = [*noise(10, 1, 0.01), *(noise(10, 2, 0.01) * 1.5), *(noise(10, 3, 0.01) * 1.2)]
    found = last_change(values)
    assert found is not None
    assert found.at == 20
    assert found.ratio == pytest.approx(0.8, rel=0.02)
