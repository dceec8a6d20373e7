"""A fall against a baseline: found where it is, not cried where noise explains it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offers_and_trials import trial

from underdog.core.regression import Reading, judge, machine_of, reading
from underdog.model import Accelerator, Estimate, Machine, Price, Software


def seen(rate: float, spread: float = 0.01, runs: int = 3, **more: Any) -> Reading:
    made: dict[str, Any] = {
        "workload": "gpt",
        "machine": "aws g5.xlarge",
        "knobs": {},
        "samples_per_second": Estimate(
            value=rate, low=rate * (1 - spread), high=rate * (1 + spread), n=100
        ),
        "runs": runs,
        "measured_at": "2026-07-01T00:00:00Z",
        "software": {"torch": "2.12"},
    }
    return Reading(**(made | more))


@pytest.mark.parametrize(
    ("rate", "spread", "runs", "verdict"),
    [
        (90, 0.01, 3, "fell"),
        (97, 0.01, 3, "held"),
        (100, 0.01, 3, "held"),
        (104, 0.01, 3, "gained"),
        (90, 0.20, 3, "unclear"),
        (105, 0.50, 3, "unclear"),  # half of it might hide in there
        (94, 0.01, 1, "unclear"),  # two single runs differ by so much without a cause
        (85, 0.01, 1, "fell"),
    ],
)
def test_the_verdict(rate: float, spread: float, runs: int, verdict: str) -> None:
    assert judge(seen(100, runs=runs), seen(rate, spread, runs), 0.05).verdict == verdict


def test_a_dearer_machine_is_a_fall_too_and_the_parts_are_told() -> None:
    change = judge(seen(100, price_per_hour=1.0), seen(100, price_per_hour=1.25), 0.05)
    assert change.verdict == "fell"
    assert change.ratio.value == pytest.approx(0.8)
    assert change.speed == 1
    assert change.price == 1.25
    assert judge(seen(100, price_per_hour=1.0), seen(100), 0.05).price is None


def test_what_changed_beside_the_speed_is_named() -> None:
    after = seen(100, software={"torch": "2.13", "driver": "580"})
    change = judge(seen(100), after, 0.05)
    assert change.software == {"torch": ("2.12", "2.13"), "driver": ("none", "580")}


@pytest.mark.parametrize("drop", [0.0, 1.0, -0.1, float("nan")])
def test_a_drop_is_a_share(drop: float) -> None:
    with pytest.raises(ValueError, match="share"):
        judge(seen(100), seen(100), drop)


def test_noise_alone_seldom_fails() -> None:
    draw = random.Random(7)
    falls = 0
    for _ in range(2000):
        # each run lies off by the spread of runs of one machine; 5 % holds 95 % of them
        a, b = (100 * draw.gauss(1, 0.05 / 1.96) for _ in range(2))
        falls += judge(seen(a, 0.005, 1), seen(b, 0.005, 1), 0.02).verdict == "fell"
    assert falls / 2000 < 0.035


@given(st.floats(1e-3, 1e6), st.floats(1e-3, 1e6), st.floats(0.001, 0.5), st.floats(0.01, 0.9))
def test_a_slower_one_never_does_better(a: float, b: float, spread: float, drop: float) -> None:
    order = ["fell", "unclear", "held", "gained"]
    here, slower = (judge(seen(a, spread), seen(rate, spread), drop) for rate in (b, b * 0.7))
    assert slower.ratio.value < here.ratio.value
    assert order.index(slower.verdict) <= order.index(here.verdict)


def test_a_reading_pools_its_runs() -> None:
    many = [trial(rate=rate, price=Price(per_hour=2.0)) for rate in (98.0, 100.0, 102.0)]
    found = reading(many)
    assert found.samples_per_second.value == pytest.approx(100)
    assert found.runs == 3
    assert found.price_per_hour == 2.0
    with pytest.raises(ValueError, match="cannot be compared"):
        reading([trial(rate=None)])
    with pytest.raises(ValueError, match="cannot be compared"):
        reading([])


def test_two_hosts_of_one_kind_are_one_machine() -> None:
    cards = [Accelerator(name="NVIDIA L4"), Accelerator(name="NVIDIA L4")]
    facts = {"cpu_model": "AMD EPYC 7B13", "vcpus": 48.0, "accelerators": cards}
    here, there = (
        trial(machine=Machine(hostname=name, **facts), software=Software()) for name in ("a", "b")
    )
    assert machine_of(here) == machine_of(there) == "AMD EPYC 7B13, 48 vCPU, 2 x NVIDIA L4"
    assert machine_of(trial()) == "aws g5.xlarge"
