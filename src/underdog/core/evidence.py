"""What the trials of a workload say about each kind of machine.

A measurement of an instance type holds for it in every region and at every purchase option: the
hardware is the same. Of a machine's knobs the combination with the highest throughput counts.
Repeated trials of equal knobs are pooled, the latest ``POOLED`` of them.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from underdog.core.compare import SINGLE
from underdog.core.cut_off import is_cut_off
from underdog.core.interval import student_point
from underdog.core.problems import LARGEST, SMALLEST
from underdog.model import Estimate, Machine, Trial

POOLED = 10
UNUSED = "accelerator_unused"
ACCELERATOR_UNUSED = "the accelerator was not used"
_LONGEST = 160  # characters of a reason that a fault keeps


class Shape(NamedTuple):
    """A kind of machine: what offers of different regions and prices have in common."""

    provider: str
    instance_type: str
    nodes: int


@dataclass(slots=True)
class Evidence:
    """What is known about one shape.

    ``estimate`` is of the best knobs, None where no trial counts. ``faults`` say in words what
    went wrong with those that do not count; ``out_of_memory`` holds where every trial that was
    tried ran out.
    """

    shape: Shape
    estimate: Estimate | None = None
    knobs: dict[str, str] = field(default_factory=dict)
    trials: list[Trial] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    out_of_memory: bool = False
    power_w: float | None = None


def shape_of(trial: Trial) -> Shape:
    """The shape that a trial ran on; a machine without an instance type is its own."""
    if trial.offer is not None:
        return Shape(trial.offer.provider, trial.offer.instance_type, trial.offer.nodes)
    return shape_of_machine(trial.machine)


def shape_of_machine(machine: Machine) -> Shape:
    """The shape of a machine that no offer names."""
    if machine.provider and machine.instance_type:
        return Shape(machine.provider, machine.instance_type, 1)
    return Shape("local", machine.instance_type or machine.hostname or "this machine", 1)


def accelerator_unused(trial: Trial) -> bool:
    """Whether the machine had an accelerator that the trial left alone."""
    if any(caveat.code == UNUSED for caveat in trial.caveats):
        return True
    has_one = bool(trial.machine.accelerators) or bool(
        trial.offer and trial.offer.accelerator_count > 0
    )
    return has_one and trial.profile is not None and trial.profile.uses_accelerator is False


def gather(trials: Iterable[Trial]) -> list[Evidence]:
    """The evidence of each shape that was tried, in the order of first trial."""
    by_shape: dict[Shape, list[Trial]] = {}
    for trial in sorted(trials, key=lambda t: (t.started_at, t.id)):
        if trial.status != "running":
            by_shape.setdefault(shape_of(trial), []).append(trial)
    return [_evidence(shape, tried) for shape, tried in by_shape.items()]


def _evidence(shape: Shape, tried: Sequence[Trial]) -> Evidence:
    found = Evidence(shape)
    by_knobs: dict[tuple[tuple[str, str], ...], list[Trial]] = {}
    for trial in tried:
        rate = trial.measurement.samples_per_second if trial.measurement else None
        if trial.status == "out_of_memory":
            found.faults.append("it ran out of memory")
        elif rate is None or trial.status not in ("ok", "stopped", "interrupted"):
            why = (trial.reason or "no reason").partition("\n")[0].rstrip(". ")
            found.faults.append(f"it ended as {trial.status}: {_cut(why)}")
        elif not (SMALLEST < rate.value < LARGEST and rate.high < LARGEST):
            found.faults.append("it had no positive throughput")
        elif is_cut_off(trial):
            found.faults.append("it was cut off before anything of it could be judged")
        elif accelerator_unused(trial):
            found.faults.append(ACCELERATOR_UNUSED)
        else:
            by_knobs.setdefault(tuple(sorted(trial.knobs.items())), []).append(trial)
    found.out_of_memory = not by_knobs and all(t.status == "out_of_memory" for t in tried)
    for knobs, counted in by_knobs.items():
        # what was cut off counts only where nothing ran until its rate was known
        latest = ([t for t in counted if t.status == "ok"] or counted)[-POOLED:]
        pooled = pool([_rate(trial) for trial in latest])
        if found.estimate is None or pooled.value > found.estimate.value:
            found.estimate, found.knobs, found.trials = pooled, dict(knobs), latest
            found.power_w = _power(latest)
    return found


def _rate(trial: Trial) -> Estimate:
    assert trial.measurement is not None
    assert trial.measurement.samples_per_second is not None
    return trial.measurement.samples_per_second


def _power(trials: Sequence[Trial]) -> float | None:
    # an accelerator's machine counts with its accelerators' draw, whatever the processor tells
    key = "accelerator_power_w" if any(t.machine.accelerators for t in trials) else "cpu_power_w"
    read = [trial.usage.get(key) for trial in trials]
    known = [watts for watts in read if watts is not None and watts > 0]
    return statistics.fmean(known) if known else None


def has_interval(rate: Estimate) -> bool:
    """Whether a rate came with an interval of its own."""
    return 0 < rate.low < rate.high < math.inf


def pool(rates: Sequence[Estimate]) -> Estimate:
    """One mean of repeated runs with a 95 % interval.

    The interval is the wider of two: what the runs differ by (Student's t over the runs' means)
    and what each of them is uncertain by itself. A single number without an interval is taken as
    ±5 %.

    Args:
        rates: samples per second of each run, positive.
    """
    mean = statistics.fmean(rate.value for rate in rates)
    count = len(rates)
    if count == 1 and not has_interval(rates[0]):
        return Estimate(value=mean, low=mean * (1 - SINGLE), high=mean * (1 + SINGLE), n=1)
    below = statistics.fmean(max(rate.value - rate.low, 0.0) for rate in rates) / math.sqrt(count)
    above = statistics.fmean(max(rate.high - rate.value, 0.0) for rate in rates) / math.sqrt(count)
    if count > 1:
        spread = statistics.stdev(rate.value for rate in rates) / math.sqrt(count)
        between = student_point(count - 1) * spread
        below, above = max(below, between), max(above, between)
    # a rate is positive: an interval that would reach zero ends at a tenth of the mean
    low = max(mean - below, mean / 10)
    observations = sum(rate.n for rate in rates)
    return Estimate(value=mean, low=low, high=mean + above, n=observations)


def _cut(reason: str) -> str:
    """A reason as short as a sentence bears it."""
    return reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]} …"
