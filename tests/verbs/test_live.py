"""The record of a running trial in the store: alive while it runs, and whole after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from underdog.model import Trial
from underdog.store import Store, open_store

LOOP = """
import sys, time
for number in range(100000):
    time.sleep(0.01)
    print("rate", 100 + number % 3, flush=True)
"""


def start(loop: Path, store: str, workload: str) -> subprocess.Popen[bytes]:
    """A measurement that ends when it is told to."""
    flags = ["--for", "10m", "--precision", "0.0001%", "--pattern", "rate (?P<rate>[0-9]+)"]
    named = ["--workload", workload, "--store", store, "--price", "3.6"]
    return subprocess.Popen(
        [sys.executable, "-m", "underdog", "measure", *flags, *named, "--", sys.executable, loop],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def until(store: Store, workload: str, done: Callable[[Trial], bool]) -> Trial:
    deadline = time.monotonic() + 120
    while True:
        found = store.trials(workload=workload, timeline=True)
        if found and done(found[0]):
            return found[0]
        assert time.monotonic() < deadline, f"{workload} did not get there: {found}"
        time.sleep(0.05)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Two measurements that write into one store."""
    loop = tmp_path / "loop.py"
    loop.write_text(LOOP)
    started = {name: start(loop, str(tmp_path / "store.sqlite3"), name) for name in ("a", "b")}
    yield started
    for process in started.values():
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(60)


@pytest.mark.slow
def test_two_running_trials_are_alive_in_a_store_and_one_is_killed(
    two: dict[str, subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    with open_store(str(tmp_path / "store.sqlite3")) as store:
        for name in two:
            begun = until(store, name, lambda trial: trial.measurement is not None)
            assert begun.status == "running"
            later = until(
                store,
                name,
                lambda trial, steps=begun.measurement.steps: (  # type: ignore[misc, union-attr]
                    trial.measurement is not None
                    and trial.measurement.steps > steps
                    and trial.timeline is not None
                    and "memory_gib" in trial.usage
                ),
            )
            assert later.updated_at is not None
            assert later.updated_at > (begun.updated_at or "")
            assert later.dollars is not None
            assert begun.dollars is not None
            assert later.dollars > begun.dollars > 0
            assert later.timeline is not None
            assert later.usage["memory_gib"]
        os.kill(two["a"].pid, signal.SIGKILL)
        two["a"].wait(60)
        (last,) = store.trials(workload="a", timeline=True)
        assert last.status == "running"
    with open_store(str(tmp_path / "store.sqlite3")) as store:
        (killed,) = store.trials(workload="a", timeline=True)
        assert killed.status == "interrupted"
        assert (killed.measurement, killed.timeline) == (last.measurement, last.timeline)
        two["b"].send_signal(signal.SIGINT)
        ended = until(store, "b", lambda trial: trial.status != "running")
        two["b"].wait(60)
        assert ended.status == "interrupted"
        assert ended.updated_at is None
        assert ended.measurement is not None
        assert ended.measurement.samples_per_second is not None
        seconds = ended.usage["elapsed_seconds"]
        assert seconds is not None
        assert ended.dollars == pytest.approx(seconds / 1000)
        assert store.trials(workload="b", timeline=True) == [ended], "nothing comes after the end"
