"""Plans of spot and on demand by a deadline: when there is one, and when it is the cheapest way."""

from __future__ import annotations

from typing import Any

import pytest
from offers_and_trials import chosen, offer, table, trial
from rich.console import Console

from underdog.core import choosing
from underdog.core.attempts import Attempt, Place
from underdog.core.choosing import Request
from underdog.core.evidence import gather
from underdog.core.spot_plans import FIRST_GAP, plans
from underdog.core.supply import Supply
from underdog.core.utility import parse_utility
from underdog.report.decision import number
from underdog.report.plans import first

SPOT = {"purchase": "spot"}
SOLD = [offer(price=1.0), offer(price=0.3, **SPOT)]
HOURS = 38.4  # of work at 100 samples/s


def planned(rows: list[dict[str, Any]] = SOLD, hours: float = 48.0, **more: Any) -> Any:
    trials = more.pop("trials", [trial(rate=100.0, spread=0.001)])
    asked = {"by": "dollars_to_train", "samples": HOURS * 360_000, "deadline_hours": hours}
    return plans(chosen(rows, trials, **(asked | more)))


def test_the_mixed_plan_is_the_cheapest_way_where_spot_alone_is_late() -> None:
    (plan,) = planned()
    assert (plan["spot"], plan["on_demand"]) == (
        "aws/us-east-1/g5.xlarge/spot",
        "aws/us-east-1/g5.xlarge/on-demand",
    )
    assert (plan["nodes"], plan["source"], plan["cheapest"]) == (1, "measured", True)
    alone = plan["alone"]
    assert plan["in_time"] == alone["on_demand"]["in_time"] == 1
    assert alone["spot"]["in_time"] < 0.9
    assert alone["on_demand"]["dollars"]["value"] == pytest.approx(HOURS, rel=0.01)
    cost = plan["dollars"]
    assert 0.3 * HOURS < alone["spot"]["dollars"]["value"] < cost["value"] < HOURS
    assert cost["low"] < cost["value"] < cost["high"]
    assert (plan["from"], plan["away_from"], plan["away_hours"]) == ("prior", "prior", FIRST_GAP)
    assert plan["interruptions_per_hour"]["value"] == pytest.approx(0.54)


def test_it_is_the_same_whenever_it_is_asked() -> None:
    assert planned() == planned(SOLD[::-1])


@pytest.mark.parametrize(
    ("rows", "more"),
    [
        (SOLD, {"hours": None}),
        ([offer(price=1.0), offer(price=1.0, **SPOT)], {}),
        ([offer(price=1.0), offer(price=1.2, **SPOT)], {}),
        ([offer(price=1.0), offer(price=None, **SPOT)], {}),
        ([offer(price=1.0), offer(price=0.3, region="eu-west-1", **SPOT)], {}),
        ([offer(price=1.0)], {}),
        ([offer(price=0.3, **SPOT)], {}),
        (SOLD, {"hours": 38.0}),  # not even on demand
        (SOLD, {"hours": 38.5}),  # on demand, but no start can be lost
        (SOLD, {"budget": 15.0}),
        (SOLD, {"purchase": ("on-demand",)}),
    ],
)
def test_there_is_none(rows: list[dict[str, Any]], more: dict[str, Any]) -> None:
    assert planned(rows, **({"hours": 48.0} | more)) == []


def test_spot_that_would_be_late_on_average_is_still_good_for_a_plan() -> None:
    choice = chosen(
        SOLD,
        [trial(rate=100.0, spread=0.001)],
        by="dollars_to_train",
        samples=HOURS * 360_000,
        deadline_hours=40.0,
    )
    out = {line["offer"]: line["cause"] for line in choice.ledger()}
    assert out["aws/us-east-1/g5.xlarge/spot"] == "deadline"
    (plan,) = plans(choice)
    assert plan["cheapest"]


def test_it_is_not_the_cheapest_where_spot_alone_keeps_the_deadline_too() -> None:
    (plan,) = planned(hours=4000.0)
    assert plan["alone"]["spot"]["in_time"] > 0.95
    assert plan["dollars"]["value"] >= plan["alone"]["spot"]["dollars"]["value"]
    assert not plan["cheapest"]


def test_it_is_not_the_cheapest_where_another_machine_is_cheaper_on_demand() -> None:
    rows = [*SOLD, offer("b.large", 0.3)]
    trials = [trial(rate=100.0, spread=0.001), trial("b.large", 100.0)]
    (plan,) = planned(rows, trials=trials)
    assert not plan["cheapest"]


def test_the_region_where_both_are_cheapest_together_is_taken() -> None:
    west = {"region": "us-west-2"}
    rows = [*SOLD, offer(price=1.1, **west), offer(price=0.1, **west, **SPOT)]
    (plan,) = planned(rows)
    assert plan["on_demand"].startswith("aws/us-west-2/")


def test_what_is_on_record_of_spot_counts() -> None:
    place = Place(
        provider="aws", region="us-east-1", zone="", instance_type="g5.xlarge", purchase="spot"
    )
    seen = [
        Attempt(place=place, at=float(k), got=True, waited=360.0, held=3.6e5, interrupted=False)
        for k in range(20)
    ]
    request = Request(
        utility=parse_utility("dollars_to_train", has_samples=True),
        samples=HOURS * 360_000,
        deadline_hours=48.0,
    )
    trials = gather([trial(rate=100.0, spread=0.001)])
    choice = choosing.choose(table(SOLD), trials, request, known=Supply(attempts=seen, now=30.0))
    (plan,) = plans(choice)
    assert (plan["from"], plan["away_from"]) == ("attempts", "attempts")
    assert plan["away_hours"] == pytest.approx(0.1, rel=0.2)
    (before,) = planned()
    assert plan["dollars"]["value"] < before["dollars"]["value"]


def said(plan: dict[str, Any]) -> str:
    console = Console(width=600, color_system=None)
    with console.capture() as captured:
        console.print(first([plan], number))
    return captured.get()


def test_the_plan_in_words() -> None:
    (plan,) = planned()
    text = said(plan)
    assert text.startswith(
        "The cheapest way that keeps the deadline: aws/us-east-1/g5.xlarge/spot while it is to be "
        "had, aws/us-east-1/g5.xlarge/on-demand where it must be: $"
    )
    assert ", in time. On demand alone $38.4 (" in text
    assert "in time with a chance of" in text
    assert "taken away 0.54 times an hour (as on public records)" in text
    other = plan | {"cheapest": False, "source": "predicted", "nodes": 2}
    other["alone"] = plan["alone"] | {"spot": {"dollars": None, "in_time": 0.0}}
    text = said(other)
    assert text.startswith("By the deadline: 2 × aws")
    assert "where it must be: predicted, $" in text
    assert "spot alone at no known cost, never in time." in text
