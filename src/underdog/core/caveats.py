"""The doubts about a measurement, by code: what is said of each and what helps.

``docs/reference/caveats.md`` lists the codes. A caveat is made by ``caveat(code, what)`` where the
doubt arises; ``of_usage`` judges how the machine was meanwhile.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from underdog.model import Caveat, Machine
from underdog.units import format_seconds

# Time that the hypervisor gave to others, of the time that the processors were wanted: from 2 % on
# it alone explains more than the default precision.
STEAL_SHARE = 0.02
# Load of others in parts of the machine: from a twentieth on it takes cache and memory bandwidth
# that show in step times, and the sampler itself stays below a hundredth.
OTHER_LOAD_SHARE = 0.05
# Wall time in which the cgroup's quota held the processes back: as for steal.
QUOTA_SHARE = 0.02
# Looks at the accelerator in which it held its clock down for heat; one look in twenty may be
# chance at the start.
THERMAL_SHARE = 0.05
# Runnable threads per processor from which they wait for each other more than they compute. Between
# two phases a pool of the right size has up to twice as many: those that end and those that begin.
THREADS_PER_CPU = 2.5
# An accelerator that computes is busy in more than one look in a hundred.
UNUSED_UTILIZATION = 0.01

REMEDIES: dict[str, str] = {
    "too_few_steps": "Let it run longer: --for 10m, or --whole.",
    "drifting": "Let it run longer with --for, until the rate settles, and look for what grows: "
    "sequence lengths, a list that is never emptied, a disk cache that fills.",
    "noisy_machine": "Measure again when the machine is idle, or on one that is not shared.",
    "thermal_throttling": "Improve the cooling or lower the power limit, and measure again once it "
    "has reached its temperature.",
    "threads_over_quota": "Set OMP_NUM_THREADS, or torch.set_num_threads, to the processors that "
    "the process may use, and fewer data-loader workers.",
    "accelerator_unused": "Move the model and the batches to the accelerator, or install the build "
    "of the framework that reaches it; else choose a machine without one.",
    "high_variance": "Let it run longer, or measure again; compare machines by their intervals "
    "only.",
    "bimodal_steps": "Look for what every few steps do besides: logging, padding to other shapes, "
    "a data loader that cannot keep up.",
    "missing_ranks": "Run all ranks under the one command that underdog starts.",
    "uneven_ranks": "Look at the output of the rank that fell behind.",
    "several_processes": "Measure the command of one training at a time where that is meant.",
    "clock_problem": "Measure again; a machine whose clock jumps (a virtual machine that was "
    "moved or suspended) cannot be measured meanwhile.",
    "pauses_dominate": "Read the rate with pauses too; evaluate or save less often.",
    "stalls": "Look for recompilation on new shapes, a checkpoint or a full disk at those steps.",
    "samples_unknown": "Say how many samples a step takes with --samples-per-step N, or write "
    "'for batch in underdog.track(loader):'.",
    "single_repeat": "Measure it at least three times, better five.",
    "warmup_repeat": "Nothing needs to be done; leave a warm-up run out of the file.",
    "machine_left": "Take it down with the engine's own command, and see in the provider's console "
    "that it is gone.",
}


def caveat(code: str, message: str) -> Caveat:
    """The caveat of a known code.

    Raises:
        KeyError: the code is not one of ``REMEDIES``.
    """
    return Caveat(code=code, message=message, remedy=REMEDIES[code])


def of_usage(
    usage: Mapping[str, float | None], machine: Machine, uses_accelerator: bool | None = None
) -> list[Caveat]:
    """What the readings of the machine during the steps say against the measurement.

    Args:
        usage: as ``docs/reference/usage.md`` names it; what is missing or None is unknown.
        machine: the machine; ``vcpus`` is what the process may use.
        uses_accelerator: what the framework says of it, None where it does not.
    """
    known = {k: v for k, v in usage.items() if v is not None and math.isfinite(v)}
    found = [
        _noisy(known, machine.vcpus),
        _thermal(known),
        _threads(known, machine.vcpus),
        _unused(known, machine, uses_accelerator),
    ]
    return [one for one in found if one is not None]


def _noisy(usage: Mapping[str, float], vcpus: float | None) -> Caveat | None:
    reasons = []
    steal, wanted = usage.get("steal_cores", 0.0), usage.get("host_cores", 0.0)
    if steal > 0 and steal >= STEAL_SHARE * (steal + wanted):
        reasons.append(
            f"the hypervisor gave {steal / (steal + wanted):.0%} of the processor time that was "
            "wanted to other machines (steal)"
        )
    other = usage.get("other_load_cores", 0.0)
    if vcpus and other >= OTHER_LOAD_SHARE * vcpus:
        reasons.append(f"other programs used {other:.1f} of its {vcpus:g} processors")
    throttled = usage.get("quota_throttled_share", 0.0)
    if throttled >= QUOTA_SHARE:
        reasons.append(
            f"the container's processor quota held threads back for {throttled:.2g} s per second"
        )
    if not reasons:
        return None
    return caveat("noisy_machine", f"The machine was disturbed: {_and(reasons)}.")


def _thermal(usage: Mapping[str, float]) -> Caveat | None:
    share = usage.get("accelerator_thermal_share", 0.0)
    events = usage.get("cpu_thermal_throttles", 0.0)
    reasons = []
    if share >= THERMAL_SHARE:
        reasons.append(f"an accelerator held its clock down for heat {share:.0%} of the time")
    if events > 0:
        reasons.append(f"the processor was slowed down for heat {events:.0f} times")
    return caveat("thermal_throttling", f"It ran hot: {_and(reasons)}.") if reasons else None


def _threads(usage: Mapping[str, float], vcpus: float | None) -> Caveat | None:
    """Threads that exist are mostly asleep; only those that want to run are too many.

    The queue is the whole machine's, so it says nothing where others load the machine too.
    """
    queue, throttled = usage.get("run_queue"), usage.get("quota_throttled_share", 0.0)
    if not vcpus or "threads" not in usage or usage["threads"] <= vcpus:
        return None
    alone = usage.get("other_load_cores", 0.0) < OTHER_LOAD_SHARE * vcpus
    crowded = alone and queue is not None and queue >= THREADS_PER_CPU * vcpus
    if not crowded and throttled < QUOTA_SHARE:
        return None
    waiting = f", {queue:.0f} of which wanted to run at a time," if queue is not None else ""
    return caveat(
        "threads_over_quota",
        f"{usage['threads']:.0f} threads{waiting} shared {vcpus:g} processors.",
    )


def _unused(
    usage: Mapping[str, float], machine: Machine, uses_accelerator: bool | None
) -> Caveat | None:
    if not machine.accelerators:
        return None
    busy = usage.get("accelerator_utilization")
    idle = busy is not None and busy <= UNUSED_UTILIZATION
    if uses_accelerator or not (idle or uses_accelerator is False):
        return None
    names = sorted({one.name for one in machine.accelerators})
    shown = f" (busy {busy:.0%} of the time)" if busy is not None else ""
    return caveat(
        "accelerator_unused",
        f"THE ACCELERATOR WAS NOT USED: {len(machine.accelerators)} × {', '.join(names)}{shown}; "
        "the training ran on the processor.",
    )


def pauses(seconds: float, training: float, kinds: Iterable[str]) -> Caveat | None:
    """Where pauses took more time than the steps did."""
    if seconds <= training:
        return None
    return caveat(
        "pauses_dominate",
        f"{' and '.join(sorted(kinds))} took {format_seconds(seconds)}, the steps "
        f"{format_seconds(training)}.",
    )


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
