"""The file with the rate so far: whole at every moment, and told early where it cannot be."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from underdog.core.figures import Figures
from underdog.core.racing import Look
from underdog.core.series import Series
from underdog.core.stats import Throughput, throughput
from underdog.errors import UsageError
from underdog.measuring.nvml import Nvml
from underdog.measuring.observe import Progress
from underdog.measuring.progress import to_file
from underdog.measuring.sampler import Sampler
from underdog.model import Estimate
from underdog.runners._remote import look_of


def result(rate: float) -> Throughput:
    estimate = Estimate(value=rate, low=rate * 0.9, high=rate * 1.1, n=40)
    return Throughput(
        samples_per_second=estimate, steps=40, seconds=8.0, effective=30.0, settled=True
    )


def test_the_latest_progress_is_there(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    keep = to_file(path)
    assert json.loads(path.read_text())["samples_per_second"] is None  # at once, before any step
    keep(Progress(9.5, result(100.0)))
    said = json.loads(path.read_text())
    assert said["samples_per_second"] == {
        "value": 100.0,
        "low": 90.0,
        "high": pytest.approx(110.0),
        "n": 40,
    }
    assert (said["elapsed"], said["seconds"], said["steps"]) == (9.5, 8.0, 40)
    assert (said["effective"], said["settled"]) == (30.0, True)
    assert [entry.name for entry in tmp_path.iterdir()] == ["progress.json"]


def test_all_that_a_run_has_shown_is_there_and_can_be_read_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    keep = to_file(path)
    assert look_of(path.read_bytes()) == Look(elapsed=0.0, figures=Figures())
    sampler = Sampler(1, Nvml(library=object()))
    for _ in range(3):
        sampler.look()
    rows = np.zeros((50, 10))
    rows[:, 1] = sampler.samples[0].time + np.arange(1, 51)
    rows[:, 0], rows[:, 2], rows[:, 5] = rows[:, 1] - 1, 8, 0.5
    series = Series.from_rows(rows)
    seen = Progress(50.0, throughput(series), series, sampler, sampler.samples[0].time)
    keep(seen)
    look = look_of(path.read_bytes())
    assert look is not None
    figures = look.figures
    assert figures is not None
    assert figures.measurement == throughput(series).measurement()
    assert figures.phases["forward"] == pytest.approx(0.5)
    assert figures.timeline is not None
    assert figures.timeline.steps["step"][-1] == 50
    assert "memory_gib" in figures.usage
    keep(seen)
    assert look_of(path.read_bytes()) == look, "the last timeline stays in the file"


def test_a_reader_never_sees_half_of_it(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    keep = to_file(path)
    done = threading.Event()

    def write() -> None:
        for number in range(1, 500):
            keep(Progress(float(number), result(float(number))))
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        json.loads(path.read_text())
    writer.join()


def test_a_file_that_cannot_be_written_is_told_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be written"):
        to_file(tmp_path / "no" / "folder" / "progress.json")
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    if os.geteuid() != 0:
        blocked.chmod(0o500)
        with pytest.raises(UsageError):
            to_file(blocked / "progress.json")
