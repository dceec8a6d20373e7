"""A Slurm cluster, by its own commands, from a login node whose file system its nodes share.

Each trial is one job. It is not requeued: a trial that ran in part says nothing, and one that ran
twice must not count twice.
"""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import shutil
import time
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from underdog.core.racing import Look
from underdog.core.refusals import Kind
from underdog.errors import RefusedError, RunnerError
from underdog.runners import Handle, Job, Request, Runner, Setup, State, _slurm_words
from underdog.runners import _slurm_commands as slurm
from underdog.runners._remote import (
    EXIT,
    GRACE,
    LOG,
    PROGRESS,
    SCRIPT,
    TIMED_OUT,
    TOO_LONG,
    TRIAL,
    brought_back,
    cancelled_trial,
    job_name,
    job_script,
    look_of,
    target_of,
    write_wheel,
)

PAUSE = 3.0  # seconds between two questions to the controller about one job
LAG = 20.0  # seconds that a shared file system may take to show what a node wrote
BEGUN, NUMBER, CANCELLED, LOST = "begun", "begun/number", "cancelled", "lost.json"
EARLY, SAID = "early.json", "said.txt"
UNSEEN = 66  # exit status of a node that does not see the folder of the job
_WAITS = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"}
_RUNS = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING"}
_FULL_BYTES = 1 << 20  # free on a disk that is taken for full
_BATCH = """\
#!/bin/sh
cd {folder} || exit {unseen}
mkdir {begun} || {{ echo "Slurm started it once more; it runs only once."; exit 1; }}
echo "$SLURM_JOB_ID" >{number}
[ -e {cancelled} ] && exit
exec {shell} ./{script}
"""
# each trial is one job, whose script and number are ours
_OURS = {"-a", "--array", "-W", "--wait", "--wrap", "--test-only", "-H", "--hold"}
_Word = Annotated[str, Meta(min_length=1)] | None


class Target(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The keys of ``[offer.slurm]``: what ``sbatch`` is asked for, and what the job finds there.

    Attributes:
        flags: more flags of ``sbatch``, such as ``--mem=64G``.
        python: the Python there that has underdog; without it, underdog is installed there once.
        folder: a folder there to work in, instead of the one where underdog is called.
        shell_setup: commands of bash before the job, such as ``module load cuda``.
        jobs: the folder for the records of jobs, which the nodes share.
    """

    partition: _Word = None
    constraint: _Word = None
    gres: _Word = None
    account: _Word = None
    qos: _Word = None
    flags: tuple[str, ...] = ()
    python: str | None = None
    folder: str | None = None
    shell_setup: tuple[str, ...] = ()
    jobs: str | None = None

    def __post_init__(self) -> None:
        for flag in self.flags:
            if not flag.startswith("-") or flag.partition("=")[0] in _OURS:
                raise ValueError(f"'{flag}' is no flag that 'sbatch' can be given here")


class _There(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a handle says: the number of the job at Slurm, and its folder."""

    slurm: str
    folder: str


class Slurm:
    """Carries jobs by ``sbatch``; ``underdog.runners.Runner`` says what each method does."""

    def __init__(self, setup: Setup) -> None:
        self._folder = setup.folder
        self._asked: dict[Handle, tuple[float, slurm.Standing | None]] = {}
        self._doomed: dict[Handle, float] = {}  # since when a job seems never to run

    def render(self, job: Job) -> Request:
        target = target_of(job, Target, "slurm")
        folder = _jobs(target) / (job_name(job) if job.id else "underdog-NEW")
        options = _options(job, target, folder)
        lines = (
            shlex.join(["sbatch", "--parsable", *options]),
            *_batch(folder, target).splitlines(),
            f"# {folder / SCRIPT}:",
            *_script(job, target).splitlines(),
        )
        return Request(job, lines, tuple(options))

    def submit(self, request: Request) -> Handle:
        job = request.job
        target = target_of(job, Target, "slurm")
        name = job_name(job)
        folder = _jobs(target) / name
        number = self._number(name, folder)
        if number is None:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if target.python is None:
                    write_wheel(folder)
                (folder / EARLY).write_bytes(cancelled_trial(job.workload))
                (folder / SCRIPT).write_text(_script(job, target))
            except OSError as error:
                raise RunnerError(
                    f"'{error.filename or folder}' cannot be written: {error.strerror}.",
                    "Name a folder that you may write and that the nodes share: jobs = … in "
                    "[offer.slurm]",
                ) from error
            number = _submitted(name, _options(job, target, folder), _batch(folder, target))
        return msgspec.json.encode(_There(slurm=number, folder=str(folder))).decode()

    def _number(self, name: str, folder: Path) -> str | None:
        """The number of a job that was submitted before under the same name."""
        if not folder.exists():
            return None
        begun = folder / NUMBER
        return (begun.exists() and begun.read_text().strip()) or slurm.number_of(name)

    def status(self, handle: Handle) -> State:
        there = _there(handle)
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

    def _standing(self, handle: Handle, there: _There) -> slurm.Standing | None:
        at, told = self._asked.get(handle, (-math.inf, None))
        if time.monotonic() - at >= PAUSE:
            told = slurm.standing(there.slurm)
            if told is not None and told.name != Path(there.folder).name:
                told = None  # numbers come again, of another cluster or after its reset
            self._asked[handle] = (time.monotonic(), told)
        return told

    def collect(self, handle: Handle) -> Path:
        there = _there(handle)
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

    def _brought(self, handle: Handle, there: _There) -> bytes | None:
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

    def _lost(self, handle: Handle, there: _There) -> RunnerError:
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
        there = _there(handle)
        folder = Path(there.folder)
        if not (folder / EXIT).exists() and folder.exists():
            (folder / CANCELLED).touch()
        self._asked.pop(handle, None)
        slurm.cancel(there.slurm)


def _submitted(name: str, options: list[str], script: str) -> str:
    """Have Slurm take the job; its number, also where it took it and could not say so."""
    try:
        return slurm.submit(options, script)
    except RefusedError:
        raise
    except RunnerError:
        with contextlib.suppress(RunnerError):
            if number := slurm.number_of(name):
                return number
        raise


def _jobs(target: Target) -> Path:
    if target.jobs is not None:
        return Path(target.jobs).expanduser().absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "underdog" / "jobs"


def _options(job: Job, target: Target, folder: Path) -> list[str]:
    """The user's flags, and after them ours, of which the last counts."""
    minutes = math.ceil((job.longest + GRACE) / 60)
    wanted = {
        name: getattr(target, name)
        for name in ("partition", "constraint", "gres", "account", "qos")
    }
    wanted["nodes"] = job.offer.nodes if job.offer.nodes > 1 else None
    return [
        *target.flags,
        *(f"--{name}={value}" for name, value in wanted.items() if value is not None),
        f"--job-name={folder.name}",
        f"--time={minutes}",
        "--no-requeue",
        "--open-mode=append",
        f"--output={folder / SAID}",
        f"--error={folder / SAID}",
    ]


def _batch(folder: Path, target: Target) -> str:
    return _BATCH.format(
        folder=shlex.quote(str(folder)),
        unseen=UNSEEN,
        begun=BEGUN,
        number=NUMBER,
        cancelled=CANCELLED,
        shell="bash -l" if target.shell_setup else "sh",
        script=SCRIPT,
    )


def _script(job: Job, target: Target) -> str:
    folder = target.folder or (None if job.folder is None else str(job.folder))
    return job_script(job, folder, target.python, target.shell_setup)


def _there(handle: Handle) -> _There:
    try:
        return msgspec.json.decode(handle, type=_There)
    except msgspec.MsgspecError as error:
        raise RunnerError(f"'{handle}' names no job of slurm: {error}.") from error


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


def runner(setup: Setup) -> Runner:
    """The runner of Slurm clusters."""
    return Slurm(setup)
