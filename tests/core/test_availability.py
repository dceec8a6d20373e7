"""The chance of an offer and its wait: from its own record, or from its family's."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.availability import HALF_LIFE, Attempt, Place, availability, plan

NOW = 1_800_000_000.0


def place(kind: str = "g5.xlarge", region: str = "us-east-1", zone: str = "", **more: Any) -> Place:
    given = {"provider": "aws", "purchase": "spot", **more}
    return Place(region=region, zone=zone, instance_type=kind, **given)


def attempts(where: Place, *, got: int, refused: int, age: float = 0, waited: float = 60) -> list:
    return [
        Attempt(place=where, at=NOW - age, got=i < got, waited=waited) for i in range(got + refused)
    ]


@pytest.mark.parametrize(
    ("kind", "family"),
    [
        ("g5.xlarge", "g5"),
        ("a2-highgpu-1g", "a2-highgpu"),
        ("n2-standard-8", "n2-standard"),
        ("Standard_NC40ads_H100_v5", "NCads_H100_v5"),
        ("gpu_1x_a10", "gpu_1x_a10"),
    ],
)
def test_the_family_of_a_type(kind: str, family: str) -> None:
    assert place(kind).family == family


def test_nothing_known_is_said_with_a_wide_interval() -> None:
    found = availability(place(), [], NOW)
    assert found.chance.value == 0.5
    assert found.chance.low < 0.15
    assert found.chance.high > 0.85
    assert found.attempts == 0


def test_an_own_record_outweighs_the_familys() -> None:
    mine, sister = place(), place("g5.12xlarge")
    seen = attempts(mine, got=40, refused=0) + attempts(sister, got=0, refused=40)
    assert availability(mine, seen, NOW).chance.value > 0.85
    assert availability(sister, seen, NOW).chance.value < 0.15


def test_a_new_offer_inherits_from_its_family_then_from_anywhere() -> None:
    seen = attempts(place("g5.2xlarge"), got=0, refused=50)
    same = availability(place("g5.8xlarge"), seen, NOW).chance.value
    elsewhere = availability(place("g5.8xlarge", region="eu-west-1"), seen, NOW).chance.value
    other = availability(place("m7i.large"), seen, NOW).chance.value
    unknown = availability(place(provider="gcp"), seen, NOW).chance.value
    assert same < 0.1
    assert same <= elsewhere <= other < unknown == 0.5


def test_old_attempts_fade_and_future_ones_do_not_count() -> None:
    fresh = availability(place(), attempts(place(), got=0, refused=10), NOW)
    old = attempts(place(), got=0, refused=10, age=6 * HALF_LIFE)
    assert fresh.chance.value < availability(place(), old, NOW).chance.value
    future = attempts(place(), got=0, refused=10, age=-60)
    assert availability(place(), future, NOW).chance.value == 0.5


def test_what_the_provider_tells_is_where_it_starts() -> None:
    assert availability(place(), [], NOW, told=0.9).chance.value == pytest.approx(0.9)
    with pytest.raises(ValueError, match="chance"):
        availability(place(), [], NOW, told=1.5)


def test_the_wait_follows_what_was_waited() -> None:
    quick = availability(place(), attempts(place(), got=50, refused=0, waited=30), NOW)
    slow = availability(place(), attempts(place(), got=5, refused=45, waited=600), NOW)
    assert quick.wait.value < 120 < slow.wait.value
    assert quick.wait.low < quick.wait.value < quick.wait.high


@given(st.integers(0, 60), st.integers(0, 60), st.floats(0, 1e5))
def test_every_answer_is_a_probability_with_its_interval(got: int, refused: int, w: float) -> None:
    found = availability(place(), attempts(place(), got=got, refused=refused, waited=w), NOW)
    assert 0 <= found.chance.low <= found.chance.value <= found.chance.high <= 1
    assert 0 < found.wait.low <= found.wait.value <= found.wait.high < math.inf


@given(st.integers(0, 30), st.integers(0, 30))
def test_one_more_refusal_never_helps(got: int, refused: int) -> None:
    before = availability(place(), attempts(place(), got=got, refused=refused), NOW)
    after = availability(place(), attempts(place(), got=got, refused=refused + 1), NOW)
    assert after.chance.value < before.chance.value


def test_the_plan_goes_by_cost_and_leaves_out_what_has_none() -> None:
    sure = availability(place(), attempts(place(), got=50, refused=0), NOW)
    rare = availability(place(), attempts(place(), got=0, refused=50, waited=3600), NOW)
    steps = plan([2.0, 1.0, math.nan, math.inf], [sure, rare, sure, sure], patience=1200)
    assert [step.offer for step in steps] == [1, 0]
    assert steps[0].reached == 1
    assert 0.5 < steps[1].reached < 1
    assert plan([], [], patience=60) == []
    with pytest.raises(ValueError, match="patience"):
        plan([1.0], [sure], patience=0)


def test_an_attempt_that_cannot_be_is_refused() -> None:
    for at, waited in ((math.nan, 0.0), (0.0, -1.0), (0.0, math.inf)):
        with pytest.raises(ValueError, match="none"):
            Attempt(place=place(), at=at, got=True, waited=waited)
