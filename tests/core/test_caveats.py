"""Doubts about the machine, and the page that lists all doubts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from underdog.core.caveats import REMEDIES, caveat, of_usage
from underdog.model import Accelerator, Machine

CPU = Machine(vcpus=8)
GPU = Machine(vcpus=8, accelerators=[Accelerator(name="L4")])
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "caveats.md"


def codes(usage: dict[str, float | None], machine: Machine = CPU, **known: bool) -> list[str]:
    return [one.code for one in of_usage(usage, machine, **known)]


@pytest.mark.parametrize(
    ("usage", "code"),
    [
        ({"steal_cores": 0.5, "host_cores": 6.0}, "noisy_machine"),
        ({"other_load_cores": 1.0}, "noisy_machine"),
        ({"quota_throttled_share": 0.1}, "noisy_machine"),
        ({"cpu_thermal_throttles": 3.0}, "thermal_throttling"),
        ({"accelerator_thermal_share": 0.5}, "thermal_throttling"),
        ({"threads": 64.0, "run_queue": 30.0}, "threads_over_quota"),
    ],
)
def test_a_disturbed_machine(usage: dict[str, float | None], code: str) -> None:
    assert codes(usage) == [code]
    assert codes(dict.fromkeys(usage)) == []


def test_a_quiet_machine() -> None:
    quiet = {
        "steal_cores": 0.0,
        "host_cores": 7.0,
        "other_load_cores": 0.1,
        "threads": 64.0,  # asleep
        "run_queue": 8.0,
        "quota_throttled_share": 0.0,
        "cpu_thermal_throttles": 0.0,
        "accelerator_utilization": 0.9,
    }
    assert codes(quiet, GPU, uses_accelerator=True) == []
    assert codes({"steal_cores": float("nan")}) == []


def test_an_accelerator_that_is_there_and_not_used_is_said_loudly() -> None:
    (found,) = of_usage({"accelerator_utilization": 0.0}, GPU, False)
    assert found.code == "accelerator_unused"
    assert "NOT USED" in found.message
    assert "L4" in found.message
    assert codes({"accelerator_utilization": 0.0}, GPU) == ["accelerator_unused"]
    assert codes({}, GPU, uses_accelerator=False) == ["accelerator_unused"]
    assert codes({}, GPU) == []
    assert codes({"accelerator_utilization": 0.0}, CPU, uses_accelerator=False) == []


def test_the_page_lists_every_code_with_its_remedy() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([^|]+) \|$", PAGE.read_text(), flags=re.M)
    page = dict(rows)
    assert set(REMEDIES) <= set(page)
    for code, remedy in REMEDIES.items():
        assert page[code].strip() == remedy


def test_a_code_that_does_not_exist() -> None:
    with pytest.raises(KeyError):
        caveat("nonsense", "…")
