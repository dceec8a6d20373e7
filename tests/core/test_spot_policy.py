"""The deadline policy: ready in time whatever the market does."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.spot_policy import IDLE, ON_DEMAND, SPOT, Job, State, decide, replay

RUNS = st.lists(st.integers(1, 60), min_size=1, max_size=40)


def market(runs: list[int], first: bool, ticks: int) -> list[bool]:
    flips = itertools.chain.from_iterable(
        [first ^ bool(i % 2)] * length for i, length in enumerate(runs)
    )
    seen = list(flips)[:ticks]
    return seen + [False] * (ticks - len(seen))


@given(
    RUNS,
    st.booleans(),
    st.floats(0.05, 0.99),
    st.floats(0, 2),
    st.sampled_from([0.1, 0.5, 1]),
    st.floats(0.5, 1),
    st.floats(0, 5),
)
def test_no_deadline_is_missed(
    runs: list[int],
    first: bool,
    fraction: float,
    changeover: float,
    tick: float,
    pace: float,
    redo: float,
) -> None:
    deadline = 48.0
    work = min(fraction * deadline, deadline - changeover)
    job = Job(work=work, deadline=deadline, changeover=changeover, pace=pace, redo=redo)
    state = replay(job, market(runs, first, round(deadline / tick)), tick)
    assert state.progress == pytest.approx(work)
    assert state.now <= deadline + 1e-6
    assert state.spot_hours + state.on_demand_hours >= work - 1e-6


def test_all_on_spot_where_it_never_goes_away() -> None:
    state = replay(Job(work=30, deadline=48, changeover=0.2), [True] * 480, 0.1)
    assert state.on_demand_hours == 0
    assert state.spot_hours == pytest.approx(30.2)
    assert state.starts == 1


def test_all_on_demand_where_it_never_comes() -> None:
    state = replay(Job(work=30, deadline=48, changeover=0.2), [False] * 480, 0.1)
    assert state.spot_hours == 0
    assert state.on_demand_hours >= 30.2


def test_ahead_of_the_line_it_waits_and_behind_it_does_not() -> None:
    job = Job(work=24, deadline=48, changeover=0.1)
    assert decide(job, State(now=10, progress=6), False, 0.1) == IDLE
    assert decide(job, State(now=10, progress=4), False, 0.1) == ON_DEMAND
    assert decide(job, State(now=10, progress=4), True, 0.1) == SPOT


def test_with_no_time_to_lose_spot_is_no_choice() -> None:
    job = Job(work=24, deadline=25, changeover=0.5)
    assert decide(job, State(now=0.4), True, 0.2) == ON_DEMAND


def test_spot_that_never_stays_is_not_worth_leaving_on_demand_for() -> None:
    job = Job(work=24, deadline=48, changeover=0.5)
    on_demand = State(now=10, progress=5.2, place=ON_DEMAND, ups=[0.1, 0.2, 0.1])
    assert decide(job, on_demand, True, 0.1) == ON_DEMAND
    on_demand.ups = [4.0, 6.0]
    assert decide(job, on_demand, True, 0.1) == SPOT


@pytest.mark.parametrize(
    ("work", "deadline", "changeover"),
    [(0, 1, 0), (10, 10, 0.1), (1, float("inf"), 0), (1, float("nan"), 0), (1, 2, -1)],
)
def test_a_job_that_cannot_be_is_refused(work: float, deadline: float, changeover: float) -> None:
    with pytest.raises(ValueError):
        Job(work=work, deadline=deadline, changeover=changeover)
