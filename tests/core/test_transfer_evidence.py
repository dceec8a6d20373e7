"""What other workloads did on two machines carries one over, and says so."""

from __future__ import annotations

import time

import numpy as np
import pytest
from offers_and_trials import offer, table, trial

from underdog.core.choosing import Request, choose
from underdog.core.evidence import Shape, gather
from underdog.core.transfer import LEAST_GROUPS
from underdog.core.transfer_evidence import MOST_TARGETS, carried
from underdog.core.utility import parse_utility
from underdog.model import Trial

SMALL, LARGE = "g4dn.xlarge", "g5.xlarge"


def others(count: int, ratio: float = 3.0, name: str = "job-{}") -> list[Trial]:
    """Workloads that run faster by one ratio, within 2 %, on the large machine."""
    draw, made = np.random.default_rng(1), []
    for number in range(count):
        rate = draw.lognormal(4, 1)
        for kind, factor in ((SMALL, 1.0), (LARGE, ratio * draw.normal(1, 0.02))):
            workload = name.format(number)
            more = {"id": f"{workload}-{kind}", "workload": workload}
            made.append(trial(kind, rate * factor, **more))
    return made


def mine() -> list[Trial]:
    return [trial(SMALL, 10.0)]


def test_a_workload_is_carried_over() -> None:
    found = carried(gather(mine()), others(8))
    assert list(found) == [Shape("aws", LARGE, 1)]
    (told,) = found.values()
    assert told.estimate.value == pytest.approx(30, rel=0.05)
    assert told.estimate.low < 30 < told.estimate.high < 45
    assert told.origin == f"from {SMALL}: by how 8 other workloads did on both"


def test_variants_of_one_job_are_one_reference() -> None:
    assert not carried(gather(mine()), others(20, name="one/{}"))
    assert not carried(gather(mine()), others(LEAST_GROUPS - 1))
    assert not carried(gather(mine()), mine())
    assert not carried([], others(8))


def test_a_noisy_measurement_widens() -> None:
    (exact,) = carried(gather([trial(SMALL, 10.0, spread=0.001)]), others(8)).values()
    (noisy,) = carried(gather([trial(SMALL, 10.0, spread=0.4)]), others(8)).values()
    assert exact.estimate.high / exact.estimate.low < 1.3
    # no narrower than what it rests on
    assert noisy.estimate.high / noisy.estimate.low > 1.4 / 0.6


def test_choosing_names_the_workloads_that_it_rests_on() -> None:
    t4 = {"accelerator": "T4", "accelerator_gb_per_s": 320, "fp32_tflops": 8.1}
    offers = table([offer(SMALL, 0.5, **t4), offer(LARGE, 1.0)])
    evidence, request = gather(mine()), Request(utility=parse_utility("samples_per_dollar"))
    bare = choose(offers, evidence, request)
    told = choose(offers, evidence, request, carried=carried(evidence, others(8)))
    bare_rate, rate = (
        next(e for e in c.ranking() if e["offer"]["instance_type"] == LARGE)["samples_per_second"]
        for c in (bare, told)
    )
    assert rate["value"] == pytest.approx(30, rel=0.05)
    assert rate["high"] / rate["low"] < bare_rate["high"] / bare_rate["low"]
    reasons = [line["reason"] for line in told.ledger()]
    assert any("8 other workloads did on both" in reason for reason in reasons)
    assert not any("other workloads" in line["reason"] for line in bare.ledger())


def test_many_machines_take_no_time() -> None:
    draw, trials = np.random.default_rng(2), []
    for number in range(8):
        for place in range(2 * MOST_TARGETS):
            kind = SMALL if not place else f"t{place}.large"
            more = {"id": f"{number}-{kind}", "workload": f"job-{number}"}
            trials.append(trial(kind, draw.lognormal(4, 1), **more))
    evidence = gather(mine())
    began = time.perf_counter()
    assert len(carried(evidence, trials)) == MOST_TARGETS
    assert time.perf_counter() - began < 3
