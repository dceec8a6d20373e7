"""Many markets at once: the same as one after the other, and what must hold of all of them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from underdog.core import spot_markets, spot_policy
from underdog.core.availability import gamma_ends
from underdog.core.spot_markets import (
    TICK,
    Jobs,
    Outcomes,
    Way,
    alone,
    around,
    markets,
    replay,
    simulate,
    spread,
)
from underdog.model import Estimate

TICKS, MOST_TICKS = 60, spot_markets.TICKS[1]
MARKETS = st.lists(st.lists(st.booleans(), min_size=TICKS, max_size=TICKS), min_size=1, max_size=4)


def exactly(value: float) -> Estimate:
    return Estimate(value=value, low=value, high=value, n=1)


HABITS = st.sampled_from([(1.0, 0.0), (0.9, 0.3), (0.95, 4.0)])  # pace and redo


def jobs(
    count: int,
    share: float,
    changeover: float,
    habits: tuple[float, float] = (1.0, 0.0),
    deadline: float = 30.0,
) -> Jobs:
    work = min(share * deadline, deadline - changeover)
    pace, redo = habits
    figures = {"work": work, "changeover": changeover, "pace": pace, "redo": redo}
    return Jobs(deadline=deadline, **{n: np.full(count, value) for n, value in figures.items()})


def one_of(made: Jobs, deadline: float) -> spot_policy.Job:
    named = ("work", "changeover", "pace", "redo")
    return spot_policy.Job(
        deadline=deadline, **{name: float(getattr(made, name)[0]) for name in named}
    )


@settings(max_examples=25)
@given(MARKETS, st.floats(0.05, 0.99), st.floats(0, 2), HABITS)
def test_it_does_what_the_policy_does_one_market_after_the_other(
    drawn: list[list[bool]], share: float, changeover: float, habits: tuple[float, float]
) -> None:
    made = jobs(len(drawn), share, changeover, habits)
    tick = made.deadline / TICKS
    runs = replay(made, np.array(drawn).T, tick)
    job = one_of(made, 30.0)
    states = [spot_policy.replay(job, market, tick) for market in drawn]
    for name in ("progress", "spot_hours", "on_demand_hours"):
        assert getattr(runs, name) == pytest.approx([getattr(s, name) for s in states], abs=1e-6)


@settings(max_examples=25)
@given(MARKETS, st.floats(0.05, 0.99), st.floats(0, 2), HABITS)
def test_spot_alone_is_the_greedy_rule_without_a_deadline(
    drawn: list[list[bool]], share: float, changeover: float, habits: tuple[float, float]
) -> None:
    made = jobs(len(drawn), share, changeover, habits)
    tick = made.deadline / TICKS
    progress, hours = alone(made, np.array(drawn).T, tick)
    job = one_of(made, 1e6)

    def greedy(job: spot_policy.Job, state: spot_policy.State, there: bool) -> spot_policy.Place:
        return spot_policy.SPOT if there else spot_policy.IDLE

    states = [spot_policy.replay(job, market, tick, greedy) for market in drawn]
    assert progress == pytest.approx([s.progress for s in states], abs=1e-6)
    assert hours == pytest.approx([s.spot_hours for s in states], abs=1e-6)


WAYS = st.builds(
    Way,
    work=st.floats(0.5, 0.95).map(lambda share: exactly(48 * share)),
    pace=st.floats(0.8, 1.0),
    redo=st.floats(0, 1),
    changeover=st.floats(0, 0.5),
    wait=st.floats(0, 0.5),
    gap=st.floats(0.05, 8),
    interruptions=st.floats(0.001, 4).map(
        lambda rate: Estimate(value=rate, low=rate * 0.02, high=rate * 3.5, n=1)
    ),
    spot_price=st.floats(0.05, 0.95),
    on_demand_price=st.just(1.0),
)


@settings(max_examples=15)
@given(WAYS, st.floats(1, 1000), st.integers(0, 9))
def test_no_deadline_is_missed_where_it_leaves_time_for_a_start(
    way: Way, deadline: float, seed: int
) -> None:
    share = way.work.value / 48
    made = dataclasses.replace(way, work=exactly(share * deadline))
    (found,) = simulate([made], deadline, seed, paths=12)
    piece = min(deadline, TICK * MOST_TICKS)
    if share * piece + way.changeover + way.wait <= piece:
        assert found.mixed.in_time == 1
    assert found.spot.in_time <= found.mixed.in_time <= found.on_demand.in_time


@settings(max_examples=15)
@given(WAYS, st.integers(0, 9))
def test_the_cost_lies_between_spot_that_never_goes_and_all_on_demand(way: Way, seed: int) -> None:
    (found,) = simulate([way], 48.0, seed, paths=12)
    work = way.work.value
    assert found.mixed.dollars.value >= way.spot_price * work - 1e-9
    assert found.spot.dollars.value >= way.spot_price * work - 1e-9
    assert found.on_demand.dollars.value == pytest.approx(work)
    # the hours beyond those of the work are of starts, and of spot that was lost again
    hours = found.mixed.spot_hours + found.mixed.on_demand_hours
    assert work - 1e-9 <= hours <= 48 + 1e-6


def usual(**more: object) -> Way:
    made: dict[str, object] = {
        "work": exactly(38.4),
        "pace": 1.0,
        "redo": 0.0,
        "changeover": 0.2,
        "wait": 0.0,
        "gap": 1.8,
        "interruptions": Estimate(value=0.54, low=0.0091, high=1.9, n=0),
        "spot_price": 0.3,
        "on_demand_price": 1.0,
    }
    return Way(**(made | more))  # type: ignore[arg-type]


def one(**more: object) -> Outcomes:
    (found,) = simulate([usual(**more)], 48.0, 0)
    return found


def test_the_worse_the_market_the_dearer_it_gets() -> None:
    costs = [one(gap=gap).mixed.dollars.value for gap in (0.1, 0.5, 2.0, 8.0)]
    assert costs == sorted(costs)
    found = one()
    assert 0.3 * 38.4 < found.mixed.dollars.value < 38.4
    assert found.mixed.dollars.low < found.mixed.dollars.value < found.mixed.dollars.high
    assert (found.mixed.in_time, found.on_demand.in_time) == (1, 1)
    assert found.spot.in_time < 0.5


def test_where_spot_stays_it_is_spot_alone() -> None:
    found = one(interruptions=exactly(1e-9))
    assert found.mixed == found.spot
    assert found.mixed.dollars.value == pytest.approx(0.3 * 38.6)


def test_the_same_seed_gives_the_same_and_another_one_nearly_the_same() -> None:
    ways = [usual(), usual(gap=0.5)]
    assert simulate(ways, 48.0, 1) == simulate(ways, 48.0, 1)
    seen = [simulate(ways, 48.0, seed)[0].mixed.dollars.value for seed in range(5)]
    assert np.std(seen) < 0.05 * np.mean(seen)


def test_a_long_job_costs_in_proportion() -> None:
    (short,) = simulate([usual(work=exactly(45.0))], 60.0, 0)
    (long,) = simulate([usual(work=exactly(450.0))], 600.0, 0)
    assert long.mixed.dollars.value == pytest.approx(10 * short.mixed.dollars.value)


def test_an_uncertain_throughput_makes_the_deadline_uncertain() -> None:
    found = one(work=Estimate(value=44.0, low=36.0, high=54.0, n=1))
    assert 0.5 < found.mixed.in_time <= found.on_demand.in_time < 1


@given(st.floats(0.6, 50), st.floats(0.01, 10))
def test_rates_are_spread_as_the_interval_says(shape: float, mean: float) -> None:
    low, high = gamma_ends(shape)
    told = Estimate(value=mean, low=mean * low, high=mean * high, n=1)
    drawn = spread(told, 400, np.random.default_rng(0))
    assert drawn.mean() == pytest.approx(mean)
    assert np.quantile(drawn, 0.975) == pytest.approx(told.high, rel=0.1)
    assert np.quantile(drawn, 0.025) == pytest.approx(told.low, rel=0.1, abs=0.05 * mean)


def test_a_rate_that_is_certain_and_one_of_nothing_are_taken_as_they_are() -> None:
    generator = np.random.default_rng(0)
    for value in (0.0, 0.3):
        assert spread(exactly(value), 5, generator) == pytest.approx([value] * 5)
    assert around(exactly(3.0), 5, generator) == pytest.approx([3.0] * 5)


def test_markets_stay_and_go_as_long_as_they_are_said_to() -> None:
    rates, gaps = np.full((1, 400), 0.5), np.array([[2.0]])
    there = np.array(list(markets(rates, gaps, 400, 0.1, np.random.default_rng(0))))
    assert there.mean() == pytest.approx(1 / (1 + 0.5 * 2.0), abs=0.03)
    ends = (there[:-1] & ~there[1:]).sum() / there[:-1].sum()
    assert ends == pytest.approx(-math.expm1(-0.05), rel=0.05)


def test_no_market_is_no_answer() -> None:
    assert simulate([], 48.0, 0) == []
    with pytest.raises(ValueError, match="no market"):
        replay(jobs(1, 0.5, 0.1), [], 0.1)
