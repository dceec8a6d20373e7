"""``underdog explore`` as a command: formats, exit status, where output goes."""

from __future__ import annotations

import dataclasses
import json
import math
import shlex
from pathlib import Path
from typing import Any

import pytest
from recorded_trials import write

from underdog.cli.group import run
from underdog.verbs import explore as verb


@pytest.fixture
def files(home: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The flags that name recorded trials and their offers."""
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
    monkeypatch.setenv("COLUMNS", "100")
    write(home)
    return ["--runner", "replay", "--trials", "trials.csv", "--offers", "offers.csv"]


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for one in value.values() for n in numbers(one)]
    if isinstance(value, list):
        return [n for one in value for n in numbers(one)]
    return [value] if isinstance(value, float) else []


def test_data_goes_to_stdout_and_talk_to_stderr(
    files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["explore", *files, "--workload", "resnet", "--by", "samples_per_dollar"]
    assert run([*command, "--max-trials", "4", "--budget", "20", "--json"]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert all(math.isfinite(number) for number in numbers(found))
    assert len(found["tests"]) == 4
    assert found["ended"] == "trials"
    assert found["decision"]["ledger"]
    assert sum(line.startswith("test ") for line in output.err.splitlines()) == 4
    assert "spent" in output.err
    assert "\x1b" not in output.err


def test_the_page_for_people(files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", *files, "--workload", "resnet", "--max-trials", "4"]) == 0
    page = capsys.readouterr().out
    for said in ("Best found:", "Measured", "Expected loss of stopping now", "24 candidates"):
        assert said in page
    assert "the same command goes on" not in page  # a replay that is not kept does not


def test_a_dry_run_tests_nothing(
    files: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["explore", *files, "--workload", "resnet", "--parallel", "2", "--dry-run"]
    assert run(command) == 0
    assert "These 2 tests would cost about $" in capsys.readouterr().out
    assert run([*command, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert [sorted(test) for test in planned] == [
        ["dollars", "knobs", "offer", "reason", "seconds", "would_run"]
    ] * 2
    assert not (home / "store.sqlite3").exists()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--budget", "0"], "not a positive number"),
        (["--budget", "nan"], "not a positive number"),
        (["--budget", "-3"], "not a positive number"),
        (["--max-trials", "0"], "--max-trials"),
        (["--parallel", "65"], "--parallel"),
        (["--deadline", "soon"], "not a duration"),
        (["--where", "vcpus >"], "ends too early"),
        (["--where", "vcpus > 1000"], "no candidate to test"),
        (["--workload", "resnte"], "Did you mean 'resnet'"),
        (["--runner", "relpay"], "Did you mean 'replay'"),
        (["--trials", "none.csv"], "no file 'none.csv'"),
        (["none.toml"], "'none.toml' cannot be read"),
    ],
)
def test_what_cannot_be_done_ends_with_2(
    files: list[str], flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["explore", *files, "--workload", "resnet", *flags]) == 2
    output = capsys.readouterr()
    assert said in output.err
    assert output.out == ""


def test_no_answer_ends_with_1(
    files: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ["workload,offer,throughput,status,reason"]
    rows += [f"w,aws/c5.{size},,failed,it broke" for size in ("large", "xlarge")]
    (home / "trials.csv").write_text("\n".join(rows))
    assert run(["explore", *files]) == 1
    output = capsys.readouterr()
    assert "Nothing works so far." in output.out  # after 20 of 24
    assert "it broke" in output.out
    assert "nothing works so far" in output.err


def test_markup_in_names_stays_text(
    home: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    odd = "[bold]x[/bold]\x1b[31m"
    (home / "trials.csv").write_text(
        "workload,offer,throughput,status,reason,provider,instance_type,price_per_hour\n"
        f"{odd},{odd},1,,,{odd},{odd},1\n{odd},b,,failed,{odd},a,b,1\n"
    )
    assert run(["explore", *files[:4]]) == 0
    output = capsys.readouterr()
    for text in (output.out, output.err):
        assert "\x1b[31m" not in text
        assert "[bold]x[/bold]" in text


def test_a_study_with_two_faults_names_both(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "s.toml").write_text("[search]\nbudget = 0\n[utlity]\nby = 'x'\n")
    assert run(["explore", "s.toml"]) == 2
    said = capsys.readouterr().err
    assert "[search] budget" in said
    assert "Did you mean 'utility'" in said


def test_needs_stand_over_the_file_and_a_wrong_one_has_its_nearest(
    files: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "study.toml").write_text('[candidates]\nneeds = ["fp65"]\n')
    command = ["explore", "study.toml", *files, "--workload", "resnet", "--dry-run", "--json"]
    assert run(command) == 2
    assert "no 'fp65' in the support matrix" in capsys.readouterr().err
    assert run([*command, "--needs", "tensorrt"]) == 0
    (planned,) = json.loads(capsys.readouterr().out)
    assert planned["offer"].startswith("aws/g4dn.")  # the only ones with an accelerator


def test_without_a_study_there_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("underdog: There is no study to explore.\nWrite one")
    assert "cannot be used" not in said


def test_a_plan_of_unknown_price_is_not_free(
    home: Path, files: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "trials.csv").write_text("workload,offer,throughput\nw,x,1\nw,y,2\n")
    command = ["explore", *files[:4], "--by", "samples_per_second"]
    assert run([*command, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "price unknown" in said
    assert "This test would cost an unknown amount; nothing was run." in said
    assert run(command) == 0
    output = capsys.readouterr()
    assert "2 tests of 2 candidates, cost unknown" in output.out
    assert "$0" not in output.out + output.err


def test_the_command_with_the_best_knobs_is_the_last_thing_said(
    files: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["python", "train.py", "--name", "x" * 200]

    def found(*given: Any) -> Any:
        return dataclasses.replace(explored(*given), command=words)

    explored = verb.run
    monkeypatch.setattr(verb, "run", found)
    assert run(["explore", *files, "--workload", "resnet", "--max-trials", "3"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"  {shlex.join(words)}"


def test_help_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explore", "--help"]) == 0
    assert "Find the best offer in few and cheap tests" in capsys.readouterr().out
