"""What a store remembers of a search and of trials at their runners: why, what for, how far."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from recorded_trials import write

from underdog.core.exploration import Event, Started
from underdog.core.figures import Figures
from underdog.core.racing import Look
from underdog.errors import RunnerError
from underdog.measuring.live import Rhythm
from underdog.model import Estimate, Measurement, Offer, Price, Timeline, Trial
from underdog.runners import Handle, Job, Request, State
from underdog.store import Store, open_store
from underdog.testing.store import bare_trial, full_timeline
from underdog.verbs import carrying
from underdog.verbs.explore import explore

PRICE = Price(per_hour=3.6, source="list", date="2026-08-01")
OFFER = Offer(provider="p", region="r", instance_type="t", price=PRICE)
RATE = Estimate(value=100.0, low=90.0, high=110.0, n=40)
JOB = Job(id="job", workload="w", candidate="p/r/t/on-demand", offer=OFFER, price=3.6)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    write(tmp_path)
    return {
        "runner": "replay",
        "workload": "resnet",
        "trials": str(tmp_path / "trials.csv"),
        "offers": str(tmp_path / "offers.csv"),
        "store": str(tmp_path / "kept.sqlite3"),
    }


def test_a_search_is_remembered_with_its_reasons_and_whole_when_it_goes_on(
    study: dict[str, Any],
) -> None:
    said: list[Event] = []
    first = explore(**study, max_trials=2, tell=said.append)
    with open_store(study["store"]) as store:
        assert [trial.why for trial in store.trials(study=first.study)] == [
            event.reason for event in said if isinstance(event, Started)
        ]
    second = explore(**study, max_trials=4, tell=said.append)
    with open_store(study["store"]) as store:
        reasons = [trial.why for trial in store.trials(study=first.study)]
        assert len(reasons) == 4
        assert all(reasons)
        begun, ended = store.decisions()
    for found, decision, tests in ((first, begun, 2), (second, ended, 4)):
        assert decision.study == found.study
        kept = decision.exploration
        assert kept["decision"] is None
        assert [test["number"] for test in kept["tests"]] == list(range(1, tests + 1))
        expected = msgspec.to_builtins(found.tests)
        assert kept["tests"] == list(expected)
        assert (kept["ended"], kept["best"]) == (found.ended, found.best)
        assert found.decision is not None
        assert found.decision.study == found.study


class Engine:
    """A runner whose job tells what it is told to tell."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.state = folder, State(ended=False)
        self.trial: Trial | None = None

    def render(self, job: Job) -> Request:
        return Request(job, ("run it",))

    def submit(self, request: Request) -> Handle:
        return "handle"

    def status(self, handle: Handle) -> State:
        return self.state

    def collect(self, handle: Handle) -> Path:
        if self.trial is None:
            raise RunnerError("It is lost.")
        path = self.folder / "trial.json"
        path.write_bytes(msgspec.json.encode(self.trial))
        return path

    def cancel(self, handle: Handle) -> None: ...


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setattr(Rhythm, "due", lambda self: True)
    return open_store(str(tmp_path / "store.sqlite3"))


def kept(
    store: Store,
    done: Callable[[Trial], bool] = lambda trial: True,
    look: Callable[[], object] = lambda: None,
) -> Trial:
    """The trial once it is so; ``look`` again meanwhile, for one update at a time is under way."""
    deadline = time.monotonic() + 60
    while True:
        (found,) = store.trials(id="job", timeline=True)
        if done(found):
            return found
        assert time.monotonic() < deadline, f"it did not come within a minute: {found}"
        time.sleep(0.002)
        look()


def test_the_record_of_a_carried_trial_follows_its_job(store: Store, tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    begun = carrying.begun(JOB, "local", study="s", why="it may be the best")
    carried = carrying.submit(JOB, begun, engine, store)
    assert isinstance(carried, carrying.Carried)
    most = kept(store).dollars
    assert most == pytest.approx(3.6 * JOB.seconds / 3600)
    carried.look()
    assert kept(store).updated_at is None, "nothing was told yet"
    engine.state = State(False, Look(elapsed=10.0, seconds=8.0, rate=RATE))
    carried.look()
    first = kept(store, lambda trial: trial.updated_at is not None, carried.look)
    assert first.dollars == pytest.approx(0.01), "so far"
    assert first.measurement == Measurement(samples_per_second=RATE, seconds=8.0)
    figures = Figures(
        measurement=Measurement(samples_per_second=RATE, steps=7, seconds=9.0),
        phases={"data": 0.25, "forward": 0.75},
        usage={"cores": 1.5},
        timeline=full_timeline(),
    )
    engine.state = State(False, Look(elapsed=20.0, seconds=9.0, rate=RATE, figures=figures))
    carried.look()
    told = kept(store, lambda trial: trial.timeline is not None, carried.look)
    assert told.dollars == pytest.approx(0.02)
    assert (
        Figures(
            measurement=told.measurement,
            phases=told.phases,
            usage=told.usage,
            timeline=told.timeline,
        )
        == figures
    )
    engine.state = State(ended=True)
    measured = bare_trial("w", usage={"elapsed_seconds": 30.0}, timeline=full_timeline())
    engine.trial = measured
    carried.look()
    ended = carrying.collect(carried)
    assert (ended.status, ended.study, ended.why) == ("ok", "s", "it may be the best")
    assert ended.dollars == pytest.approx(0.03)
    assert ended.updated_at is None
    assert ended.timeline == full_timeline()
    store.save(ended)
    assert kept(store) == ended


def test_a_carried_trial_that_is_lost_is_paid_for(store: Store, tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    carried = carrying.submit(JOB, carrying.begun(JOB, "local"), engine, store)
    assert isinstance(carried, carrying.Carried)
    engine.state = State(ended=True)
    carried.look()
    carried.since -= 100.0
    lost = carrying.collect(carried)
    assert lost.status == "failed"
    assert lost.dollars == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize(
    "timeline",
    [
        Timeline(steps={"seconds": [2.0, 1.0]}),
        Timeline(usage={"seconds": [1.0], "cores": [1.0, 2.0]}),
    ],
)
def test_a_timeline_that_cannot_be_is_not_believed(
    store: Store, tmp_path: Path, timeline: Timeline
) -> None:
    engine = Engine(tmp_path)
    carried = carrying.submit(JOB, carrying.begun(JOB, "local"), engine, store)
    assert isinstance(carried, carrying.Carried)
    engine.trial = replace(bare_trial("w"), timeline=timeline)
    ended = carrying.collect(carried)
    assert ended.status == "failed"
    assert "is no measurement" in (ended.reason or "")
    assert ended.timeline is None
