"""What every runner must do: run it against one of your own.

``check_runner(make, job)`` raises AssertionError at the first broken promise; a test of one's own
may run the checks of ``RunnerChecks`` one by one. The job is carried several times, so let it be
a short one; in the checks of ``CANCELLED`` it may be one without end, so that a method which waits
for it is found. Of a runner whose jobs end with the process that submitted them (its module says
``ENDS_WITH_US = True``) it is not asked that another runner finds them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import msgspec

from underdog.model import Trial
from underdog.runners import Handle, Job, Runner, State

AT_ONCE = 30.0  # seconds within which a method answers on a busy machine: it waits for no job
LONGEST = 600.0  # seconds within which a job ends
LOOK = 0.05
LASTING = "check_another_runner_finds_the_job_by_its_handle"
CANCELLED = ("check_cancelling_is_idempotent_and_keeps_what_was_seen", LASTING)

_T = TypeVar("_T")


def check_runner(make: Callable[[], Runner], job: Job, ends_with_us: bool = False) -> None:
    """Run all checks; ``make`` gives a runner of its own, with an empty folder, at every call.

    Raises:
        AssertionError: the runner breaks a promise; the message says which.
    """
    for name in RunnerChecks.names(ends_with_us):
        getattr(RunnerChecks(make, job), name)()


class RunnerChecks:
    """The promises of a runner, one method for each."""

    def __init__(self, make: Callable[[], Runner], job: Job) -> None:
        self.make, self.runner, self.job = make, make(), job

    @classmethod
    def names(cls, ends_with_us: bool = False) -> list[str]:
        """The names of all checks, of a runner whose jobs end with us or outlive us."""
        found = [name for name in vars(cls) if name.startswith("check_")]
        return [name for name in found if not (ends_with_us and name == LASTING)]

    def check_rendering_is_pure(self) -> None:
        once, again = self.runner.render(self.job), self.runner.render(self.job)
        assert once == again, "the same job is rendered differently"
        assert once.job == self.job, "a request keeps its job"
        assert once.lines, "a dry run has something to print"
        assert all(isinstance(line, str) for line in once.lines), "lines are texts"

    def check_a_job_ends_and_its_trial_comes_back(self) -> None:
        handle = self._submitted()
        assert isinstance(handle, str), "a handle is a text, so that a record can keep it"
        assert handle, "a handle is not empty"
        self._until_ended(handle)
        trial = self._trial(handle)
        assert trial.workload == self.job.workload, "the trial is of another workload"
        assert trial.status != "running", "the trial of a job that has ended is still running"
        assert self._trial(handle) == trial, "it can be collected again"

    def check_two_jobs_are_two(self) -> None:
        handles = [self._submitted(), self._submitted()]
        assert handles[0] != handles[1], "two jobs have one handle"
        for handle in handles:
            self._until_ended(handle)
            self._trial(handle)

    def check_cancelling_is_idempotent_and_keeps_what_was_seen(self) -> None:
        handle = self._submitted()
        self._until(lambda state: state.ended or state.look is not None, handle)
        for _ in range(2):
            self._at_once(lambda: self.runner.cancel(handle), "cancel")
        self._until_ended(handle)
        self.runner.cancel(handle)
        self._trial(handle)
        assert self._state(handle).ended, "a job that had ended runs again"

    def check_another_runner_finds_the_job_by_its_handle(self) -> None:
        first, handle = self.runner, self._submitted()
        self.runner = self.make()  # from here on it is one that has submitted nothing
        self._until(lambda state: state.ended or state.look is not None, handle)
        self._at_once(lambda: self.runner.cancel(handle), "cancel")
        self._until_ended(handle)
        trial = self._trial(handle)
        self.runner = first
        assert self._state(handle).ended, "the one that submitted it holds that it still runs"
        assert self._trial(handle) == trial, "two runners bring back different trials"

    def _submitted(self) -> Handle:
        request = self.runner.render(self.job)
        return self._at_once(lambda: self.runner.submit(request), "submit")

    def _state(self, handle: Handle) -> State:
        return self._at_once(lambda: self.runner.status(handle), "status")

    def _until_ended(self, handle: Handle) -> None:
        self._until(lambda state: state.ended, handle)

    def _until(self, reached: Callable[[State], bool], handle: Handle) -> None:
        deadline = time.monotonic() + LONGEST
        while not reached(self._state(handle)):
            assert time.monotonic() < deadline, f"the job did not end within {LONGEST:.0f} s"
            time.sleep(LOOK)

    def _trial(self, handle: Handle) -> Trial:
        content = self.runner.collect(handle).read_bytes()
        try:
            return msgspec.json.decode(content, type=Trial)
        except msgspec.MsgspecError as error:
            raise AssertionError(f"what comes back is no trial: {error}") from error

    def _at_once(self, act: Callable[[], _T], what: str) -> _T:
        began = time.monotonic()
        found = act()
        assert time.monotonic() - began < AT_ONCE, f"{what} waits for the job"
        return found
