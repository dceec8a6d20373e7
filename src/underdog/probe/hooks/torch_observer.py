"""Reads the log of a training process and works out its steps, samples, phases and pauses."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .torch_clock import BACKWARD, DATA, FORWARD, OPTIMIZER, PhaseClock
from .torch_samples import Batch, SampleLedger, Taken
from .torch_steps import StepLeader

DRAIN_SECONDS = 0.2
ATTENTIVE_STEPS = 32  # the first steps are read one by one: modules are found, one is profiled


class Observer:
    """Replays the events that the ``Tap`` has logged; each is a method of the same name.

    Args:
        recorder: where the steps go.
    """

    def __init__(self, recorder: Any) -> None:
        self.recorder = recorder
        self.clock = PhaseClock()
        self.ledger = SampleLedger()
        self.leader = StepLeader(self._cut, self._emit)
        self.on_step: Callable[[Any, Taken, bool], None] | None = None
        self.reset()

    def reset(self) -> None:
        """As at the start of the process; also in the child of a fork."""
        self.clock.reset()
        self.ledger.clear()
        self.leader.reset()
        self._optimizer: Any = None  # the last one that stepped
        self._several = False
        self._seen_forward = False  # in this step
        self._trained: set[int] = set()  # ids of modules that a gradient was asked for
        self._quiet: tuple[float, Any] | None = None  # since training last acted
        self._evaluated_to: float | None = None
        self._taken = Taken(None, False)  # of the last step

    def replay(self, log: list[tuple[Any, ...]]) -> float:
        """Read the log; the time from which on the next one may be read."""
        for event, *about in log:
            getattr(self, event)(*about)
        if self.recorder.steps < ATTENTIVE_STEPS:
            return 0.0
        self.tell_doubts()
        return time.perf_counter() + DRAIN_SECONDS

    def _enter(self, phase: int, now: float, mark: Any) -> None:
        """Open a phase that only training has."""
        self._begin(now)
        self.clock.enter(phase, now, mark)

    def _begin(self, now: float) -> None:
        if self.recorder.begin(now):
            self.clock.clear(now)  # what came before the first step is in no phase of it

    # Data

    def fetch_begins(self, now: float, mark: Any) -> None:
        """A batch is asked for."""
        self._enter(DATA, now, mark)
        self._asked = now
        if self._quiet is None:
            self._quiet = (now, self.clock.copy())

    def fetch_ends(self, now: float, mark: Any, loader: int, samples: Any, *about: Any) -> None:
        """A batch came, or with nothing about it the end of the loader."""
        self.clock.leave(now, mark)
        if not about:
            if self.ledger.exhausted(loader):
                self._evaluation(now)
            return
        new_pass, iterator = about
        if self.ledger.fetched(Batch(loader, samples, iterator), new_pass):
            self._evaluation(self._asked)
            self.clock.add(DATA, now - self._asked)  # this fetch is after the evaluation

    # Forward and backward

    def forward_begins(
        self,
        now: float,
        mark: Any,
        trains: tuple[bool, bool],
        module: Any = None,
        size: Any = None,
        found: Any = (),
    ) -> None:
        """An outermost module is called; what is not new about it is not told."""
        self._seen_forward = True
        if trains[0]:
            self._begin(now)
            if trains[1]:
                self._end_evaluation()
                if module is not None:
                    self._learn(module)
            self.ledger.forward(type(module).__name__, size, found)
        elif self._quiet is None:
            self._quiet = (now, self.clock.copy())
        self.clock.enter(FORWARD, now, mark)

    def forward_ends(self, now: float, mark: Any, trains: tuple[bool, bool], module: int) -> None:
        """It returned."""
        self.clock.leave(now, mark)
        if trains != (True, True):
            self.ledger.looked_at()
            if trains == (False, False) and module in self._trained:
                self._evaluation(now)

    def _learn(self, module: Any) -> None:
        parts = vars(module).get("_modules", {})  # what a wrapper holds is evaluated bare
        held = [parts[name] for name in ("module", "_orig_mod") if name in parts]
        self._trained.update(id(part) for part in (module, *held))

    def backward_begins(self, now: float, mark: Any) -> None:
        """Gradients are asked for."""
        self._enter(BACKWARD, now, mark)
        self._end_evaluation()
        self.ledger.backward()  # before it runs: an optimizer may step inside

    def backward_ends(self, now: float, mark: Any, ends_step: bool) -> None:
        """They are there; without an optimizer that ends the step."""
        self.clock.leave(now, mark)
        if ends_step:
            taken, phases = self._cut()
            self._emit(now, taken, phases, False)
            self._stepped(None)

    # The optimizer

    def update_begins(self, now: float, mark: Any) -> None:
        """An optimizer begins its step."""
        self._enter(OPTIMIZER, now, mark)

    def abandon(self, now: float, mark: Any) -> None:
        """What was open raised."""
        self.clock.abandon(now)

    def update_ends(self, now: float, mark: Any, optimizer: Any, skipped: bool) -> None:
        """An optimizer has stepped."""
        self.clock.leave(now, mark)
        self.update_skipped(now, mark, optimizer, skipped)

    def update_skipped(self, now: float, mark: Any, optimizer: Any, skipped: bool) -> None:
        """An optimizer has stepped, or a gradient scaler has skipped it."""
        self._end_evaluation()
        self._several = self._several or (self._optimizer not in (None, optimizer))
        self._optimizer = optimizer
        steps = self.recorder.steps
        self.leader.stepped(optimizer, now, skipped)
        if self.recorder.steps != steps:
            self._stepped(optimizer)

    def _cut(self) -> tuple[Taken, tuple[float, ...]]:
        return self.ledger.take(self._several), self.clock.take()

    def _emit(self, end: float, taken: Taken, phases: tuple[float, ...], skipped: bool) -> None:
        self._taken = taken
        self._quiet = None
        write = self.recorder.step if self.clock.device is None else self.clock.device.step
        write(end, taken.samples, phases, skipped)

    def _stepped(self, optimizer: Any) -> None:
        if self.on_step is not None:
            self.on_step(optimizer, self._taken, self._seen_forward)
        self._seen_forward = False

    # Pauses and other phases

    def enter(self, now: float, mark: Any, phase: int) -> None:
        """A phase opens."""
        self.clock.enter(phase, now, mark)

    def leave(self, now: float, mark: Any) -> None:
        """The innermost phase closes."""
        self.clock.leave(now, mark)

    def pause_ends(self, now: float, mark: Any, kind: str) -> None:
        """A pause closes."""
        self.recorder.pause(kind, self.clock.entered, now)
        self.clock.leave(now, mark)

    def _evaluation(self, now: float) -> None:
        """What happened since training last acted was evaluation; it is in no phase."""
        if self._quiet is not None:
            self._evaluated_to = now
            if self.recorder.steps:
                self.clock.restore(self._quiet[1])
            else:
                self.clock.take()  # the first step starts after it

    def _end_evaluation(self) -> None:
        if self._quiet is not None and self._evaluated_to is not None:
            if self.recorder.steps:
                self.recorder.pause("evaluation", self._quiet[0], self._evaluated_to)
            else:
                self.recorder.restart(self._evaluated_to)
        self._quiet = self._evaluated_to = None

    def tell_doubts(self) -> None:
        """Note what the samples rest on, where that is doubtful."""
        remedy = "Tell them with --samples-per-step N, or loop over underdog.track(batches)."
        if self._taken.samples is None:
            if self.recorder.steps and self.recorder.samples_per_step is None:
                what = "The steps show no batch: no DataLoader, and no tensor goes into a module."
                self.recorder.note("samples_unknown", what, remedy)
        elif not self._taken.from_loader:
            what = (
                f"Samples are counted from the leading dimension of what goes into "
                f"{self.ledger.input_of or 'the model'} ({self._taken.samples:g} per step), for no "
                f"DataLoader is used. They are wrong if that dimension is not the batch."
            )
            self.recorder.note("samples_from_inputs", what, remedy)
        if self.ledger.several_loaders:
            what = "A step reads several data loaders; the batches of the first one are counted."
            self.recorder.note("several_loaders", what, remedy)

    def finish(self) -> None:
        """The process ends: write what was kept back."""
        self.leader.finish()
        self.tell_doubts()
        if self.clock.device is not None:
            self.clock.device.drain(wait=True)
