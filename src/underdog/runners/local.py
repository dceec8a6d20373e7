"""This machine: each job is an ``underdog measure`` of its own, which ends when we do."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import msgspec

from underdog.core.racing import Look
from underdog.errors import MeasureError
from underdog.model import Machine, Price, Software, Trial
from underdog.runners import Handle, Job, Request, Runner, Setup, State
from underdog.runners._remote import LOG, PROGRESS, TRIAL, look_of, measure_arguments

STORE = "store.sqlite3"
TAIL_BYTES, TAIL_LINES = 4096, 5
# the kernel ends it (SIGTERM) when we are gone, killed or not; without Linux's prctl it goes on
_LAUNCH = """
import os, sys
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, 15, 0, 0, 0)
except Exception:
    pass
os.execv(sys.argv[1], sys.argv[1:])
"""
# -P: what lies in the folder that we are in is none of ours
_MEASURE = (sys.executable, "-P", "-m", "underdog", "measure", "--json")

ENDS_WITH_US = True


class Local:
    """Runs jobs here; ``underdog.runners.Runner`` says what each method does."""

    def __init__(self, setup: Setup) -> None:
        self._folder = setup.folder
        self._running: dict[Handle, subprocess.Popen[bytes]] = {}
        self._cancelled: set[Handle] = set()
        self._workloads: dict[Handle, str] = {}

    def render(self, job: Job) -> Request:
        command = [*_MEASURE, *measure_arguments(job)[2:]]
        command += ["--", *job.command]
        return Request(job, (shlex.join(job.command),), tuple(command))

    def submit(self, request: Request) -> Handle:
        handle = uuid.uuid4().hex
        folder = self._folder / handle
        folder.mkdir()
        kept = (f"--store={folder / STORE}", f"--progress={folder / PROGRESS}")
        command = (*_MEASURE, *kept, *request.command[len(_MEASURE) :])
        with (folder / TRIAL).open("wb") as out, (folder / LOG).open("wb") as log:
            self._running[handle] = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _LAUNCH, *command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=log,
                start_new_session=True,
            )
        self._workloads[handle] = request.job.workload
        return handle

    def status(self, handle: Handle) -> State:
        ended = self._running[handle].poll() is not None
        return State(ended, _look(self._folder / handle / PROGRESS))

    def collect(self, handle: Handle) -> Path:
        self._running[handle].wait()
        path = self._folder / handle / TRIAL
        if path.stat().st_size == 0 and handle in self._cancelled:
            path.write_bytes(msgspec.json.encode(_ended_too_soon(self._workloads[handle])))
        if path.stat().st_size == 0:
            said = _last_lines(self._folder / handle / LOG)
            raise MeasureError(f"The measurement on this machine gave nothing.\n{said}")
        return path

    def cancel(self, handle: Handle) -> None:
        process = self._running[handle]
        if process.poll() is None:
            self._cancelled.add(handle)
            process.send_signal(signal.SIGTERM)


def _ended_too_soon(workload: str) -> Trial:
    """The trial of a job that was cancelled before its measurement had begun."""
    return Trial(
        id=uuid.uuid4().hex,
        workload=workload,
        status="interrupted",
        reason="it was cancelled before it had begun",
        price=Price(unknown_reason="it was cancelled before it had begun"),
        machine=Machine(),
        software=Software(),
    )


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
