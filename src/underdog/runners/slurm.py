"""A Slurm cluster, by its own commands, from a login node whose file system its nodes share.

Each trial is one job, or a task of an array where several are submitted at once. It is not
requeued: a trial that ran in part says nothing, and one that ran twice must not count twice.
"""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from underdog.core.racing import Look
from underdog.core.refusals import Kind
from underdog.errors import RefusedError, RunnerError
from underdog.runners import (
    Handle,
    Job,
    Request,
    Runner,
    Setup,
    State,
    _slurm_array,
    _slurm_job,
    _slurm_words,
)
from underdog.runners import _slurm_commands as slurm
from underdog.runners._remote import (
    EXIT,
    LOG,
    PROGRESS,
    SCRIPT,
    TIMED_OUT,
    TOO_LONG,
    TRIAL,
    brought_back,
    look_of,
    target_of,
)
from underdog.runners._slurm_array import submit_all
from underdog.runners._slurm_job import (
    BEGUN,
    CANCELLED,
    EARLY,
    LOST,
    SAID,
    UNSEEN,
    Target,
    There,
    there_of,
)

__all__ = ["Slurm", "Target", "render_all", "runner", "submit_all"]

PAUSE = 3.0  # seconds between two questions to the controller about one job
LAG = 20.0  # seconds that a shared file system may take to show what a node wrote
_WAITS = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
_RUNS = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
_FULL_BYTES = 1 << 20  # free on a disk that is taken for full


class Slurm:
    """Carries jobs by ``sbatch``; ``underdog.runners.Runner`` says what each method does."""

    def __init__(self, setup: Setup) -> None:
        self._folder = setup.folder
        self._asked: dict[Handle, tuple[float, slurm.Standing | None]] = {}
        self._doomed: dict[Handle, float] = {}  # since when a job seems never to run

    def render(self, job: Job) -> Request:
        target = target_of(job, Target, "slurm")
        folder = _slurm_job.folder_of(job, target)
        options = _slurm_job.options(job, target, folder.name, _slurm_array.said_in(folder))
        lines = (
            shlex.join(["sbatch", "--parsable", *options]),
            *_slurm_job.batch(folder, target).splitlines(),
            f"# {folder / SCRIPT}:",
            *_slurm_job.script(job, target).splitlines(),
        )
        return Request(job, lines, tuple(options))

    def submit(self, request: Request) -> Handle:
        job = _slurm_job.named(request.job)
        target = target_of(job, Target, "slurm")
        known = _slurm_job.before(_slurm_job.folder_of(job, target))
        return known or _slurm_array.submit_one(job, target)

    def status(self, handle: Handle) -> State:
        there = there_of(handle)
        folder = Path(there.folder)
        look = _look(folder)
        if (folder / EXIT).exists() or (folder / LOST).exists():
            return State(True, look)
        told = self._standing(handle, there)
        if told is None or told.state not in _WAITS | _RUNS:
            return State(True, look)
        if told.restarts:
            slurm.cancel(there.slurm)
            words = (
                f"Slurm's job {there.slurm} is lost: it was stopped and put back into the queue."
            )
            _lose(folder, RunnerError(words))
        elif told.state in _RUNS:
            return State(False, look, None if look else f"it is being set up on {told.nodes}")
        elif kind := self._never(handle, told.reason):
            slurm.cancel(there.slurm)
            words = f"Slurm's job {there.slurm} can never run: {told.reason}."
            _lose(folder, slurm.refusal(kind, words))
        else:
            return State(False, look, _slurm_words.waiting(told.reason))
        return State(True, look)

    def _never(self, handle: Handle, reason: str) -> Kind | None:
        """What it means that the job will never run; at the first look that may yet change."""
        kind, at = _slurm_words.never(reason), time.monotonic()
        if kind is None or at - self._doomed.setdefault(handle, at) < PAUSE:
            return None
        return kind

    def _standing(self, handle: Handle, there: There) -> slurm.Standing | None:
        at, told = self._asked.get(handle, (-math.inf, None))
        if time.monotonic() - at >= PAUSE:
            told = slurm.standing(there.slurm)
            if told is not None and told.name != there.name:
                told = None  # numbers come again, of another cluster or after its reset
            self._asked[handle] = (time.monotonic(), told)
        return told

    def collect(self, handle: Handle) -> Path:
        there = there_of(handle)
        folder = Path(there.folder)
        if not self.status(handle).ended:
            raise RunnerError(f"Slurm's job {there.slurm} has not ended.")
        if (folder / LOST).exists():
            raise _lost_before(folder)
        found = self._brought(handle, there)
        if found is None:
            error = self._lost(handle, there)
            _lose(folder, error)
            raise error
        for path in (*folder.glob("*.whl"), *folder.glob("store.sqlite3*")):
            path.unlink(missing_ok=True)
        path = self._folder / folder.name / TRIAL
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(found)
        return path

    def _brought(self, handle: Handle, there: There) -> bytes | None:
        """What the job left, once the file system shows it."""
        folder = Path(there.folder)
        until = time.monotonic() + LAG
        while not (folder / EXIT).exists() and time.monotonic() < until:
            told = self._standing(handle, there)
            if told is None or told.state != "COMPLETED" or not folder.exists() or _full(folder):
                break
            os.listdir(folder)  # a shared file system looks anew
            time.sleep(1.0)
        if (folder / EXIT).exists():
            found = brought_back((folder / TRIAL).read_bytes(), (folder / EXIT).read_text())
            if found is not None:
                return found
        return (folder / EARLY).read_bytes() if (folder / CANCELLED).exists() else None

    def _lost(self, handle: Handle, there: There) -> RunnerError:
        folder = Path(there.folder)
        told = self._standing(handle, there)
        what = f"Slurm's job {there.slurm} is lost"
        if not folder.exists():
            return RunnerError(f"{what}: there is no folder '{folder}' any more.")
        seen = (folder / BEGUN).exists()
        nodes = f" on {told.nodes}" if told and told.nodes else ""
        if (
            not seen
            and told
            and (told.exit_code in (f"{UNSEEN}:0", "0:53") or "Launch" in told.reason)
        ):
            return RunnerError(
                f"{what}: the node{nodes} does not see '{folder}'.",
                "Name a folder that all nodes share with this machine: jobs = … in [offer.slurm]",
            )
        if _full(folder):
            return RunnerError(
                f"{what}: the disk of '{folder}' is full.",
                "Make room, or name a folder on another one: jobs = … in [offer.slurm]",
            )
        how = _slurm_words.ending(told.state) if told else "Slurm knows nothing of it any more"
        if (folder / EXIT).exists() and (folder / EXIT).read_text().strip() == TIMED_OUT:
            how = f"its time was over before its measurement had begun. {TOO_LONG}"
        words = [f"{what}{nodes}: {how.removesuffix('.')}.", *_last_lines(folder)]
        return RunnerError("\n".join(words))

    def cancel(self, handle: Handle) -> None:
        there = there_of(handle)
        folder = Path(there.folder)
        if not (folder / EXIT).exists() and folder.exists():
            (folder / CANCELLED).touch()
        self._asked.pop(handle, None)
        slurm.cancel(there.slurm)


def _look(folder: Path) -> Look | None:
    try:
        return look_of((folder / PROGRESS).read_bytes())
    except OSError:
        return None


def _full(folder: Path) -> bool:
    return folder.exists() and shutil.disk_usage(folder).free < _FULL_BYTES


def _last_lines(folder: Path) -> list[str]:
    said = [
        path.read_text(errors="replace") for path in (folder / LOG, folder / SAID) if path.exists()
    ]
    return [line for text in said for line in text.splitlines() if line.strip()][-5:]


def _lose(folder: Path, error: RunnerError) -> None:
    """Keep why a job is lost: it stays so, should its node come back and end it after all."""
    kind = error.kind if isinstance(error, RefusedError) else None
    said = {"message": error.message, "hint": error.hint, "kind": kind}
    with contextlib.suppress(OSError):  # a full disk, or no folder: which is why, and said again
        (folder / LOST).write_bytes(msgspec.json.encode(said))


def _lost_before(folder: Path) -> RunnerError:
    said = msgspec.json.decode((folder / LOST).read_bytes())
    if said["kind"] is not None:
        return RefusedError(said["message"], said["kind"], said["hint"])
    return RunnerError(said["message"], said["hint"])


def render_all(jobs: Sequence[Job]) -> list[Request]:
    """As ``submit_all`` would submit them; nothing happens."""
    alone = Slurm(Setup(folder=Path()))
    return _slurm_array.render_all(jobs, [alone.render(job) for job in jobs])


def runner(setup: Setup) -> Runner:
    """The runner of Slurm clusters."""
    return Slurm(setup)
