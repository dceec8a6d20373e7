"""``underdog watch --act``: tests are run where they can be, within a budget."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from pathlib import Path

import pytest
from offers_and_trials import trial

from underdog.cli.group import run
from underdog.cli.watch import _Output
from underdog.model import Offer, Price, Trial
from underdog.report.notices import Notices
from underdog.store import open_store
from underdog.store.owner import current_owner
from underdog.verbs import watch
from underdog.verbs.settling import Done

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


MACHINES = """
[[offer]]
offer = "part"
provider = "mine"
instance_type = "part"
price_per_hour = 0.6
[offer.local]
threads = 1
"""


@pytest.fixture
def elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A decision by a file of offers, for a part of this machine that was measured long ago."""
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    (home / "train.py").write_text(SCRIPT)
    (home / "machines.toml").write_text(MACHINES)
    command = [sys.executable, "train.py"]
    then = "2026-01-01T00:00:00+00:00"
    part = Offer(
        provider="mine",
        region="",
        instance_type="part",
        price=Price(per_hour=0.6, source="machines.toml"),
    )
    old = trial("part", 100.0, started_at=then, command=command, workload="tiny")
    keep(home, dataclasses.replace(old, offer=part, knobs={"k": "1"}))
    asked = ["choose", "--workload", "tiny", "--offers", "machines.toml"]
    assert run(asked) == 0
    return home


def test_a_runner_carries_the_test_by_the_offers_own_table_and_it_is_settled(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert run(["watch", "--no-refresh"]) == 0
    assert "tiny on part: 10 min, $0.1000, by local" in capsys.readouterr().out
    assert run(["watch", "--no-refresh", "--act", "--budget", "1"]) == 0
    output = capsys.readouterr()
    assert "tiny by samples_per_dollar  stands after the tests; it was open before" in output.out
    assert "measuring tiny on part, for $0.1 at most" in output.err
    first, second = stored(elsewhere)
    assert (second.status, second.runner, second.handle) == ("ok", "local", None)
    assert (second.knobs, second.command) == (first.knobs, first.command)
    assert second.offer is not None
    assert second.offer.instance_type == "part"
    assert (second.price.source or "").endswith("machines.toml")
    assert second.dollars is not None
    assert 0 < second.dollars < 0.1


def test_a_dry_run_shows_what_would_be_submitted_and_submits_nothing(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    asked = ["watch", "--no-refresh", "--act", "--dry-run", "--budget"]
    assert run([*asked, "1"]) == 0
    output = capsys.readouterr().out
    assert "part by local k=1\n" in output
    assert "  within threads=1\n" in output
    assert "at most 10 min at $0.6 per hour: $0.10" in output
    assert run([*asked, "0.09", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (planned,) = found["planned"]
    assert planned["reason"] == "it may cost $0.1, and $0.09 of the budget is left"
    assert (found["done"], len(stored(elsewhere))) == ([], 1)


def test_a_test_that_is_under_way_is_not_begun_again(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (first,) = stored(elsewhere)
    out = dataclasses.replace(first, id="out", status="running", measurement=None)
    act = ["watch", "--no-refresh", "--act", "--budget", "1"]
    for owner, said in (
        (current_owner(), "trial out measures it just now"),
        (current_owner() | {"pid": 2**22 + 1}, "underdog trials recover"),
    ):
        keep(elsewhere, dataclasses.replace(out, owner=owner, handle="there"))
        capsys.readouterr()
        assert run(act) == 0
        assert said in capsys.readouterr().err
        assert len(stored(elsewhere)) == 2


def test_the_budget_holds_over_all_rounds(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float | None] = []

    def act(found: watch.Round, asked: watch.Watch, *more: object) -> watch.Round:
        given.append(asked.budget)
        (test,) = found.tests
        return dataclasses.replace(found, done=[Done(test=test, dollars=0.3)])

    monkeypatch.setattr(watch, "act", act)
    output = _Output(Notices(()), as_json=False, everything=False)
    for _ in range(3):
        output.round(watch.Watch(refresh=False, act=True, budget=0.5), several=True)
    assert given == pytest.approx([0.5, 0.2, 0.0])


def test_a_request_to_end_that_comes_during_a_test_is_passed_on(
    elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came: list[int] = []

    def carry(*about: object) -> list[Trial]:
        os.kill(os.getpid(), signal.SIGTERM)
        return [stored(elsewhere)[0]]

    monkeypatch.setattr("underdog.verbs.elsewhere.carry", carry)
    before = signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            watch.look(watch.Watch(refresh=False, act=True, budget=1.0), print)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert came == [signal.SIGTERM]


def test_a_machine_that_cannot_be_got_at_is_said_to_be_with_the_way_by_hand(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    command = ["python", "a b.py"]
    keep(home, trial("g5.xlarge", 100.0, started_at="2026-01-01T00:00:00Z", command=command))
    (home / "mine.toml").write_text(MACHINES)
    assert run(["choose", "--where", "instance_type = 'g5.xlarge'"]) == 0
    (home / "g5.toml").write_text(
        '[[offer]]\nprovider = "aws"\nregion = "r"\ninstance_type = "g5.xlarge"\n'
        'price_per_hour = 1.0\n[offer.ssh]\nhots = "a"\n'
    )
    capsys.readouterr()
    asked = ["watch", "--no-refresh", "--act", "--budget", "5", "--offers", "g5.toml"]
    assert run(asked) == 0
    said = capsys.readouterr().err
    assert "cannot be reached by ssh" in said
    assert "underdog measure --workload gpt -- python 'a b.py'" in said
    assert len(stored(home)) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--act"], "no --budget"),
        (["--budget", "1"], "--act, which is not given"),
        (["--dry-run"], "--act, which is not given"),
        (["--act", "--budget", "1", "--offers", "no.toml"], "no.toml"),
        (["--act", "--budget", "1", "--folder", ".", "--no-folder"], "--folder or --no-folder"),
    ],
)
def test_what_does_not_go_together_is_said(
    words: list[str], said: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["watch", *words]) == 2
    assert said in capsys.readouterr().err
