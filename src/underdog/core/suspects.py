"""Trials that probably ran on the processor although their machine has an accelerator.

No trial says so itself, but the company it keeps does. A machine that used its accelerator beats
the machines without one at some workload, and comes near its siblings of the same accelerator; one
that did not does neither, at any of the workloads it was tried on.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from underdog.model import Caveat

CODE = "accelerator_unused"
# Machines are of about the same size where their vCPUs differ by less than this factor.
SIMILAR = 1.5
# So many machines without accelerator must be there to compare with.
ENOUGH = 3
# From so many workloads on, the fastest machine without accelerator is the mark: a chance of one
# workload to look slow says little. Below, the mark is their median, for small models and single
# streams run at the processor's speed on many an accelerator that is used.
SEVERAL = 3
# Two or more accelerators often serve one stream at half the speed of one; a sixth was seen
# where the processor had done the work.
FAR_SLOWER = 1 / 3


class Run(NamedTuple):
    """What the check needs to know of one trial. None is unknown; no accelerator has no name."""

    workload: str
    machine: str  # any name that is the same for all trials of one kind of machine
    throughput: float
    vcpus: float | None = None
    accelerator: str | None = None
    accelerator_count: float = 0


def unused_accelerators(runs: Iterable[Run]) -> dict[str, Caveat]:
    """The machines that left their accelerator alone at every workload, with the caveat.

    On published results of 87 machines with a named accelerator, 16 of which are known to have run
    on the processor (Spare Cores, 38 language-model workloads): precision 100 %, recall 100 %.
    With one workload alone to judge by: precision 60 %, recall 90 % of the trials.
    """
    by_workload: dict[str, list[Run]] = {}
    by_machine: dict[str, list[Run]] = {}
    for run in runs:
        by_workload.setdefault(run.workload, []).append(run)
        if run.accelerator is not None:
            by_machine.setdefault(run.machine, []).append(run)
    company = {workload: _Company(those) for workload, those in by_workload.items()}
    found = {machine: _judge(own, company) for machine, own in by_machine.items()}
    return {machine: caveat for machine, caveat in found.items() if caveat is not None}


class _Company:
    """The other runs of one workload, as far as they serve for comparison."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._plain: dict[float, list[float]] = {}  # throughputs without accelerator, by vCPUs
        self._whole: dict[str, list[Run]] = {}  # with whole accelerators, by name, fastest first
        self._marks: dict[float, tuple[float, float] | None] = {}
        for run in runs:
            if run.accelerator is not None and run.accelerator_count >= 1:
                self._whole.setdefault(run.accelerator, []).append(run)
            elif run.accelerator is None and run.vcpus is not None:
                self._plain.setdefault(run.vcpus, []).append(run.throughput)
        for siblings in self._whole.values():
            siblings.sort(key=lambda run: -run.throughput)

    def without_accelerator(self, vcpus: float | None) -> tuple[float, float] | None:
        """Median and maximum of the machines of about that size that have no accelerator."""
        if vcpus is None:
            return None
        if vcpus not in self._marks:
            near = [
                throughput
                for size, throughputs in self._plain.items()
                if vcpus / SIMILAR <= size <= vcpus * SIMILAR
                for throughput in throughputs
            ]
            enough = len(near) >= ENOUGH
            self._marks[vcpus] = (statistics.median(near), max(near)) if enough else None
        return self._marks[vcpus]

    def best_sibling(self, run: Run) -> Run | None:
        """The fastest other machine that has the same accelerator, whole."""
        siblings = self._whole.get(run.accelerator or "", [])
        return next((other for other in siblings if other.machine != run.machine), None)


def _judge(own: Sequence[Run], company: dict[str, _Company]) -> Caveat | None:
    marks = [(run, company[run.workload].without_accelerator(run.vcpus)) for run in own]
    judged = [(run, mark) for run, mark in marks if mark is not None]
    several = len({run.workload for run, _ in judged}) >= SEVERAL
    if judged and all(run.throughput <= mark[several] for run, mark in judged):
        what = "the fastest" if several else "the middle one"
        return _caveat(
            own[0], f"was no faster than {what} of the machines of its size that have none"
        )
    siblings = [(run, company[run.workload].best_sibling(run)) for run in own]
    beside = [(run, other) for run, other in siblings if other is not None]
    if (
        beside
        and own[0].accelerator_count >= 1  # a part of an accelerator is slow by right
        and all(run.throughput < FAR_SLOWER * other.throughput for run, other in beside)
    ):
        nearest = max(beside, key=lambda pair: pair[0].throughput / pair[1].throughput)
        return _caveat(
            own[0],
            f"reached at most {nearest[0].throughput / nearest[1].throughput:.0%} of what "
            f"{nearest[1].machine} does with the same accelerator",
        )
    return None


def _caveat(run: Run, why: str) -> Caveat:
    return Caveat(
        code=CODE,
        message=f"The accelerator ({run.accelerator}) was probably not used: the machine {why}.",
        remedy="Look whether that run's framework reached the accelerator, and measure again.",
    )
