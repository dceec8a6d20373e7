"""What trials say about a kind of machine, and how repeated ones are pooled."""

from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offers_and_trials import PROFILE, UNUSED, trial

from underdog.core.cut_off import cut_off
from underdog.core.evidence import Shape, gather, pool, shape_of
from underdog.model import Accelerator, Estimate, Machine


def estimate(value: float, half: float = 0.0, n: int = 1) -> Estimate:
    return Estimate(value=value, low=value * (1 - half), high=value * (1 + half), n=n)


def test_repeats_that_differ_by_a_third_have_a_wide_interval() -> None:
    pooled = pool([estimate(v, 0.01) for v in (60.0, 100.0, 150.0, 80.0, 120.0)])
    assert pooled.value == pytest.approx(102.0)
    # Student's t of four degrees of freedom: 2.776 x 34.9 / sqrt(5)
    assert pooled.high - pooled.value == pytest.approx(43.4, abs=0.2)


def test_a_single_number_without_interval_is_five_percent() -> None:
    pooled = pool([estimate(100.0)])
    assert (pooled.low, pooled.high) == (95.0, 105.0)


@given(
    st.lists(st.tuples(st.floats(1e-6, 1e9), st.floats(0, 0.5)), min_size=1, max_size=8),
    st.floats(1e-3, 1e3),
)
def test_pooling_is_ordered_positive_and_scales(
    runs: list[tuple[float, float]], factor: float
) -> None:
    one = pool([estimate(value, half) for value, half in runs])
    many = pool([estimate(value * factor, half) for value, half in runs])
    assert 0 < one.low <= one.value <= one.high < math.inf
    assert many.high == pytest.approx(one.high * factor, rel=1e-9)


def test_the_best_knobs_of_a_machine_count() -> None:
    trials = [
        trial(rate=rate, id=f"t{rate}", knobs={"batch": batch})
        for rate, batch in ((50.0, "8"), (90.0, "32"), (70.0, "64"), (94.0, "32"))
    ]
    (found,) = gather(trials)
    assert found.knobs == {"batch": "32"}
    assert found.estimate is not None
    assert found.estimate.value == pytest.approx(92.0)
    assert [t.id for t in found.trials] == ["t90.0", "t94.0"]


def test_an_unused_accelerator_does_not_count() -> None:
    idle = dataclasses.replace(PROFILE, uses_accelerator=False)
    machine = Machine(
        provider="aws", instance_type="g5.xlarge", accelerators=[Accelerator(name="A10G")]
    )
    for doubtful in (trial(caveats=[UNUSED]), trial(profile=idle, machine=machine)):
        (found,) = gather([doubtful])
        assert found.estimate is None
        assert found.faults == ["the accelerator was not used"]


def test_out_of_memory_holds_only_where_nothing_worked() -> None:
    failed = trial(rate=None, id="oom", status="out_of_memory")
    assert gather([failed])[0].out_of_memory
    assert not gather([failed, trial()])[0].out_of_memory
    assert gather([failed, trial()])[0].faults == ["it ran out of memory"]


def test_a_machine_without_instance_type_is_its_own() -> None:
    assert shape_of(trial(machine=Machine(hostname="box"))) == Shape("local", "box", 1)


def test_a_trial_in_flight_says_nothing() -> None:
    assert gather([trial(status="running")]) == []


def test_what_a_killed_process_left_behind_does_not_count() -> None:
    running = dataclasses.replace(trial("g5.xlarge", 100.0), status="running")
    (found,) = gather([cut_off(running, "its process was killed")])
    assert found.estimate is None
    assert found.faults == ["it was cut off before anything of it could be judged"]


def test_what_was_cut_off_counts_only_where_nothing_else_ran() -> None:
    cut = trial(rate=25.0, spread=0.9, status="interrupted", id="cut")
    (alone,) = gather([cut])
    assert alone.estimate is not None
    assert alone.estimate.value == 25.0
    (beside,) = gather([trial(rate=100.0), cut])
    assert beside.estimate is not None
    assert beside.estimate.value == 100.0
