"""Prediction: the throughput of machines that were not tried, from those that were.

A reference (a machine that was measured) is carried over to a target by the ratio of their
rooflines. How far off that may be depends on what differs between the two; ``WIDTHS`` holds it,
and each target is predicted from the references that bear the least error. Nothing is multiplied
by the number of accelerators: n of them predict the value of one, with an interval that holds
both "slower than one" and "n times as fast".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from underdog.core.roofline import (
    LAUNCH_SECONDS,
    Floats,
    Hardware,
    accelerator_seconds,
    cpu_rate,
    cpu_seconds,
)
from underdog.model import Estimate, Profile


class Transfer(IntEnum):
    """What differs between the measured machine and the predicted one."""

    SAME_ACCELERATOR = 0
    OTHER_ACCELERATOR = 1
    OTHER_STACK = 2
    SAME_PROCESSOR = 3
    SAME_ARCHITECTURE = 4
    OTHER_ARCHITECTURE = 5
    PROCESSOR_TO_ACCELERATOR = 6
    ACCELERATOR_TO_PROCESSOR = 7


WORDS = {
    Transfer.SAME_ACCELERATOR: "the same accelerator in another machine",
    Transfer.OTHER_ACCELERATOR: "another accelerator of the same software stack",
    Transfer.OTHER_STACK: "an accelerator of another software stack",
    Transfer.SAME_PROCESSOR: "the same processor in another size or family",
    Transfer.SAME_ARCHITECTURE: "another processor of the same architecture",
    Transfer.OTHER_ARCHITECTURE: "a processor of another architecture",
    Transfer.PROCESSOR_TO_ACCELERATOR: "from a processor to an accelerator",
    Transfer.ACCELERATOR_TO_PROCESSOR: "from an accelerator to a processor",
}

# Half-width of the 95 % interval of log(true / predicted) without a profile, and with one.
# benchmarks/roofline.py derives and checks them on public data: accelerators and processors of
# three clouds (Spare Cores, CC BY-SA 4.0) and CNN training on K80, M60, T4, V100 (PROFET, MIT).
# OTHER_STACK has no public pairs of one workload: it is OTHER_ACCELERATOR and a factor 2.
# Between processor and accelerator with a profile there are none either: 2.10, a factor 8, is a
# judgement, narrower than without one because the workload's limit is known.
WIDTHS: dict[Transfer, tuple[float, float]] = {
    Transfer.SAME_ACCELERATOR: (0.25, 0.25),
    Transfer.OTHER_ACCELERATOR: (1.05, 0.85),
    Transfer.OTHER_STACK: (1.75, 1.55),
    Transfer.SAME_PROCESSOR: (0.90, 0.90),
    Transfer.SAME_ARCHITECTURE: (1.35, 1.35),
    Transfer.OTHER_ARCHITECTURE: (1.75, 1.75),
    Transfer.PROCESSOR_TO_ACCELERATOR: (2.55, 2.10),
    Transfer.ACCELERATOR_TO_PROCESSOR: (2.55, 2.10),
}
# processors of different size: added per unit of |log(ratio of their threads)|
SIZE_WIDTH = 0.25
# More accelerators may slow a job down: 4 T4 gave 0.52 of one (same data).
SLOWDOWN = 2.0
# references whose error is within this factor of the least speak together
ALIKE = 1.02


@dataclass(frozen=True, slots=True)
class Reference:
    """A measured machine: its rate and what its trial tells about how it was used."""

    estimate: Estimate
    profile: Profile | None = None
    accelerators_used: int | None = None
    host_bound: bool = False


@dataclass(frozen=True, slots=True)
class Prediction:
    """Samples per second of each target, shape (n,); NaN where nothing can be said.

    ``reference`` is the index of the reference that bears the least error (-1: none),
    ``transfer`` the kind of difference to it.
    """

    value: Floats
    low: Floats
    high: Floats
    reference: NDArray[np.int64]
    transfer: NDArray[np.int64]


def predict(targets: Hardware, measured: Hardware, references: Sequence[Reference]) -> Prediction:
    """Predict the throughput of every target.

    Args:
        targets: n machines.
        measured: the hardware of the references, k machines.
        references: k rates.
    """
    count = len(targets)
    best = np.full(count, np.inf)
    total, weight, down, up = (np.zeros(count) for _ in range(4))
    chosen, kinds = np.full(count, -1), np.full(count, -1)
    for index, reference in enumerate(references):
        mean, below, above, kind = _carry(targets, measured.take([index]), reference)
        width = np.where(np.isnan(mean), np.inf, below + above)
        nearer = width * ALIKE < best
        alike = ~nearer & (width < best * ALIKE)
        total = np.where(nearer, mean, np.where(alike, total + mean, total))
        weight = np.where(nearer, 1.0, weight + alike)
        best = np.where(nearer, width, best)
        down, up = np.where(nearer, below, down), np.where(nearer, above, up)
        chosen, kinds = np.where(nearer, index, chosen), np.where(nearer, kind, kinds)
    with np.errstate(invalid="ignore", divide="ignore"):
        log_rate = np.where(weight > 0, total / weight, np.nan)
    value = np.exp(log_rate)
    return Prediction(value, value * np.exp(-down), value * np.exp(up), chosen, kinds)


def _carry(
    targets: Hardware, source: Hardware, reference: Reference
) -> tuple[Floats, Floats, Floats, NDArray[np.int64]]:
    """Log rate, what may be missing below and above it, and the kind of transfer: shapes (n,)."""
    kind = _kinds(targets, source)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = _share(targets, source)
        mean = _log_ratio(targets, source, reference) + share
        size = np.abs(np.log(targets.numbers["vcpus"] / source.numbers["vcpus"]))
    profiled = reference.profile is not None and reference.profile.flops_per_sample is not None
    table = np.array([WIDTHS[transfer][int(profiled)] for transfer in Transfer])
    width = table[kind]
    between_cpus = (kind >= Transfer.SAME_PROCESSOR) & (kind <= Transfer.OTHER_ARCHITECTURE)
    width = width + np.where(between_cpus, SIZE_WIDTH * size, 0.0)
    below, above = _count_range(targets, source, reference)
    if reference.host_bound:
        # neither "the accelerator changes nothing" nor "it changes all" can be ruled out
        half = np.where(targets.accelerated, np.abs(mean) / 2, 0.0)
        mean, width = np.where(targets.accelerated, mean / 2, mean), width + half
    # a part may be given more than its share while the rest is idle
    below, above = below - np.minimum(-share, 0.0), above - np.minimum(share, 0.0)
    rate = reference.estimate
    width = np.hypot(width, np.log(rate.high / rate.low) / 2)
    return mean + np.log(rate.value), width + below, width + above, kind


def _kinds(targets: Hardware, source: Hardware) -> NDArray[np.int64]:
    texts, other = targets.texts, source.texts
    same = {name: texts[name] == other[name][0] for name in texts}
    known_cpu = np.full(len(targets), other["cpu_model"][0] is not None)
    processor = np.select(
        [same["cpu_model"] & known_cpu & same["arch"], same["arch"]],
        [int(Transfer.SAME_PROCESSOR), int(Transfer.SAME_ARCHITECTURE)],
        int(Transfer.OTHER_ARCHITECTURE),
    )
    accelerator = np.select(
        [same["accelerator"], same["software"]],
        [int(Transfer.SAME_ACCELERATOR), int(Transfer.OTHER_ACCELERATOR)],
        int(Transfer.OTHER_STACK),
    )
    if source.accelerated[0]:
        accelerated, plain = accelerator, np.array(int(Transfer.ACCELERATOR_TO_PROCESSOR))
    else:
        accelerated, plain = np.array(int(Transfer.PROCESSOR_TO_ACCELERATOR)), processor
    return np.where(targets.accelerated, accelerated, plain).astype(np.int64)


def _log_ratio(targets: Hardware, source: Hardware, reference: Reference) -> Floats:
    """log(rate of the target / rate of the reference) by their rooflines."""
    profile = reference.profile
    if source.accelerated[0]:
        own = accelerator_seconds(source, profile)[0]
        # the same chip needs no figures to be as fast as itself
        same = targets.texts["accelerator"] == source.texts["accelerator"][0]
        accelerator = np.where(same, 0.0, np.log(own / accelerator_seconds(targets, profile)))
        processor = np.log(own / cpu_seconds(targets, profile))
    else:
        own = cpu_seconds(source, profile)[0]
        processor = np.log(cpu_rate(targets) / cpu_rate(source)[0])
        accelerator = _to_accelerator(targets, own, reference)
    return np.where(targets.accelerated, accelerator, processor)


def _share(targets: Hardware, source: Hardware) -> Floats:
    """log of the part of an accelerator that a target has, over that of the source."""
    parts = [np.log(np.minimum(h.numbers["accelerator_count"], 1.0)) for h in (targets, source)]
    mine = float(parts[1][0]) if source.accelerated[0] else 0.0
    return np.where(targets.accelerated, parts[0] - mine, 0.0)


def _to_accelerator(targets: Hardware, own: float, reference: Reference) -> Floats:
    """From a processor: at its distance from the roofline, and never without launching kernels."""
    seconds, profile = accelerator_seconds(targets, reference.profile), reference.profile
    if profile is None or not profile.flops_per_sample or not profile.batch_size:
        return np.log(own / seconds)
    rate = reference.estimate.value
    predicted = seconds / own / rate + LAUNCH_SECONDS / profile.batch_size
    return -np.log(predicted * rate)


def _count_range(
    targets: Hardware, source: Hardware, reference: Reference
) -> tuple[Floats, Floats]:
    """How much slower and faster another number of accelerators may be, as logs: shapes (n,)."""
    mine, theirs = source.numbers["accelerator_count"][0], targets.numbers["accelerator_count"]
    used = reference.accelerators_used
    leaves_some = used is not None and used < mine
    base = float(used) if leaves_some and used else float(mine)
    if not source.accelerated[0]:
        base = 1.0
    with np.errstate(invalid="ignore", divide="ignore"):
        # a part of an accelerator is a smaller accelerator, which ``_share`` accounts for
        ratio = np.where(targets.accelerated, np.log(np.maximum(theirs, 1) / max(base, 1)), 0.0)
    slow = np.log(SLOWDOWN)
    if leaves_some:
        ratio = np.minimum(ratio, 0.0)  # a script that leaves accelerators idle leaves more idle
    below = np.where(ratio > 0, slow, -ratio)
    above = np.where(ratio < 0, slow, ratio)
    return below, above
