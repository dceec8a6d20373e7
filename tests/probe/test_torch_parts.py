"""The parts of the PyTorch hook that need no PyTorch: who leads, and the device's clock."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.probe.hooks.torch_clock import BACKWARD, DATA, FORWARD, OPTIMIZER, OTHER
from underdog.probe.hooks.torch_cuda import DeviceTimeline
from underdog.probe.hooks.torch_observer import Observer
from underdog.probe.hooks.torch_samples import Taken
from underdog.probe.hooks.torch_steps import StepLeader
from underdog.probe.recorder import Recorder


class Optimizer:
    """Anything that can be referred to weakly."""


def count(order: list[Optimizer]) -> list[float | None]:
    """The samples of each step, where each optimizer step brings one sample."""
    waiting, steps = [0], []

    def cut() -> tuple[Taken, tuple[float, ...]]:
        taken, waiting[0] = Taken(waiting[0], True), 0
        return taken, (0.0,) * 6

    def emit(end: float, taken: Taken, phases: tuple[float, ...], skipped: bool) -> None:
        steps.append(taken.samples)

    leader = StepLeader(cut, emit)
    for end, optimizer in enumerate(order):
        waiting[0] += 1
        leader.stepped(optimizer, float(end))
    leader.finish()
    return steps


A, B = Optimizer(), Optimizer()


@pytest.mark.parametrize(
    ("order", "steps"),
    [
        ([A] * 5, 5),
        ([A, B] * 5, 5),  # a GAN
        ([B, *[A] * 5] * 4, 20),  # a generator that steps first, and a critic that leads
        ([*[A] * 5, B] * 4, 20),
        ([A] * 5 + [B] * 5, 10),  # B replaces A
        ([A, A, B, B] * 3, 12),
    ],
)
def test_leader(order: list[Optimizer], steps: int) -> None:
    assert len(count(order)) == steps


@given(st.lists(st.sampled_from([A, B]), min_size=1, max_size=30))
def test_no_sample_is_counted_twice_and_none_lost_before_the_last_step(
    order: list[Optimizer],
) -> None:
    steps = count(order)
    assert 1 <= len(steps) <= len(order)
    counted = sum(s or 0 for s in steps)
    assert counted <= len(order)
    if order[-1] is order[0] and B not in order[1:]:
        assert counted == len(order)


def test_an_optimizer_that_is_gone_is_replaced_at_once() -> None:
    def order() -> Any:
        yield from [A] * 0
        for _ in range(3):
            optimizer = Optimizer()
            yield optimizer
            yield optimizer

    steps: list[float] = []
    leader = StepLeader(
        lambda: (Taken(1, True), (0.0,) * 6), lambda end, *_: steps.append(float(end))
    )
    for end, optimizer in enumerate(order()):
        leader.stepped(optimizer, float(end))
    assert steps == [0, 1, 2, 3, 4, 5]


class Device:
    """A device that works through a queue, with a clock of its own."""

    def __init__(self) -> None:
        self.queued = 0.0  # milliseconds of work queued so far
        self.done = 0.0

    def event(self) -> Event:
        return Event(self)


class Event:
    """Like ``torch.cuda.Event`` with timing."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.at: float | None = None

    def record(self) -> None:
        self.at = self.device.queued

    def query(self) -> bool:
        return self.at is not None and self.at <= self.device.done

    def synchronize(self) -> None:
        self.device.done = max(self.device.done, self.at or 0.0)

    def elapsed_time(self, other: Event) -> float:
        assert self.query()
        assert other.query()
        return (other.at or 0.0) - (self.at or 0.0)


def queue_step(timeline: DeviceTimeline, device: Device, now: float) -> None:
    for phase, milliseconds in ((FORWARD, 2.0), (BACKWARD, 4.0), (OPTIMIZER, 1.0)):
        timeline.switch(phase, timeline.mark())
        device.queued += milliseconds
        timeline.switch(OTHER, timeline.mark())
    timeline.step(now, 32, (9.0,) * 6, False)


def test_steps_are_written_when_the_device_has_ended_them() -> None:
    device = Device()
    written: list[Any] = []
    timeline = DeviceTimeline(device.event, lambda *step: written.append(step))
    for index in range(4):
        queue_step(timeline, device, now=0.1 * index)  # the processor runs ahead
    assert written == []
    device.done = 14.5
    timeline.drain()
    assert len(written) == 2
    timeline.drain(wait=True)
    assert len(written) == 4
    ends = [step[0] for step in written]
    assert [b - a for a, b in pairwise(ends)] == pytest.approx([0.007] * 3)
    assert written[-1][2] == pytest.approx((0, 0, 0.002, 0.004, 0.001, 0))


def test_what_is_left_out_is_in_no_phase_but_takes_its_time() -> None:
    device = Device()
    written: list[Any] = []
    timeline = DeviceTimeline(device.event, lambda *step: written.append(step))
    queue_step(timeline, device, 0.0)
    start = timeline.position()
    timeline.switch(FORWARD, timeline.mark())
    device.queued += 50.0
    timeline.switch(OTHER, timeline.mark())
    timeline.leave_out(start)
    queue_step(timeline, device, 0.1)
    timeline.drain(wait=True)
    assert written[1][0] - written[0][0] == pytest.approx(0.057)
    assert written[1][2] == pytest.approx((0, 0, 0.002, 0.004, 0.001, 0))


def test_nothing_is_recorded_into_a_graph() -> None:
    device = Device()
    written: list[Any] = []
    timeline = DeviceTimeline(device.event, lambda *step: written.append(step), lambda: False)
    queue_step(timeline, device, 0.5)
    assert written == [(0.5, 32, (9.0,) * 6, False)]


def first_step(tmp_path: Path, log: list[tuple[Any, ...]]) -> list[float]:
    """The record of the first step that an observer makes of a log."""
    observer = Observer(Recorder(str(tmp_path)))
    observer.clock.clear(0.0)
    observer.replay(log)
    observer.recorder.flush()
    lines = [line for file in tmp_path.iterdir() for line in file.read_text().splitlines()]
    return next(value for value in map(json.loads, lines) if isinstance(value, list))


FIRST_UPDATE = [
    ("fetch_begins", 8.0, None),
    ("fetch_ends", 8.5, None, 1, 32, True, None),
    ("update_begins", 8.75, None),
    ("update_ends", 9.0, None, Optimizer(), False),
]


def test_what_came_before_the_first_step_is_in_no_phase_of_it(tmp_path: Path) -> None:
    workers_start = [("enter", 1.0, None, DATA), ("leave", 7.0, None)]
    step = first_step(tmp_path, workers_start + FIRST_UPDATE)
    assert step[:2] == [8.0, 9.0]
    assert step[3:9] == [0.5, 0, 0, 0, 0.25, 0]


def test_an_evaluation_before_the_first_step_takes_what_came_before_it_along(
    tmp_path: Path,
) -> None:
    model = Optimizer()
    some_training = [
        ("fetch_begins", 1.0, None),
        ("fetch_ends", 2.0, None, 1, 32, True, None),
        ("forward_begins", 2.0, None, (True, True), model),
        ("forward_ends", 4.0, None, (True, True), id(model)),
    ]
    evaluation = [
        ("fetch_begins", 5.0, None),
        ("fetch_ends", 6.0, None, 2, 32, True, None),
        ("forward_begins", 6.0, None, (False, False)),
        ("forward_ends", 7.0, None, (False, False), id(model)),
    ]
    step = first_step(tmp_path, some_training + evaluation + FIRST_UPDATE)
    assert step[:2] == [8.0, 9.0]
    assert step[3:9] == [0.5, 0, 0, 0, 0.25, 0]


def test_a_call_that_a_class_inherits_is_kept() -> None:
    torch = pytest.importorskip("torch")
    from underdog.probe.hooks.torch_modules import ModuleWatch

    class Tap:
        def opens(self, kind: int) -> bool:
            return True

        def call(self, module: Any, call: Any, args: Any, kwargs: Any) -> Any:
            return call(module, *args, **kwargs)

    class Doubling(torch.nn.Module):
        def __call__(self, x: Any) -> Any:
            return 2 * super().__call__(x)

        def forward(self, x: Any) -> Any:
            return x + 1

    class Child(Doubling):
        pass

    pristine = torch.nn.Module.__call__
    watch = ModuleWatch(torch.nn.Module, Tap())
    try:
        child = Child()
        assert [child(1), child(1), child(1)] == [4, 4, 4]
        watch.tracing(True)
        assert child(1) == 4
        watch.tracing(False)
        assert child(1) == 4
    finally:
        torch.nn.Module.__call__ = pristine
