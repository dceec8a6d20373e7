"""Exploring over an engine that starts machines: races, knowledge of the store, failures."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from recorded_trials import offers, throughput, write

from underdog import runners
from underdog.core.exploration import Exploration
from underdog.core.racing import Look
from underdog.errors import MeasureError, RefusedError, RunnerError
from underdog.model import Estimate, Machine, Measurement, Price, Software, Trial
from underdog.runners import Handle, Job, Request, Setup, State
from underdog.store import open_store
from underdog.verbs import studies
from underdog.verbs.explore import explore

BY_TYPE = {str(offer["instance_type"]): offer for offer in offers()}


def estimate(rate: float, half: float = 0.01) -> Estimate:
    return Estimate(value=rate, low=rate * (1 - half), high=rate * (1 + half), n=50)


def measured(job: Job, rate: float | None, seconds: float = 60.0, **more: Any) -> Trial:
    given: dict[str, Any] = {
        "id": "theirs",
        "workload": job.workload,
        "knobs": dict(job.knobs),
        "status": "ok" if rate is not None else "out_of_memory",
        "price": Price(unknown_reason="the machine does not know"),
        "machine": Machine(instance_type=job.offer.instance_type),
        "software": Software(),
        "usage": {"elapsed_seconds": seconds},
    }
    if rate is not None:
        given["measurement"] = Measurement(samples_per_second=estimate(rate))
    return Trial(**(given | more))


class Cloud:
    """An engine whose machines run the workload ``resnet`` of the recorded trials.

    A job shows ``looks`` before it ends; one that is cancelled ends as interrupted.
    """

    def __init__(self, setup: Setup, looks: int = 0) -> None:
        self.folder, self.looks = setup.folder, looks
        self.jobs: dict[Handle, tuple[Job, int]] = {}
        self.cancelled: set[Handle] = set()

    def render(self, job: Job) -> Request:
        return Request(job, (f"start {job.offer.id}",))

    def submit(self, request: Request) -> Handle:
        handle = str(len(self.jobs))
        self.jobs[handle] = (request.job, 0)
        return handle

    def status(self, handle: Handle) -> State:
        job, seen = self.jobs[handle]
        self.jobs[handle] = (job, seen + 1)
        if handle in self.cancelled or seen >= self.looks:
            return State(ended=True)
        rate = throughput("resnet", BY_TYPE[job.offer.instance_type])
        look = Look(12.0 + seen, 10.0 + seen, rate and estimate(rate, 0.1), 50.0 + 9 * seen, True)
        return State(False, look)

    def collect(self, handle: Handle) -> Path:
        job, _ = self.jobs[handle]
        rate = throughput("resnet", BY_TYPE[job.offer.instance_type])
        trial = measured(job, rate)
        if handle in self.cancelled:
            trial = dataclasses.replace(trial, status="interrupted")
        path = self.folder / f"{handle}.json"
        path.write_bytes(msgspec.json.encode(trial))
        return path

    def cancel(self, handle: Handle) -> None:
        self.cancelled.add(handle)


Run = Callable[..., Exploration]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNDERDOG_STORE", str(tmp_path / "store.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("underdog.verbs.exploring.POLL", 0.0)
    write(tmp_path)

    def carried(engine: type = Cloud, looks: int = 0, **given: Any) -> Exploration:
        monkeypatch.setattr(runners, "names", lambda: ["cloud", "local", "replay"])
        monkeypatch.setattr(runners, "make", lambda name, setup: engine(setup, looks))
        monkeypatch.setattr(runners, "ends_with_us", lambda name: name != "cloud")
        monkeypatch.setattr(runners, "together", lambda name: None)
        study = {"runner": "cloud", "command": ["train"], "offers": "offers.csv", **given}
        return explore(workload="resnet", **study)

    return carried


def test_a_test_is_paid_for_as_long_as_it_ran(run: Run) -> None:
    found = run(max_trials=3)
    for test in found.tests:
        price = float(str(BY_TYPE[test.offer.partition("/")[2]]["price_per_hour"]))
        assert test.dollars == pytest.approx(price * 60 / 3600)
    with open_store(None) as store:
        kept = store.trials(workload="resnet")
    assert [trial.offer.instance_type for trial in kept if trial.offer] == [
        test.offer.partition("/")[2] for test in found.tests
    ]
    assert all(trial.price.per_hour for trial in kept)


def test_a_test_that_cannot_win_is_stopped_and_what_it_saved_is_told(run: Run) -> None:
    plain = run(max_trials=5)
    raced = run(max_trials=5, looks=4, seed=0, store="other.sqlite3")
    lost = [test for test in raced.tests if test.status == "stopped"]
    assert lost
    assert raced.best == plain.best
    for test in lost:
        assert "cannot win any more" in (test.reason or "")
        assert (test.saved or 0) > 0
    assert raced.saved == pytest.approx(sum(test.saved or 0 for test in lost))
    assert all(test.status != "stopped" for test in raced.tests if test.offer == raced.best)
    # what it saved stands in the trial, so that a rerun tells it again
    again = run(max_trials=5, looks=4, seed=0, store="other.sqlite3")
    assert [test.saved for test in again.tests] == [test.saved for test in raced.tests]


def test_earlier_trials_count_as_tested(run: Run) -> None:
    first = run(max_trials=4)
    assert first.best is not None
    with open_store(None) as store:
        for trial in store.trials(workload="resnet"):
            store.save(dataclasses.replace(trial, study=None))
    second = run(max_trials=2)
    # where memory ran out it is no candidate any more: the earlier trials say so
    assert second.earlier == sum(test.rate is not None for test in first.tests)
    assert second.spent == pytest.approx(sum(test.dollars or 0 for test in second.tests))
    before = {test.offer for test in first.tests}
    assert not before & {test.offer for test in second.tests}
    assert (second.best_utility or 0) >= (first.best_utility or 0)


def test_other_workloads_of_the_store_are_references(run: Run) -> None:
    _others(["gpt-small"])
    found = run(max_trials=3)
    assert found.earlier == 0
    assert set(found.references) <= {"gpt-small"}
    assert found.references


def _offer(row: dict[str, object]) -> Any:
    from underdog.core.candidates import as_offer

    return as_offer(row)


def test_regions_of_one_machine_are_one_candidate(run: Run, tmp_path: Path) -> None:
    rows = ["provider,region,instance_type,price_per_hour,vcpus,memory_gib"]
    rows += [f"aws,{r},r5.large,{p},2,16" for r, p in (("r1", 2), ("r2", 1), ("r3", 3))]
    rows += ["aws,r1,r5.xlarge,2,4,32"]
    (tmp_path / "offers.csv").write_text("\n".join(rows))
    found = run(max_trials=9)
    assert found.candidates == 2
    assert "aws/r2/r5.large/on-demand" in {test.offer for test in found.tests}


class Broken(Cloud):
    def collect(self, handle: Handle) -> Path:
        raise MeasureError("The machine went away.")


def test_an_engine_that_fails_makes_failed_tests(run: Run) -> None:
    found = run(Broken, max_trials=3)
    assert found.best is None
    assert [test.status for test in found.tests] == ["failed"] * 3
    assert all(test.reason == "The machine went away." for test in found.tests)
    assert [test.trial for test in run(max_trials=3).tests] == [t.trial for t in found.tests]
    # the cause may be mended when somebody searches anew
    anew = run(max_trials=1, seed=1)
    assert anew.tests[0].offer == found.tests[0].offer
    assert not anew.before


class Garbage(Cloud):
    def collect(self, handle: Handle) -> Path:
        path = self.folder / handle
        path.write_text('{"id": 3, "workload": []}')
        return path


def test_what_is_no_trial_is_a_failed_test(run: Run) -> None:
    found = run(Garbage, max_trials=2)
    assert [test.status for test in found.tests] == ["failed"] * 2


class Interrupting(Cloud):
    def status(self, handle: Handle) -> State:
        if handle == "2" and handle not in self.cancelled:
            raise KeyboardInterrupt
        return super().status(handle)


def test_an_interrupt_keeps_what_was_measured(run: Run) -> None:
    found = run(Interrupting, max_trials=9)
    assert found.ended == "interrupted"
    assert [test.status for test in found.tests][-1] == "interrupted"
    with open_store(None) as store:
        assert not store.trials(status="running")
    again = run(max_trials=4)
    assert [test.offer for test in again.tests][:2] == [test.offer for test in found.tests][:2]


def test_the_paths_of_a_study_are_its_own(run: Run, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "offers.csv").rename(tmp_path / "there" / "offers.csv")
    (tmp_path / "there" / "s.toml").write_text('[candidates]\noffers = "offers.csv"\n')
    found = studies.read("there/s.toml", {"runner": "local", "command": [sys.executable]}, {})
    assert found.offers == "there/offers.csv"


class Full(Cloud):
    def submit(self, request: Request) -> Handle:
        if "asked before" not in self.cancelled:
            self.cancelled.add("asked before")
            raise RefusedError("There is none left.", "no_capacity")
        return super().submit(request)


def test_a_machine_that_is_not_given_is_a_test_that_costs_nothing(run: Run) -> None:
    found = run(Full, max_trials=3)
    refused, *others = found.tests
    assert (refused.status, refused.reason) == ("no_capacity", "There is none left.")
    assert refused.dollars == 0.0
    assert {test.status for test in others} <= {"ok", "out_of_memory"}
    # it says nothing of the workload: another study may ask for it again
    with open_store(None) as store:
        for trial in store.trials(status="no_capacity"):
            store.save(dataclasses.replace(trial, study=None))
    assert not run(max_trials=1).before


class Silent(Cloud):
    def status(self, handle: Handle) -> State:
        raise RunnerError("Nobody answers.")


def test_an_engine_that_falls_silent_ends_the_test_and_not_the_search(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("underdog.verbs.carrying.HEARD", 0.0)
    found = run(Silent, max_trials=2)
    assert [(test.status, test.reason) for test in found.tests] == [
        ("failed", "Nobody answers.")
    ] * 2


class Endless(Cloud):
    made: ClassVar[list[Endless]] = []

    def __init__(self, setup: Setup, looks: int = 0) -> None:
        super().__init__(setup, looks)
        self.made.append(self)

    def status(self, handle: Handle) -> State:
        return State(ended=handle in self.cancelled)


def test_what_runs_beyond_the_deadline_is_ended_and_kept(run: Run) -> None:
    found = run(Endless, test=0.1, deadline=1.0, max_trials=9)
    assert found.ended == "deadline"
    assert [(test.status, test.reason) for test in found.tests] == [
        ("interrupted", "the deadline of the search came")
    ]
    assert found.best is not None  # what it measured so far counts


class Faulty(Endless):
    def status(self, handle: Handle) -> State:
        raise ZeroDivisionError


def test_no_machine_is_left_running_by_a_fault(run: Run) -> None:
    with pytest.raises(ZeroDivisionError):
        run(Faulty, parallel=2)
    engine = Faulty.made[-1]
    assert engine.cancelled == set(engine.jobs)
    assert len(engine.jobs) == 2


class Remembering(Cloud):
    """Knows the job ``left`` of a process before."""

    def __init__(self, setup: Setup, looks: int = 0) -> None:
        super().__init__(setup, looks)
        job = Job(workload="resnet", candidate="", offer=_offer(BY_TYPE["m5.4xlarge"]))
        self.jobs["left"] = (job, 0)


def test_a_test_elsewhere_whose_process_was_killed_is_gone_on_with(run: Run) -> None:
    first = run(max_trials=1)
    gone = {"host": os.uname().nodename, "pid": 2**22 + 1, "boot_id": "an earlier one"}
    with open_store(None) as store:
        (ended,) = store.trials(workload="resnet")
        offer = _offer(BY_TYPE["m5.4xlarge"])
        left = dataclasses.replace(
            ended, id="left", status="running", offer=offer, owner=gone, handle="left",
            machine=Machine(), measurement=None,
        )  # fmt: skip
        store.save(left)
    again = run(Remembering, max_trials=2)
    assert [test.trial for test in again.tests] == [first.tests[0].trial, "left"]
    assert again.tests[1].offer == "aws/m5.4xlarge"
    assert again.tests[1].status == "ok"
    with open_store(None) as store:
        assert not store.trials(status="running")


def test_without_prices_no_cost_is_told(run: Run, tmp_path: Path) -> None:
    rows = ["provider,instance_type,vcpus", "aws,c5.large,2", "aws,c5.xlarge,4"]
    (tmp_path / "offers.csv").write_text("\n".join(rows))
    found = run(by="samples_per_second", max_trials=2)
    assert (found.spent, found.unpriced) == (0.0, 2)
    assert {test.dollars for test in found.tests} == {None}


def test_other_workloads_and_their_weight_are_told_test_by_test(run: Run) -> None:
    _others(["gpt-small", "tabular"])
    found = run(max_trials=3)
    assert set(found.references) == {"gpt-small", "tabular"}
    assert found.references_at_first is not None
    weights = [test.references for test in found.tests]
    assert all(weight is not None and 0 <= weight <= 1 for weight in weights)
    assert weights[-1] == pytest.approx(sum(found.references.values()))
    again = run(max_trials=3)  # told the same after a stop
    assert [test.references for test in again.tests] == pytest.approx(weights)


def _others(workloads: list[str]) -> None:
    with open_store(None) as store:
        for workload in workloads:
            for number, offer in enumerate(offers()):
                job = Job(workload=workload, candidate="", offer=_offer(offer))
                trial = measured(job, throughput(workload, offer), offer=job.offer)
                store.save(dataclasses.replace(trial, id=f"{workload}{number}"))
