"""``underdog watch --act``: tests are run where they can be, within a budget."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from offers_and_trials import trial

from underdog.cli.group import run
from underdog.model import Trial
from underdog.store import open_store

SCRIPT = """
import time, underdog
for _ in underdog.track([[0] * 4] * 60):
    time.sleep(0.005)
"""


def stored(home: Path) -> list[Trial]:
    with open_store(str(home / "store.sqlite3")) as store:
        return store.trials()


def keep(home: Path, *trials: Trial) -> None:
    with open_store(str(home / "store.sqlite3")) as store:
        store.save(*trials)


@pytest.fixture
def old(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A decision for this machine, which was measured half a year ago."""
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    (home / "train.py").write_text(SCRIPT)
    command = [sys.executable, "train.py"]
    assert run(["measure", "--price", "0.6", "--workload", "tiny", "--", *command]) == 0
    (measured,) = stored(home)
    then = "2026-01-01T00:00:00+00:00"
    keep(home, dataclasses.replace(measured, started_at=then, knobs={"k": "1"}))
    assert run(["choose", "--workload", "tiny"]) == 0
    return home


def test_without_act_nothing_is_run(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(["watch", "--no-refresh"]) == 0
    output = capsys.readouterr().out
    assert "1 test would settle what is open, for $0.1" in output
    assert len(stored(old)) == 1


def test_the_test_on_this_machine_is_run_and_settles_it(
    old: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["watch", "--no-refresh", "--act", "--budget", "1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["verdict"] for one in found["judged"]] == ["stands"]
    (done,) = found["done"]
    first, second = stored(old)
    assert (done["trial"], done["status"]) == (second.id, "ok")
    assert second.knobs == first.knobs
    assert second.command == first.command
    assert 0 < done["dollars"] < 0.1
    assert second.dollars == done["dollars"]


def test_the_budget_holds(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "--no-refresh", "--act", "--budget", "0.05"]) == 0
    assert "may cost $0.1, and $0.05 of the budget is left" in capsys.readouterr().err
    assert len(stored(old)) == 1


def test_another_machine_is_out_of_reach_and_said_to_be(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    command = ["python", "a b.py"]
    keep(home, trial("g5.xlarge", 100.0, started_at="2026-01-01T00:00:00Z", command=command))
    assert run(["choose", "--where", "instance_type = 'g5.xlarge'"]) == 0
    capsys.readouterr()
    assert run(["watch", "--no-refresh", "--act", "--budget", "5"]) == 0
    output = capsys.readouterr()
    assert "gpt on aws/us-east-1/g5.xlarge" in output.out
    said = "it is not this machine. There, with this store: "
    assert said + "underdog measure --workload gpt -- python 'a b.py'" in output.err
    assert len(stored(home)) == 1
