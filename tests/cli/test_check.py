"""``underdog check`` in a build: it fails on a fall, and says why on one screen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from offers_and_trials import trial

from underdog.cli.group import run
from underdog.model import Machine, Price, Software
from underdog.store import open_store

COUNT = iter(range(10_000))


def measured(home: Path, rate: float | None, workload: str = "gpt", **more: Any) -> None:
    at = f"2026-07-{next(COUNT) % 28 + 1:02d}T00:00:00Z"
    given = {"price": Price(per_hour=1.0), "started_at": at, "id": f"t{next(COUNT)}", **more}
    with open_store(str(home / "store.sqlite3")) as store:
        store.save(trial(rate=rate, workload=workload, spread=0.001, **given))


@pytest.fixture
def baseline(home: Path) -> Path:
    measured(home, 100.0)
    assert run(["check", "base.json", "--update"]) == 0
    return home / "base.json"


def test_a_fall_fails_with_its_reason(
    home: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["check", "base.json"]) == 0
    assert "gpt  held" in capsys.readouterr().out
    measured(home, 80.0, software=Software(framework="torch", framework_version="2.13"))
    assert run(["check", "base.json"]) == 1
    output = capsys.readouterr().out
    assert "FELL: -20.0% samples per dollar" in output
    assert "torch none to 2.13" in output
    assert len(output.splitlines()) < 25
    assert run(["check", "base.json", "--drop", "25%"]) == 0


def test_a_rise_of_the_price_fails_too(
    home: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured(home, 100.0, price=Price(per_hour=1.5))
    assert run(["check", "base.json", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert found["change"]["verdict"] == "fell"
    assert found["change"]["price"] == 1.5


def test_noise_is_told_and_does_not_fail(
    home: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured(home, 94.0)
    assert run(["check", "base.json"]) == 0
    assert "cannot tell" in capsys.readouterr().out


def test_workloads_are_kept_beside_each_other(home: Path, baseline: Path) -> None:
    measured(home, 50.0, workload="resnet")
    assert run(["check", "base.json", "--update", "--workload", "resnet"]) == 0
    assert sorted(json.loads(baseline.read_text())["readings"]) == ["gpt", "resnet"]
    measured(home, 10.0, workload="resnet")
    assert run(["check", "base.json", "--workload", "gpt"]) == 0
    assert run(["check", "base.json"]) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "Cannot read the baseline"),
        (b"", "is no baseline"),
        (b"[]", "is no baseline"),
        (b'{"format": 9, "readings": {}}', "has the format 9"),
        (b"{}", "holds no workload"),
        (b'{"readings": {"x": {}}}', "is no baseline"),
        (b"\xff\xfe", "is no baseline"),
    ],
)
def test_a_broken_baseline_is_told(
    home: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, words: str
) -> None:
    if content is not None:
        (home / "base.json").write_bytes(content)
    assert run(["check", "base.json"]) == 2
    assert words in capsys.readouterr().err


def test_another_machine_is_no_comparison(
    home: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edited = json.loads(baseline.read_text())
    edited["readings"]["gpt"]["machine"] = "aws p5.48xlarge"
    baseline.write_text(json.dumps(edited))
    measured(home, 100.0, machine=Machine(provider="aws", instance_type="g5.xlarge"))
    assert run(["check", "base.json"]) == 2
    assert "was last measured on aws g5.xlarge" in capsys.readouterr().err


def test_nothing_measured_and_unknown_names(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "base.json", "--update"]) == 2
    assert "Nothing has been measured yet" in capsys.readouterr().err
    measured(home, 100.0)
    assert run(["check", "base.json", "--update"]) == 0
    assert run(["check", "base.json", "--workload", "gtp"]) == 2
    assert "Did you mean 'gpt'?" in capsys.readouterr().err
    measured(home, None, workload="broken")
    assert run(["check", "base.json", "--update", "--workload", "broken"]) == 2


def test_a_folder_that_cannot_be_written_keeps_the_old_file(
    home: Path, baseline: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = baseline.read_bytes()
    assert run(["check", "nowhere/base.json", "--update"]) == 2
    assert "Cannot write the baseline" in capsys.readouterr().err
    assert baseline.read_bytes() == before


@pytest.mark.parametrize("drop", ["5", "1", "100%"])
def test_a_drop_that_is_no_share_is_told(
    home: Path, baseline: Path, capsys: pytest.CaptureFixture[str], drop: str
) -> None:
    assert run(["check", "base.json", "--drop", drop]) == 2
    assert "must be a share such as 5%" in capsys.readouterr().err


def test_markup_in_names_stays_text(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured(home, 100.0, workload="[red]\x1b[31mx[/]")
    assert run(["check", "base.json", "--update"]) == 0
    assert run(["check", "base.json"]) == 0
    output = capsys.readouterr().out
    assert "[red]" in output
    assert "\x1b[31m" not in output
