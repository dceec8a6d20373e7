"""From the records of a run to its throughput."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from underdog.core.series import FIELDS, Job, Series, combine
from underdog.core.stats import Throughput, throughput
from underdog.measuring.records import ProcessRecords


def job_of(processes: Sequence[ProcessRecords], by_pattern: bool = False) -> Job | None:
    """The job that the processes did, None where none took a step.

    Args:
        by_pattern: take what ``--pattern`` read, not what the probe saw.
    """
    make = series_of_rates if by_pattern else series_of_steps
    return combine([make(process) for process in processes])


def so_far(
    processes: Sequence[ProcessRecords], by_pattern: bool
) -> tuple[Series, Throughput] | None:
    """The job's steps so far and their throughput, None where no step was taken."""
    job = job_of(processes, by_pattern)
    return (job.series, throughput(job.series)) if job else None


def series_of_steps(process: ProcessRecords) -> Series:
    """The steps that the probe saw in one process."""
    world_size = process.process.get("world_size")
    distributed = isinstance(world_size, int) and world_size > 1
    return Series.from_rows(
        np.frombuffer(process.steps, dtype=float),
        process.pauses,
        rank=process.rank if distributed else None,
        world_size=world_size if distributed else None,
    )


def series_of_rates(process: ProcessRecords) -> Series:
    """What ``--pattern`` read; each match is taken for a step."""
    rows = np.zeros((len(process.rates), FIELDS))
    if process.rates:
        rows[:, :3] = process.rates
    return Series.from_rows(rows)
