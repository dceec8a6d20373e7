"""Waiting and spot as columns of every offer: against the model in numbers, and what must hold."""

from __future__ import annotations

import math
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offers_and_trials import offer, table, trial

from underdog.core.attempts import Attempt, Place
from underdog.core.availability import FIRST_RATE, Told
from underdog.core.choosing import Choice, Request, choose
from underdog.core.evidence import gather
from underdog.core.fallback import fallback
from underdog.core.spot import Habits, on_spot
from underdog.core.supply import ENDS, Supply, expected
from underdog.core.utility import parse_utility

NOW = 1_800_000_000.0
SAMPLES = 36e6  # 100 hours at 100 samples/s
MORE = settings(max_examples=5, deadline=None)


def place(kind: str = "g5.xlarge", purchase: str = "spot", **more: str) -> Place:
    given = {"provider": "aws", "region": "us-east-1", "zone": "", **more}
    return Place(instance_type=kind, purchase=purchase, **given)


def attempt(where: Place, got: bool = True, **more: Any) -> Attempt:
    return Attempt(place=where, at=NOW - 60, got=got, **more)


def chosen(
    rows: list[dict[str, Any]],
    known: Supply | None = None,
    by: str = "dollars_to_train",
    trials: Any = None,
    **request: Any,
) -> Choice:
    given = {"samples": SAMPLES, **request}
    utility = parse_utility(by, has_samples=given["samples"] is not None)
    asked = Request(utility=utility, **given)
    return choose(table(rows), gather(trials or [trial()]), asked, known=known)


def entries(choice: Choice) -> dict[str, dict[str, Any]]:
    return {entry["offer"]["id"]: entry for entry in choice.ranking()}


def only(choice: Choice) -> dict[str, Any]:
    (entry,) = choice.ranking()
    return entry


SPOT = offer(price=0.4, purchase="spot")
ON_DEMAND = offer(price=1.0)


RATES = np.geomspace(1e-6, 3, 60)
HABITS = st.tuples(
    st.floats(1, 900), st.floats(0, 1800), st.none() | st.floats(60, 36000), st.floats(0, 9)
)


def on_spot_by_query(known: Supply, wait: float) -> dict[str, Any]:
    """The columns of 100 hours of work on spot, at each of ``RATES``."""
    ends = ", ".join(f"{wait} AS wait_hours{e}, rate_ AS interruptions{e}" for e in ENDS)
    rates = ", ".join(f"100.0::DOUBLE AS rate{e}" for e in ENDS)
    connection = duckdb.connect(config={"threads": 1})
    connection.register("given", {"rate_": RATES})
    source = f"SELECT 'spot' AS purchase, {SAMPLES} AS samples_to_train, {ends}, {rates} FROM given"
    found = connection.execute(expected(source, known)).fetchnumpy()
    return {name: np.ma.filled(found[name], np.nan) for name in ("useful", "waiting")}


@given(HABITS)
@settings(max_examples=20, deadline=None)
def test_the_query_gives_what_the_model_gives(habits: tuple[Any, ...]) -> None:
    checkpoint, restart, every, wait = habits
    known = Supply(checkpoint_seconds=checkpoint, restart_seconds=restart, interval_seconds=every)
    found = on_spot_by_query(known, wait)
    cope = Habits(
        checkpoint=checkpoint / 3600,
        restart=restart / 3600,
        interval=None if every is None else every / 3600,
        wait=wait,
    )
    for rate, useful, waiting in zip(RATES, found["useful"], found["waiting"], strict=True):
        run = on_spot(100.0, float(rate), cope)
        paid = run.paid_hours - cope.restart  # the first start counts nowhere
        if math.isnan(useful):
            assert 100 / paid < 1e-8  # never done
            continue
        assert useful == pytest.approx(100 / paid, rel=1e-6)
        assert waiting == pytest.approx(wait * (1 + rate * paid), rel=1e-6)
    # more interruptions never make it cheaper or faster; Daly's interval is as good as the best
    # but for a thousandth where checkpoints fill the time
    useful = np.nan_to_num(found["useful"], nan=0.0)
    slack = 1e-9 + 2e-3 * (RATES[1:] * checkpoint > 1800)
    assert (useful[1:] <= useful[:-1] * (1 + slack)).all()
    assert ((useful >= 0) & (useful <= 1)).all()
    waits = found["waiting"][useful > 0]
    assert (np.diff(waits) >= -2e-3 * waits[:-1]).all()


def test_interruptions_reach_every_metric_of_cost_and_time() -> None:
    calm, rough = (only(chosen([SPOT], Supply(interruptions=often))) for often in (0.1, 0.5))
    for name in ("dollars_to_train", "hours_to_train", "dollars_per_million_samples"):
        assert rough[name]["value"] > calm[name]["value"]
    assert rough["samples_per_dollar"]["value"] < calm["samples_per_dollar"]["value"]
    assert rough["samples_per_second"] == calm["samples_per_second"]
    share = rough["useful_share"]["value"]
    assert rough["dollars_to_train"]["value"] == pytest.approx(0.4 * 100 / share)


@given(st.lists(st.tuples(st.floats(0.1, 9), st.floats(0.05, 9)), min_size=1, max_size=6))
@MORE
def test_without_a_record_the_ranking_is_that_of_prices(prices: list[tuple[float, float]]) -> None:
    rows = []
    for i, (demanded, spot) in enumerate(prices):
        region = f"r{i}"
        rows += [
            offer(price=demanded, region=region),
            offer(price=spot, region=region, purchase="spot"),
        ]
    found = chosen(rows, by="samples_per_dollar", samples=None, all_regions=True, limit=99)
    listed = found.ranking()
    for purchase in ("on-demand", "spot"):
        costs = [e["offer"]["price_per_hour"] for e in listed if e["offer"]["purchase"] == purchase]
        assert costs == sorted(costs)
    for entry in listed:
        assert entry["availability"] is None
        if entry["offer"]["purchase"] == "on-demand":
            cost = entry["offer"]["price_per_hour"]
            assert entry["samples_per_dollar"]["value"] == pytest.approx(360_000 / cost)
            assert entry["useful_share"]["value"] == 1
    # spot that is dearer than on demand is nowhere ahead, whatever else is sold
    dear = {
        f"aws/r{i}/g5.xlarge/spot" for i, (demanded, spot) in enumerate(prices) if spot >= demanded
    }
    assert dear.isdisjoint(entries(found))
    reasons = {line["offer"]: line["reason"] for line in found.ledger()}
    assert all(reasons[name].startswith("spot price: ") for name in dear)


def test_a_spot_price_that_is_unknown_never_wins() -> None:
    found = chosen([ON_DEMAND, offer(price=None, purchase="spot")], by="samples_per_dollar")
    assert list(entries(found)) == ["aws/us-east-1/g5.xlarge/on-demand"]


def test_interruptions_may_make_on_demand_the_cheaper_one() -> None:
    rows = [offer(price=0.8, purchase="spot"), ON_DEMAND]
    calm, rough = (chosen(rows, Supply(interruptions=rate)) for rate in (0.001, 1.0))
    assert calm.ranking()[0]["offer"]["purchase"] == "spot"
    assert rough.ranking()[0]["offer"]["purchase"] == "on-demand"
    reason = {line["offer"]: line["reason"] for line in rough.ledger()}
    assert "of the paid time is progress" in reason["aws/us-east-1/g5.xlarge/spot"]
    assert "progress" not in reason["aws/us-east-1/g5.xlarge/on-demand"]


def test_a_job_that_is_never_done_is_out() -> None:
    known = Supply(interruptions=5.0, interval_seconds=10 * 3600.0)
    found = chosen([SPOT, ON_DEMAND], known, limit=5)
    assert list(entries(found)) == ["aws/us-east-1/g5.xlarge/on-demand"]
    reasons = [line["reason"] for line in found.ledger()]
    assert any("it would never be done" in reason for reason in reasons)


def test_the_rate_comes_from_attempts_of_the_offer_else_of_its_like_else_from_the_prior() -> None:
    taken = [attempt(place(), held=3600.0, interrupted=True) for _ in range(40)]
    quiet = [attempt(place("p4d.24xlarge"), held=36000.0) for _ in range(40)]
    rows = [
        offer(price=0.4, purchase="spot"),
        offer("g5.2xlarge", price=0.4, purchase="spot"),
        offer("p4d.24xlarge", price=0.4, purchase="spot"),
        offer("x.large", price=0.4, purchase="spot", provider="other"),
    ]
    kinds = [trial(), trial("g5.2xlarge"), trial("p4d.24xlarge")]
    found = entries(chosen(rows, Supply(attempts=[*taken, *quiet], now=NOW), trials=kinds))
    rates = {
        e["offer"]["instance_type"]: (
            e["spot"]["interruptions_per_hour"]["value"],
            e["spot"]["from"],
        )
        for e in found.values()
    }
    assert 0.7 < rates["g5.xlarge"][0] < 1.2
    assert 0.5 < rates["g5.2xlarge"][0] < 1.2  # of its family
    assert rates["p4d.24xlarge"][0] < 0.02
    assert {kind: origin for kind, (_, origin) in rates.items()} == {
        "g5.xlarge": "attempts",
        "g5.2xlarge": "attempts",
        "p4d.24xlarge": "attempts",
        "x.large": "prior",
    }
    assert rates["x.large"][0] == FIRST_RATE


def test_what_the_query_says_of_waiting_is_what_the_records_say() -> None:
    waited = [
        attempt(place(purchase="on-demand"), waited=1800.0, got=i % 3 == 0) for i in range(30)
    ]
    known = Supply(attempts=waited, now=NOW)
    rows = [ON_DEMAND, offer("g5.2xlarge"), offer("g5.4xlarge", region="eu-west-1")]
    kinds = [trial(), trial("g5.2xlarge"), trial("g5.4xlarge")]
    found = chosen(rows, known, trials=kinds)
    for entry in found.ranking():
        one = entry["offer"]
        told = known.at(place(one["instance_type"], "on-demand", region=one["region"]), 1)
        assert told.wait is not None
        assert entry["hours_to_train"]["value"] == pytest.approx(100 + told.wait.value / 3600)
        assert entry["hours_to_train"]["low"] < entry["hours_to_train"]["value"]
        assert entry["availability"]["wait_seconds"]["value"] == told.wait.value
        assert entry["availability"]["chance"]["value"] == told.chance.value
    # waiting costs time, not money
    assert only(chosen([ON_DEMAND], known))["dollars_to_train"]["value"] == pytest.approx(100)


def test_waiting_comes_again_after_every_interruption() -> None:
    seen = [attempt(place(), waited=3600.0, held=7200.0, interrupted=True) for _ in range(200)]
    known = Supply(attempts=seen, now=NOW)
    entry = only(chosen([SPOT], known))
    told = known.at(place(), 1)
    assert told.wait is not None
    paid = entry["dollars_to_train"]["value"] / 0.4
    wait = told.wait.value / 3600 * (1 + told.interruptions.value * paid)
    assert entry["hours_to_train"]["value"] == pytest.approx(paid + wait)


def test_a_deadline_counts_the_waiting() -> None:
    slow = [attempt(place(purchase="on-demand"), waited=20 * 3600.0) for _ in range(50)]
    assert chosen([ON_DEMAND], deadline_hours=106).ranking()
    found = chosen([ON_DEMAND], Supply(attempts=slow, now=NOW), deadline_hours=106)
    assert not found.ranking()
    assert "deadline" in found.ledger()[0]["reason"]


def test_several_machines_are_interrupted_as_often_as_there_are_machines() -> None:
    found = chosen([SPOT], Supply(interruptions=0.1), machines=(1, 4))
    often = {e["nodes"]: e["spot"]["interruptions_per_hour"]["value"] for e in found.ranking()}
    assert often == {1: pytest.approx(0.1), 4: pytest.approx(0.4)}
    share = {e["nodes"]: e["useful_share"]["value"] for e in found.ranking()}
    assert share[4] < share[1]


def test_what_is_told_not_to_be_sold_is_out_and_other_zones_are_not() -> None:
    rows = [offer(price=0.4, purchase="spot", zone=zone) for zone in ("us-east-1a", "us-east-1b")]
    told = [Told(place=place(zone="us-east-1b"), offered=False)]
    found = chosen(rows, Supply(told=told, now=NOW))
    assert list(entries(found)) == ["aws/us-east-1a/g5.xlarge/spot"]
    reasons = [line["reason"] for line in found.ledger()]
    assert "not offered: it is told not to be sold in us-east-1b" in reasons
    everywhere = chosen([SPOT], Supply(told=told, now=NOW))
    assert not everywhere.ranking()  # of its only zone that is told


def test_the_fall_back_begins_with_the_answer_and_tells_the_chance_to_come_to_each() -> None:
    rows = [
        offer(price=price, purchase="spot", region=f"r{i}")
        for i, price in enumerate((0.3, 0.4, 0.5))
    ]
    rows.append(ON_DEMAND)
    bare = fallback(chosen(rows))
    assert [step["offer"].split("/")[1] for step in bare] == ["r0", "r1", "us-east-1"]
    assert [step["reached"] for step in bare] == [1.0, None, None]
    assert bare[0]["patience_seconds"] == 1200
    refused = [
        attempt(place(region="r0"), got=False, waited=60.0, refusal="no_capacity")
        for _ in range(50)
    ]
    known = Supply(attempts=refused, now=NOW, patience=60.0)
    steps = fallback(chosen(rows, known, by="samples_per_dollar"))
    assert steps[1]["reached"] == pytest.approx(0.9, abs=0.1)
    assert fallback(chosen([SPOT], purchase=("reserved",))) == []


def test_prices_of_other_days_widen_what_it_costs() -> None:
    told = [Told(place=place(), prices=(0.2, 0.9))]
    calm, wide = (
        only(chosen([SPOT], Supply(told=known, now=NOW, interruptions=0.1)))["dollars_to_train"]
        for known in ([], told)
    )
    assert wide["value"] == calm["value"]
    assert wide["low"] == pytest.approx(calm["low"] / 2)
    assert wide["high"] == pytest.approx(calm["high"] * 0.9 / 0.4)
    unknown = chosen([offer(price=None, purchase="spot")], Supply(told=told, now=NOW))
    assert not unknown.ranking()
    with pytest.raises(ValueError):
        Told(place=place(), prices=(0.9, 0.2))
