"""What is said of a decision: the answer, the runner-up, the groups."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from underdog.core.views.answer import machine
from underdog.core.views.decision import decision_view
from underdog.core.views.records import Point, Range
from underdog.model import Decision

G5 = "aws/us-east-1/g5.xlarge/spot"
G6 = "aws/us-east-1/g6.xlarge/on-demand"
A2 = "gcp/us-central1/a2-highgpu-1g/on-demand"


def entry(name: str, value: float, share: float = 0.05, **more: Any) -> dict[str, Any]:
    provider, region, kind, purchase = name.split("/")
    ends = {"value": value, "low": value * (1 - share), "high": value * (1 + share)}
    return {
        "offer": {
            "id": name,
            "provider": provider,
            "region": region,
            "instance_type": kind,
            "purchase": purchase,
            "price_per_hour": 1.0,
        },
        "source": "measured",
        "nodes": 1,
        "utility": ends,
        "samples_per_second": {"value": 100.0, "low": 90.0, "high": 110.0},
        "useful_share": {"value": 0.9, "low": 0.8, "high": 1.0},
        "tied_with": [],
    } | more


def decision(*ranking: dict[str, Any], **more: Any) -> Decision:
    facts: dict[str, Any] = {
        "id": "decision-1",
        "workload": "train_gpt",
        "created_at": "2026-08-01T00:00:00+00:00",
        "utility": "samples_per_dollar",
        "better": "higher",
        "ranking": list(ranking),
        "best_measured": G5,
    }
    return Decision(**facts | more)


def test_the_answer_is_one_sentence_with_its_uncertainty() -> None:
    view = decision_view(decision(entry(G5, 1.2e6, 0.08)))
    assert view.answer == (
        "Run train_gpt on aws g5.xlarge in us-east-1 (spot): 1.20 million samples per dollar, "
        "95 % interval 1.10 to 1.30 million, measured."
    )
    assert view.runner_up is None
    assert (view.unit, view.points[0].verdict) == ("samples/$", "best")


def test_the_runner_up_is_so_far_behind() -> None:
    view = decision_view(decision(entry(G5, 1.2e6), entry(A2, 0.9e6)))
    assert view.runner_up is not None
    assert view.runner_up.startswith(
        "The runner-up, gcp a2-highgpu-1g in us-central1, is 25 % behind (900,000 samples per"
    )
    assert [point.verdict for point in view.points] == ["best", "beaten"]
    costs = decision(entry(G5, 4.0), entry(A2, 5.0), utility="dollars_to_train", better="lower")
    assert "is 25 % above (5.00 dollars" in str(decision_view(costs).runner_up)


def test_the_runner_up_cannot_be_told_apart() -> None:
    tied = decision(entry(G5, 1.2e6, tied_with=[A2]), entry(A2, 1.15e6, tied_with=[G5]))
    view = decision_view(tied)
    assert "cannot be told apart: the intervals overlap" in str(view.runner_up)
    assert view.groups == [[G5, A2]]
    assert view.points[1].verdict == "tied"


def test_a_guess_that_promises_more_is_said_to_be_one() -> None:
    guess = entry(A2, 3e6, 0.5, source="predicted")
    view = decision_view(decision(entry(G5, 1.2e6), guess))
    assert "was not tested: it is predicted to be 2.5 times as good, which only" in str(
        view.runner_up
    )
    worse = decision(entry(G5, 1.2e6), entry(A2, 1e6, source="predicted"))
    assert "it is predicted to be no better" in str(decision_view(worse).runner_up)
    alone = decision_view(decision(guess, best_measured=None))
    assert alone.answer.startswith("Test gcp a2-highgpu-1g in us-central1 for train_gpt: by predic")
    assert alone.answer.endswith("and no machine that was measured can be ranked here.")


def test_nothing_meets_the_constraints() -> None:
    funnel = [{"verdict": "excluded", "cause": "budget", "offers": 1200}]
    view = decision_view(decision(funnel=funnel, constraints=["budget: $ <= 3"], candidates=2000))
    assert view.answer == (
        "No offer meets the constraints: 1,200 of 2,000 are out by budget: $ <= 3."
    )
    assert "nothing could be predicted" in decision_view(decision()).answer


def test_groups_keep_measured_and_predicted_apart() -> None:
    names = [G5, G6, A2]
    ranking = [
        entry(G5, 3.0, tied_with=[G6, A2]),
        entry(G6, 2.9, tied_with=[G5, A2]),
        entry(A2, 9.0, source="predicted", tied_with=[G5, G6]),
    ]
    assert decision_view(decision(*ranking)).groups == [[G5, G6]]
    chain = [
        entry(names[0], 3.0, tied_with=[names[1]]),
        entry(names[1], 2.5, tied_with=[names[0], names[2]]),
        entry(names[2], 2.0, tied_with=[names[1]]),
    ]
    # the third is told from the first, whatever the second is
    assert decision_view(decision(*chain)).groups == [[G5, G6]]


def test_hours_and_dollars_are_of_a_million_samples_without_a_job() -> None:
    cost = {"value": 3.0, "low": 2.0, "high": 4.0}
    point = decision_view(decision(entry(G5, 1.0, dollars_per_million_samples=cost))).points[0]
    assert point.hours is not None
    assert point.hours.value == pytest.approx(1e6 / (90.0 * 3600))
    assert point.hours.low == pytest.approx(1e6 / (110.0 * 3600))
    assert point.hours.high == pytest.approx(1e6 / (72.0 * 3600))
    assert point.dollars == Range(value=3.0, low=2.0, high=4.0)


def test_of_a_job_they_are_of_the_whole() -> None:
    asked = {"samples": 3e6, "deadline": "48h", "budget": 20}
    told = entry(G5, 1.0, hours_to_train={"value": 7.0, "low": 6.0, "high": 8.0})
    view = decision_view(decision(told, rests_on={"asked": asked}))
    assert (view.samples, view.deadline_hours, view.budget) == (3e6, 48.0, 20.0)
    assert view.points[0].hours == Range(value=7.0, low=6.0, high=8.0)
    assert view.points[0].dollars is None
    seconds = decision(told, rests_on={"asked": asked | {"deadline": 7200.0}})
    assert decision_view(seconds).deadline_hours == 2.0


def test_drawn_points_follow_the_ranking_and_bring_their_reasons() -> None:
    drawn = [
        Point(offer="other/excluded", verdict="excluded", reason="budget: too dear"),
        Point(offer=A2, rank=7, reason="not tested; predicted"),
        Point(offer=G5, rank=1, reason="the best of the measured"),
    ]
    lines = [{"offer": G5, "verdict": "best", "reason": "r"}]
    view = decision_view(decision(entry(G5, 1.0)), drawn, lines)
    assert [point.offer for point in view.points] == [G5, A2, "other/excluded"]
    assert view.points[0].reason == "the best of the measured"
    assert view.points[0].utility is not None
    assert view.whole
    assert view.ledger[0].reason == "r"
    assert not decision_view(decision(entry(G5, 1.0))).whole


def test_several_machines_and_ones_own() -> None:
    point = Point(offer=G5, provider="aws", instance_type="g5.xlarge", region="x", nodes=4)
    assert machine(point) == "4 × aws g5.xlarge in x"
    mine = replace(point, provider="local", region="here", instance_type="box", nodes=1)
    assert machine(mine) == "this machine (box)"
    assert machine(Point(offer="o" * 200)).count("o") < 80
