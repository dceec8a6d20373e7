"""Recorded trials instead of machines: the same search over what was measured before.

Nothing is started and nothing is spent; every test gives at once what the file has of it.
"""

from __future__ import annotations

import uuid
from pathlib import Path

import msgspec

from underdog.runners import Handle, Job, Request, Runner, Setup, State

ENDS_WITH_US = True


class Replay:
    """Answers from records; ``underdog.runners.Runner`` says what each method does."""

    def __init__(self, setup: Setup) -> None:
        assert setup.recorded is not None
        self._recorded, self._folder = setup.recorded, setup.folder

    def render(self, job: Job) -> Request:
        knobs = "".join(f", {name}={value}" for name, value in job.knobs.items())
        return Request(job, (f"look up {job.workload} on {job.candidate}{knobs}",))

    def submit(self, request: Request) -> Handle:
        handle = uuid.uuid4().hex
        trial = self._recorded(request.job)
        self._path(handle).write_bytes(msgspec.json.encode(trial))
        return handle

    def status(self, handle: Handle) -> State:
        return State(ended=True)

    def collect(self, handle: Handle) -> Path:
        return self._path(handle)

    def cancel(self, handle: Handle) -> None:
        pass  # it has ended

    def _path(self, handle: Handle) -> Path:
        return self._folder / f"{handle}.json"


def runner(setup: Setup) -> Runner:
    """The runner of recorded trials."""
    return Replay(setup)
