"""Choosing from a store and a file of offers, and what a decision says."""

from __future__ import annotations

import csv
import dataclasses
from pathlib import Path
from typing import Any

import msgspec
import pytest
from offers_and_trials import PROFILE, c1_offers, c1_trials, trial

from underdog.core.metrics import METRICS
from underdog.errors import CatalogError, UsageError
from underdog.model import Accelerator, Estimate, Machine, Measurement, Offer, Price, Trial
from underdog.store import open_store
from underdog.verbs.choose import Options, choose, decide


@pytest.fixture
def c1(tmp_path: Path) -> dict[str, str]:
    """A store with the trials of C1 and a file with its offers."""
    offers = tmp_path / "offers.csv"
    with offers.open("w", newline="") as file:
        names = ["provider", "region", "instance_type", "price_per_hour", "accelerator"]
        names += ["accelerator_count", "vcpus", "memory_gib", "arch"]
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(c1_offers())
    store = str(tmp_path / "store.sqlite3")
    save(store, *c1_trials())
    return {"store": store, "offers": str(offers)}


def save(store: str, *trials: Trial) -> None:
    with open_store(store) as opened:
        opened.save(*trials)


def test_a_decision_says_what_it_rests_on(c1: dict[str, str]) -> None:
    decision = choose(**c1)
    kinds = [entry["offer"]["instance_type"] for entry in decision.ranking]
    assert kinds == ["g5.xlarge", "p2.xlarge", "g4dn.xlarge", "p3.2xlarge"]
    assert decision.workload == "gpt"
    assert decision.candidates == len(decision.ledger) == 4
    assert decision.best_measured == "aws/us-east-1/g5.xlarge/on-demand"
    assert decision.snapshot
    assert decision.expires_at > decision.created_at
    assert sorted(decision.trials) == sorted(t.id for t in c1_trials())
    for entry in decision.ranking:
        assert {"offer", "source", "rank", "pareto", "tied_with"} <= set(entry)
        assert {"value", "low", "high"} == set(entry["samples_per_second"])
        assert set(METRICS) <= set(entry)
    assert set(decision.ledger[0]) == {"offer", "verdict", "reason"}


def test_the_decision_is_kept_without_the_ledger(c1: dict[str, str]) -> None:
    decision = choose(**c1)
    choose(save=False, **c1)
    with open_store(c1["store"]) as opened:
        (kept,) = opened.decisions()
    assert kept.id == decision.id
    assert kept.ledger == []
    # a store keeps JSON, in which no number is an integer or a float by itself
    encoded = msgspec.json.decode(msgspec.json.encode(decision.ranking))
    assert msgspec.json.decode(msgspec.json.encode(kept.ranking)) == encoded


def test_without_a_workload_the_latest_is_taken(c1: dict[str, str]) -> None:
    later = trial("g5.xlarge", 7.0, workload="vit", started_at="2026-08-01T00:00:00Z")
    save(c1["store"], later)
    assert choose(**c1).workload == "vit"
    assert choose("gpt", **c1).workload == "gpt"


def test_an_unknown_workload_names_the_nearest(c1: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="Did you mean 'gpt'"):
        choose("gtp", **c1)


def test_an_empty_store_says_how_to_fill_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="underdog measure") as caught:
        choose(store=str(tmp_path / "store.sqlite3"))
    assert "underdog trials import" in str(caught.value)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"deadline": "5h"}, "needs --samples"),
        ({"budget": 5.0}, "needs --samples"),
        ({"samples": -1.0}, "must be positive"),
        ({"samples": 1e6, "budget": -5.0}, "must be positive"),
        ({"samples": float("nan")}, "must be positive"),
        ({"samples": 1e6, "deadline": "soon"}, "not a duration"),
        ({"samples": 1e6, "deadline": -3.0}, "must be positive"),
        ({"purchase": ["spott"]}, "Did you mean 'spot'"),
        ({"nodes": [0]}, "1 or more"),
        ({"limit": 0}, "1 or more"),
        ({"tolerance": 3.0}, "such as 10%"),
        ({"by": "samples_per_dolar"}, "samples_per_dollar"),
        ({"by": "hours_to_train"}, "--samples"),
        ({"where": "pricee < 2"}, "price"),
        ({"by": "1 / 0"}, "zero"),
    ],
)
def test_bad_options_are_one_message(
    c1: dict[str, str], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        choose(**options, **c1)
    with open_store(c1["store"]) as opened:
        assert opened.decisions() == []


def test_an_empty_file_of_offers(c1: dict[str, str], tmp_path: Path) -> None:
    empty = tmp_path / "empty.csv"
    empty.write_text("provider,region,instance_type,price_per_hour\n")
    with pytest.raises(CatalogError, match=r"empty\.csv"):
        choose(store=c1["store"], offers=str(empty))


def test_a_measured_machine_that_is_no_offer_predicts_the_others(tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite3")
    box = Machine(hostname="box", vcpus=8, cpu_cores=4, arch="x86_64", memory_gib=32)
    profile = dataclasses.replace(PROFILE, optimizer_bytes=1, parameter_bytes=1, gradient_bytes=1)
    save(store, trial(rate=20.0, machine=box, profile=profile))
    decision = decide(Options(store=store)).decision
    assert {entry["source"] for entry in decision.ranking} == {"predicted"}
    assert decision.best_measured is None
    assert decision.caveats[0].code == "price_unknown"
    assert decision.test_next
    assert decision.candidates > 80_000

    priced = trial(rate=20.0, machine=box, profile=profile, price=Price(per_hour=0.2), id="again")
    save(store, priced)
    decision = decide(Options(store=store)).decision
    assert decision.best_measured == "local/here/box/on-demand"
    assert decision.ranking[0]["samples_per_dollar"]["value"] == pytest.approx(20 * 3600 / 0.2)


def test_an_imported_trial_brings_its_own_offer(c1: dict[str, str]) -> None:
    sold = Offer(
        provider="lambda",
        region="us-west-1",
        instance_type="gpu_1x_a10",
        price=Price(per_hour=0.6, date="2025-01-01"),
        accelerator="A10",
        accelerator_count=1,
    )
    measured = Measurement(samples_per_second=Estimate(value=9.0, low=8.9, high=9.1, n=3))
    save(c1["store"], trial(rate=None, offer=sold, price=sold.price, measurement=measured))
    first = choose(**c1).ranking[0]
    assert first["offer"]["id"] == "lambda/us-west-1/gpu_1x_a10/on-demand"
    assert first["offer"]["price_date"] == "2025-01-01"


def test_the_accelerator_of_a_machine_is_known_by_its_drivers_name(tmp_path: Path) -> None:
    store = str(tmp_path / "store.sqlite3")
    machine = Machine(
        hostname="box", accelerators=[Accelerator(name="NVIDIA A10G", memory_gib=22.5)]
    )
    save(store, trial(rate=100.0, machine=machine))
    where = "instance_type = 'g5.xlarge' and region = 'us-east-1'"
    decision = choose(store=store, where=where, by="samples_per_second")
    entries = [e for e in decision.ranking if e["offer"]["instance_type"] == "g5.xlarge"]
    assert entries
    # the same accelerator in another machine: a narrow interval around the same rate
    assert entries[0]["samples_per_second"]["value"] == pytest.approx(100.0)
    assert entries[0]["samples_per_second"]["high"] < 150
