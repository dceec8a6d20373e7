"""The points to draw are the offers that choosing ranked and ruled out, told alike."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from offers_and_trials import PROFILE, c1_offers, c1_trials, chosen, offer, plain, trial

from underdog.core import points
from underdog.core.choosing import Choice
from underdog.core.points import MILLION
from underdog.core.views.ranking import points_of
from underdog.core.views.records import Point, Range
from underdog.model import Decision

PAIRS = (
    "rank", "source", "pareto", "price_per_hour", "offer", "nodes", "purchase", "region",
    "instance_type", "accelerator",
)  # fmt: skip
RANGES = ("samples_per_second", "samples_per_dollar", "hours", "dollars", "utility")


def drawn(choice: Choice, most: int = points.MOST) -> dict[tuple[str, int], Point]:
    return {(point.offer, point.nodes): point for point in points.points(choice, most)}


def ends(found: Range | None) -> dict[str, float | None]:
    return {} if found is None else {n: getattr(found, n) for n in ("value", "low", "high")}


def kept(choice: Choice, samples: float | None) -> list[Point]:
    """The same from the ranking, as a store keeps it."""
    decision = Decision(
        id="d", workload="w", created_at="", utility="u", better="higher", ranking=choice.ranking()
    )
    return points_of(decision, samples)


def market() -> list[dict[str, Any]]:
    """Regions, purchase options, machines of many kinds, and some that are ruled out."""
    rows = [
        row | {"region": region, "purchase": purchase, "price_per_hour": row["price_per_hour"] * k}
        for row in c1_offers()
        for region, k in (("us-east-1", 1.0), ("eu-west-1", 1.2), ("ap-south-1", 0.9))
        for purchase, k in (("on-demand", k), ("spot", 0.4 * k))
    ]
    rows += [plain(f"m{i}.large", 0.05 * 1.3**i, vcpus=2 + i) for i in range(12)]
    return [*rows, offer("g6.xlarge", 0.8, memory_gib=4), offer("x1.large", None)]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"samples": 3e8},
        {"samples": 3e6, "deadline_hours": 1000.0, "budget": 400.0},
        {"by": "samples_per_second"},
        {"by": "dollars_per_million_samples"},
        {"machines": (1, 2)},
        {"by": "samples_per_dollar, samples_per_second", "tolerance": 0.3},
        {"all_regions": True},
    ],
)
def test_a_point_is_what_the_ranking_says(asked: dict[str, Any]) -> None:
    choice = chosen(market(), [replace(t, profile=PROFILE) for t in c1_trials()], **asked)
    there = drawn(choice)
    ranked = kept(choice, asked.get("samples"))
    assert len(ranked) > 5
    for told in ranked:
        point = there[told.offer, told.nodes]
        assert {n: getattr(point, n) for n in PAIRS} == {n: getattr(told, n) for n in PAIRS}
        for name in RANGES:
            assert ends(getattr(point, name)) == pytest.approx(ends(getattr(told, name))), name


def test_verdicts_and_reasons_are_those_of_the_ledger() -> None:
    choice = chosen(market(), c1_trials(), samples=3e6, budget=200.0)
    told = {line["offer"]: line for line in choice.ledger()}
    found = points.points(choice)
    assert {point.verdict for point in found} >= {"best", "beaten", "excluded"}
    for point in found:
        assert point.verdict == told[point.offer]["verdict"]
        assert point.reason == told[point.offer]["reason"]
        if point.verdict != "untested":  # one that may miss the budget is open, and does not rank
            assert (point.rank is None) == (point.verdict == "excluded")


def test_one_region_of_a_machine_is_drawn() -> None:
    found = points.points(chosen(market(), c1_trials()))
    keys = [(p.provider, p.instance_type, p.purchase, p.nodes) for p in found]
    assert len(set(keys)) == len(keys)
    assert {p.region for p in found if p.instance_type in ("g5.xlarge", "g4dn.xlarge")} == {
        "ap-south-1"
    }


def test_what_was_ruled_out_is_drawn_at_its_best_region() -> None:
    choice = chosen(market(), c1_trials(), purchase=("on-demand",))
    spot = [point for point in points.points(choice) if point.purchase == "spot"]
    assert {point.region for point in spot} == {"ap-south-1"}
    assert all(point.reason.startswith("purchase: ") for point in spot)
    assert all(point.hours and point.dollars for point in spot)


def test_of_too_many_the_picture_keeps_its_shape() -> None:
    rows = [plain(f"m{i}.large", 0.01 * 1.1**i, vcpus=2 + i % 3) for i in range(90)]
    choice = chosen([offer(), *rows], [trial("g5.xlarge", 100.0)], where=None)
    every, few = drawn(choice), drawn(choice, 30)
    assert len(every) > 60
    assert len(few) == 30
    assert set(few) <= set(every)
    assert any(point.verdict == "best" for point in few.values())
    for name in ("hours", "dollars"):
        wide, narrow = (
            [math.log10(getattr(p, name).value) for p in some.values() if getattr(p, name)]
            for some in (every, few)
        )
        assert max(narrow) - min(narrow) >= 0.4 * (max(wide) - min(wide))


def test_without_a_job_hours_and_dollars_are_of_a_million_samples() -> None:
    choice = chosen(c1_offers(), c1_trials())
    for point in points.points(choice):
        assert point.hours is not None
        assert point.dollars is not None
        assert point.price_per_hour is not None
        assert point.samples_per_second is not None
        hours = MILLION / (point.samples_per_second.value * 3600)
        assert point.hours.value == pytest.approx(hours)
        assert point.dollars.value == pytest.approx(hours * point.price_per_hour)
        assert point.hours.low is not None
        assert point.hours.high is not None
        assert point.hours.low < point.hours.value < point.hours.high


def test_a_price_of_nothing_breaks_no_picture() -> None:
    free = offer("free.large", 0.5) | {"price_per_hour": 0.0}
    with np.errstate(divide="ignore"):
        found = points.points(chosen([offer(), free], [trial()], by="samples_per_second"))
    assert {point.offer.split("/")[2] for point in found} >= {"g5.xlarge"}


def test_a_choice_in_which_nothing_ranks() -> None:
    choice = chosen([offer(price=None)], [trial()])
    assert points.points(choice) == []
