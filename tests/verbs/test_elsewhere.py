"""A trial that a runner carries: its record, its price, and what is left of it after a kill."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from underdog import plugins, runners
from underdog.errors import RefusedError, RunnerError, UsageError
from underdog.model import Estimate, Machine, Measurement, Price, Software, Trial
from underdog.runners import Handle, Job, Request, Setup, State
from underdog.store import open_store
from underdog.store.owner import current_owner
from underdog.verbs import elsewhere
from underdog.verbs.elsewhere import Where
from underdog.verbs.measure import Settings

OFFERS = '[[offer]]\noffer = "box"\nprice_per_hour = 6.0\n[offer.paper]\nanswer = "{answer}"\n'


class Paper:
    """An engine of files: a job is a file that says how it ends, and outlives its process."""

    queue: Path
    looks = 1

    def __init__(self, setup: Setup) -> None:
        self.folder = setup.folder

    def render(self, job: Job) -> Request:
        return Request(job, (f"write {job.target['answer']}",), tuple(job.command))

    def submit(self, request: Request) -> Handle:
        answer = str(request.job.target["answer"])
        if answer == "no_capacity":
            raise RefusedError("We have none left.", "no_capacity", "Try tomorrow.")
        if answer == "no_engine":
            raise RunnerError("There is no engine.", "Install it.")
        (self.queue / request.job.id).write_text(json.dumps([answer, request.job.workload]))
        return f"paper:{request.job.id}"

    def _said(self, handle: Handle) -> list[str]:
        return list(json.loads((self.queue / handle.partition(":")[2]).read_text()))

    def status(self, handle: Handle) -> State:
        answer = self._said(handle)[0]
        if answer == "runs":
            return State(ended=False)
        self.looks -= 1
        waiting = "Resources" if self.looks > 0 else None
        return State(ended=self.looks < 0, waiting=waiting)

    def collect(self, handle: Handle) -> Path:
        answer, workload = self._said(handle)
        if answer == "lost":
            raise RunnerError("Its node is gone.")
        trial = Trial(
            id="theirs",
            workload=workload,
            status="interrupted" if answer == "cancelled" else "ok",
            price=Price(unknown_reason="not told there"),
            machine=Machine(hostname="there"),
            software=Software(),
            measurement=Measurement(
                samples_per_second=Estimate(value=50.0, low=49.0, high=51.0, n=9)
            ),
            usage={"elapsed_seconds": 60.0},
        )
        path = self.folder / "trial.json"
        path.write_bytes(msgspec.json.encode(trial))
        return path

    def cancel(self, handle: Handle) -> None:
        _, workload = self._said(handle)
        path = self.queue / handle.partition(":")[2]
        path.write_text(json.dumps(["cancelled", workload]))


@pytest.fixture(autouse=True)
def paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = ModuleType("paper")
    module.Target = msgspec.defstruct("Target", [("answer", str)])  # type: ignore[attr-defined]
    module.runner = Paper  # type: ignore[attr-defined]
    Paper.queue = tmp_path / "queue"
    Paper.queue.mkdir()
    load = plugins.load
    monkeypatch.setattr(
        plugins, "load", lambda p, g, name: module if name == "paper" else load(p, g, name)
    )
    monkeypatch.setattr(runners, "names", lambda: ["local", "paper"])
    monkeypatch.setattr(elsewhere, "POLL", 0.01)


def settings(folder: Path, **more: object) -> Settings:
    given: dict[str, object] = {
        "command": ["python", "train.py", "--batch", "{batch}"],
        "knobs": {"batch": ["8"]},
        "here": False,
        "store": str(folder / "store.db"),
    }
    return Settings(**(given | more))  # type: ignore[arg-type]


def where(folder: Path, answer: str = "ok", **more: object) -> Where:
    path = folder / "machines.toml"
    path.write_text(OFFERS.format(answer=answer))
    return Where(on="box", offers=path, **more)  # type: ignore[arg-type]


def test_what_was_measured_there_stands_under_the_record_of_here(tmp_path: Path) -> None:
    told: list[State] = []
    place = where(tmp_path)
    (trial,) = elsewhere.measure_there(
        settings(tmp_path), place, lambda name, state: told.append(state)
    )
    with open_store(str(tmp_path / "store.db")) as store:
        assert store.trials(timeline=True) == [trial]
    assert trial.id != "theirs"
    assert (trial.status, trial.runner, trial.handle) == ("ok", "paper", None)
    assert trial.machine.hostname == "there"
    assert trial.offer is not None
    assert trial.offer.instance_type == "box"
    assert trial.knobs == {"batch": "8"}
    assert trial.dollars == pytest.approx(6.0 / 60)  # a minute of it
    assert [state.waiting for state in told] == [None]


@pytest.mark.parametrize(
    ("answer", "status", "dollars"),
    [("no_capacity", "no_capacity", 0.0), ("no_engine", "failed", 0.0), ("lost", "failed", None)],
)
def test_what_brings_nothing_back_is_kept_with_the_reason(
    answer: str, status: str, dollars: float | None, tmp_path: Path
) -> None:
    (trial,) = elsewhere.measure_there(settings(tmp_path), where(tmp_path, answer))
    assert trial.status == status
    assert trial.reason
    assert trial.dollars == dollars if dollars is not None else (trial.dollars or 0) > 0
    with open_store(str(tmp_path / "store.db")) as store:
        assert store.trials(timeline=True) == [trial]


@pytest.mark.parametrize(
    ("answer", "got", "refusal"), [("ok", True, None), ("no_capacity", False, "no_capacity")]
)
def test_the_attempt_to_get_the_machine_is_kept(
    answer: str, got: bool, refusal: str | None, tmp_path: Path
) -> None:
    (trial,) = elsewhere.measure_there(settings(tmp_path), where(tmp_path, answer))
    with open_store(str(tmp_path / "store.db")) as store:
        (attempt,) = store.attempts()
    assert (attempt.trial, attempt.got, attempt.refusal) == (trial.id, got, refusal)
    assert (attempt.held is not None) == got
    assert not attempt.interrupted


@pytest.mark.parametrize(("ours", "taken"), [(True, False), (False, True)])
def test_a_spot_machine_that_was_taken_away_is_told_from_one_that_was_given_back(
    ours: bool, taken: bool, tmp_path: Path
) -> None:
    place = where(tmp_path, "runs")
    found = elsewhere.places.find("box", offers=place.offers)
    spot = replace(found, offer=replace(found.offer, purchase="spot"))
    (job,) = elsewhere.jobs(settings(tmp_path), spot, Where())
    with open_store(str(tmp_path / "store.db")) as store:
        runner = Paper(Setup(folder=tmp_path))
        trial = elsewhere.carrying.begun(job, "paper")
        carried = elsewhere.carrying.submit(job, trial, runner, store)
        assert isinstance(carried, elsewhere.Carried)
        carried.look()
        carried.cancel() if ours else runner.cancel(carried.handle)
        assert elsewhere.carrying.collect(carried).status == "interrupted"
        (attempt,) = store.attempts()
    assert attempt.interrupted is taken


def test_a_cap_on_dollars_is_a_limit_in_seconds(tmp_path: Path) -> None:
    (free,) = elsewhere.plan(settings(tmp_path), where(tmp_path))
    (capped,) = elsewhere.plan(settings(tmp_path), where(tmp_path, dollars=0.1))
    assert capped["longest_seconds"] == pytest.approx(60)
    assert capped["most_dollars"] == pytest.approx(0.1)
    assert free["longest_seconds"] > 300
    assert free["would_submit"] == ["write ok"]
    assert free["offer"] == "box"
    assert not list(Paper.queue.iterdir())


def test_a_cap_needs_a_price(tmp_path: Path) -> None:
    place = where(tmp_path, dollars=1.0)
    Path(str(place.offers)).write_text(OFFERS.replace("price_per_hour = 6.0\n", ""))
    with pytest.raises(UsageError, match="A spending cap needs a price"):
        elsewhere.plan(settings(tmp_path), place)
    (planned,) = elsewhere.plan(settings(tmp_path, price=2.0), place)
    assert planned["price_per_hour"] == 2.0


def out(folder: Path, answer: str) -> Trial:
    """A trial whose job is out and whose process was killed."""
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    place = elsewhere.places.find("box", offers=where(folder, answer).offers)
    (job,) = elsewhere.jobs(settings(folder), place, Where())
    begun = elsewhere.carrying.begun(job, "paper")
    with open_store(str(folder / "store.db")) as store:
        runner = Paper(Setup(folder=folder))
        carried = elsewhere.carrying.submit(job, begun, runner, store)
        assert isinstance(carried, elsewhere.Carried)
        dead = replace(carried.trial, owner=current_owner() | {"pid": child.pid})
        store.save(dead)
    return dead


@pytest.mark.parametrize(
    ("answer", "cancel", "status"),
    [("ok", False, "ok"), ("lost", False, "failed"), ("runs", True, "interrupted")],
)
def test_after_a_kill_a_trial_is_found_by_its_handle_once(
    answer: str, cancel: bool, status: str, tmp_path: Path
) -> None:
    dead = out(tmp_path, answer)
    url = str(tmp_path / "store.db")
    with open_store(url) as store:  # opening does not give it up: its job may still run
        assert [trial.status for trial in store.trials()] == ["running"]
    found = elsewhere.recover(url, cancel=cancel)
    assert [(trial.id, trial.status) for trial in found.trials] == [(dead.id, status)]
    assert not found.still_out
    assert elsewhere.recover(url).trials == []
    with open_store(url) as store:
        assert store.trials(timeline=True) == found.trials


def test_a_trial_whose_process_lives_is_left_alone(tmp_path: Path) -> None:
    dead = out(tmp_path, "ok")
    url = str(tmp_path / "store.db")
    with open_store(url) as store:
        store.save(replace(dead, owner=current_owner()))
    assert elsewhere.recover(url).trials == []


def test_an_engine_that_cannot_be_asked_leaves_the_trial_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreachable(self: Paper, handle: Handle) -> State:
        raise RunnerError("The host does not answer.")

    out(tmp_path, "ok")
    monkeypatch.setattr(Paper, "status", unreachable)
    monkeypatch.setattr(elsewhere.carrying, "HEARD", 0.0)
    found = elsewhere.recover(str(tmp_path / "store.db"))
    assert [why for _, why in found.still_out] == ["The host does not answer."]


@pytest.mark.parametrize("more", [{"dollars": 0.0005}, {"at_most": 0.3}])
def test_a_job_that_ends_with_us_is_ended_by_us_when_its_limit_is_over(
    more: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runners, "ends_with_us", lambda name: True)
    monkeypatch.setattr(elsewhere, "LEAST", 0.0)
    place = where(tmp_path, "runs", **more)
    (trial,) = elsewhere.measure_there(settings(tmp_path, whole=True), place)
    assert (trial.status, trial.reason) == ("interrupted", elsewhere.TOO_LONG)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"status": "running"}, "still runs"),
        ({"usage": {"elapsed_seconds": -1e9}}, "it took -1e"),
        ({"usage": {"elapsed_seconds": 1e300}}, "it took 1e"),
        ({"phases": {"forward": 1e308}}, "forward takes"),
        (
            {"measurement": Measurement(step_seconds=Estimate(value=0.0, low=0.0, high=0.0, n=1))},
            "step_seconds is 0",
        ),
    ],
)
def test_what_cannot_be_a_measurement_is_not_taken_for_one(
    change: dict[str, object], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect = Paper.collect

    def hostile(self: Paper, handle: Handle) -> Path:
        path = collect(self, handle)
        found = msgspec.json.decode(path.read_bytes(), type=Trial)
        path.write_bytes(msgspec.json.encode(replace(found, **change)))  # type: ignore[arg-type]
        return path

    monkeypatch.setattr(Paper, "collect", hostile)
    (trial,) = elsewhere.measure_there(settings(tmp_path), where(tmp_path))
    assert trial.status == "failed"
    assert why in (trial.reason or "")
    assert trial.dollars is not None
    assert 0 <= trial.dollars < 1


def test_the_command_is_that_of_here_whatever_the_machine_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (trial,) = elsewhere.measure_there(settings(tmp_path), where(tmp_path))
    assert trial.command == ["python", "train.py", "--batch", "8"]


def test_time_without_us_is_no_waiting_for_the_machine(tmp_path: Path) -> None:
    dead = out(tmp_path, "ok")
    url = str(tmp_path / "store.db")
    with open_store(url) as store:
        dead = replace(dead, started_at="2026-01-01T00:00:00+00:00")
        store.save(dead)
        elsewhere.carrying._attempted(dead, store, got=True, waited=3.0)
    elsewhere.recover(url)
    with open_store(url) as store:
        (attempt,) = store.attempts()
    assert attempt.waited == 3.0
    assert (attempt.held or 0) > 3600


def test_who_does_not_wait_for_what_is_out_leaves_it_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = out(tmp_path, "runs")
    url = str(tmp_path / "store.db")
    monkeypatch.setattr(elsewhere.Interrupts, "count", 1, raising=False)
    monkeypatch.setattr(elsewhere.Interrupts, "__init__", lambda self: None)
    monkeypatch.setattr(elsewhere.Interrupts, "__enter__", lambda self: self)
    monkeypatch.setattr(elsewhere.Interrupts, "__exit__", lambda self, *_: None)
    with pytest.raises(KeyboardInterrupt):
        elsewhere.recover(url)
    assert json.loads((Paper.queue / dead.id).read_text())[0] == "runs"
    with open_store(url) as store:
        assert [trial.status for trial in store.trials()] == ["running"]


def test_a_cap_that_leaves_no_time_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"all that the limits leave a trial on 'box', at \$6"):
        elsewhere.plan(settings(tmp_path), where(tmp_path, dollars=0.001))
