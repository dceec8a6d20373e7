"""Attempts: what cannot be, and what trials tell of getting machines and keeping them."""

from __future__ import annotations

import math
from typing import Any

import pytest
from offers_and_trials import trial

from underdog.core.attempts import Attempt, Place, of_trials, seconds_of
from underdog.model import Machine, Offer, Price

PLACE = Place(
    provider="aws",
    region="us-east-1",
    zone="us-east-1a",
    instance_type="g5.xlarge",
    purchase="spot",
)
START, END = "2026-11-01T10:00:00+00:00", "2026-11-01T12:00:00Z"


def on(purchase: str = "spot", **more: Any) -> Any:
    sold = Offer(
        provider="aws",
        region="us-east-1",
        zone="us-east-1a",
        instance_type="g5.xlarge",
        purchase=purchase,
        price=Price(per_hour=1.0),
    )
    given = {"started_at": START, "ended_at": END, "runner": "cloud", "offer": sold}
    return trial(**(given | more))


def test_an_offer_has_a_place_and_a_place_the_offers_name() -> None:
    assert Place.of(on().offer) == PLACE
    assert PLACE.offer == "aws/us-east-1a/g5.xlarge/spot"


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": math.nan},
        {"waited": -1.0},
        {"held": math.inf},
        {"count": 0},
        {"got": True, "refusal": "quota"},
        {"got": True, "interrupted": True},
        {"got": False, "interrupted": True, "held": 1.0},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Attempt(**{"place": PLACE, "at": 0.0, "got": False, **wrong})


def test_a_trial_without_capacity_was_refused() -> None:
    for purchase in ("spot", "on-demand"):
        (found,) = of_trials([on(purchase, status="no_capacity", reason="none left")], [])
        assert (found.got, found.refusal, found.words) == (False, "no_capacity", "none left")
        assert found.at == seconds_of(START)


def test_a_trial_on_spot_was_held_until_it_ended() -> None:
    (kept,) = of_trials([on(status="ok")], [])
    assert (kept.got, kept.held, kept.interrupted, kept.waited) == (True, 7200.0, False, None)
    (taken,) = of_trials([on(status="interrupted", reason="the provider took it")], [])
    assert (taken.held, taken.interrupted) == (7200.0, True)
    for reason in ("Interrupted by the user.", "it was cancelled before it had begun"):
        (by_hand,) = of_trials([on(status="interrupted", reason=reason)], [])
        assert not by_hand.interrupted


def test_other_trials_tell_nothing() -> None:
    nothing = [
        on("on-demand", status="ok"),
        on("on-demand", status="interrupted"),
        on(status="running", ended_at=None),
        on(started_at="yesterday", status="no_capacity"),
        trial(machine=Machine(), status="no_capacity", started_at=START),
    ]
    assert of_trials(nothing, []) == []


def test_a_trial_on_record_is_not_counted_twice() -> None:
    one = on(status="no_capacity")
    recorded = Attempt(place=PLACE, at=0.0, got=False, trial=one.id)
    assert of_trials([one], [recorded]) == []


def test_trials_of_one_machine_that_was_there_are_one_attempt() -> None:
    where = {"offer": None, "runner": "local", "status": "ok"}
    machine = Machine(
        hostname="h",
        provider="aws",
        region="us-east-1",
        zone="us-east-1a",
        instance_type="g5.xlarge",
        purchase="spot",
    )
    mine = [on(id=f"t{i}", machine=machine, **where) for i in range(3)]
    (found,) = of_trials(mine, [])
    assert found.place == PLACE
    assert found.held == 3 * 7200.0
    asked = [on(id=f"t{i}") for i in range(3)]
    assert len(of_trials(asked, [])) == 3


def test_a_moment_without_an_offset_is_in_utc() -> None:
    assert seconds_of("1970-01-01T01:00:00") == 3600
    assert seconds_of("1970-01-01T01:00:00+01:00") == 0
    assert seconds_of("soon") is None


@pytest.mark.parametrize("at", [-1.0, 1e15, float("nan"), float("inf")])
def test_a_moment_that_no_calendar_has_is_refused(at: float) -> None:
    with pytest.raises(ValueError, match="is none"):
        Attempt(place=PLACE, at=at, got=True)
