"""The timeline of a trial: thinned, and nothing of it lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.series import Series
from underdog.core.timeline import (
    MOST,
    Readings,
    fault_of,
    of_pauses,
    of_readings,
    of_steps,
)
from underdog.model import Timeline

seconds = st.floats(0.001, 100)
step_times = st.lists(seconds, min_size=1, max_size=400)


def series(
    times: list[float], samples: Any = 8.0, pauses: tuple[Any, ...] = (), begin: float = 50.0
) -> Series:
    end = begin + np.cumsum(np.array(times))
    return Series(
        start=np.concatenate(([begin], end[:-1]))[: len(end)],
        end=end,
        samples=np.broadcast_to(np.asarray(samples, dtype=float), end.shape).copy(),
        phases=np.zeros((len(end), 6)),
        skipped=np.zeros(len(end), dtype=bool),
        pauses=pauses,
    )


@st.composite
def trained(draw: st.DrawFn) -> Series:
    times = draw(step_times)
    samples = draw(st.lists(st.integers(0, 64), min_size=len(times), max_size=len(times)))
    whole = sum(times)
    places = st.tuples(st.floats(-0.2, 1.2), st.floats(0, 0.2), st.sampled_from("ab"))
    pauses = tuple(
        (kind, 50 + at * whole, 50 + (at + length) * whole)
        for at, length, kind in draw(st.lists(places, max_size=5))
    )
    return series(times, samples, pauses)


@given(trained())
def test_steps_keep_their_totals(job: Series) -> None:
    table = of_steps(job)
    lengths = {len(column) for column in table.values()}
    assert lengths == {min(MOST, len(job))}
    at, step = np.array(table["seconds"], float), np.array(table["step"], int)
    assert (np.diff(at) > 0).all()
    assert step[-1] == len(job)
    assert at[-1] == pytest.approx(job.end[-1] - job.start[0], abs=1e-6)
    stretches = np.diff(step, prepend=0)
    assert stretches.max() - stretches.min() <= 1, "equal stretches"
    active = np.add.reduceat(job.seconds - job.pause_seconds(), [0, *step[:-1]])
    told = sum(
        rate * length
        for rate, length in zip(table["samples_per_second"], active.tolist(), strict=True)
        if rate is not None
    )
    hidden = sum(  # in a stretch that is all pause there is no rate to tell
        float(job.samples[begin:end].sum())
        for begin, end, length in zip([0, *step[:-1]], step, active, strict=True)
        if not length > 0
    )
    # six digits are told; where next to nothing of a stretch is no pause, doubles hold few digits
    assert told + hidden == pytest.approx(float(job.samples.sum()), rel=1e-4, abs=1e-6)


def test_a_pause_is_no_slow_stretch() -> None:
    times = [1.0] * 10 + [1.5] + [1.0] * 229
    job = series(times, pauses=(("evaluation", 60.0, 60.5),))
    assert set(of_steps(job)["samples_per_second"]) == {8.0}
    assert of_pauses(job) == {"evaluation": [[10.0, 10.5]]}


def test_what_is_not_known_is_none() -> None:
    samples = [8.0] * 240
    samples[7] = math.nan
    rates = of_steps(series([1.0] * 240, samples))["samples_per_second"]
    assert rates == [8.0] * 3 + [None] + [8.0] * 116
    assert of_steps(series([])) == {}
    assert of_pauses(series([])) == {}
    assert of_readings(np.array([]), {}, 0.0) == {}


def test_steps_without_length_stand_in_no_stretch_of_their_own() -> None:
    table = of_steps(series([1.0, 0.0, 0.0, 1.0, 0.0]))
    assert table["seconds"] == [1.0, 2.0]
    assert table["step"] == [3.0, 5.0]
    assert table["samples_per_second"] == [24.0, 16.0]


def test_a_first_step_whose_start_was_not_seen_is_left_out() -> None:
    table = of_steps(series([0.0, 2.0, 2.0]))
    assert table == {"seconds": [2.0, 4.0], "step": [1.0, 2.0], "samples_per_second": [4.0] * 2}


def test_of_many_pauses_the_longest_stay_in_order() -> None:
    pauses = tuple(("evaluation", 50 + n, 50 + n + (0.5 if n % 2 else 0.25)) for n in range(300))
    kept = of_pauses(series([1.0] * 300, pauses=pauses))["evaluation"]
    assert len(kept) == MOST
    assert kept == sorted(kept)
    assert all(end - begin == 0.5 for begin, end in kept)


@given(
    st.lists(seconds, min_size=1, max_size=300),
    st.lists(st.floats(0, 1e6), min_size=300, max_size=300),
    st.floats(-1e3, 1e3),
)
def test_readings_keep_their_totals(gaps: list[float], amounts: list[float], zero: float) -> None:
    times = np.cumsum([0.0, *gaps])
    count = np.concatenate(([0.0], np.cumsum(amounts[: len(gaps)])))
    level = np.array(amounts[: len(times)] if len(times) <= 300 else [*amounts, 0.0])
    table = of_readings(
        times, {"rate": Readings("counter", count), "level": Readings("level", level)}, zero
    )
    assert {len(column) for column in table.values()} == {min(MOST, len(gaps))}
    at = np.array(table["seconds"], float)
    assert (np.diff(at) > 0).all()
    assert at[-1] == pytest.approx(times[-1] - zero, abs=1e-6)
    width = times[-1] / len(at)
    rates, levels = np.array(table["rate"], float), np.array(table["level"], float)
    assert (rates * width).sum() == pytest.approx(count[-1], rel=1e-5, abs=1e-6)
    area = float(np.trapezoid(level, times))
    assert (levels * width).sum() == pytest.approx(area, rel=1e-5, abs=1e-6)


def test_unknown_readings_are_left_out_of_the_means() -> None:
    times = np.arange(5.0)
    table = of_readings(
        times,
        {
            "level": Readings("level", np.array([1, math.nan, math.nan, 3, 3])),
            "falls": Readings("counter", np.array([5.0, 6, 2, 4, 4])),
            "never": Readings("level", np.full(5, math.nan)),
        },
        zero=2.0,
        most=2,
    )
    assert table == {"seconds": [0.0, 2.0], "level": [None, 3.0], "falls": [1.0, 1.0]}
    every = of_readings(times, {"level": Readings("level", np.array([1, 1, math.nan, 3, 3]))}, 0, 4)
    assert every["level"] == [1.0, None, None, 3.0]


def test_times_that_do_not_move_on_are_passed_over() -> None:
    times = np.array([0.0, 1.0, 1.0, 0.5, 2.0])
    counted = Readings("counter", np.array([0.0, 1, 50, 60, 3]))
    assert of_readings(times, {"rate": counted}, 0.0) == {"seconds": [1.0, 2.0], "rate": [1.0, 2.0]}


@given(trained())
def test_a_timeline_of_ours_has_no_fault(job: Series) -> None:
    assert fault_of(Timeline(steps=of_steps(job), pauses=of_pauses(job))) is None


@pytest.mark.parametrize(
    ("told", "fault"),
    [
        ({"steps": {"seconds": [1.0], "step": []}}, "different lengths"),
        ({"steps": {"step": [1.0]}}, "different lengths"),
        ({"steps": {"seconds": [1.0, 1.0]}}, "cannot be"),
        ({"usage": {"seconds": [None]}}, "cannot be"),
        ({"usage": {"seconds": [1.0], "cores": [math.inf]}}, "cannot be"),
        ({"usage": {"seconds": [float(n) for n in range(MOST + 1)]}}, "more than"),
        ({"usage": {str(n): [] for n in range(100)}}, "more than"),
        ({"pauses": {"evaluation": [[2.0, 1.0]]}}, "cannot be"),
        ({"pauses": {"evaluation": [[1.0]]}}, "cannot be"),
        ({"pauses": {"evaluation": [[1.0, 2.0]] * (MOST + 1)}}, "more than"),
    ],
)
def test_a_timeline_that_cannot_be_is_told(told: Any, fault: str) -> None:
    assert fault in (fault_of(Timeline(**told)) or "")
