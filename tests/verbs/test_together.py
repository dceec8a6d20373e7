"""Trials that begin together: kept before anything is submitted, each with its own end."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from underdog import runners
from underdog.errors import RefusedError, RunnerError, UsageError
from underdog.model import Offer, Price, Trial
from underdog.runners import Job, Request
from underdog.store import Store, open_store
from underdog.verbs import carrying
from underdog.verbs.carrying import Carried

BOX = Offer(provider="mine", region="here", instance_type="box", price=Price(per_hour=1.0))


class Engine:
    """It takes the first, refuses the second, and cannot say what became of the third."""

    def __init__(self, store: Store) -> None:
        self.store, self.asked = store, list[int]()

    def render_all(self, jobs: Sequence[Job]) -> list[Request]:
        if any(job.command == ("wrong",) for job in jobs):
            raise UsageError("That cannot be asked for.")
        return [Request(job, ("all",)) for job in jobs]

    def submit_all(self, requests: Sequence[Request]) -> list[Any]:
        self.asked.append(len(self.store.trials(status="running")))
        refused = RefusedError("We have none left.", "no_capacity")
        return ["handle-0", refused, RunnerError("No answer.")][: len(requests)]

    def render(self, job: Job) -> Request:
        return Request(job, ("one",))

    def submit(self, request: Request) -> str:
        return "alone"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    with open_store(str(tmp_path / "store.db")) as store:
        made = Engine(store)
        monkeypatch.setattr(runners, "together", lambda name: made)
        monkeypatch.setattr(runners, "ends_with_us", lambda name: False)
        yield made


def begin(engine: Engine, count: int, *command: str) -> list[Carried | Trial]:
    jobs = [
        Job(id=f"t{k}", workload="tiny", candidate="box", offer=BOX, command=command, price=1.0)
        for k in range(count)
    ]
    begun = [carrying.begun(job, "engine") for job in jobs]
    return carrying.submit_all(jobs, begun, engine, engine.store)  # type: ignore[arg-type]


def test_each_has_its_own_end_and_all_were_kept_before(engine: Engine) -> None:
    first, refused, failed = begin(engine, 3)
    assert engine.asked == [3]
    assert isinstance(first, Carried)
    assert isinstance(refused, Trial)
    assert isinstance(failed, Trial)
    assert (first.handle, first.trial.handle) == ("handle-0", "handle-0")
    assert (refused.status, refused.dollars) == ("no_capacity", 0)
    assert (failed.status, failed.reason) == ("failed", "No answer.")
    kept = {trial.id: (trial.status, trial.handle) for trial in engine.store.trials()}
    assert kept == {
        "t0": ("running", "handle-0"),
        "t1": ("no_capacity", None),
        "t2": ("failed", None),
    }
    (attempt,) = engine.store.attempts()
    assert (attempt.trial, attempt.got, attempt.refusal) == ("t1", False, "no_capacity")


def test_what_cannot_be_asked_for_is_the_end_of_all(engine: Engine) -> None:
    found = begin(engine, 2, "wrong")
    assert [one.status for one in found if isinstance(one, Trial)] == ["failed", "failed"]
    assert engine.asked == []


def test_one_alone_is_submitted_as_ever(engine: Engine) -> None:
    (one,) = begin(engine, 1)
    assert isinstance(one, Carried)
    assert one.handle == "alone"
    assert engine.asked == []
    job = one.trial.id
    assert job == "t0"
