"""Steps of processes become the steps of a job."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.series import Job, Series, combine


def make(
    ends: list[float], samples: Any = 8.0, begin: float = 0.0, phase: float = 0.0, **job: Any
) -> Series:
    end = np.array(ends, dtype=float)
    return Series(
        start=np.concatenate(([begin], end[:-1])),
        end=end,
        samples=np.broadcast_to(np.asarray(samples, dtype=float), end.shape).copy(),
        phases=np.full((len(end), 6), phase),
        skipped=np.zeros(len(end), dtype=bool),
        **job,
    )


def joined(*processes: Series) -> Job:
    job = combine(processes)
    assert job is not None
    return job


def codes(job: Job) -> list[str]:
    return [caveat.code for caveat in job.caveats]


def test_rows_of_the_records() -> None:
    rows = [0.0, 1.0, 4, 0.1, 0, 0.2, 0.3, 0.1, 0, 0, 1.0, 2.5, -1, 0, 0, 0, 0, 0, 0, 1]
    series = Series.from_rows(rows, [("evaluation", 1.0, 1.5)], rank=1, world_size=2)
    assert series.seconds.tolist() == [1.0, 1.5]
    assert series.samples[0] == 4
    assert math.isnan(series.samples[1])
    assert series.phases[0].tolist() == [0.1, 0, 0.2, 0.3, 0.1, 0]
    assert series.skipped.tolist() == [False, True]
    assert (series.rank, series.world_size) == (1, 2)
    assert series.pause_seconds().tolist() == [0.0, 0.5]


def test_pauses_that_overlap_count_once_and_fall_to_their_steps() -> None:
    pauses = (("evaluation", 0.5, 1.5), ("checkpoint", 1.2, 1.7), ("evaluation", 5.0, 4.0))
    series = make([1.0, 2.0, 3.0], pauses=pauses)
    assert series.pause_seconds() == pytest.approx([0.5, 0.7, 0.0])
    assert series.pause_seconds(["checkpoint"]) == pytest.approx([0.0, 0.5, 0.0])
    counts = [series.pause_count(kind) for kind in ("evaluation", "checkpoint", "compile")]
    assert counts == [1, 1, 0]
    ranks = (("checkpoint", 1.2, 1.7), ("checkpoint", 1.3, 1.8), ("checkpoint", 2.2, 2.3))
    assert make([1.0, 2.0, 3.0], pauses=ranks).pause_count("checkpoint") == 2


def test_ranks_sum_samples_and_the_last_one_ends_the_step() -> None:
    a = make([1.0, 2.0, 3.0], 8, rank=0, world_size=2, phase=0.1)
    b = make([1.1, 1.9, 3.2], 4, begin=0.1, rank=1, world_size=2, phase=0.3)
    series, caveats = joined(a, b)
    assert series.samples.tolist() == [12, 12, 12]
    assert series.end.tolist() == [1.1, 2.0, 3.2]
    assert series.start.tolist() == [0.0, 1.1, 2.0]
    assert series.phases == pytest.approx(np.full((3, 6), 0.2))
    assert series.ranks == 2
    assert caveats == []


def test_a_rank_that_was_not_seen_is_said() -> None:
    job = joined(*(make([1.0, 2.0], rank=rank, world_size=4) for rank in (0, 1, 3)))
    assert job.series.samples.tolist() == [24, 24]
    assert codes(job) == ["missing_ranks"]
    assert "3 of 4" in job.caveats[0].message


def test_a_rank_that_stopped_cuts_the_job_and_is_said() -> None:
    long = make([float(i + 1) for i in range(100)], rank=0, world_size=2)
    job = joined(long, make([float(i + 1) for i in range(50)], rank=1, world_size=2))
    assert len(job.series) == 50
    assert codes(job) == ["uneven_ranks"]
    one_behind = joined(long, make([float(i + 1) for i in range(99)], rank=1, world_size=2))
    assert len(one_behind.series) == 99
    assert one_behind.caveats == []


def test_unknown_samples_of_one_rank_are_unknown_for_the_job() -> None:
    job = joined(
        make([1.0, 2.0], 8, rank=0, world_size=2),
        make([1.0, 2.0], [8, math.nan], rank=1, world_size=2),
    )
    assert job.series.samples[0] == 16
    assert math.isnan(job.series.samples[1])


def test_a_restarted_rank_is_not_mixed_with_its_first_life() -> None:
    first = [make([1.0, 2.0, 3.0], 8, rank=rank, world_size=2) for rank in (0, 1)]
    second = [
        make([11.0, 12.0, 13.0, 14.0], 8, begin=10, rank=rank, world_size=2) for rank in (0, 1)
    ]
    series = joined(*first, *second).series
    assert series.end.tolist() == [11, 12, 13, 14]
    assert series.samples.tolist() == [16] * 4


def test_a_process_alone_is_the_job() -> None:
    series = make([1.0, 2.0])
    job = joined(make([]), series)
    assert job.series is series
    assert job.caveats == []
    assert combine([]) is None
    assert combine([make([])]) is None


def test_one_after_the_other_the_larger_counts() -> None:
    job = joined(make([1.0, 2.0]), make([11.0, 12.0, 13.0], begin=10))
    assert len(job.series) == 3
    assert codes(job) == ["several_processes"]


def test_at_once_their_rates_add_up() -> None:
    quick = make([0.1 * (i + 1) for i in range(100)], 8)
    slow = make([0.05 + 0.5 * (i + 1) for i in range(20)], 2, begin=0.05)
    job = joined(quick, slow)
    rate = job.series.samples.sum() / job.series.seconds.sum()
    assert rate == pytest.approx(80 + 4, rel=0.02)
    assert codes(job) == ["several_processes"]
    assert job.series.ranks == 2


@given(
    st.permutations(range(4)),
    st.lists(st.lists(st.floats(0.01, 9), min_size=1, max_size=9), min_size=4, max_size=4),
)
def test_the_order_of_the_ranks_does_not_matter(order: list[int], steps: list[list[float]]) -> None:
    ranks = [
        make(np.cumsum(s).tolist(), rank + 1, rank=rank, world_size=4)
        for rank, s in enumerate(steps)
    ]
    one, other = joined(*ranks), joined(*(ranks[i] for i in order))
    assert one.series.end.tolist() == other.series.end.tolist()
    assert one.series.samples.tolist() == other.series.samples.tolist()
    assert one.caveats == other.caveats
