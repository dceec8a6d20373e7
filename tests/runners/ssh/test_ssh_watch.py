"""``underdog watch --act`` by a real OpenSSH server: it settles, and leaves nothing running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from carried_jobs import alive, started, until
from ssh_server import Server

from underdog.cli.group import run
from underdog.model import Estimate, Machine, Measurement, Offer, Price, Software, Trial
from underdog.store import open_store

pytestmark = pytest.mark.slow

# it says where it runs; so many steps of 5 ms
SCRIPT = """
import os, time, underdog
with open({starts!r}, "a") as starts:
    starts.write(f"{{os.getpid()}}\\n")
for _ in underdog.track([[0] * 4] * {steps}):
    time.sleep(0.005)
"""
BOX = Offer(provider="mine", region="here", instance_type="box", price=Price(per_hour=3.6))
ACT = ["watch", "--no-refresh", "--act", "--budget", "2"]


@pytest.fixture
def decided(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[int], None]:
    """Decide for a machine behind ssh that was measured half a year ago; by steps of its script."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("UNDERDOG_STORE", str(tmp_path / "store.sqlite3"))
    how = {k: json.dumps(v) for k, v in server.target(python=sys.executable).items()}
    (tmp_path / "machines.toml").write_text(
        '[[offer]]\noffer = "box"\nprovider = "mine"\ninstance_type = "box"\n'
        "price_per_hour = 3.6\n[offer.ssh]\n"
        + "".join(f"{name} = {value}\n" for name, value in how.items())
    )

    def decide(steps: int) -> None:
        script = SCRIPT.format(starts=str(tmp_path / "starts"), steps=steps)
        (tmp_path / "train.py").write_text(script)
        old = Trial(
            id="old",
            workload="tiny",
            command=[sys.executable, "train.py"],
            status="ok",
            started_at="2026-01-01T00:00:00+00:00",
            offer=BOX,
            price=BOX.price,
            machine=Machine(),
            software=Software(),
            measurement=Measurement(
                samples_per_second=Estimate(value=700.0, low=690.0, high=710.0, n=9)
            ),
        )
        with open_store() as store:
            store.save(old)
        assert run(["choose", "--workload", "tiny", "--offers", "machines.toml"]) == 0

    return decide


def stored() -> dict[str, Trial]:
    with open_store() as store:
        return {trial.status: trial for trial in store.trials() if trial.id != "old"}


def test_it_carries_the_test_to_the_machine_and_says_that_the_decision_stands(
    decided: Callable[[int], None], server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    decided(60)
    capsys.readouterr()
    assert run([*ACT, "--dry-run"]) == 0
    shown = capsys.readouterr().out
    assert "box by ssh\n  ssh " in shown
    assert "at most 10 min at $3.6 per hour: $0.60" in shown
    assert "left=$((600 " in shown  # which the machine itself holds
    assert stored() == {}
    assert run(ACT) == 0
    assert "stands after the tests; it was open before" in capsys.readouterr().out
    trial = stored()["ok"]
    assert (trial.runner, trial.offer and trial.offer.instance_type) == ("ssh", "box")
    assert 0 < (trial.dollars or 0.0) < 0.6


def acting(folder: Path) -> subprocess.Popen[bytes]:
    """A watch that acts, once its test runs."""
    words = [sys.executable, "-m", "underdog", *ACT]
    with (folder / "said").open("wb") as said:
        process = subprocess.Popen(words, stdout=said, stderr=said, env=dict(os.environ))
    until(lambda: started(folder) and stored()["running"].handle)
    return process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_at_any_point_it_leaves_nothing_that_is_not_found_again(
    number: signal.Signals,
    decided: Callable[[int], None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    decided(1_000_000)
    process = acting(tmp_path)
    process.send_signal(number)
    process.wait(180)
    if number == signal.SIGKILL:
        assert run(ACT) == 0
        assert "still out. Bring it in: underdog trials recover" in capsys.readouterr().err
        assert run(["trials", "recover", "--cancel"]) in (0, 1)
    else:
        assert process.returncode == 130
    (trial,) = stored().values()
    assert (trial.status, trial.handle) == ("interrupted", None)
    assert len(started(tmp_path)) == 1
    assert not alive(started(tmp_path)[0])
    assert 0 < (trial.dollars or 0.0) < 0.6
