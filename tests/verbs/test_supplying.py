"""What choosing takes from attempts, from a table and from options; and what it says of it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from offers_and_trials import trial

from underdog.core.attempts import Attempt
from underdog.errors import UsageError
from underdog.model import Decision, Estimate, Measurement
from underdog.store import open_store
from underdog.verbs.attempts import place_of, record
from underdog.verbs.choose import choose

OFFERS = """\
provider,region,instance_type,purchase,price_per_hour,accelerator,accelerator_count
aws,us-east-1,g5.xlarge,on-demand,1.006,A10G,1
aws,us-east-1,g5.xlarge,spot,0.40,A10G,1
aws,us-west-2,g5.xlarge,spot,0.45,A10G,1
"""
RATE = Estimate(value=100.0, low=98.0, high=102.0, n=30)


@pytest.fixture
def asked(tmp_path: Path) -> Any:
    """Chooses among three offers for a measured workload, with more options."""
    offers, store = tmp_path / "offers.csv", str(tmp_path / "store.sqlite3")
    offers.write_text(OFFERS)
    saved = Measurement(
        samples_per_second=RATE, pauses={"checkpoint": 90.0}, pause_counts={"checkpoint": 3}
    )
    with open_store(store) as opened:
        opened.save(trial(measurement=saved))

    def ask(*attempts: Attempt, **options: Any) -> Decision:
        with open_store(store) as opened:
            for attempt in attempts:
                record(opened, attempt)
        return choose(offers=str(offers), store=store, samples=36e6, **options)

    return ask


def said(decision: Decision) -> str:
    return "\n".join(decision.assumptions)


def test_what_is_taken_for_granted_is_said_once(asked: Any) -> None:
    decision = asked()
    text = said(decision)
    assert text.count("No attempt to get a machine is on record, so waiting") == 1
    assert "a checkpoint takes 30 s (measured in trial-g5.xlarge-1-100.0)" in text
    assert "going on after an interruption 5 min (not measured)" in text
    assert "taken away 0.54 times an hour (0.0091–1.9)" in text
    assert all(entry["availability"] is None for entry in decision.ranking)
    assert [step["offer"] for step in decision.fallback] == [
        "aws/us-east-1/g5.xlarge/spot",
        "aws/us-west-2/g5.xlarge/spot",
        "aws/us-east-1/g5.xlarge/on-demand",
    ]


def test_what_is_given_goes_before(asked: Any) -> None:
    decision = asked(
        checkpoint_seconds="10s",
        checkpoint_every="30m",
        restart_seconds=60.0,
        interruptions_per_hour=0.2,
        patience="5m",
    )
    text = said(decision)
    assert "a checkpoint takes 10 s (as given)" in text
    assert "0.54" not in text
    spot = decision.ranking[0]["spot"]
    assert (spot["from"], spot["checkpoint_every_seconds"]) == ("given", 1800.0)
    assert spot["interruptions_per_hour"] == {"value": 0.2, "low": 0.2, "high": 0.2}
    assert decision.fallback[0]["patience_seconds"] == 300.0


def test_attempts_count_and_want_of_quota_is_told(asked: Any) -> None:
    where, now = place_of("aws/us-east-1/g5.xlarge/spot"), time.time()
    taken = [
        Attempt(place=where, at=now - i, got=True, waited=60.0, held=1800.0, interrupted=True)
        for i in range(2, 40)
    ]
    words = "MaxSpotInstanceCountExceeded: Max spot instance count exceeded"
    decision = asked(*taken, Attempt(place=where, at=now - 1, got=False, words=words))
    assert decision.ranking[0]["offer"]["id"] == "aws/us-east-1/g5.xlarge/spot"
    spot = decision.ranking[0]["spot"]
    assert spot["from"] == "attempts"
    assert 1.5 < spot["interruptions_per_hour"]["value"] < 2.1
    assert decision.ranking[0]["availability"]["chance"]["value"] > 0.9  # a quota is no shortage
    (quota,) = [c for c in decision.caveats if c.code == "quota"]
    assert "All G and VT Spot Instance Requests (L-3819A6DF)" in quota.remedy
    assert decision.fallback[1]["reached"] < 0.1
    assert "No attempt" not in said(decision)


def test_a_table_of_what_is_told(asked: Any, tmp_path: Path) -> None:
    path = tmp_path / "told.csv"
    path.write_text(
        "provider,region,instance_type,offered,interruptions_per_hour\n"
        "aws,us-east-1,g5.xlarge,false,\naws,us-west-2,g5.xlarge,true,0.02\n"
    )
    decision = asked(availability=path)
    first = decision.ranking[0]
    assert first["offer"]["region"] == "us-west-2"
    assert (first["spot"]["from"], first["availability"]["wait_seconds"]) == ("told", None)
    assert "Where no wait for a machine is on record, it counts as nothing." in decision.assumptions
    out = {line["offer"]: line["reason"] for line in decision.ledger}
    assert out["aws/us-east-1/g5.xlarge/spot"].startswith("not offered: ")
    assert decision.rests_on["asked"]["availability"] == str(path)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"patience": 0.0}, "--patience must be a duration"),
        ({"checkpoint_every": float("nan")}, "--checkpoint-every must be a duration"),
        ({"restart_seconds": -1.0}, "--restart-seconds must be a duration"),
        ({"interruptions_per_hour": float("inf")}, "--interruptions-per-hour"),
        ({"checkpoint_seconds": "soon"}, "'soon' is not a duration"),
    ],
)
def test_options_that_cannot_be(asked: Any, wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        asked(**wrong)
