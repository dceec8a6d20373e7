"""What is said of trials, searches and histories."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from underdog.core.views.history import history_view, thinned
from underdog.core.views.outcome import outcome
from underdog.core.views.study import study_view
from underdog.core.views.trial import trial_view
from underdog.model import (
    Caveat,
    Decision,
    Estimate,
    Machine,
    Measurement,
    Offer,
    Price,
    Software,
    Trial,
)


def offer(kind: str = "g5.xlarge", price: float = 1.2, **more: Any) -> Offer:
    facts = {"provider": "aws", "region": "us-east-1", "instance_type": kind} | more
    return Offer(price=Price(per_hour=price), **facts)


def trial(number: int, rate: float | None = 100.0, **more: Any) -> Trial:
    facts: dict[str, Any] = {
        "id": f"trial-{number}",
        "workload": "gpt",
        "status": "ok",
        "started_at": f"2026-08-{number:02}T12:00:00+00:00",
        "offer": offer(),
        "price": Price(per_hour=1.2),
        "machine": Machine(),
        "software": Software(framework="torch", framework_version="2.12.0"),
        "dollars": 0.1,
        "study": "study-1",
    }
    if rate is not None:
        estimate = Estimate(value=rate, low=rate * 0.98, high=rate * 1.02, n=40)
        facts["measurement"] = Measurement(samples_per_second=estimate, steps=50)
    return Trial(**facts | more)


def test_a_measured_trial() -> None:
    view = trial_view(trial(1, phases={"backward": 0.6, "data": 0.1, "forward": 0.3, "other": 0.0}))
    assert view.headline == (
        "100 samples per second on aws/us-east-1/g5.xlarge/on-demand, 95 % interval 98.0 to 102."
    )
    assert list(view.phases) == ["data", "forward", "backward"]
    assert view.samples_per_dollar is not None
    assert view.samples_per_dollar.value == pytest.approx(100 * 3600 / 1.2)
    assert dict(view.facts)["price"].startswith("$1.2 per hour · 300,000 samples per dollar")


def test_trials_that_went_wrong_or_run() -> None:
    failed = trial(1, None, status="failed", reason="RuntimeError: no\nTraceback …")
    assert trial_view(failed).headline == (
        "Failed on aws/us-east-1/g5.xlarge/on-demand: RuntimeError: no."
    )
    running = trial_view(trial(1, status="running", offer=None, machine=Machine(hostname="box")))
    assert running.running
    assert running.headline == (
        "Running on box: 100 samples per second so far, 95 % interval 98.0 to 102."
    )
    begun = trial_view(trial(1, None, status="running"))
    assert begun.headline.endswith(": nothing measured yet.")
    stopped = trial_view(trial(1, status="stopped", reason="it cannot win"))
    assert stopped.headline.endswith("it cannot win. It did 100 samples per second until then.")


def test_a_running_study_is_told_from_its_trials() -> None:
    tried = [
        trial(2, 50.0, why="the cheapest", dollars=None),
        trial(1, None, status="out_of_memory", knobs={"batch": "64"}),
        trial(3, 80.0, usage={"saved_dollars": 0.4}, status="stopped"),
        trial(4, None, status="running", dollars=None),
    ]
    view = study_view("study-1", tried)
    assert view is not None
    assert view.running
    assert view.ended is None
    assert view.utility == "samples_per_dollar"
    assert [test.number for test in view.tests] == [1, 2, 3, 4]
    assert [test.spent for test in view.tests] == pytest.approx([0.1, 0.1, 0.2, 0.2])
    assert [test.best_utility for test in view.tests] == [None, 150_000.0, 240_000.0, 240_000.0]
    assert view.tests[1].why == "the cheapest"
    assert (view.saved, view.best_utility) == (0.4, 240_000.0)
    assert outcome(view)[1:] == [
        "4 tests, $0.200 spent beside 1 of unknown cost.",
        "$0.400 saved by stopping tests that could not win.",
        "1 of them runs.",
    ]
    begun = study_view("study-1", tried[3:])
    assert begun is not None
    assert outcome(begun) == ["Nothing works so far.", "1 test.", "1 of them runs."]
    unpriced = [replace(t, offer=None, price=Price(unknown_reason="?")) for t in tried]
    other = study_view("study-1", unpriced)
    assert other is not None
    assert (other.utility, other.best_utility) == ("samples_per_second", 80.0)
    assert study_view("study-1", []) is None


def kept(*tests: dict[str, Any], **more: Any) -> Decision:
    exploration = {
        "utility": "samples_per_second / price_per_hour",
        "tests": list(tests),
        "before": [{"number": 0, "trial": "old", "offer": "a", "status": "ok", "utility": 7.0}],
        "candidates": 12,
        "ended": "enough",
        "expected_loss": 0.0123,
        "best": "a",
        "best_knobs": {"batch": "8"},
        "best_utility": 90.0,
    }
    return Decision(
        id="decision-1", workload="gpt", created_at="2026-08-09", better="higher",
        utility="samples_per_second / price_per_hour", study="study-1",
        exploration=exploration | more,
    )  # fmt: skip


def test_a_study_that_ended_is_told_as_it_was_kept() -> None:
    rate = {"value": 100.0, "low": 98.0, "high": 102.0, "n": 40}
    one = {
        "number": 1, "trial": "trial-1", "offer": "a", "knobs": {"batch": "8"}, "status": "ok",
        "rate": rate, "utility": 90.0, "dollars": 0.1, "best": "a", "best_utility": 90.0,
    }  # fmt: skip
    view = study_view("study-1", [trial(1, why="first")], kept(one))
    assert view is not None
    assert [(test.number, test.utility, test.spent) for test in view.tests] == [
        (0, 7.0, 0.0),
        (1, 90.0, 0.1),
    ]
    assert (view.ended, view.best_utility) == ("another test is not worth its cost", 90.0)
    assert view.tests[1].why == "first"
    assert outcome(view)[0] == (
        "Best found: a (batch=8): 90.0 by 'samples_per_second / price_per_hour', at 100 samples "
        "per second, 95 % interval 98.0 to 102."
    )
    assert outcome(view)[1:] == [
        "1 test of 12 candidates, $0.100 spent.",
        "Ended: another test is not worth its cost.",
        "Expected loss of stopping now: 1.2 % of the best there may be.",
    ]


def test_a_test_that_misses_a_limit_is_not_the_best() -> None:
    tests = [
        {"number": 1, "trial": "trial-1", "offer": "a", "utility": 90.0, "missed": True},
        {"number": 2, "trial": "trial-2", "offer": "b", "utility": 50.0},
    ]
    view = study_view("study-1", [trial(1), trial(2), trial(3, None)], kept(*tests, before=[]))
    assert view is not None
    assert (view.best, view.best_utility) == ("b", 50.0)  # a third trial came since


def test_a_history_marks_every_change_of_level() -> None:
    rates = [100.0, 101.0, 99.5, 100.2, 80.0, 80.4, 79.8, 80.1, 120.0, 119.0, 120.5, 121.0]
    tried = [trial(day, rate) for day, rate in enumerate(rates, start=1)]
    new = Software(framework="torch", framework_version="2.13.0")
    tried = [replace(t, software=new) if i >= 8 else t for i, t in enumerate(tried)]
    tried[2] = replace(tried[2], offer=offer(price=1.0))
    view = history_view("gpt", list(reversed(tried)))
    assert [point.trial for point in view.points] == [t.id for t in tried]
    assert view.machines == ["aws g5.xlarge"]
    told = {(mark.kind, mark.at[:10]): mark.text for mark in view.markers}
    assert set(told) == {
        ("price", "2026-08-03"),
        ("price", "2026-08-04"),
        ("change", "2026-08-05"),
        ("change", "2026-08-09"),
        ("version", "2026-08-09"),
    }
    assert told["price", "2026-08-03"] == "price $1.200 to $1.000 an hour"
    assert told["change", "2026-08-05"].startswith("throughput 20 % lower from here on (95 %")
    assert told["change", "2026-08-09"].endswith("changed with it: torch 2.12.0 to 2.13.0")
    assert told["version", "2026-08-09"] == "torch 2.12.0 to 2.13.0"


def test_a_long_history_is_thinned() -> None:
    tried = [trial(1, 100.0, id=f"a{i:03}", started_at=f"2026-08-01T{i:03}") for i in range(300)]
    tried += [trial(1, 50.0, id="b", offer=offer("g6.xlarge"))]
    tried[150] = replace(tried[150], offer=offer(price=1.0))
    view = history_view("gpt", tried)
    few = thinned(view, 30)
    assert 30 <= len(few.points) <= 36
    assert few.left_out == 301 - len(few.points)
    assert few.points == [point for point in view.points if point in few.points]
    assert {"a299", "b", "a150", "a151"} <= {point.trial for point in few.points}
    assert thinned(view, 301) == view


def test_machines_purchases_and_knobs_are_series_of_their_own() -> None:
    tried = [
        trial(1, knobs={"batch": "8"}),
        trial(2, knobs={"batch": "16"}),
        trial(3, knobs={"batch": "8"}, offer=offer(purchase="spot", price=0.5)),
        trial(4, None, status="failed"),
    ]
    view = history_view("gpt", tried)
    assert view.machines == [
        "aws g5.xlarge, batch=8",
        "aws g5.xlarge, batch=16",
        "aws g5.xlarge, spot, batch=8",
    ]
    assert view.markers == []


def test_caveats_and_timelines_are_taken_over() -> None:
    doubt = Caveat(code="noisy", message="m", remedy="r")
    assert trial_view(trial(1, caveats=[doubt])).caveats == [doubt]
