"""The runner of this machine: what it runs, brings back, and ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import psutil
import pytest

from underdog import runners
from underdog.errors import MeasureError, UsageError
from underdog.model import Offer, Price, Trial
from underdog.runners import Job, Runner, Setup, State

SCRIPT = """
import sys, time
for step in range(100_000):
    time.sleep(0.005)
    print("samples=16", flush=True)
"""
OFFER = Offer(
    provider="local", region="here", instance_type="desk", price=Price(per_hour=2.0, source="me")
)


def job(folder: Path, script: str = SCRIPT, **more: object) -> Job:
    path = folder / "train.py"
    path.write_text(script)
    given: dict[str, object] = {
        "workload": "tiny {FOLDER}",
        "candidate": "desk",
        "offer": OFFER,
        "command": (sys.executable, str(path), "FOLDER"),
        "price": 2.0,
        "seconds": 60.0,
        "pattern": r"samples=(?P<samples>\d+)",
    }
    return Job(**(given | more))  # type: ignore[arg-type]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    folder = tmp_path / "jobs"
    folder.mkdir()
    return runners.make("local", Setup(folder=folder))


def until(condition: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def read(path: Path) -> Trial:
    return msgspec.json.decode(path.read_bytes(), type=Trial)


@pytest.mark.slow
def test_a_job_is_watched_ended_early_and_brought_back(runner: Runner, tmp_path: Path) -> None:
    handle = runner.submit(runner.render(job(tmp_path)))
    looks: list[State] = []

    def has_rate() -> bool:
        looks.append(runner.status(handle))
        look = looks[-1].look
        return look is not None and look.rate is not None

    until(has_rate)
    assert not looks[-1].ended
    runner.cancel(handle)
    runner.cancel(handle)
    trial = read(runner.collect(handle))
    runner.cancel(handle)  # idempotent, also after the end
    assert runner.status(handle).ended
    assert (trial.status, trial.workload) == ("interrupted", "tiny {FOLDER}")
    assert trial.price.per_hour == 2.0
    assert trial.measurement is not None
    rate = trial.measurement.samples_per_second
    assert rate is not None
    assert 0 < rate.value < 16 / 0.005
    assert trial.command[-1] == "FOLDER"  # a word of the user's is never ours


def test_rendering_does_nothing_and_says_the_command(runner: Runner, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    made = job(tmp_path)
    request = runner.render(made)
    assert str(tmp_path / "train.py") in request.lines[0]
    assert request == runner.render(made)
    assert sorted(tmp_path.rglob("*")) == sorted({*before, tmp_path / "train.py"})


@pytest.mark.slow
def test_a_job_that_fails_is_a_trial_that_says_why(runner: Runner, tmp_path: Path) -> None:
    made = job(tmp_path, "raise MemoryError('out of memory')", pattern=None)
    handle = runner.submit(runner.render(made))
    trial = read(runner.collect(handle))
    assert trial.status in ("failed", "out_of_memory")
    assert "MemoryError" in (trial.reason or "")


def test_a_job_that_cannot_start_is_an_error_with_its_words(runner: Runner, tmp_path: Path) -> None:
    made = job(tmp_path, command=("no-such-program-anywhere",))
    handle = runner.submit(runner.render(made))
    with pytest.raises(MeasureError, match="no-such-program-anywhere"):
        runner.collect(handle)


ORPHAN = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_local import job
from underdog import runners
folder = Path(sys.argv[2])
(folder / "jobs").mkdir()
local = runners.make("local", runners.Setup(folder=folder / "jobs"))
handle = local.submit(local.render(job(folder)))
while local.status(handle).look is None:
    time.sleep(0.05)
print("running", flush=True)
time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_a_job_ends_when_we_are_killed(tmp_path: Path) -> None:
    us = [sys.executable, "-c", ORPHAN, str(Path(__file__).parent), str(tmp_path)]
    with subprocess.Popen(us, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        tree = psutil.Process(process.pid).children(recursive=True)
        assert tree
        os.kill(process.pid, signal.SIGKILL)
    _, alive = psutil.wait_procs(tree, timeout=30)
    assert alive == []


def test_a_mistyped_runner_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Did you mean 'replay'"):
        runners.make("relpay", Setup(folder=tmp_path))


def test_both_runners_are_found() -> None:
    assert {"local", "replay"} <= set(runners.names())
