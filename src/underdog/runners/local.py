"""This machine, or a part of it: each job is an ``underdog measure``, which ends when we do."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from underdog.core.racing import Look
from underdog.errors import MeasureError, RefusedError
from underdog.model import Trial
from underdog.runners import Handle, Job, Request, Runner, Setup, State, _launch
from underdog.runners._remote import (
    LOG,
    PROGRESS,
    TRIAL,
    cancelled_trial,
    look_of,
    measure_arguments,
    target_of,
)
from underdog.units import GIB

ENDS_WITH_US = True
STORE, NOTE = "store.sqlite3", "memory"
TAIL_BYTES, TAIL_LINES = 4096, 5
HIDDEN = "accelerator_unused"  # the caveat of a trial that leaves an accelerator alone
THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "TF_NUM_INTRAOP_THREADS",
)
VISIBLE = "CUDA_VISIBLE_DEVICES"  # ROCm reads it too
# -P: what lies in the folder that we are in is none of ours
_MEASURE = (sys.executable, "-P", "-m", "underdog", "measure", "--json")


class Target(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a job may use of this machine; None: all that there is.

    Attributes:
        cpus: how many processors, of which jobs at the same time have each their own; or which, by
            the kernel's numbers.
        threads: of the libraries that compute on processors.
        memory_gib: above it the largest process of the job is ended.
        accelerators: which, by number; an empty list hides all.
    """

    cpus: Annotated[int, Meta(ge=1)] | Annotated[list[int], Meta(min_length=1)] | None = None
    threads: Annotated[int, Meta(ge=1)] | None = None
    memory_gib: Annotated[float, Meta(gt=0, le=2**30)] | None = None
    accelerators: list[Annotated[int, Meta(ge=0)]] | None = None


@dataclass(frozen=True, slots=True)
class _Running:
    """A job that was started: its processors are its own until its process has ended."""

    process: subprocess.Popen[bytes]
    workload: str
    target: Target
    cpus: frozenset[int]


class Local:
    """Runs jobs here; ``underdog.runners.Runner`` says what each method does."""

    def __init__(self, setup: Setup) -> None:
        self._folder = setup.folder
        self._running: dict[Handle, _Running] = {}
        self._cancelled: set[Handle] = set()

    def render(self, job: Job) -> Request:
        command = [*_MEASURE, *measure_arguments(job)[2:]]
        command += ["--", *job.command]
        limits = shlex.join(f"{k}={v}" for k, v in job.target.items())
        target_of(job, Target, "local")
        lines = [shlex.join(job.command), *([f"within {limits}"] if limits else [])]
        return Request(job, tuple(lines), tuple(command))

    def submit(self, request: Request) -> Handle:
        target = target_of(request.job, Target, "local")
        cpus = self._processors(target.cpus)
        environment = {**os.environ, **_variables(target)}
        handle = uuid.uuid4().hex
        folder = self._folder / handle
        folder.mkdir()
        limits: dict[str, Any] = {"cpus": sorted(cpus)}
        if target.memory_gib is not None:
            limits |= {"bytes": int(target.memory_gib * GIB), "note": str(folder / NOTE)}
        kept = (f"--store={folder / STORE}", f"--progress={folder / PROGRESS}")
        command = (*_MEASURE, *kept, *request.command[len(_MEASURE) :])
        launch = (sys.executable, "-I", "-S", _launch.__file__, json.dumps(limits))
        with (folder / TRIAL).open("wb") as out, (folder / LOG).open("wb") as log:
            process = subprocess.Popen(
                [*launch, *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                env=environment,
                cwd=request.job.folder,
                start_new_session=True,
            )
        self._running[handle] = _Running(process, request.job.workload, target, cpus)
        return handle

    def _processors(self, asked: int | list[int] | None) -> frozenset[int]:
        """The processors of a job, by number; none where it may use all."""
        if asked is None:
            return frozenset()
        allowed = os.sched_getaffinity(0)
        if isinstance(asked, list):
            if missing := sorted(set(asked) - allowed):
                raise RefusedError(
                    f"'cpus = {asked}': this process may not use processor {missing[0]}.",
                    "not_offered",
                    f"There are {_ranges(allowed)}.",
                )
            return frozenset(asked)
        busy = {n for run in self._running.values() if run.process.poll() is None for n in run.cpus}
        free = [number for number in sorted(allowed, key=_core) if number not in busy]
        if asked > len(free):
            have = f"this process may use {len(allowed)}"
            held = "" if asked > len(allowed) else f", and other jobs hold {len(allowed & busy)}"
            raise RefusedError(
                f"'cpus = {asked}' cannot be had: {have}{held}.",
                "no_capacity" if held else "not_offered",
                "Ask for fewer, or run fewer jobs at the same time.",
            )
        return frozenset(free[:asked])

    def status(self, handle: Handle) -> State:
        ended = self._running[handle].process.poll() is not None
        return State(ended, _look(self._folder / handle / PROGRESS))

    def collect(self, handle: Handle) -> Path:
        run = self._running[handle]
        run.process.wait()
        path = self._folder / handle / TRIAL
        if path.stat().st_size == 0 and handle in self._cancelled:
            path.write_bytes(cancelled_trial(run.workload))
        if path.stat().st_size == 0:
            said = _last_lines(self._folder / handle / LOG)
            raise MeasureError(f"The measurement on this machine gave nothing.\n{said}")
        if run.target != Target():
            _tell_limits(path, run)
        return path

    def cancel(self, handle: Handle) -> None:
        process = self._running[handle].process
        if process.poll() is None:
            self._cancelled.add(handle)
            process.send_signal(signal.SIGTERM)


def _variables(target: Target) -> dict[str, str]:
    """The environment that holds the libraries to the threads and accelerators of a job."""
    found = {} if target.threads is None else dict.fromkeys(THREADS, str(target.threads))
    if target.accelerators is not None:
        count = _accelerator_count()
        beyond = [n for n in target.accelerators if n >= count]
        if beyond:
            raise RefusedError(
                f"'accelerators = {target.accelerators}': there is no {beyond[0]} here.",
                "not_offered",
                f"This machine shows {count}.",
            )
        found[VISIBLE] = ",".join(map(str, target.accelerators))
        found["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # the order of the driver and of its tools
    return found


def _accelerator_count() -> int:
    """NVIDIA's and AMD's, as their drivers show them."""
    devices = Path("/dev")
    return len(list(devices.glob("nvidia[0-9]*"))) or len(list(devices.glob("dri/renderD*")))


def _core(number: int) -> tuple[int, int, int]:
    """Sorts processors so that those of one core stand together, as a smaller machine has them."""
    topology = Path(f"/sys/devices/system/cpu/cpu{number}/topology")
    try:
        package = int((topology / "physical_package_id").read_text())
        return package, int((topology / "core_id").read_text()), number
    except (OSError, ValueError):
        return 0, number, number


def _ranges(numbers: Iterable[int]) -> str:
    """Numbers as the kernel lists them: ``0-3,8``."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ",".join("-".join(map(str, ends)) for ends in found)


def _tell_limits(path: Path, run: _Running) -> None:
    """Write into the trial what the job had of this machine, and that it took too much memory."""
    trial = msgspec.json.decode(path.read_bytes(), type=Trial)
    machine, target, caveats = trial.machine, run.target, trial.caveats
    if target.memory_gib is not None:
        whole = machine.memory_gib
        least = target.memory_gib if whole is None else min(whole, target.memory_gib)
        machine = replace(machine, memory_gib=least)
    if target.accelerators is not None:
        mine = [a for a in machine.accelerators if a.index in target.accelerators]
        machine = replace(machine, accelerators=mine)
        if not mine:
            caveats = [c for c in caveats if c.code != HIDDEN]
    note = path.with_name(NOTE)
    if trial.status == "failed" and note.exists():
        held = int(note.read_text()) / GIB
        reason = f"It held {held:.3g} GiB of memory and may have {target.memory_gib:g} GiB."
        trial = replace(trial, status="out_of_memory", reason=reason)
    path.write_bytes(msgspec.json.encode(replace(trial, machine=machine, caveats=caveats)))


def _look(path: Path) -> Look | None:
    try:
        return look_of(path.read_bytes())
    except OSError:
        return None


def _last_lines(path: Path) -> str:
    lines = path.read_bytes()[-TAIL_BYTES:].decode(errors="replace").splitlines()
    return "\n".join([line for line in lines if line.strip()][-TAIL_LINES:])


def runner(setup: Setup) -> Runner:
    """The runner of this machine."""
    return Local(setup)
