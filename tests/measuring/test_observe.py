"""When a run is ended, and what is said of its end."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from underdog.core.series import Series
from underdog.core.stats import Throughput, throughput
from underdog.measuring.observe import Limits, Silence, StopRule
from underdog.measuring.outcome import outcome
from underdog.measuring.rates import job_of, series_of_steps, so_far
from underdog.measuring.records import ProcessRecords


def result(steps: int, noise: float = 0.01, seconds: float = 0.1) -> Throughput:
    generator = np.random.default_rng(steps)
    lengths = seconds * np.exp(noise * generator.standard_normal(steps))
    rows = np.zeros((steps, 10))
    rows[:, 1] = np.cumsum(lengths)
    rows[1:, 0] = rows[:-1, 1]
    rows[:, 2] = 8
    return throughput(Series.from_rows(rows))


def found_so_far(processes: list[ProcessRecords], by_pattern: bool) -> Throughput:
    found = so_far(processes, by_pattern)
    assert found is not None
    return found[1]


def looks_until_satisfied(rule: StopRule, results: list[Throughput]) -> int | None:
    for index, one in enumerate(results, 1):
        if rule.satisfied(one):
            return index
    return None


def test_one_narrow_interval_is_not_enough() -> None:
    rule = StopRule(0.02)
    assert not rule.satisfied(result(200))
    assert not rule.satisfied(result(200)), "the same steps are no second look"
    assert not rule.satisfied(result(300))
    assert rule.satisfied(result(400))


def test_a_wide_interval_between_begins_anew() -> None:
    rule = StopRule(0.02)
    looks = [result(200), result(300), result(400, noise=1.5), result(500), result(600)]
    assert looks_until_satisfied(rule, looks) is None
    assert rule.satisfied(result(800))


def test_a_short_run_is_not_believed() -> None:
    looks = [result(n, seconds=0.001) for n in (200, 300, 400, 500)]
    assert looks_until_satisfied(StopRule(0.02), looks) is None, "half a second is too short"


def test_whole_has_no_rule() -> None:
    assert looks_until_satisfied(StopRule(None), [result(n) for n in (200, 400, 800)]) is None
    assert not StopRule(0.02).satisfied(None)


def test_silence_counts_from_the_last_sign_of_life() -> None:
    silence = Silence(100.0)
    silence.sample(101.0, 5.0, 0)
    assert silence.seconds(103.0) == 3.0, "a first sample tells nothing"
    silence.sample(104.0, 5.5, 0)
    assert silence.seconds(105.0) == 1.0, "processor use is life"
    silence.sample(106.0, 5.5, 100_000)
    assert silence.seconds(107.0) == 1.0, "output is life"
    silence.sample(110.0, 5.501, 100_010)
    assert silence.seconds(110.0) == 4.0, "a heartbeat is not"
    silence.sign_of_life(111.0)
    assert silence.seconds(111.5) == 0.5


def run(**changes: Any) -> Any:
    base = {
        "processes": [],
        "ending": "itself",
        "exit_code": 0,
        "tail": [],
        "matches": None,
        "memory_kills": 0,
        "began": 0.0,
        "ended": 10.0,
    }
    return SimpleNamespace(**{**base, **changes})


@pytest.mark.parametrize("code", [-signal.SIGKILL, 137])
def test_a_process_that_the_kernel_killed_for_memory(code: int) -> None:
    found = outcome(run(exit_code=code, memory_kills=1), result(50), Limits())
    assert found.status == "out_of_memory"
    assert "kernel" in (found.reason or "")
    assert outcome(run(exit_code=code), result(50), Limits()).status == "failed"


def test_a_worker_that_the_kernel_killed_for_memory() -> None:
    tail = ["Signal 9 (SIGKILL) received by PID 7"]
    found = outcome(run(exit_code=1, memory_kills=1, tail=tail), result(50), Limits())
    assert found.status == "out_of_memory"
    assert outcome(run(exit_code=1, tail=tail), result(50), Limits()).status == "failed"


def test_words_about_memory_in_a_script_that_went_well_mean_nothing() -> None:
    assert outcome(run(tail=["out of memory"]), result(50), Limits()).status == "ok"


def test_the_exit_code_of_a_script_that_was_ended_is_ours() -> None:
    found = outcome(run(ending="precision", exit_code=-15), result(50), Limits())
    assert found == ("ok", None, None)


def records(steps: int, begin: float = 0.0, **process: Any) -> ProcessRecords:
    found = ProcessRecords(Path("x"), process=process)
    for index in range(steps):
        assert found.take([begin + index, begin + index + 1, 4, 0, 0, 0, 0, 0, 0, 0])
    return found


def test_ranks_are_summed() -> None:
    ranks = [records(50, rank=rank, world_size=4) for rank in range(4)]
    found = found_so_far(ranks, by_pattern=False)
    assert (found.steps, found.samples, found.ranks) == (50, 800, 4)


def test_only_processes_that_took_steps_count() -> None:
    assert job_of([]) is None
    assert job_of([records(0)]) is None
    found = found_so_far([records(0), records(50), records(0)], by_pattern=False)
    assert (found.steps, found.ranks) == (50, 1)


def test_records_grow_after_they_were_looked_at() -> None:
    process = records(10)
    assert len(series_of_steps(process)) == 10
    assert process.take([10, 11, 4])
    assert len(series_of_steps(process)) == 11


def test_a_rank_that_was_restarted_counts_once() -> None:
    lives = [
        records(10, rank=0, world_size=2),
        records(10, rank=1, world_size=2),
        records(60, begin=100, rank=0, world_size=2),
        records(60, begin=100, rank=1, world_size=2),
    ]
    found = found_so_far(lives, by_pattern=False)
    assert (found.steps, found.ranks) == (60, 2)


def test_what_a_pattern_read_is_kept_apart() -> None:
    process = records(50)
    for index in range(40):
        assert process.take({"kind": "rate", "samples": 100, "seconds": 2, "end": 2 * index + 2})
    found = found_so_far([process], by_pattern=True)
    assert found.samples == 4000
    assert found.samples_per_second is not None
    assert found.samples_per_second.value == pytest.approx(50)
