"""From everything that was seen of a run to its trial."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_type_hints

import msgspec

from underdog.core import caveats
from underdog.core.series import Job
from underdog.core.stats import Throughput, throughput
from underdog.core.verdict import Peaks, bound_by
from underdog.measuring.observe import Limits, steady_span
from underdog.measuring.outcome import outcome
from underdog.measuring.rates import job_of
from underdog.measuring.records import ProcessRecords
from underdog.measuring.run import Run
from underdog.measuring.timelines import timeline_of
from underdog.model import Caveat, Profile, Software, Trial
from underdog.units import GIB

PeaksOf = Callable[[str | None], Peaks]

PROFILE_TYPES = get_type_hints(Profile)


def conclude(begun: Trial, run: Run, limits: Limits, peaks: PeaksOf) -> Trial:
    """The trial that ``begun`` became, all but the time of its end.

    Args:
        peaks: what one accelerator of the machine reaches in a number format.
    """
    by_pattern = run.matches is not None
    job = job_of(run.processes, by_pattern)
    result = throughput(job.series) if job else Throughput()
    # phases and profile are the probe's, also where the rate is the pattern's
    leader = leading(run.processes)
    usage = usage_of(run, job, result)
    profile = profile_of(leader, usage, result)
    probed = job_of(run.processes) if by_pattern else job
    phases = throughput(probed.series).phases if by_pattern and probed else result.phases
    status, reason, exit_code = outcome(run, result, limits)
    rate = result.samples_per_second
    verdict = bound_by(
        phases,
        usage,
        profile,
        begun.machine,
        samples_per_second=rate.value if rate else None,
        peaks=peaks(profile.number_format if profile else None),
        ranks=result.ranks,
    )
    return dataclasses.replace(
        begun,
        status=status,
        reason=reason,
        exit_code=exit_code,
        measurement=result.measurement() if result.steps else None,
        phases=phases,
        bound_by=verdict.bound if result.steps else "unknown",
        bound_reason=verdict.reason if result.steps else None,
        peak_memory_gib=peak_memory(run),
        usage=usage,
        caveats=all_caveats(begun, run, job, result, usage, profile),
        software=software_of(begun, leader),
        profile=profile,
        timeline=timeline_of(job.series if job else None, run.sampler, run.began),
    )


def leading(processes: Sequence[ProcessRecords]) -> ProcessRecords | None:
    """The process that speaks for the job: of the lowest rank among those that took most steps."""
    trained = [p for p in processes if p.step_count] or [p for p in processes if p.process]
    most = max((p.step_count for p in trained), default=0)
    full = [p for p in trained if p.step_count >= most / 2]
    return min(full, key=lambda p: p.rank, default=None)


def usage_of(run: Run, job: Job | None, result: Throughput) -> dict[str, float | None]:
    """How the machine was used after warm-up; over the whole run where no step was taken."""
    start, end = run.began, run.ended
    if job and len(job.series):
        start, end = steady_span(job.series, result)
    usage = run.sampler.usage(start, end)
    if run.cpu_seconds is not None:
        usage["cpu_seconds_user"], usage["cpu_seconds_system"] = run.cpu_seconds
    usage["elapsed_seconds"] = run.ended - run.began
    return usage


def peak_memory(run: Run) -> dict[str, float | None]:
    """GiB at the peak: the tree's on the host, and of the fullest accelerator.

    The driver counts everything of a process; the framework knows its allocator only, so the
    larger of the two is nearer to what must fit.
    """
    peaks = [float(size) for size in run.sampler.peak_devices.values()]
    allocated = [p.memory.get("accelerator_peak_bytes") for p in run.processes]
    reserved = [p.memory.get("accelerator_reserved_bytes") for p in run.processes]
    peaks += [float(size) for size in (*allocated, *reserved) if size]
    known = [float(size) for size in allocated if size]
    host = max(run.sampler.peak_host, run.peak_resident or 0)
    return {
        "host": host / GIB if host else None,
        "accelerator": max(peaks) / GIB if any(peaks) else None,
        "accelerator_allocated": max(known) / GIB if known else None,
    }


def profile_of(
    leader: ProcessRecords | None, usage: Mapping[str, float | None], result: Throughput
) -> Profile | None:
    """What the probe learned of the workload, with what only the outside sees."""
    if leader is None or not result.steps:
        return None
    known: dict[str, Any] = {}
    for name, value in leader.profile.items():
        if name in PROFILE_TYPES and value == value:  # NaN is not equal to itself
            try:
                known[name] = msgspec.convert(value, PROFILE_TYPES[name], strict=False)
            except msgspec.ValidationError:
                continue
    if rate := result.samples_per_second:
        for name, source in (
            ("cpu_seconds_per_sample", "cores"),
            ("read_bytes_per_sample", "read_bytes_per_second"),
        ):
            amount = usage.get(source)
            if amount is not None and rate.value > 0:
                known[name] = amount / rate.value
    if "batch_size" not in known and result.batch_size:
        known["batch_size"] = result.batch_size / result.ranks
    busy = usage.get("accelerators_busy")
    if busy:
        known.setdefault("accelerators_used", round(busy))
    return Profile(**known)


def software_of(begun: Trial, leader: ProcessRecords | None) -> Software:
    """What the script ran on."""
    drivers = [a.driver for a in begun.machine.accelerators if a.driver]
    software = dataclasses.replace(begun.software, driver=drivers[0] if drivers else None)
    if leader is None:
        return software
    libraries = leader.software.get("libraries", {})
    return dataclasses.replace(
        software,
        python=text_or_none(leader.process.get("python")),
        framework=text_or_none(leader.process.get("framework")),
        framework_version=text_or_none(leader.process.get("framework_version")),
        libraries={str(k): str(v) for k, v in libraries.items()},
        settings=finite(leader.software.get("settings", {})),
    )


def all_caveats(
    begun: Trial,
    run: Run,
    job: Job | None,
    result: Throughput,
    usage: Mapping[str, float | None],
    profile: Profile | None,
) -> list[Caveat]:
    """Every doubt once, the machine's first: they matter most."""
    uses = profile.uses_accelerator if profile else None
    found = caveats.of_usage(usage, begun.machine, uses) if result.steps else []
    found += job.caveats if job else []
    found += result.caveats if result.steps else []
    found += [Caveat(**note) for process in run.processes for note in process.notes]
    if run.garbage:
        found.append(
            Caveat(
                code="damaged_records",
                message=f"{run.garbage} of the probe's records could not be read.",
                remedy="Make sure that the folder for temporary files has room: TMPDIR=/path.",
            )
        )
    if run.survivors:
        pids = ", ".join(str(pid) for pid in run.survivors)
        found.append(
            Caveat(
                code="surviving_processes",
                message=f"Processes {pids} of the script could not be ended.",
                remedy="They wait in the kernel, mostly for a device or a network disk.",
            )
        )
    return list({(c.code, c.message): c for c in found}.values())


def text_or_none(value: Any) -> str | None:
    """A text of a record that anyone may have written."""
    return value if isinstance(value, str) else None


def finite(value: Any) -> Any:
    """A JSON value without NaN and infinity, which no store keeps: they become text."""
    if isinstance(value, dict):
        return {str(key): finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
