"""``underdog choose`` as a command: formats, exit status, where output goes."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from offers_and_trials import c1_offers, c1_trials, trial

from underdog.cli.group import run
from underdog.store import open_store


@pytest.fixture
def c1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store with the trials of C1; gives the path of its offers."""
    store = str(tmp_path / "store.sqlite3")
    with open_store(store) as opened:
        opened.save(*c1_trials())
    monkeypatch.setenv("UNDERDOG_STORE", store)
    monkeypatch.setenv("COLUMNS", "80")
    names = ["provider", "region", "instance_type", "price_per_hour", "accelerator"]
    names += ["accelerator_count", "vcpus", "memory_gib"]
    offers = tmp_path / "offers.json"
    offers.write_text(json.dumps([{name: row[name] for name in names} for row in c1_offers()]))
    return str(offers)


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def test_the_json_contract(c1: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["choose", "--offers", c1, "--json"]) == 0
    output = capsys.readouterr()
    found = json.loads(output.out)
    assert output.err == ""
    assert finite(found)
    first = found["ranking"][0]
    assert first["offer"]["id"] == "aws/us-east-1/g5.xlarge/on-demand"
    assert (first["source"], first["rank"], first["pareto"]) == ("measured", 1, True)
    assert first["tied_with"] == []
    assert set(first["samples_per_dollar"]) == {"value", "low", "high"}
    assert first["hours_to_train"] is None
    assert {line["offer"] for line in found["ledger"]} == {
        f"aws/us-east-1/{row['instance_type']}/on-demand" for row in c1_offers()
    }
    assert found["test_next"] == []


def test_the_table_fits_the_terminal(
    c1: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in ("80", "120"):
        monkeypatch.setenv("COLUMNS", width)
        assert run(["choose", "--offers", c1]) == 0
        text = capsys.readouterr().out
        assert max(len(line) for line in text.splitlines()) <= int(width)
        assert "Best measured: aws g5.xlarge" in text
        assert "● aws g5.xlarge" in text
        assert "…" not in text
        assert "\x1b" not in text


def test_measured_and_predicted_do_not_look_alike(
    c1: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store() as opened:
        opened.save(trial("g5.xlarge", 5.0, workload="one"))
    run(["choose", "--workload", "one", "--offers", c1])
    text = capsys.readouterr().out
    assert "● aws g5.xlarge" in text
    lines = [line for line in text.splitlines() if "○ aws" in line]
    assert lines
    assert all("~" in line for line in lines)


def test_markup_in_names_is_text(c1: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_store() as opened:
        opened.save(trial("g5.xlarge", 5.0, workload="[bold]x[/bold]"))
    assert run(["choose", "--workload", "[bold]x[/bold]", "--offers", c1]) == 0
    assert "[bold]x[/bold]" in capsys.readouterr().out


def test_csv_and_markdown(c1: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["choose", "--offers", c1, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert next(row["instance_type"] for row in rows) == "g5.xlarge"
    assert float(rows[0]["samples_per_second_low"]) < float(rows[0]["samples_per_second"])
    assert rows[0]["hours_to_train"] == ""
    target = tmp_path / "new" / "choice.md"
    args = ["choose", "--offers", c1, "--format", "markdown", "--output", str(target)]
    assert run(args) == 0
    assert capsys.readouterr().out == ""
    assert "| 1 | aws/us-east-1/g5.xlarge/on-demand | measured |" in target.read_text()


def test_output_holds_the_json(c1: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    target = tmp_path / "decision.json"
    assert run(["choose", "--offers", c1, "--json", "--output", str(target)]) == 0
    assert json.loads(target.read_text())["workload"] == "gpt"
    assert capsys.readouterr().out == ""


def test_no_is_an_answer(c1: str, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["choose", "--offers", c1, "--samples", "1e6", "--deadline", "1h", "--json"]
    assert run(args) == 1
    output = capsys.readouterr()
    assert json.loads(output.out)["ranking"] == []
    assert "4 of 4 are out by deadline" in output.err
    assert "nearest miss: aws/us-east-1/g5.xlarge/on-demand" in output.err


def test_explain(c1: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["choose", "--offers", c1, "--explain", "p2.xlarge"]) == 0
    assert "is beaten" in capsys.readouterr().out
    assert run(["choose", "--offers", c1, "--explain", "p2.xlrage"]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert "Did you mean 'p2.xlarge'?" in output.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--by", "samples_per_dolar"], "samples_per_dollar"),
        (["--by", "1/0"], "zero"),
        (["--where", "regoin = 'x'"], "region"),
        (["--deadline", "5h"], "--samples"),
        (["--budget=-5"], "not a positive number"),
        (["--samples", "nan"], "not a positive number"),
        (["--nodes", "0"], "1,2,4"),
        (["--nodes", "8-2"], "1,2,4"),
        (["--workload", "gptt"], "gpt"),
        (["--purchase", "spt"], "spot"),
        (["--format", "csv", "--json"], "contradict"),
        (["--offers", "nowhere.csv"], "nowhere.csv"),
        (["--where", ""], "nothing in it"),
        (["--purchase", ""], "names nothing"),
        (["--software", " , "], "names nothing"),
        (["--software", "cudda"], "Did you mean 'cuda'?"),
        (["--samples", "1e308"], "beyond anything"),
        (["--budget", "1e-320"], "beyond anything"),
    ],
)
def test_bad_input_is_one_message_and_2(
    c1: str, capsys: pytest.CaptureFixture[str], args: list[str], said: str
) -> None:
    offers = [] if "--offers" in args else ["--offers", c1]
    assert run(["choose", *offers, *args]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert said in output.err
    assert "Traceback" not in output.err


def test_nodes_and_lists_are_read(c1: str, capsys: pytest.CaptureFixture[str]) -> None:
    args = ["choose", "--offers", c1, "--samples", "1e5", "--deadline", "4h", "--nodes", "1-2,4"]
    assert run([*args, "--purchase", "on-demand, spot", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ranking"][0]["nodes"] == 2
    assert any("linearly at best" in text for text in found["assumptions"])


def test_the_story_as_json(c1: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["choose", "--offers", c1, "--explain", "p2.xlarge", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["offer"] == "p2.xlarge"
    assert "is beaten" in found["story"]


def test_what_a_file_says_does_not_reach_the_terminal(
    c1: str, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = "x\x1b[31m\x1b]0;title\x07"
    with open_store() as opened:
        failed = trial("p2.xlarge", None, workload=evil, status="failed", reason=evil)
        opened.save(failed, trial("g5.xlarge", 5.0, workload=evil))
    for more in ([], ["--explain", "p2.xlarge"], ["--where", "false"], ["--format", "markdown"]):
        run(["choose", "--workload", evil, "--offers", c1, *more])
    assert run(["choose", "--workload", "zzz", "--offers", c1]) == 2
    output = capsys.readouterr()
    assert "\\x1b[31m" in output.out
    assert "\\x1b[31m" in output.err
    assert "\x1b" not in output.out + output.err


@pytest.mark.parametrize("form", ["table", "json", "csv", "markdown"])
def test_a_file_is_replaced_at_the_end_or_not_at_all(
    c1: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    target, link = tmp_path / "choice", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    real = Path.write_text

    def full(path: Path, text: str, *more: Any, **named: Any) -> int:
        real(path, text[: len(text) // 2], *more, **named)
        raise OSError(errno.ENOSPC, "No space left on device")

    args = ["choose", "--offers", c1, "--format", form, "--output", str(link)]
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", full)
        assert run(args) == 2
    assert target.read_text() == "before"
    assert sorted(p.name for p in tmp_path.glob("*choice*")) == ["choice"]
    assert run(args) == 0
    assert link.is_symlink()
    assert len(target.read_text()) > len("before")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_full_disk_behind_standard_output_is_no_answer(c1: str, form: str) -> None:
    command = [sys.executable, "-m", "underdog", "choose", "--offers", c1, "--format", form]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "underdog: The output cannot be written: No space left on device.\n"
