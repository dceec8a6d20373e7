"""Whether a workload has become slower, or dearer, than a baseline: honest about noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from underdog.core.compare import SINGLE
from underdog.core.evidence import pool
from underdog.model import Estimate, Trial

Verdict = Literal["fell", "held", "unclear", "gained"]
HIDDEN = 0.1  # twice the spread of single runs: beyond it, noise says nothing


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What was measured of a workload on one machine, as a baseline keeps it.

    ``samples_per_second`` is pooled over ``runs`` trials; ``price_per_hour`` is None where unknown.
    ``software`` names what could explain a change.
    """

    workload: str
    machine: str
    knobs: dict[str, str]
    samples_per_second: Estimate
    runs: int
    measured_at: str
    price_per_hour: float | None = None
    software: dict[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A reading against its baseline.

    ``ratio`` is of samples per dollar where both prices are known, else of samples per second;
    ``speed`` and ``price`` are the parts that it is made of.
    """

    verdict: Verdict
    ratio: Estimate
    speed: float
    price: float | None
    software: dict[str, tuple[str, str]]


def reading(trials: Sequence[Trial]) -> Reading:
    """The reading of trials of one workload, one machine and one set of knobs, oldest first.

    Raises:
        ValueError: there is none, or one has no throughput.
    """
    rates = [t.measurement.samples_per_second for t in trials if t.measurement is not None]
    known = [rate for rate in rates if rate is not None]
    if not known or len(known) < len(trials):
        raise ValueError("a trial without a throughput cannot be compared")
    last = trials[-1]
    return Reading(
        workload=last.workload,
        machine=machine_of(last),
        knobs=dict(sorted(last.knobs.items())),
        samples_per_second=pool(known),
        runs=len(known),
        measured_at=last.started_at,
        price_per_hour=last.price.per_hour,
        software=software_of(last),
    )


def machine_of(trial: Trial) -> str:
    """The kind of machine in words; two of one kind have the same, whatever their host names."""
    machine = trial.machine
    if trial.offer is not None and trial.offer.instance_type != machine.hostname:
        return f"{trial.offer.provider} {trial.offer.instance_type}"
    if machine.provider and machine.instance_type:
        return f"{machine.provider} {machine.instance_type}"
    cards = [card.name for card in machine.accelerators]
    words: list[Any] = [machine.cpu_model, machine.vcpus and f"{machine.vcpus:g} vCPU"]
    words += [f"{cards.count(name)} x {name}" for name in dict.fromkeys(cards)]
    return ", ".join(str(word) for word in words if word) or "unknown machine"


def software_of(trial: Trial) -> dict[str, str]:
    """Versions that may change a throughput."""
    software = trial.software
    named: dict[str, Any] = {
        "python": software.python,
        software.framework or "framework": software.framework_version,
        "driver": software.driver,
        "commit": software.commit,
        **software.libraries,
    }
    return {name: str(version) for name, version in sorted(named.items()) if version}


def judge(before: Reading, after: Reading, drop: float) -> Change:
    """Compare two readings.

    It *fell* where the value is lower by more than ``drop`` and the 95 % interval of the ratio
    holds no equality. It is *unclear* where the interval holds equality too, or is so wide that a
    fall of ``HIDDEN`` more could hide in it: then more runs can tell. A single run counts with the
    spread of runs of one machine besides its own interval.

    Args:
        drop: the fall that is still allowed, as a share: 0.05.

    Raises:
        ValueError: ``drop`` is no share between 0 and 1.
    """
    if not 0 < drop < 1:
        raise ValueError(f"a drop of {drop} is no share")
    a, b = before.samples_per_second, after.samples_per_second
    speed = b.value / a.value
    width = math.hypot(_log_half(a, before.runs), _log_half(b, after.runs))
    price = None
    ratio = speed
    if before.price_per_hour and after.price_per_hour:
        price = after.price_per_hour / before.price_per_hour
        ratio = speed / price
    low, high = ratio * math.exp(-width), ratio * math.exp(width)
    verdict: Verdict = "held"
    if ratio < 1 - drop:
        verdict = "fell" if high < 1 else "unclear"
    elif low < 1 - drop - HIDDEN:
        verdict = "unclear"
    elif low > 1:
        verdict = "gained"
    return Change(
        verdict=verdict,
        ratio=Estimate(value=ratio, low=low, high=high, n=min(a.n, b.n)),
        speed=speed,
        price=price,
        software=moved(before.software, after.software),
    )


def _log_half(rate: Estimate, runs: int) -> float:
    own = math.log(rate.high / rate.low) / 2 if 0 < rate.low < rate.high < math.inf else SINGLE
    return math.hypot(own, SINGLE) if runs == 1 else own


def moved(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str, str]]:
    """What is named otherwise, old and new; 'none' where it is not named."""
    names = sorted(before.keys() | after.keys())
    pairs = {name: (before.get(name, "none"), after.get(name, "none")) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
