"""Our runners keep the promises that every runner must keep, and the suite finds broken ones."""

from __future__ import annotations

import dataclasses
import sys
import time
import uuid
from pathlib import Path
from typing import Any, cast

import pytest

from underdog import runners
from underdog.errors import RunnerError
from underdog.model import Estimate, Machine, Measurement, Offer, Price, Software, Trial
from underdog.runners import Job, Runner, Setup
from underdog.runners.replay import Replay
from underdog.testing import runner as suite
from underdog.testing.runner import RunnerChecks, check_runner

OFFER = Offer(provider="a", region="r", instance_type="t", price=Price(per_hour=1.0, source="me"))
SCRIPT = (
    "import time\nfor _ in range(400):\n    time.sleep(0.005)\n    print('samples=8', flush=True)"
)


def recorded(job: Job) -> Trial:
    return Trial(
        id="t",
        workload=job.workload,
        knobs=dict(job.knobs),
        status="ok",
        price=OFFER.price,
        machine=Machine(),
        software=Software(),
        measurement=Measurement(samples_per_second=Estimate(value=1, low=1, high=1, n=1)),
    )


def job(folder: Path) -> Job:
    script = folder / "train.py"
    script.write_text(SCRIPT)
    return Job(
        workload="w",
        candidate="a/r/t/on-demand",
        offer=OFFER,
        command=(sys.executable, str(script)),
        knobs={"batch": "8"},
        pattern=r"samples=(?P<samples>\d+)",
    )


def made(name: str, folder: Path) -> Runner:
    own = folder / uuid.uuid4().hex
    own.mkdir()
    return runners.make(name, Setup(folder=own, recorded=recorded))


def test_the_replay_keeps_every_promise(tmp_path: Path) -> None:
    check_runner(lambda: made("replay", tmp_path), job(tmp_path), ends_with_us=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", RunnerChecks.names(ends_with_us=True))
def test_this_machine_keeps(name: str, tmp_path: Path) -> None:
    getattr(RunnerChecks(lambda: made("local", tmp_path), job(tmp_path)), name)()


class Broken(Replay):
    """A runner with one flaw."""

    def __init__(self, setup: Setup, flaw: str) -> None:
        super().__init__(setup)
        self.flaw = flaw

    def render(self, job: Job) -> Any:
        request = super().render(job)
        if self.flaw == "renders differently":
            return dataclasses.replace(request, lines=(uuid.uuid4().hex,))
        return dataclasses.replace(request, lines=()) if self.flaw == "says nothing" else request

    def submit(self, request: Any) -> str:
        handle = super().submit(request)
        return self._named(handle) if self.flaw == "one handle" else handle

    def _named(self, handle: str) -> str:
        self._path(handle).rename(self._path("one"))
        return "one"

    def collect(self, handle: str) -> Path:
        path = super().collect(handle)
        if self.flaw == "no trial":
            path.write_text("{}")
        return path

    def cancel(self, handle: str) -> None:
        if self.flaw == "cancels once" and handle in vars(self).setdefault("seen", set()):
            raise AssertionError("cancelled twice")
        vars(self).setdefault("seen", set()).add(handle)


FLAWS = [
    "renders differently",
    "says nothing",
    "one handle",
    "no trial",
    "cancels once",
]


@pytest.mark.parametrize("flaw", FLAWS)
def test_the_suite_finds(flaw: str, tmp_path: Path) -> None:
    def broken() -> Runner:
        return cast(Runner, Broken(Setup(folder=tmp_path, recorded=recorded), flaw))

    with pytest.raises(AssertionError):
        check_runner(broken, job(tmp_path), ends_with_us=True)
    check_runner(lambda: made("replay", tmp_path), job(tmp_path), ends_with_us=True)


def test_the_suite_finds_what_waits_for_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Waiting(Replay):
        def submit(self, request: Any) -> str:
            time.sleep(0.2)
            return super().submit(request)

    monkeypatch.setattr(suite, "AT_ONCE", 0.1)
    with pytest.raises(AssertionError, match="submit waits for the job"):
        check_runner(
            lambda: cast(Runner, Waiting(Setup(folder=tmp_path, recorded=recorded))),
            job(tmp_path),
            ends_with_us=True,
        )


class Lasting(Replay):
    """A runner whose handles say where the job is, and that hides what it did not submit itself."""

    def submit(self, request: Any) -> str:
        return str(self._path(super().submit(request)))

    def collect(self, handle: str) -> Path:
        if self.hides and not handle.startswith(str(self._path("")).removesuffix(".json")):
            raise RunnerError("There is no such job.")
        return Path(handle)

    hides = False


@pytest.mark.parametrize("hides", [False, True])
def test_the_suite_finds_a_handle_that_only_its_maker_knows(hides: bool, tmp_path: Path) -> None:
    def lasting() -> Runner:
        folder = tmp_path / uuid.uuid4().hex
        folder.mkdir()
        runner = Lasting(Setup(folder=folder, recorded=recorded))
        runner.hides = hides
        return cast(Runner, runner)

    if hides:
        with pytest.raises(RunnerError, match="no such job"):
            check_runner(lasting, job(tmp_path))
    else:
        check_runner(lasting, job(tmp_path))
