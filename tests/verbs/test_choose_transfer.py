"""Choosing rests on other workloads of the store where they say more than the hardware."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from offers_and_trials import offer, trial

from underdog.store import open_store
from underdog.verbs.choose import choose

SMALL, LARGE = "g4dn.xlarge", "g5.xlarge"


def test_other_workloads_of_the_store_count(tmp_path: Path) -> None:
    offers, store = tmp_path / "offers.csv", str(tmp_path / "store.sqlite3")
    with offers.open("w", newline="") as file:
        names = ["provider", "region", "instance_type", "price_per_hour", "accelerator"]
        names += ["accelerator_count", "vcpus", "memory_gib", "arch"]
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows([offer(SMALL, 0.5, accelerator="T4"), offer(LARGE, 1.0)])
    jobs = [f"job-{number}" for number in range(6)]
    with open_store(store) as opened:
        opened.save(trial(SMALL, 10.0))
        alone = choose("gpt", store=store, offers=offers)
        for place, job in enumerate(jobs):
            for kind, rate in ((SMALL, 5.0 + place), (LARGE, 20.0 + 4 * place)):
                opened.save(trial(kind, rate, id=f"{job}-{kind}", workload=job))
    decision = choose("gpt", store=store, offers=offers)
    rates = [
        next(
            entry["samples_per_second"]
            for entry in made.ranking
            if entry["offer"]["instance_type"] == LARGE
        )
        for made in (alone, decision)
    ]
    # each of the jobs was four times as fast
    assert rates[1]["value"] == pytest.approx(40, rel=0.01)
    assert rates[1]["high"] / rates[1]["low"] < rates[0]["high"] / rates[0]["low"]
    reasons = " ".join(line["reason"] for line in decision.ledger)
    assert f"from {SMALL}: by how 6 other workloads did on both" in reasons
    # only trials of the workload itself are what the decision was made from
    assert len(decision.trials) == 1
