"""What a job is expected to cost on spot, against simulation and against known limits."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.spot import (
    Habits,
    Market,
    by_deadline,
    cheapest,
    checkpoint_interval,
    interruption_rate,
    on_spot,
)
from underdog.model import Price


def simulated(work: float, rate: float, habits: Habits, interval: float, seed: int) -> float:
    """Paid hours of one run, segment by segment."""
    draw = random.Random(seed)
    paid, done = habits.restart, 0.0
    down = False
    while done < work - 1e-12:
        segment = min(interval, work - done)
        needed = segment + habits.checkpoint + (habits.restart if down else 0.0)
        until = draw.expovariate(rate)
        if until >= needed:
            paid, done, down = paid + needed, done + segment, False
        else:
            paid, down = paid + until, True
    return paid


@pytest.mark.parametrize(
    ("rate", "checkpoint", "restart"), [(0.05, 0.02, 0.1), (0.3, 0.05, 0.2), (0.02, 0.25, 0.0)]
)
def test_the_model_is_the_mean_of_a_simulation(
    rate: float, checkpoint: float, restart: float
) -> None:
    work, interval = 40.0, 2.0
    habits = Habits(checkpoint=checkpoint, restart=restart, interval=interval)
    runs = [simulated(work, rate, habits, interval, seed) for seed in range(4000)]
    mean = sum(runs) / len(runs)
    # Daly pays the restart of every interrupted segment through the exponential of the rate
    assert on_spot(work, rate, habits).paid_hours == pytest.approx(mean, rel=0.03)


@pytest.mark.parametrize("rate", [0.01, 0.2, 1.0])
def test_no_interval_beats_dalys_by_more_than_a_hair(rate: float) -> None:
    habits = Habits(checkpoint=0.05, restart=0.1)
    best = on_spot(100, rate, habits).paid_hours
    others = [
        on_spot(100, rate, Habits(checkpoint=0.05, restart=0.1, interval=x)).paid_hours
        for x in (0.01 * 1.2**i for i in range(50))
    ]
    assert best <= min(others) * 1.001


def test_young_where_checkpoints_are_cheap() -> None:
    assert checkpoint_interval(1e-4, 0.01) == pytest.approx(math.sqrt(2 * 1e-4 / 0.01), rel=0.01)
    assert checkpoint_interval(0.1, 0.0) == math.inf
    assert checkpoint_interval(0.0, 0.5) == 0.0
    assert checkpoint_interval(10.0, 1.0) == 1.0


def test_without_interruptions_nothing_is_lost() -> None:
    run = on_spot(10, 0.0, Habits(checkpoint=0.1, restart=0.5, interval=2))
    assert run.paid_hours == pytest.approx(10 + 0.5 + 5 * 0.1)
    assert run.interruptions == 0


def test_without_checkpoints_a_long_job_may_never_end() -> None:
    assert on_spot(5000, 1.0, Habits(interval=math.inf)).paid_hours == math.inf


@given(st.floats(0.1, 500), st.floats(0, 2), st.floats(0, 1), st.floats(0, 1), st.floats(0, 10))
def test_more_interruptions_never_help(
    work: float, rate: float, checkpoint: float, restart: float, wait: float
) -> None:
    habits = Habits(checkpoint=checkpoint, restart=restart, wait=wait, interval=1.0)
    calm, rough = on_spot(work, rate, habits), on_spot(work, rate * 1.5, habits)
    assert work * (1 - 1e-9) <= calm.paid_hours <= rough.paid_hours * (1 + 1e-9)
    assert calm.hours >= calm.paid_hours


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-15, 1e-9])
def test_next_to_no_interruptions_cost_next_to_nothing(rate: float) -> None:
    for interval in (0.5, None, math.inf):  # a last checkpoint may count or not
        habits = Habits(checkpoint=0.1, restart=0.2, interval=interval)
        never = on_spot(50, 0.0, habits).paid_hours
        assert on_spot(50, rate, habits).paid_hours == pytest.approx(never, abs=0.11)


def test_the_rate_of_interruptions_and_its_interval() -> None:
    none = interruption_rate(0, 100)
    assert none.low == 0
    assert 0 < none.value < none.high
    # exact Poisson limits of 10 events: 4.795 and 18.390
    ten = interruption_rate(10, 100)
    assert (ten.low * 100, ten.high * 100) == pytest.approx((4.795, 18.390), rel=0.005)
    assert ten.low < ten.value < ten.high
    for events, hours in ((-1, 1.0), (1, 0.0), (1, math.nan), (1, math.inf)):
        with pytest.raises(ValueError, match="no rate"):
            interruption_rate(events, hours)


def test_bad_jobs_are_refused() -> None:
    for work, rate in ((0.0, 0.1), (math.nan, 0.1), (math.inf, 0.1), (1.0, -1.0)):
        with pytest.raises(ValueError, match="no job"):
            on_spot(work, rate, Habits())
    with pytest.raises(ValueError, match="negative"):
        Habits(checkpoint=-1)
    with pytest.raises(ValueError, match="negative"):
        Habits(restart=math.nan)


def test_a_market_is_read_tick_by_tick() -> None:
    market = Market.of([True, True, False, True, False, False], 0.5)
    assert market.ups == (1.0, 0.5)
    assert market.availability == 0.5
    assert market.efficiency(0.25) == pytest.approx((0.75 + 0.25) / 1.5)
    assert Market.of([False], 1.0).efficiency(0.1) == 0.0
    with pytest.raises(ValueError, match="nothing was seen"):
        Market.of([], 1.0)


def test_a_market_that_is_always_there_needs_nothing_on_demand() -> None:
    mixed = by_deadline(10, 20, [True] * 100, 1.0, 0.2)
    assert mixed.on_demand_hours == 0
    assert mixed.spot_hours == pytest.approx(10 * 20 / 19.8)


def test_a_market_that_is_never_there_costs_the_price_on_demand() -> None:
    mixed = by_deadline(10, 20, [False] * 100, 1.0, 0.2)
    assert mixed.spot_hours == 0
    assert mixed.on_demand_hours == pytest.approx(10.2)
    with pytest.raises(ValueError, match="do not fit"):
        by_deadline(10, 10, [True], 1.0, 0.2)
    with pytest.raises(ValueError, match="nothing was seen"):
        by_deadline(10, 20, [], 1.0, 0.2)


def test_spot_has_to_be_cheaper_and_known_to_win() -> None:
    steady = on_spot(10, 0.0, Habits())
    rough = on_spot(10, 0.5, Habits(checkpoint=0.1, restart=0.2))
    on_demand, unknown = Price(per_hour=0.44), Price(unknown_reason="no history")
    assert cheapest([(on_demand, steady), (Price(per_hour=0.49), rough)]) == 0
    assert cheapest([(on_demand, steady), (Price(per_hour=0.44), steady)]) == 0
    assert cheapest([(on_demand, steady), (unknown, steady)]) == 0
    assert cheapest([(on_demand, steady), (Price(per_hour=0.2), rough)]) == 1
    assert cheapest([(unknown, steady)]) is None
    never = on_spot(5000, 1.0, Habits(interval=math.inf))
    assert cheapest([(Price(per_hour=0.01), never)]) is None
