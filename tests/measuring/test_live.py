"""Updates of a running trial: about once a second, one at a time, and in nobody's way."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from underdog.core.series import Series
from underdog.core.stats import throughput
from underdog.errors import StoreError
from underdog.measuring import live as module
from underdog.measuring.live import Live, Rhythm, Shown
from underdog.measuring.nvml import Nvml
from underdog.measuring.observe import Progress
from underdog.measuring.sampler import Sampler
from underdog.model import Trial
from underdog.testing.store import bare_trial

TRIAL = bare_trial("w", status="running")


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "it did not come within a minute"
        time.sleep(0.002)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pause between two updates."""
    monkeypatch.setattr(Rhythm, "due", lambda self: True)


@pytest.mark.usefixtures("at_once")
def test_one_update_at_a_time_and_what_comes_meanwhile_is_passed_over() -> None:
    inside, go_on = threading.Event(), threading.Event()
    kept: list[Trial] = []

    def keep(trial: Trial) -> bool:
        inside.set()
        assert go_on.wait(60)
        kept.append(trial)
        return True

    live = Live(keep)
    live.tell(lambda: TRIAL)
    assert inside.wait(60)
    began = time.monotonic()
    for _ in range(100):
        live.tell(lambda: TRIAL)
    assert time.monotonic() - began < 30, "who tells does not wait for the store"
    go_on.set()
    until(lambda: len(kept) == 1)
    live.finish()
    live.tell(lambda: TRIAL)
    assert len(kept) == 1, "at the end there are no more"


@pytest.mark.usefixtures("at_once")
def test_a_store_that_fails_is_passed_over() -> None:
    told: list[int] = []

    def keep(trial: Trial) -> bool:
        told.append(len(told))
        if len(told) == 1:
            raise StoreError("The disk is full.")
        return True

    live = Live(keep)
    for count in (1, 2, 3):
        until(lambda count=count: live.tell(lambda: TRIAL) or len(told) >= count)  # type: ignore[misc]
    live.finish()


@pytest.mark.usefixtures("at_once")
def test_a_trial_that_runs_no_more_is_left_alone() -> None:
    told: list[Trial] = []
    live = Live(lambda trial: bool(told.append(trial)))
    live.tell(lambda: TRIAL)
    until(lambda: live._over)
    live.tell(lambda: TRIAL)
    live.finish()
    assert len(told) == 1


def test_the_end_does_not_wait_for_a_store_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    go_on = threading.Event()
    live = Live(lambda trial: go_on.wait(60))
    live.tell(lambda: TRIAL)
    live.finish()
    go_on.set()


def test_the_rhythm_bounds_what_updates_take(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def next_due(took: float, cpu: float, rhythm: Rhythm | None = None) -> float:
        nonlocal now
        rhythm = rhythm or Rhythm()
        began, now = now, now + took
        rhythm.took(began, cpu)
        while not rhythm.due():
            now += 0.01
        return now - began

    assert next_due(took=0.01, cpu=0.001) == pytest.approx(module.EVERY, abs=0.02)
    assert next_due(took=0.01, cpu=0.03) == pytest.approx(0.03 / module.CPU_SHARE, abs=0.02)
    rhythm = Rhythm()
    costs = [0.03 if n % 7 == 0 else 0.004 for n in range(70)]
    passed = sum(next_due(0.01, cpu, rhythm) for cpu in costs)
    share = sum(costs) / passed / module.CPU_SHARE
    assert 0.7 < share < 1.05, "also over several, and not much less"
    assert next_due(took=2.0, cpu=0.001) == pytest.approx(2.0 / module.WALL_SHARE, abs=0.02)


def progress(steps: int) -> Progress:
    sampler = Sampler(1, Nvml(library=object()))
    for _ in range(3):
        sampler.look()
    rows = np.zeros((steps, 10))
    began = sampler.samples[0].time
    rows[:, 1] = began + np.arange(1, steps + 1)
    rows[:, 0] = rows[:, 1] - 1
    rows[:, 2], rows[:, 5] = 8, 0.5
    series = Series.from_rows(rows) if steps else None
    return Progress(9.0, throughput(series) if series else None, series, sampler, began)


def test_the_figures_so_far() -> None:
    found = Shown().figures(progress(300))
    assert found.measurement is not None
    assert found.measurement.steps == 300
    rate = found.measurement.samples_per_second
    assert rate is not None
    assert rate.value == pytest.approx(8)
    assert found.phases["forward"] == pytest.approx(0.5)
    assert found.usage["memory_gib"] is not None
    assert found.timeline is not None
    assert found.timeline.steps["step"][-1] == 300
    assert len(found.timeline.steps["step"]) == 120
    assert len(found.timeline.usage["seconds"]) == 2


def test_a_timeline_is_made_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    shown, seen = Shown(), progress(30)
    assert shown.figures(seen).timeline is not None
    again = shown.figures(seen)
    assert again.timeline is None, "the last one is still good"
    assert again.measurement is not None
    later = time.monotonic() + module.TIMELINE_EVERY
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert shown.figures(seen).timeline is not None


def test_where_there_is_nothing_to_draw_yet_the_next_update_draws_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = Shown()
    with monkeypatch.context() as patch:
        patch.setattr(module, "timeline_of", lambda *_: None)
        assert shown.figures(progress(30)).timeline is None
    assert shown.figures(progress(30)).timeline is not None


def test_before_the_first_step_the_machine_is_told() -> None:
    found = Shown().figures(progress(0))
    assert found.measurement is None
    assert found.phases == {}
    assert found.timeline is not None
    assert found.timeline.steps == {}
    times: Any = found.timeline.usage["seconds"]
    assert 0 < times[0] < times[1]
