"""Doubts about the machine, and the page that lists all doubts."""

from __future__ import annotations

import ast
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


def test_a_queue_of_others_is_not_the_threads_fault() -> None:
    usage = {"threads": 64.0, "run_queue": 30.0, "other_load_cores": 4.0}
    assert codes(usage) == ["noisy_machine"]


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


def codes_of(path: Path) -> set[str]:
    """Codes that the source of a file raises, in each of the ways in which it may."""
    tree = ast.parse(path.read_text())
    constants = {
        node.targets[0].id: node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    found: list[object] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = [k.value for k in node.keywords if k.arg == "code"]
            if name == "caveat" or (name == "note" and len(node.args) == 3):
                given += node.args[:1]
            elif name != "Caveat":
                continue
            found += [getattr(v, "value", constants.get(getattr(v, "id", ""))) for v in given]
        elif isinstance(node, ast.Tuple) and "probe" in path.parts and len(node.elts) == 3:
            # the hooks hand notes on as (code, message, remedy), a part of them in words
            code, *said = node.elts
            if any(isinstance(part, ast.JoinedStr) for part in said) or "remedy" in ast.dump(node):
                found.append(getattr(code, "value", None))
    return {code for code in found if isinstance(code, str)}


def test_every_code_of_the_source_is_on_the_page_and_the_reverse() -> None:
    source = PAGE.parents[2] / "src" / "underdog"
    files = [path for path in source.rglob("*.py") if "testing" not in path.parts]
    raised = set().union(*map(codes_of, files))
    assert {"faster_setting", "profile_incomplete", "not_stored", "accelerator_unused"} <= raised
    assert raised == set(listed())
    assert set(REMEDIES) <= raised


def listed() -> dict[str, str]:
    """The codes of the page with their remedies."""
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \|$", PAGE.read_text(), flags=re.M)
    assert len(rows) == len(dict(rows))
    return {code: remedy.strip() for code, remedy in rows}


def test_the_page_lists_every_code_with_its_remedy() -> None:
    page = listed()
    assert set(REMEDIES) <= set(page)
    for code, remedy in REMEDIES.items():
        assert page[code] == remedy


def test_a_code_that_does_not_exist() -> None:
    with pytest.raises(KeyError):
        caveat("nonsense", "…")
