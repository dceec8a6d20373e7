"""What a job of Slurm is: what ``sbatch`` is asked for, and the folder that holds its records."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
import shlex
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from underdog.errors import RefusedError, RunnerError
from underdog.runners import Handle, Job
from underdog.runners import _slurm_commands as slurm
from underdog.runners._remote import (
    GRACE,
    SCRIPT,
    cancelled_trial,
    job_name,
    job_script,
    write_wheel,
)

BEGUN, NUMBER, CANCELLED, LOST = "begun", "begun/number", "cancelled", "lost.json"
EARLY, SAID = "early.json", "said.txt"
ARRAY = "array"  # of a task of one: the array's name, and the number of the task
UNSEEN = 66  # exit status of a node that does not see the folder of the job
MOST_TASKS = 500  # of one array: by default Slurm takes 1,001
_ONCE = """\
mkdir {begun} || {{ echo "Slurm started it once more; it runs only once."; exit 1; }}
echo "{id}" >{number}
[ -e {cancelled} ] && exit
exec {shell} ./{script}
"""
_BATCH = "#!/bin/sh\ncd {folder} || exit {unseen}\n"
_TASKS = """\
#!/bin/sh
case $SLURM_ARRAY_TASK_ID in
{tasks}
esac
cd "$job" || exit {unseen}
exec >>{said} 2>&1
"""
# the script and the number of each trial are ours
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


class There(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a handle says: the number of the job at Slurm, its folder, and the array's name."""

    slurm: str
    folder: str
    array: str | None = None

    @property
    def name(self) -> str:
        """What Slurm calls it."""
        return self.array or Path(self.folder).name


def handle_of(number: str, folder: Path, array: str | None = None) -> Handle:
    """The handle of a job that Slurm has taken."""
    return msgspec.json.encode(There(slurm=number, folder=str(folder), array=array)).decode()


def there_of(handle: Handle) -> There:
    """What a handle says.

    Raises:
        RunnerError: it is none of Slurm's.
    """
    try:
        return msgspec.json.decode(handle, type=There)
    except msgspec.MsgspecError as error:
        raise RunnerError(f"'{handle}' names no job of slurm: {error}.") from error


def named(job: Job) -> Job:
    """The job under an id of its own, where it came without one."""
    return job if job.id else dataclasses.replace(job, id=uuid.uuid4().hex)


def folder_of(job: Job, target: Target) -> Path:
    """The folder of a job's records; one without an id is only shown."""
    name = job_name(job) if job.id else "underdog-NEW"
    if target.jobs is not None:
        return Path(target.jobs).expanduser().absolute() / name
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "underdog" / "jobs" / name


def options(job: Job, target: Target, name: str, more: Mapping[str, str]) -> list[str]:
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
        f"--job-name={name}",
        f"--time={minutes}",
        "--no-requeue",
        "--open-mode=append",
        *(f"--{name}={value}" for name, value in more.items()),
    ]


def batch(folder: Path, target: Target) -> str:
    """What Slurm runs of a job that stands alone."""
    head = _BATCH.format(folder=shlex.quote(str(folder)), unseen=UNSEEN)
    return head + _once(target, "$SLURM_JOB_ID")


def batch_of_tasks(folders: list[Path], target: Target) -> str:
    """What Slurm runs of each job of an array, by the number of the task."""
    tasks = [f"{k}) job={shlex.quote(str(folder))} ;;" for k, folder in enumerate(folders)]
    head = _TASKS.format(tasks="\n".join(tasks), unseen=UNSEEN, said=SAID)
    return head + _once(target, "${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID")


def _once(target: Target, id: str) -> str:
    shell = "bash -l" if target.shell_setup else "sh"
    return _ONCE.format(
        begun=BEGUN, id=id, number=NUMBER, cancelled=CANCELLED, shell=shell, script=SCRIPT
    )


def script(job: Job, target: Target) -> str:
    """What a job does on its node."""
    folder = target.folder or (None if job.folder is None else str(job.folder))
    return job_script(job, folder, target.python, target.shell_setup)


def prepare(job: Job, target: Target, folder: Path) -> None:
    """Write what the job finds in its folder.

    Raises:
        RunnerError: the folder cannot be written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if target.python is None:
            write_wheel(folder)
        (folder / EARLY).write_bytes(cancelled_trial(job.workload))
        (folder / SCRIPT).write_text(script(job, target))
    except OSError as error:
        raise RunnerError(
            f"'{error.filename or folder}' cannot be written: {error.strerror}.",
            "Name a folder that you may write and that the nodes share: jobs = … in [offer.slurm]",
        ) from error


def before(folder: Path) -> Handle | None:
    """The handle of a job that was submitted before under the same name."""
    if not folder.exists():
        return None
    array, _, task = "", "", ""
    if (folder / ARRAY).exists():
        array, _, task = (folder / ARRAY).read_text().partition(" ")
    number: str | None = None
    if (folder / NUMBER).exists():
        number = (folder / NUMBER).read_text().strip()
    if not number:
        number = slurm.number_of(array or folder.name)
        number = f"{number}_{task}" if number and array else number
    return handle_of(number, folder, array or None) if number else None


def submitted(name: str, asked: list[str], text: str) -> str:
    """Have Slurm take a job or an array; its number, also where it could not say that it did."""
    try:
        return slurm.submit(asked, text)
    except RefusedError:
        raise
    except RunnerError:
        with contextlib.suppress(RunnerError):
            if number := slurm.number_of(name):
                return number
        raise
