"""A study that cannot be read, what people are told of it, and what its candidates are."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from underdog.catalog import offers_file
from underdog.errors import UsageError
from underdog.verbs.choose import Options, answer, request_of
from underdog.verbs.studies import lay_out, read


def test_without_a_study_the_message_has_one_to_paste(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for given in ({}, {"budget": 3.0}):
        with pytest.raises(UsageError, match="no study to explore") as caught:
            read(None, given, os.environ)
        example = str(caught.value).split("study.toml:\n")[1].split("\n\nand run it")[0]
        Path("study.toml").write_text(example.replace('"python"', f'"{sys.executable}"'))
        Path("train.py").touch()
        assert read("study.toml", {}, os.environ).knobs["batch"] == ("8", "16", "32")
    with pytest.raises(UsageError, match="no runner 'relpay'"):
        read(None, {"runner": "relpay"}, os.environ)


def test_of_a_broken_file_only_its_syntax_is_told(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text("[search\n")
    with pytest.raises(UsageError) as caught:
        read(tmp_path / "s.toml", {}, os.environ)
    assert "not TOML" in str(caught.value)
    assert "command" not in str(caught.value)


MACHINES = """
[[offer]]
offer = "half"
price_per_hour = 1.0
[offer.local]
cpus = 1

[[offer]]
offer = "elsewhere"
price_per_hour = 0.5

[[offer]]
offer = "whole"
price_per_hour = 2.0
[offer.local]
"""


def test_parts_of_this_machine_are_candidates_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "machines.toml"
    path.write_text(MACHINES)
    given = {"offers": str(path), "command": [sys.executable, "-c", "pass"]}
    laid_out = lay_out(read(None, given, os.environ), [])
    assert sorted(laid_out.names) == ["half", "whole"]
    assert laid_out.target(laid_out.names.index("half")) == {"cpus": 1}
    assert laid_out.target(laid_out.names.index("whole")) == {}


def test_every_fault_of_the_tables_is_told_before_anything_runs(tmp_path: Path) -> None:
    path = tmp_path / "machines.toml"
    path.write_text(MACHINES.replace("cpus = 1", "cpu = 1") + "cpus = 0\n")
    given = {"offers": str(path), "command": [sys.executable, "-c", "pass"]}
    with pytest.raises(UsageError) as caught:
        lay_out(read(None, given, os.environ), [])
    assert "half: Object contains unknown field `cpu`" in str(caught.value)
    assert "whole: Expected `int` >= 1" in str(caught.value)


CHIPS = """
offer,accelerator,accelerator_count,price_per_hour
aws/r/h100/on-demand,H100,8,40
aws/r/a100/on-demand,A100,8,20
aws/r/t4/on-demand,T4,1,0.5
aws/r/cpu/on-demand,,0,0.1
aws/r/what/on-demand,,,0.1
"""


def test_needs_rule_out_as_in_choose_and_every_wrong_name_is_told(tmp_path: Path) -> None:
    path = tmp_path / "offers.csv"
    path.write_text(CHIPS.strip())
    given: dict[str, Any] = {"runner": "ssh", "offers": str(path), "command": ["x"]}
    with pytest.raises(UsageError, match=r"'fp65'.*'flash-attention-9'") as caught:
        read(None, {**given, "needs": ["fp65", "flash-attention-9"], "price": -1}, os.environ)
    assert "'-1' is not a positive" in str(caught.value)
    for needs in (["flash-attention-3"], ["fp64", "bf16"], ["recorded-software"]):
        laid_out = lay_out(read(None, {**given, "needs": needs}, os.environ), [])
        asked = {"offers": path, "needs": needs, "by": "samples_per_second"}
        request = request_of(Options(**asked))
        ledger = answer(offers_file.load(path), "x", [], request).full().ledger
        left = {line["offer"] for line in ledger if line["verdict"] != "excluded"}
        assert set(laid_out.names) == left
        assert len(left) < 5 or needs == ["recorded-software"]


def test_this_machine_is_refused_where_the_workload_needs_what_it_has_not() -> None:
    given = {"command": [sys.executable, "-c", "pass"], "by": "samples_per_second"}
    lay_out(read(None, {**given, "needs": "fp32"}, os.environ), [])
    needs = ["sagemaker-model-parallel", "fp32"]
    with pytest.raises(UsageError, match="This machine has not what") as caught:
        lay_out(read(None, {**given, "needs": needs}, os.environ), [])
    assert "is a part of sagemaker, and this is the bare machine" in str(caught.value)
