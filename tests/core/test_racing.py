"""Racing: the chance of stopping a winner stays under its level, and losers are stopped."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.quantiles import student
from underdog.core.racing import LEVEL, Look, Race, seconds_left
from underdog.model import Estimate


def look_at(rates: np.ndarray, settled: bool = True) -> Look:
    """What independent steps of those rates, one a second, say of their mean."""
    count, mean = len(rates), float(rates.mean())
    half = student(0.975, count - 1) * float(rates.std(ddof=1)) / math.sqrt(count)
    factor = math.exp(half / mean)
    rate = Estimate(value=mean, low=mean / factor, high=mean * factor, n=count)
    return Look(float(count), float(count), rate, float(count), settled)


def lost_after(true: float, rival: float, seed: int, steps: int = 2000) -> int | None:
    """After how many steps a trial is stopped that must beat ``rival``; None: never."""
    draw = np.random.default_rng(seed)
    rates = draw.normal(true, 0.2 * true, steps)
    race = Race()
    for count in range(3, steps):  # a look after each step: the most tempting of all
        highest = race.highest(look_at(rates[:count]))
        if highest is not None and highest < rival:
            return count
    return None


def test_a_trial_that_is_as_good_is_seldom_stopped_however_often_it_is_looked_at() -> None:
    stopped = sum(lost_after(100.0, 100.0, seed, 400) is not None for seed in range(200))
    assert stopped <= 2 * LEVEL * 200  # the level is a bound, and twice it is far out


def test_a_clear_loser_is_stopped_soon_and_a_close_one_later() -> None:
    half = [lost_after(50.0, 100.0, seed) for seed in range(20)]
    near = [lost_after(90.0, 100.0, seed) for seed in range(20)]
    assert all(count is not None and count <= 15 for count in half)
    assert all(count is not None for count in near)
    assert np.median(np.array(near, float)) > 2 * np.median(np.array(half, float))


@pytest.mark.parametrize(
    "look",
    [
        Look(30.0),
        Look(30.0, 30.0, Estimate(value=1, low=0.9, high=1.1, n=50), 50.0, settled=False),
        Look(30.0, 2.0, Estimate(value=1, low=0.9, high=1.1, n=50), 50.0, settled=True),
        Look(30.0, 30.0, Estimate(value=1, low=0.9, high=1.1, n=50), 5.0, settled=True),
        Look(30.0, 30.0, Estimate(value=1, low=0.9, high=math.inf, n=50), 50.0, settled=True),
        Look(30.0, 30.0, Estimate(value=math.nan, low=0.9, high=1.1, n=50), 50.0, settled=True),
    ],
)
def test_what_is_not_known_yet_stops_nothing(look: Look) -> None:
    assert Race().highest(look) is None


@given(st.floats(1e-6, 1e6), st.floats(0.001, 1.0), st.integers(11, 10_000))
def test_the_bound_is_never_below_the_interval(value: float, half: float, count: int) -> None:
    rate = Estimate(value=value, low=value * (1 - half / 2), high=value * (1 + half), n=count)
    highest = Race().highest(Look(60.0, 60.0, rate, float(count), True))
    assert highest is not None
    assert highest >= rate.high * (1 - 1e-12)


def test_later_looks_have_less_of_the_level_each() -> None:
    race, ratios = Race(), []
    for count in (20, 40, 80, 160):
        rate = Estimate(value=100.0, low=99.0, high=101.0, n=count)
        highest = race.highest(Look(60.0, 60.0, rate, float(count) * 100, True))
        assert highest is not None
        ratios.append(highest)
    assert ratios == sorted(ratios)


def test_two_looks_at_the_same_steps_count_once() -> None:
    race = Race()
    look = look_at(np.linspace(90, 110, 40))
    assert race.highest(look) is not None
    assert race.highest(look) is None


def test_what_is_left_of_a_test() -> None:
    rate = Estimate(value=100.0, low=96.0, high=104.0, n=50)
    look = Look(12.0, 10.0, rate, 50.0, True)
    assert seconds_left(look, limit=120.0, precision=0.02) == pytest.approx(30.0)  # 4 % to 2 %
    assert seconds_left(look, limit=20.0, precision=0.02) == pytest.approx(8.0)
    assert seconds_left(look, limit=120.0, precision=0.5) == 0.0
    assert seconds_left(Look(12.0), limit=120.0, precision=0.02) == pytest.approx(108.0)
