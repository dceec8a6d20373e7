"""What a run has shown so far, as the record of its trial keeps it, and whether it can be."""

from __future__ import annotations

from dataclasses import dataclass, field

from underdog.core import timeline as timelines
from underdog.core.problems import LARGEST
from underdog.model import Measurement, Timeline


@dataclass(frozen=True, kw_only=True, slots=True)
class Figures:
    """Of a run that goes on; each is what the trial has under that name."""

    measurement: Measurement | None = None
    phases: dict[str, float] = field(default_factory=dict)
    usage: dict[str, float | None] = field(default_factory=dict)
    timeline: Timeline | None = None


def faults_of(
    measurement: Measurement | None, phases: dict[str, float], timeline: Timeline | None
) -> list[str]:
    """What no measurement can show, of figures that came from another machine."""
    faults = []
    for name in ("samples_per_second", "step_seconds"):
        rate = None if measurement is None else getattr(measurement, name)
        if rate is not None and not (0 < rate.value < LARGEST and rate.low <= rate.high):
            faults.append(f"its {name} is {rate.value:g}, from {rate.low:g} to {rate.high:g}")
    faults += [
        f"{name} takes {share:g} of its time"
        for name, share in phases.items()
        if not -0.01 <= share <= 1.01
    ]
    if timeline is not None and (fault := timelines.fault_of(timeline)):
        faults.append(fault)
    return faults
