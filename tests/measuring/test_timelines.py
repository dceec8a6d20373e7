"""From what was seen of a machine to the timeline of a trial."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from underdog.core.series import Series
from underdog.measuring.nvml import DeviceReading, Nvml
from underdog.measuring.readings import HostReading, TreeReading
from underdog.measuring.sampler import Sample, Sampler, spread
from underdog.measuring.timelines import timeline_of
from underdog.units import GIB


def sample(time: float, **tree: float) -> Sample:
    reading = TreeReading(
        pids=[1],
        user=2 * time,
        system=time,
        resident=int(2 * GIB + time * GIB),
        read=int(1000 * time),
    )
    return Sample(time, replace(reading, **tree), HostReading())


def watched(*samples: Sample) -> Sampler:
    made = Sampler(1, Nvml(library=object()))
    made.samples = list(samples)
    return made


def steps(count: int, begin: float) -> Series:
    rows = np.zeros((count, 10))
    rows[:, 0] = begin + np.arange(count)
    rows[:, 1], rows[:, 2] = rows[:, 0] + 1, 8
    return Series.from_rows(rows, [("evaluation", begin + 2.0, begin + 2.5)])


def test_times_count_from_the_first_step() -> None:
    found = timeline_of(steps(4, 103.0), watched(*(sample(100.0 + n) for n in range(6))), 100.0)
    assert found is not None
    assert found.steps["seconds"] == [1.0, 2.0, 3.0, 4.0]
    assert found.steps["samples_per_second"] == [8.0, 8.0, 16.0, 8.0]
    assert found.pauses == {"evaluation": [[2.0, 2.5]]}
    assert found.usage["seconds"] == [-2.0, -1.0, 0.0, 1.0, 2.0]
    assert found.usage["cores"] == [3.0] * 5
    assert found.usage["disk_read_bytes_per_second"] == [1000.0] * 5
    assert found.usage["memory_gib"] == pytest.approx([102.5 + n for n in range(5)])
    assert "cpu_power_w" not in found.usage, "what the system does not tell has no column"
    assert "accelerator_utilization" not in found.usage


def test_without_a_step_times_count_from_the_start() -> None:
    found = timeline_of(None, watched(sample(101.0), sample(102.0)), 100.0)
    assert found is not None
    assert found.usage["seconds"] == [2.0]
    assert (found.steps, found.pauses) == ({}, {})
    assert timeline_of(None, watched(sample(101.0)), 100.0) is None


def test_the_accelerators_that_work_are_told() -> None:
    def at(time: float) -> Sample:
        busy = DeviceReading(
            0, utilization=0.5, memory_used=3 * GIB, process_memory=2 * GIB, power_w=300.0
        )
        other = replace(busy, index=1, utilization=0.7, process_memory=GIB, power_w=None)
        idle = replace(busy, index=2, utilization=0.0, process_memory=None, power_w=50.0)
        return replace(sample(time), devices=[busy, other, idle])

    found = timeline_of(None, watched(at(0.0), at(1.0), at(2.0)), 0.0)
    assert found is not None
    assert found.usage["accelerator_utilization"] == [0.6, 0.6]
    assert found.usage["accelerator_memory_gib"] == [2.0, 2.0]
    assert found.usage["accelerator_power_w"] == [300.0, 300.0]


def test_few_of_many_samples_keep_the_ends_and_the_totals() -> None:
    many = [sample(float(n)) for n in range(1000)]
    few = spread(many, 50)
    assert (len(few), few[0], few[-1]) == (50, many[0], many[-1])
    assert spread(many[:50], 50) == many[:50]
    found = timeline_of(None, watched(*many), 0.0, 50)
    assert found is not None
    assert found.usage["cores"] == [3.0] * 49
