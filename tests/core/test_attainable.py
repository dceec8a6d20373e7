"""What cannot stand together, and which network cannot carry a job."""

from __future__ import annotations

import re
from typing import Any

import pytest
from offers_and_trials import PROFILE, chosen, offer, plain, trial

from underdog.core.attainable import APART
from underdog.model import Estimate, Measurement


def reasons(rows: list[dict[str, Any]], **more: Any) -> dict[str, str]:
    trials = more.pop("trials", [trial()])
    choice = chosen(rows, trials, by="samples_per_second", **more)
    return {line["offer"]: line["reason"] for line in choice.ledger()}


@pytest.mark.parametrize(
    ("provider", "kind", "apart"),
    [
        ("aws", "t3.2xlarge", True),
        ("aws", "t4g.medium", True),
        ("aws", "m7i-flex.large", True),
        ("aws", "m7i.large", False),
        ("aws", "trn1.32xlarge", False),
        ("aws", "g5.xlarge", False),
        ("gcp", "e2-standard-8", True),
        ("gcp", "n1-standard-8", True),
        ("gcp", "n2-standard-8", False),
        ("gcp", "a2-highgpu-1g", False),
        ("azure", "t3.2xlarge", False),
    ],
)
def test_which_types_stand_together(provider: str, kind: str, apart: bool) -> None:
    found = [a for a in APART if a.provider == provider and re.fullmatch(a.pattern, kind)]
    assert bool(found) is apart


def test_types_that_cannot_stand_together_are_out_for_several_machines_only() -> None:
    rows = [offer(), plain("t3.2xlarge")]
    alone = reasons(rows)["aws/us-east-1/t3.2xlarge/on-demand"]
    assert "co-location" not in alone
    for machines in ((2,), (2, 4)):
        found = reasons(rows, machines=machines)
        assert found["aws/us-east-1/t3.2xlarge/on-demand"] == (
            "co-location: t3.2xlarge cannot stand beside its like: "
            "burstable types cannot be in a cluster placement group"
        )
        assert "co-location" not in found["aws/us-east-1/g5.xlarge/on-demand"]


def heavy() -> Any:
    """100 samples per second in steps of 10, with 4 GiB of gradients."""
    rate = Estimate(value=100.0, low=98.0, high=102.0, n=30)
    return trial(profile=PROFILE, measurement=Measurement(samples_per_second=rate, batch_size=10.0))


def test_a_network_that_cannot_carry_the_gradients_is_out() -> None:
    # 4 GiB twice, halved by two machines, is 34 Gbit a step of 0.17 s at the worst: 124 Gbit/s
    memory = {"memory_gib": 64}
    rows = [offer(network_gbps=speed, region=f"r{speed}", **memory) for speed in (10, 400)]
    rows.append(offer(region="unknown", **memory))
    found = reasons(rows, machines=(2,), trials=[heavy()])
    assert found["aws/r10/g5.xlarge/on-demand"].startswith(
        "interconnect: its network of 10 Gbit/s needs 3.436 s to add up 4,295 MB of gradients"
    )
    assert "interconnect" not in found["aws/r400/g5.xlarge/on-demand"]
    assert "interconnect" not in found["aws/unknown/g5.xlarge/on-demand"]
    assert "interconnect" not in reasons(rows, trials=[heavy()])["aws/r10/g5.xlarge/on-demand"]
