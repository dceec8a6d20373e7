"""What limits a run, from runs whose limit is known."""

from __future__ import annotations

import math

import pytest

from underdog.core.verdict import Peaks, bound_by
from underdog.model import Accelerator, Machine, Profile

CPU = Machine(vcpus=8)
GPU = Machine(vcpus=16, accelerators=[Accelerator(name="L4", power_limit_w=72.0)])
PHASES = {"data": 0.05, "forward": 0.3, "backward": 0.5, "optimizer": 0.1, "other": 0.05}
ON_GPU = Profile(uses_accelerator=True, accelerators_used=1)
L4 = Peaks(tflops=121.0, gb_per_s=300.0)


def test_waiting_for_data_or_for_other_ranks() -> None:
    assert bound_by({"data": 0.6, "forward": 0.4}, {}, None, CPU).bound == "data"
    talk = bound_by({"data": 0.3, "communication": 0.5}, {}, None, CPU)
    assert talk.bound == "communication"
    assert "50%" in talk.reason


@pytest.mark.parametrize(
    ("cores", "word"), [(7.6, "all of them"), (1.0, "one thread"), (3.0, "does not spread")]
)
def test_the_processor(cores: float, word: str) -> None:
    verdict = bound_by(PHASES, {"cores": cores}, None, CPU)
    assert verdict.bound == "cpu"
    assert word in verdict.reason


def test_the_processor_tells_its_speed() -> None:
    profile = Profile(flops_per_sample=2e9, uses_accelerator=False)
    verdict = bound_by(PHASES, {"cores": 8.0}, profile, GPU, samples_per_second=100)
    assert "200 GFLOP/s" in verdict.reason


def test_the_accelerator_by_the_roofline() -> None:
    busy = {"accelerator_utilization": 0.97, "accelerators_busy": 1.0, "cores": 1.0}
    heavy = Profile(uses_accelerator=True, accelerators_used=1, flops_per_sample=6e11)
    compute = bound_by(PHASES, busy, heavy, GPU, samples_per_second=100, peaks=L4)
    assert compute.bound == "accelerator_compute"
    assert "60 TFLOP/s (50% of its peak)" in compute.reason
    moving = Profile(
        uses_accelerator=True, flops_per_sample=1e9, memory_traffic_bytes_per_sample=2e9
    )
    memory = bound_by(PHASES, busy, moving, GPU, samples_per_second=100, peaks=L4)
    assert memory.bound == "accelerator_memory"


def test_the_accelerator_by_its_readings_alone() -> None:
    busy = {"accelerator_utilization": 0.97, "accelerators_busy": 1.0}
    power = bound_by(PHASES, busy | {"accelerator_power_w": 70.0}, ON_GPU, GPU)
    assert power.bound == "accelerator_compute"
    memory = bound_by(PHASES, busy | {"accelerator_memory_activity": 0.8}, ON_GPU, GPU)
    assert memory.bound == "accelerator_memory"
    assert bound_by(PHASES, busy, ON_GPU, GPU).bound == "unknown"


@pytest.mark.parametrize(("cores", "bound"), [(1.0, "launch"), (15.5, "cpu"), (0.3, "unknown")])
def test_an_accelerator_that_waits(cores: float, bound: str) -> None:
    usage = {"accelerator_utilization": 0.3, "accelerators_busy": 1.0, "cores": cores}
    assert bound_by(PHASES, usage, ON_GPU, GPU).bound == bound


def test_thin_evidence_is_unknown() -> None:
    assert bound_by({}, {}, None, Machine()).bound == "unknown"
    assert bound_by(PHASES, {"cores": 0.2}, None, CPU).bound == "unknown"
    broken = {"cores": math.nan, "accelerator_utilization": None}
    assert bound_by({"data": math.nan}, broken, None, GPU).bound == "unknown"


def test_other_programs_that_take_processors_are_named() -> None:
    shares = {"forward": 0.4, "backward": 0.6}
    found = bound_by(shares, {"cores": 1.0, "other_load_cores": 6.5}, None, CPU)
    assert found.bound == "cpu"
    assert "other programs took 6.5" in found.reason
