"""The chance of an offer and its wait: from its own record, or from its family's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.attempts import Attempt, Place
from underdog.core.availability import (
    FIRST_RATE,
    HALF_LIFE,
    Records,
    Told,
    availability,
    gamma_ends,
    plan,
)

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
    if found.wait is None:
        assert got == 0  # nobody ever waited
        assert refused == 0 or w == 0
        return
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


@pytest.mark.parametrize("shape", [1.05, 2.0, 4.0, 20.0])
def test_the_ends_of_a_gamma_distribution(shape: float) -> None:
    logs = np.linspace(-14, 6, 100_001)
    mass = np.cumsum(np.exp(shape * logs - np.exp(logs)))
    exact = np.exp(np.interp([0.025, 0.975], mass / mass[-1], logs)) / shape
    low, high = gamma_ends(shape)
    assert low == pytest.approx(exact[0], abs=0.02)
    assert high == pytest.approx(exact[1], rel=0.02)


def test_refusals_that_are_not_of_supply_do_not_count() -> None:
    short = Attempt(place=place(), at=NOW, got=False, refusal="quota", waited=1.0)
    assert not Records([short], NOW).at(place()).known
    gone = Attempt(place=place(), at=NOW, got=False, refusal="no_capacity", waited=1.0)
    assert Records([gone], NOW).at(place()).chance.value < 0.5


def test_more_machines_are_never_easier_to_get() -> None:
    seen = [
        Attempt(place=place(), at=NOW, got=False, count=count, waited=60.0) for count in (1, 4, 8)
    ]
    seen += attempts(place(), got=3, refused=0)
    one, four, eight = (Records(seen, NOW, (), n).at(place()) for n in (1, 4, 8))
    assert one.chance.value > four.chance.value > eight.chance.value
    assert one.wait is not None
    assert eight.wait is not None
    assert one.wait.value < eight.wait.value


@given(st.integers(0, 30), st.floats(0.1, 500))
def test_interruptions_lie_between_the_prior_and_what_was_seen(events: int, hours: float) -> None:
    seen = [
        Attempt(place=place(), at=NOW, got=True, held=hours * 3600, interrupted=i < events)
        for i in range(30)
    ]
    found = Records(seen, NOW).at(place()).interruptions
    rates = sorted((events / (30 * hours), FIRST_RATE))
    assert rates[0] * (1 - 1e-9) <= found.value <= rates[1] * (1 + 1e-9)
    assert found.low <= found.value <= found.high
    assert found.n == events


def test_what_is_told_of_a_zone_holds_for_it_and_for_a_region_that_leaves_it_open() -> None:
    told = [
        Told(place=place(zone="a"), chance=0.9, interruptions=0.01),
        Told(place=place(zone="b"), chance=0.1, offered=False),
    ]
    known = Records([], NOW, told)
    a, b, c, anywhere = (known.at(place(zone=zone)) for zone in ("a", "b", "c", ""))
    assert (a.chance.value, a.origin) == (pytest.approx(0.9), "told")
    assert (b.offered, a.offered, c.offered, anywhere.offered) == (False, None, None, None)
    assert c.chance.value == 0.5
    assert not c.known
    assert anywhere.chance.value == pytest.approx(0.9)
    everywhere = Records([], NOW, [Told(place=place(), wait=120.0)])
    found = everywhere.at(place(zone="z")).wait
    assert found is not None
    assert found.value == pytest.approx(120.0)
    for wrong in ({"chance": 2.0}, {"wait": 0.0}, {"interruptions": math.inf}):
        with pytest.raises(ValueError):
            Told(place=place(), **wrong)
