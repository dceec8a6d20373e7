"""What is on record of getting machines enters a search as it enters the decision."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded_trials import write

from underdog.core.attempts import Attempt
from underdog.core.exploration import Exploration
from underdog.core.exploring import Explorer
from underdog.core.objective import Job, Objective
from underdog.core.search import Settings
from underdog.runners import Setup, make
from underdog.store import open_store
from underdog.verbs.attempts import place_of, record
from underdog.verbs.choose import choose
from underdog.verbs.explore import explore
from underdog.verbs.exploring import Exploring
from underdog.verbs.studies import lay_out, read

SPOT, STAYS, OTHER = (
    "aws/us-east-1/g5.xlarge/spot",
    "aws/us-east-1/g4dn.xlarge/on-demand",
    "aws/us-east-1/g6.xlarge/spot",
)
TRIALS = f"""\
workload,offer,throughput,status
gpt,{SPOT},100,ok
gpt,{STAYS},100,ok
gpt,{OTHER},100,ok
"""
OFFERS = f"""\
offer,price_per_hour
{SPOT},0.50
{STAYS},0.65
{OTHER},1.00
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trials.csv").write_text(TRIALS)
    (tmp_path / "offers.csv").write_text(OFFERS)
    return str(tmp_path / "store.sqlite3")


@pytest.fixture
def explored(store: str) -> Callable[..., Exploration]:
    def explored(**more: Any) -> Exploration:
        files = {"trials": "trials.csv", "offers": "offers.csv"}
        return explore(workload="gpt", runner="replay", **{"store": store, **files, **more})

    return explored


def remember(store: str, offer: str, times: int = 8, **more: Any) -> None:
    with open_store(store) as kept:
        for i in range(times):
            record(kept, Attempt(place=place_of(offer), at=time.time() - 60 * (i + 1), **more))


def test_without_a_record_the_trace_is_that_of_a_search_that_knows_of_none(tmp_path: Path) -> None:
    trials, offers = write(tmp_path)
    given = {"runner": "replay", "trials": str(trials), "offers": str(offers)}
    for workload in ("resnet", "gpt-large"):
        field = lay_out(read(None, {**given, "workload": workload}, os.environ), [])
        assert field.recorded is not None
        runner = make("replay", Setup(folder=tmp_path, recorded=field.recorded.trial))
        now = Exploring(field, runner, None, lambda event: None).explorer
        objective = Objective(field.request.utility, field.rows, Job())
        before = Explorer(
            field.candidates,
            objective,
            values={},
            test_seconds=120.0,
            search={
                "references": field.references,
                "prediction": field.prediction,
                "seed": 0,
                "settings": Settings(test_seconds=120.0),
            },
        )
        assert now.next(8, seconds_left=1e9) == before.next(8)
        assert now.stopping() == before.stopping()


def test_the_search_ends_with_the_offer_that_the_decision_leads_with(
    store: str, explored: Callable[..., Exploration]
) -> None:
    first = explored(store=None)
    assert (first.best, first.best_utility) == (SPOT, pytest.approx(720_000 * 0.8329, rel=1e-3))
    remember(store, SPOT, got=True, waited=10.0, held=300.0, interrupted=True)
    found = explored()
    assert found.best == STAYS
    assert found.decision is not None
    assert found.decision.ranking[0]["offer"]["id"] == STAYS
    asked = choose("gpt", store=store, offers="offers.csv")
    for entry, other in zip(asked.ranking, found.decision.ranking, strict=True):
        assert entry["offer"]["id"] == other["offer"]["id"]
        assert entry["utility"]["value"] == pytest.approx(other["utility"]["value"], rel=1e-3)
    values = {test.offer: test.utility for test in found.tests}
    for entry in found.decision.ranking:
        assert values[entry["offer"]["id"]] == pytest.approx(entry["utility"]["value"], rel=1e-9)


def test_what_is_hardly_to_be_had_is_tested_last(
    store: str, explored: Callable[..., Exploration]
) -> None:
    assert explored(store=None).tests[0].offer != STAYS
    remember(store, SPOT, times=40, got=False, refusal="no_capacity")
    # the other spot offer inherits from this one
    assert explored().tests[0].offer == STAYS


def test_a_deadline_of_the_search_counts_the_wait(
    store: str, explored: Callable[..., Exploration]
) -> None:
    remember(store, SPOT, times=20, got=True, waited=7200.0)
    found = explored(deadline=3600.0)
    assert [test.offer for test in found.tests] == [STAYS]
    assert found.ended == "deadline"
    longer = explored(deadline=3 * 3600.0)
    assert len(longer.tests) == 2  # two hours for each on spot: the other inherits them
    assert longer.ended == "deadline"
    assert len(explored().tests) == 3


def test_a_search_goes_on_as_it_began_whatever_it_found_out_of_supply(
    store: str, explored: Callable[..., Exploration], tmp_path: Path
) -> None:
    lines = TRIALS.replace(f"{SPOT},100,ok", f"{SPOT},,no_capacity")
    (tmp_path / "trials.csv").write_text(lines)
    whole = explored(seed=5)
    assert [test.status for test in whole.tests if test.offer == SPOT] == ["no_capacity"]
    again = explored(seed=5)
    # what was not to be had is asked for again, so that it comes later the second time
    found, before = ({t.offer: t.utility for t in one.tests} for one in (again, whole))
    assert found == before
    assert (again.best, again.best_utility) == (whole.best, whole.best_utility)
    assert again.beliefs == whole.beliefs
