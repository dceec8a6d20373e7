"""``underdog show`` and ``underdog report`` as people run them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from offers_and_trials import c1_offers, c1_trials, trial, write_offers

from underdog.cli.group import run
from underdog.model import Decision
from underdog.store import open_store
from underdog.verbs.choose import choose

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m\u202e|`"


@pytest.fixture
def decided(home: Path) -> Decision:
    """A store with a decision, and a trial whose names are hostile."""
    with open_store() as store:
        store.save(*c1_trials())
        store.save(trial(id="odd", workload=HOSTILE, rate=None, status="failed", reason=HOSTILE))
    return choose("gpt", offers=write_offers(home / "offers.csv", c1_offers()))


def test_show_the_latest_decision(decided: Decision, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Run gpt on aws g5.xlarge in us-east-1: 19,200 samples per dollar")
    assert "The runner-up, aws p2.xlarge in us-east-1, is 10 % behind" in said
    assert "4 candidates" in said
    assert run(["show", decided.id[:15], "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["id"] == decided.id
    assert [point["rank"] for point in told["points"]] == [1, 2, 3, 4]


def test_show_what_is_named(decided: Decision, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["show", "gpt"]) == 0
    assert "gpt: 4 measurements on 4 kinds of machine." in capsys.readouterr().out
    assert run(["show", "odd"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Failed on aws g5.xlarge: <img src=x onerror=alert(1)>")
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert run(["show", "nothing"]) == 2
    assert "No decision, study, trial or workload is called 'nothing'" in capsys.readouterr().err


def test_an_empty_store(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["show"], ["report", "-o", "report.html"]):
        assert run(arguments) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert "The store is empty: there is nothing to show yet." in said.err
        assert "underdog measure -- python train.py" in said.err
    assert not (home / "report.html").exists()


def test_report_in_each_format(decided: Decision, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["report", "-o", "out/page.md"]) == 0
    assert capsys.readouterr().err.startswith("out/page.md: ")
    assert Path("out/page.md").read_text().startswith("# Where to run gpt\n")
    assert run(["report", "-o", "page.json"]) == 0
    kept = json.loads(Path("page.json").read_text())
    capsys.readouterr()
    assert run(["report", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {**said, "created_at": ""} == {**kept, "created_at": ""}
    assert len(said["decision"]["ledger"]) == 4
    assert run(["report", "--chart", "front", "-o", "front.json"]) == 0
    assert "vega-lite" in json.loads(Path("front.json").read_text())["$schema"]


def test_hostile_names_stay_harmless(decided: Decision) -> None:
    assert run(["report", "odd", "-o", "odd.md"]) == 0
    text = Path("odd.md").read_text()
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_what_cannot_be_done(decided: Decision, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, said in {
        (): "Where to? --output is missing.",
        ("--chart", "front"): "Add -o front.svg",
        ("-o", "page.txt"): "'page.txt' does not say what report it is to be.",
        ("-o", "a.html", "--chart", "front"): "does not say what picture",
        ("-o", "a.svg"): "End it in .html, .htm, .json, .md, .markdown.",
        ("--json", "-o", "a.json"): "--json prints the report on standard output",
        ("--chart", "frnt", "-o", "a.json"): "Did you mean 'front'?",
        ("-o", "offers.csv/a.md"): "'offers.csv/a.md' cannot be written: ",
    }.items():
        assert run(["report", *arguments]) == 2
        assert said in capsys.readouterr().err
