"""Any cloud, Kubernetes or Slurm that SkyPilot reaches: a cluster for each job, then taken down.

What SkyPilot does not bring back, the exit status and files, the job leaves in a folder of its own
and prints between two marks, so that it comes through the log where the machine cannot be reached
from here. The machine takes itself down when the longest time of the job is over, whatever became
of us.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from underdog.config import data_folder
from underdog.errors import RunnerError, UnderdogError, UsageError
from underdog.runners import Handle, Job, Request, Runner, Setup, State
from underdog.runners import _skytask as tasks
from underdog.runners._carried import carried_files
from underdog.runners._remote import (
    EXIT,
    TRIAL,
    brought_back,
    cancelled_trial,
    job_name,
    look_of,
    target_of,
    write_wheel,
)
from underdog.runners._skyclient import GONE, Client
from underdog.runners._skyerrors import is_cut_off, is_gone, understood
from underdog.runners._skyrecords import doubted, lost, taken_away, unpacked
from underdog.runners._skytask import Target

__all__ = ["Target", "runner"]

PAUSE = 1.0  # seconds for which a look holds
ATTEMPTS = 3  # to take a cluster down
GOING_DOWN = 120.0  # seconds for which what is told of a machine that ends may not agree
_SETTLED = ("succeeded", "failed", "cancelled", GONE)

_T = TypeVar("_T")


class _There(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a handle says."""

    cluster: str
    request: str
    workload: str
    provider: str
    instance_type: str
    spot: bool = False


class SkyPilot:
    """Carries jobs by SkyPilot; ``underdog.runners.Runner`` says what each method does."""

    def __init__(self, setup: Setup) -> None:
        self._folder = setup.folder
        self._seen: dict[Handle, tuple[float, State]] = {}
        self._machines: dict[Handle, tuple[int, Any]] = {}
        self._cancelled: set[Handle] = set()

    @cached_property
    def _client(self) -> Client:
        return Client()

    def render(self, job: Job) -> Request:
        target = target_of(job, Target, "skypilot")
        task = tasks.task_of(job, target)
        name = job_name(job).lower() if job.id else "underdog-…"
        lines = [f"# cluster {name}; {_limit(job, task)}", *tasks.as_yaml(task)]
        return Request(job, tuple(lines), ("sky", "launch", "--cluster", name))

    def submit(self, request: Request) -> Handle:
        job = request.job
        target = target_of(job, Target, "skypilot")
        task = tasks.task_of(job, target)
        if "workdir" in task:
            carried_files(Path(task["workdir"]))  # raises where they are too much to carry
        if "file_mounts" in task:
            _put(tasks.wheel_path(), write_wheel(self._folder).read_bytes())
        secrets = _secrets(target)
        cluster = job_name(job).lower()
        client = self._client
        earlier = _asked(lambda: client.launches(cluster)) if job.id else []
        return _text(
            _There(
                cluster=cluster,
                request=earlier[0]
                if earlier
                else _asked(lambda: client.launch(task, cluster, secrets)),
                workload=job.workload,
                provider=job.offer.provider,
                instance_type=job.offer.instance_type,
                spot=job.offer.purchase == "spot",
            )
        )

    def status(self, handle: Handle) -> State:
        at, state = self._seen.get(handle, (-PAUSE, None))
        if state is None or (not state.ended and time.monotonic() - at >= PAUSE):
            state = self._looked(handle)
            self._seen[handle] = (time.monotonic(), state)
        return state

    def _looked(self, handle: Handle) -> State:
        there = _there(handle)
        if _kept(there).exists():
            return State(True)
        stage = _asked(lambda: self._client.stage(there.request))
        if stage not in _SETTLED:
            return State(False, waiting=self._waits(there))
        if stage in ("failed", "cancelled"):
            return State(True)
        machine = self._machine(handle, there)
        if machine is None:
            return State(True)
        job, cluster = machine
        try:
            said = self._client.run(cluster, tasks.look_script())
        except RunnerError:
            return self._unseen(handle, there, job)
        _, _, rest = said.partition(tasks.SAYS)
        how, _, progress = rest.partition("\n")
        look = look_of(progress)
        if how.strip() in (tasks.ENDED, tasks.DEAD):
            return State(True, look)
        if how.strip() == tasks.ABSENT and self._ended(there, job):
            return State(True)
        return State(False, look, None if look else "the job is being set up on the machine")

    def _waits(self, there: _There) -> str:
        """What SkyPilot says of a launch that goes on."""
        said = _asked(lambda: self._client.said(there.request, 3))
        lines = [line.partition("View logs")[0].strip(" │├└─⚙︎✓") for line in said.splitlines()]
        # its tables say nothing of how it stands
        told = [line for line in lines if any(map(str.isalnum, line)) and "   " not in line]
        return told[-1] if told else "SkyPilot is looking for a machine"

    def _machine(self, handle: Handle, there: _There) -> tuple[int, Any] | None:
        """The number of the job on its cluster, and SkyPilot's handle of that; None: it is gone."""
        if handle not in self._machines:
            client = self._client
            if _asked(lambda: client.stage(there.request)) == GONE:
                record = _asked(lambda: client.record(there.cluster))
                if record is None:
                    return None
                self._machines[handle] = (1, record["handle"])
            else:
                self._machines[handle] = _asked(lambda: client.result(there.request))
        return self._machines[handle]

    def _ended(self, there: _There, job: int) -> bool:
        try:
            return bool(self._client.job_ended(there.cluster, job))
        except Exception as error:  # SkyPilot's, of any class
            if is_cut_off(error):
                raise understood(error) from error
            return is_gone(error)  # one that is going down gives errors of all kinds until it is

    def _unseen(self, handle: Handle, there: _There, job: int) -> State:
        """How a job stands whose machine does not answer us; its cloud and SkyPilot may know."""
        up = _asked(lambda: self._client.is_up(there.cluster))
        if up is False or (up and self._ended(there, job)):
            return State(True)
        # until they have answered all is as it was
        return self._seen.get(handle, (0.0, State(False)))[1]

    def collect(self, handle: Handle) -> Path:
        there = _there(handle)
        kept = _kept(there)
        if not kept.exists():
            _put(kept, self._result(handle, there))
        left = self._end(there)
        path = self._folder / there.cluster / TRIAL
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(doubted(kept.read_bytes(), left) if left else kept.read_bytes())
        return path

    def _result(self, handle: Handle, there: _There) -> bytes:
        """The trial of a job that has ended; where there is none, all is ended before the error."""
        stage = _asked(lambda: self._client.stage(there.request))
        if stage not in _SETTLED:
            raise _not_ended(there)
        if stage == "cancelled":
            return cancelled_trial(there.workload)
        if stage == "failed":
            raise self._ended_with(there, self._why(there))
        machine = self._machine(handle, there)
        seen = self._seen.get(handle)
        over = seen is not None and seen[1].ended
        records = {} if machine is None else self._records(there, *machine, over=over)
        found = brought_back(records.get(TRIAL, b""), records.get(EXIT, b"").decode())
        if found is not None and EXIT in records:
            return found
        if tasks.CANCELLED in records or (not records and handle in self._cancelled):
            return cancelled_trial(there.workload)
        if not records and there.spot:
            return taken_away(there.cluster, there.workload)
        raise self._ended_with(there, lost(there.cluster, records))

    def _records(self, there: _There, job: int, cluster: Any, *, over: bool) -> dict[str, bytes]:
        """The files of a job; none where its cluster is gone.

        Args:
            over: it was seen to have ended.

        Raises:
            RunnerError: it has not ended.
        """
        try:
            said = self._client.run(cluster, tasks.show_script())
        except RunnerError:
            return self._logged(there, job, GOING_DOWN if over else 0.0)
        if f"{tasks.SAYS}{tasks.RUNS}" in said:
            raise _not_ended(there)
        return unpacked(said)

    def _logged(self, there: _There, job: int, patience: float) -> dict[str, bytes]:
        """The files out of the log that SkyPilot has; none where the cluster is gone.

        For so many seconds its books may have a job for running, or give errors, whose machine is
        going down.
        """
        until = time.monotonic() + patience
        while True:
            found: UnderdogError = _not_ended(there)
            try:
                while (ended := self._client.job_ended(there.cluster, job)) is None:
                    time.sleep(PAUSE)
                if ended:
                    return unpacked(self._client.log(there.cluster, job))
            except Exception as error:  # SkyPilot's, of any class
                found = understood(error)
                if is_cut_off(error):
                    raise found from error
            if not self._is_up(there):
                return {}
            if time.monotonic() >= until:
                raise found
            time.sleep(PAUSE)

    def _is_up(self, there: _There) -> bool:
        while (up := _asked(lambda: self._client.is_up(there.cluster))) is None:
            time.sleep(PAUSE)
        return up

    def _why(self, there: _There) -> UnderdogError:
        said = _asked(lambda: self._client.said(there.request))
        try:
            self._client.result(there.request)
        except Exception as error:  # SkyPilot's, of any class
            return understood(
                error,
                said,
                provider=there.provider,
                instance_type=there.instance_type,
                spot=there.spot,
            )
        return RunnerError(f"The cluster '{there.cluster}' could not be started.")

    def _end(self, there: _There) -> str | None:
        """Take the cluster down and see that it is gone; what to say where it may not be."""
        failed = ""
        for _ in range(ATTEMPTS):
            try:
                if self._client.record(there.cluster) is None:
                    return None
                self._client.result(self._client.down(there.cluster))
            except Exception as error:  # SkyPilot's, of any class
                if is_gone(error):
                    return None
                failed = f": {error}"
        return (
            f"The cluster '{there.cluster}' could not be taken down{failed}. It may cost money; "
            f"take it down: sky down {there.cluster}"
        )

    def _ended_with(self, there: _There, error: UnderdogError) -> UnderdogError:
        """The error that is told once the cluster is down, or that it is not."""
        left = self._end(there)
        if left:
            error.hint = f"{error.hint}\n{left}" if error.hint else left
        return error

    def cancel(self, handle: Handle) -> None:
        there = _there(handle)
        self._seen.pop(handle, None)
        if _kept(there).exists():
            return
        self._cancelled.add(handle)
        client = self._client
        stage = _asked(lambda: client.stage(there.request))
        if stage not in _SETTLED:
            _asked(lambda: client.cancel_request(there.request))
        if stage not in ("succeeded", GONE):
            if _asked(lambda: client.record(there.cluster)) is not None:
                _asked(lambda: client.down(there.cluster))
            return
        machine = self._machine(handle, there)
        if machine is None:
            return
        try:
            client.run(machine[1], tasks.cancel_script())
        except RunnerError:
            _asked(lambda: client.cancel_job(there.cluster, machine[0]))


def _limit(job: Job, task: dict[str, Any]) -> str:
    if "autostop" in task["resources"]:
        return f"it takes itself down after {tasks.limit_minutes(job)} min at the latest"
    return "this cloud cannot take it down by itself, should underdog be killed"


def _put(path: Path, content: bytes) -> None:
    """Write a file that others may be reading."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_bytes(content)
    part.replace(path)


def _secrets(target: Target) -> dict[str, str]:
    missing = [name for name in target.secrets if name not in os.environ]
    if missing:
        raise UsageError(
            f"The job is to get the secret '{missing[0]}', and there is no such variable here.",
            f"export {missing[0]}=…",
        )
    return {name: os.environ[name] for name in target.secrets}


def _asked(act: Callable[[], _T]) -> _T:
    """What SkyPilot gives, its errors as ours."""
    try:
        return act()
    except Exception as error:  # SkyPilot's, of any class
        raise understood(error) from error


def _text(there: _There) -> Handle:
    return msgspec.json.encode(there).decode()


def _there(handle: Handle) -> _There:
    try:
        return msgspec.json.decode(handle, type=_There)
    except msgspec.MsgspecError as error:
        raise RunnerError(f"'{handle}' names no job of SkyPilot: {error}.") from error


def _not_ended(there: _There) -> RunnerError:
    return RunnerError(f"The job on '{there.cluster}' has not ended.")


def _kept(there: _There) -> Path:
    """Where the trial of a job is kept: its machine is gone after it was brought back."""
    return data_folder() / "skypilot" / f"{there.cluster}.json"


def runner(setup: Setup) -> Runner:
    """The runner of the clouds that SkyPilot reaches."""
    return SkyPilot(setup)
