"""Any host that OpenSSH reaches: a job goes on there by itself, and is found again by its folder.

The address, the keys and the ways through other hosts are those of the user's own ``ssh``.
"""

from __future__ import annotations

import shlex
import time
from functools import partial
from pathlib import Path

import msgspec

from underdog.errors import RunnerError, UsageError
from underdog.runners import Handle, Job, Request, Runner, Setup, State, _ssh_scripts
from underdog.runners._carried import carried_files, send
from underdog.runners._remote import (
    FILES,
    SCRIPT,
    TOO_LONG,
    TRIAL,
    brought_back,
    cancelled_trial,
    job_name,
    job_script,
    look_of,
    target_of,
    wheel_name,
    write_wheel,
)
from underdog.runners._ssh_client import Connection, LostError
from underdog.units import format_seconds

PAUSE = 1.0  # seconds for which an answer holds: each look is a login
AGAIN = 2.0  # seconds before a broken submission is tried once more
_FULL_KIB = 1024  # free on a disk that is taken for full


class Target(Connection, kw_only=True, forbid_unknown_fields=True):
    """The keys of ``[offer.ssh]``; those of a connection, and what the job finds there.

    Attributes:
        python: the Python there that has underdog; without it, underdog is installed there once.
        folder: a folder there to work in; nothing is carried then.
        shell_setup: commands of bash before the job, such as ``source venv/bin/activate``.
        jobs: the folder there for the records of jobs.
    """

    python: str | None = None
    folder: str | None = None
    shell_setup: tuple[str, ...] = ()
    jobs: str | None = None


class _There(Connection, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a handle says: the connection and the folder of the job."""

    job: str


class Ssh:
    """Carries jobs by ssh; ``underdog.runners.Runner`` says what each method does."""

    def __init__(self, setup: Setup) -> None:
        self._folder = setup.folder
        self._seen: dict[Handle, tuple[float, State]] = {}

    def render(self, job: Job) -> Request:
        target = target_of(job, Target, "ssh")
        told = [one for one in target.options if one.lower().startswith("setenv")]
        if told:
            raise UsageError(
                f"'{told[0].partition('=')[0]}' among the options would keep its value with the "
                "trial.",
                "Set it in ~/.ssh/config, or in a file there that shell_setup sources.",
            )
        command = target.command()
        carried = target.folder is None and job.folder is not None
        lines = [shlex.join(command), *([f"# with the files of {job.folder}"] if carried else [])]
        return Request(job, (*lines, *_script(job, target).splitlines()), tuple(command))

    def submit(self, request: Request) -> Handle:
        job = request.job
        target = target_of(job, Target, "ssh")
        carried = job.folder if target.folder is None else None
        files = carried_files(carried) if carried else []
        last = {_ssh_scripts.EARLY: cancelled_trial(job.workload)}
        if target.python is None:
            last[wheel_name()] = write_wheel(self._folder).read_bytes()
        if job.whole:
            last[_ssh_scripts.KEEP] = b""
        last[SCRIPT] = _script(job, target).encode()
        archive = partial(send, folder=carried, into=FILES, files=files, last=last)
        script = _ssh_scripts.start(target.jobs, job_name(job), bool(target.shell_setup))
        try:
            printed = target.run(script, archive)
        except LostError:
            time.sleep(AGAIN)  # the same job is not started twice, so this is safe
            try:
                printed = target.run(script, archive)
            except RunnerError as error:
                raise RunnerError(
                    f"{error.message}\nIt broke as the job was being submitted, so that the job "
                    "may run; if it does, it ends by itself after "
                    f"{format_seconds(job.longest)} at the latest.",
                    error.hint,
                ) from error
        there = {k: v for k, v in msgspec.structs.asdict(target).items() if k in _CONNECTION}
        return msgspec.json.encode(_There(**there, job=printed.decode().strip())).decode()

    def status(self, handle: Handle) -> State:
        at, state = self._seen.get(handle, (-PAUSE, None))
        if state is None or time.monotonic() - at >= PAUSE:
            state = self._asked(handle)
            self._seen[handle] = (time.monotonic(), state)
        return state

    def _asked(self, handle: Handle) -> State:
        there = _there(handle)
        said, _, progress = _ask(there, _ssh_scripts.status(there.job)).partition(b"\n")
        look = look_of(progress)
        if said.decode() != _ssh_scripts.RUNS:
            return State(True, look)
        return State(False, look, None if look else f"it is being set up on {there.host}")

    def collect(self, handle: Handle) -> Path:
        there = _there(handle)
        said, _, rest = _ask(there, _ssh_scripts.collect(there.job)).partition(b"\n")
        first, _, rest = rest.partition(b"\n")
        kind, name = said.decode(), Path(there.job).name
        if kind == _ssh_scripts.RUNS:
            raise RunnerError(f"The job on '{there.host}' has not ended.")
        found = brought_back(rest, first.decode()) if kind == _ssh_scripts.BACK else None
        if found is None:
            free_kib = first.decode() if kind == _ssh_scripts.LOST else ""
            raise _lost(there, kind, free_kib, rest.decode(errors="replace"))
        path = self._folder / name / TRIAL
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(found)
        return path

    def cancel(self, handle: Handle) -> None:
        there = _there(handle)
        self._seen.pop(handle, None)
        _ask(there, _ssh_scripts.cancel(there.job))


_CONNECTION = frozenset(Connection.__struct_fields__)


def _script(job: Job, target: Target) -> str:
    return job_script(job, target.folder, target.python, target.shell_setup)


def _there(handle: Handle) -> _There:
    try:
        return msgspec.json.decode(handle, type=_There)
    except msgspec.MsgspecError as error:
        raise RunnerError(f"'{handle}' names no job of ssh: {error}.") from error


def _ask(there: _There, script: str) -> bytes:
    """Run a script about a job; that the connection broke says nothing about the job."""
    try:
        return there.run(script)
    except RunnerError as error:
        raise RunnerError(
            f"{error.message}\nThe job there goes on without us: it is '{there.job}'.", error.hint
        ) from error


def _lost(there: _There, kind: str, free_kib: str, said: str) -> RunnerError:
    where = f"'{there.job}' on '{there.host}'"
    if kind == _ssh_scripts.GONE:
        return RunnerError(f"The job is lost: there is no folder {where} any more.")
    lines = [line for line in said.splitlines() if line.strip()][-5:]
    why = "the measurement ended without a result"
    hint = None
    if free_kib.isdigit() and int(free_kib) < _FULL_KIB:
        why = "the disk is full"
        hint = "Make room there, or name a folder on another disk: jobs = … in [offer.ssh]"
    elif TOO_LONG in lines:
        why = "its time was over before its measurement had begun"
    elif not lines:
        why = "it was killed, or the machine was started anew"
    return RunnerError("\n".join([f"The job {where} is lost: {why}.", *lines]), hint)


def files(handle: Handle) -> str:
    """The command that fetches what a whole run wrote into the folder that one is in."""
    there = _there(handle)
    user, at, host = there.host.rpartition("@")
    place = f"{user}{at}[{host}]" if ":" in host else there.host
    words = ["scp", "-r"]
    for flag, value in (("-P", there.port), ("-i", there.identity), ("-F", there.config)):
        words += [] if value is None else [flag, str(value)]
    for option in there.options:
        words += ["-o", option]
    return shlex.join([*words, f"{place}:{there.job}/{FILES}", "."])


def runner(setup: Setup) -> Runner:
    """The runner of hosts that ssh reaches."""
    return Ssh(setup)
