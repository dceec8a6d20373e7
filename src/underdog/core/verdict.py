"""What limits a run: a verdict from where its time goes and what the machine did meanwhile.

Where the figures do not carry a verdict it is ``unknown``, and the reason gives the figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from underdog.model import Bound, Machine, Profile

# A share of the step time that no faster processor or accelerator takes away: from a quarter on
# it is what to work on first.
WAITING = 0.25
# Of an accelerator's peak rate: training that is bound by it reaches 35 to 60 % of the dense peak
# (model FLOPs utilization in Chowdhery et al., PaLM, 2022, table 3: 21 to 46 %).
COMPUTE_SHARE = 0.35
# Of the peak memory bandwidth; a copy kernel reaches 80 to 90 %.
MEMORY_SHARE = 0.5
# Of the time in which the driver saw any kernel: above, it is not waiting; below, it is.
BUSY, IDLE = 0.9, 0.8
POWER_SHARE = 0.85  # of the power limit: the arithmetic units draw most of it
# CPU seconds per second and rank: one thread that never waits.
ONE_CORE = 0.85
ALL_CORES = 0.8  # of the processors that the process may use
DISTURBED = 0.2  # of them taken by other programs: how many the job would use is not known
COMPUTING = 0.5  # of the step time in forward, backward and optimizer


class Verdict(NamedTuple):
    """What limits the run, and the figures that say so."""

    bound: Bound
    reason: str


class Peaks(NamedTuple):
    """What the hardware reaches at most, for the run's number format; None where unknown."""

    tflops: float | None = None
    gb_per_s: float | None = None


def bound_by(
    phases: Mapping[str, float],
    usage: Mapping[str, float | None],
    profile: Profile | None,
    machine: Machine,
    *,
    samples_per_second: float | None = None,
    peaks: Peaks | None = None,
    ranks: int = 1,
) -> Verdict:
    """What limits the run.

    Args:
        phases: shares of the step time by name; empty where unknown.
        usage: as ``docs/reference/usage.md`` names it.
        samples_per_second: of the whole job.
        peaks: of one accelerator, or of the processor where none is used.
        ranks: processes that train.
    """
    known = {k: v for k, v in usage.items() if v is not None and math.isfinite(v)}
    shares = {k: v for k, v in phases.items() if math.isfinite(v)}
    if waits := _waiting(shares):
        return waits
    used = _accelerators_used(known, profile, machine)
    achieved = _achieved(profile, samples_per_second, used or 1)
    if used:
        return _accelerated(known, machine, achieved, peaks or Peaks(), ranks)
    return _processor(shares, known, machine, achieved, ranks)


def _waiting(shares: Mapping[str, float]) -> Verdict | None:
    """By data or by communication, whichever takes more of the step."""
    data, talk = shares.get("data", 0.0), shares.get("communication", 0.0)
    if max(data, talk) < WAITING:
        return None
    if data >= talk:
        return Verdict("data", f"{data:.0%} of the step time goes into waiting for data.")
    return Verdict("communication", f"{talk:.0%} of the step time goes into communication.")


def _accelerators_used(
    usage: Mapping[str, float], profile: Profile | None, machine: Machine
) -> int:
    if profile is not None and profile.uses_accelerator is not None:
        return (profile.accelerators_used or 1) if profile.uses_accelerator else 0
    busy = usage.get("accelerator_utilization", 0.0) > 0.01
    return (
        max(1, round(usage.get("accelerators_busy", 1.0))) if machine.accelerators and busy else 0
    )


class _Achieved(NamedTuple):
    """Rates of one device."""

    tflops: float | None
    gb_per_s: float | None


def _achieved(profile: Profile | None, rate: float | None, devices: int) -> _Achieved:
    if profile is None or rate is None:
        return _Achieved(None, None)
    flops, traffic = profile.flops_per_sample, profile.memory_traffic_bytes_per_sample
    return _Achieved(
        flops * rate / devices / 1e12 if flops else None,
        traffic * rate / devices / 1e9 if traffic else None,
    )


def _accelerated(
    usage: Mapping[str, float], machine: Machine, achieved: _Achieved, peaks: Peaks, ranks: int
) -> Verdict:
    compute = _share(achieved.tflops, peaks.tflops)
    memory = _share(achieved.gb_per_s, peaks.gb_per_s)
    busy = usage.get("accelerator_utilization")
    figures = _figures(usage, achieved, compute, memory)
    by_compute, by_memory = (compute or 0) / COMPUTE_SHARE, (memory or 0) / MEMORY_SHARE
    if max(by_compute, by_memory) >= 1:
        which: Bound = "accelerator_compute" if by_compute >= by_memory else "accelerator_memory"
        return Verdict(which, f"{figures}.")
    if busy is None:
        return Verdict("unknown", f"{figures or 'nothing is known of the accelerator'}.")
    if busy < IDLE:
        return _idle(usage, machine, figures, ranks)
    activity = usage.get("accelerator_memory_activity")
    if busy >= BUSY and activity is not None and activity >= MEMORY_SHARE:
        return Verdict("accelerator_memory", f"{figures}; its memory was active {activity:.0%}.")
    power = _power_share(usage, machine)
    if busy >= BUSY and power is not None and power >= POWER_SHARE:
        return Verdict("accelerator_compute", f"{figures}; it drew {power:.0%} of its power limit.")
    return Verdict("unknown", f"{figures}, which tells neither compute nor memory apart.")


def _idle(usage: Mapping[str, float], machine: Machine, figures: str, ranks: int) -> Verdict:
    """The accelerator waits: for its own process that launches kernels, or for all processors."""
    cores, vcpus = usage.get("cores"), machine.vcpus
    if cores is None:
        return Verdict("unknown", f"{figures}; what it waits for is not known.")
    if vcpus and cores >= ALL_CORES * vcpus and vcpus > ranks:
        return Verdict("cpu", f"{figures}, while {cores:.1f} of {vcpus:g} processors were busy.")
    if cores >= ONE_CORE * ranks:
        return Verdict(
            "launch",
            f"{figures}, while each of the {ranks} training processes kept {cores / ranks:.1f} "
            "processors busy: kernels are launched more slowly than they run.",
        )
    return Verdict("unknown", f"{figures}, and {cores:.1f} processors were busy: both waited.")


def _processor(
    shares: Mapping[str, float],
    usage: Mapping[str, float],
    machine: Machine,
    achieved: _Achieved,
    ranks: int,
) -> Verdict:
    """Training on the processor: all of it at work, one thread, or neither."""
    cores, vcpus = usage.get("cores"), machine.vcpus
    computing = sum(shares.get(name, 0.0) for name in ("forward", "backward", "optimizer"))
    speed = f", {1e3 * achieved.tflops:.3g} GFLOP/s" if achieved.tflops else ""
    if cores is None:
        if computing < COMPUTING:
            return Verdict("unknown", "the use of the processor is not known.")
        return Verdict("cpu", f"{computing:.0%} of the step time is computation{speed}.")
    of = f" of {vcpus:g}" if vcpus else ""
    figures = f"{cores:.1f}{of} processors were busy{speed}"
    if vcpus and cores >= ALL_CORES * vcpus:
        return Verdict("cpu", f"{figures}: computation uses all of them.")
    if usage.get("quota_throttled_share", 0.0) >= WAITING:
        return Verdict("cpu", f"{figures}, and the quota held threads back.")
    others = usage.get("other_load_cores", 0.0)
    if vcpus and others >= DISTURBED * vcpus and cores + others >= ALL_CORES * vcpus:
        # what the job would do alone cannot be told from this
        return Verdict("cpu", f"{figures}, and other programs took {others:.1f}.")
    if ONE_CORE * ranks <= cores < 1.3 * ranks:
        return Verdict("cpu", f"{figures}: one thread of each process limits it.")
    if cores >= ONE_CORE * ranks and (computing >= COMPUTING or not shares):
        return Verdict("cpu", f"{figures}: computation does not spread over all of them.")
    return Verdict("unknown", f"{figures}: it waited for something that was not seen.")


def _share(achieved: float | None, peak: float | None) -> float | None:
    return achieved / peak if achieved is not None and peak else None


def _power_share(usage: Mapping[str, float], machine: Machine) -> float | None:
    """Of the limit; the reading is the sum over the busy accelerators."""
    watts, busy = usage.get("accelerator_power_w"), usage.get("accelerators_busy")
    limits = [one.power_limit_w for one in machine.accelerators if one.power_limit_w]
    if watts is None or not busy or not limits:
        return None
    return watts / (busy * sum(limits) / len(limits))


def _figures(
    usage: Mapping[str, float],
    achieved: _Achieved,
    compute: float | None,
    memory: float | None,
) -> str:
    parts = []
    if (busy := usage.get("accelerator_utilization")) is not None:
        parts.append(f"the accelerator was busy {busy:.0%} of the time")
    if compute is not None and achieved.tflops is not None:
        parts.append(f"reached {achieved.tflops:.3g} TFLOP/s ({compute:.0%} of its peak)")
    if memory is not None and achieved.gb_per_s is not None:
        parts.append(f"moved {achieved.gb_per_s:.3g} GB/s ({memory:.0%} of its peak)")
    return ", ".join(parts)
