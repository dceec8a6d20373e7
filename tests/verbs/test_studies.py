"""A study that cannot be read, what people are told of it, and what its candidates are."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from underdog.errors import UsageError
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
