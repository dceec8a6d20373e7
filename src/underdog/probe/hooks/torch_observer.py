"""One training process of PyTorch, seen as events: fetch, forward, backward, optimizer, save."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import get_ident
from typing import Any

from ..batches import count_samples
from .torch_clock import BACKWARD, DATA, FORWARD, OPTIMIZER, PAUSE, PhaseClock
from .torch_samples import Batch, SampleLedger, Taken, pointers, weak
from .torch_steps import StepLeader

TRACKED = -1  # the loader's key of `underdog.track`


class Observer:
    """Turns what the patched calls see into steps, samples, phases and pauses.

    Only the thread that trains is timed. A loader that another thread reads is counted as
    fetched ahead.
    """

    def __init__(self, torch: Any, recorder: Any) -> None:
        self.recorder = recorder
        self.grad_enabled: Callable[[], bool] = torch.is_grad_enabled
        self.clock = PhaseClock()
        self.ledger = SampleLedger()
        self.leader = StepLeader(self._cut, self._emit)
        self.on_call: Callable[..., None] | None = None  # sees outermost calls for a profile
        self.on_step: Callable[[Any, Taken], None] | None = None
        self.seen_forward = True  # in this step; a step without one looks for new modules
        self.reset()

    def reset(self) -> None:
        """As at the start of the process; also in the child of a fork."""
        self.thread = get_ident()
        self.optimizers = 0  # that were made
        self.updates = 0  # optimizer steps, of any optimizer
        self.clock.reset()
        self.ledger.clear()
        self.leader.reset()
        self._several = False
        self._last_optimizer: Any = None
        self._nested = 0
        self._trained: set[int] = set()  # ids of modules that a gradient was asked for
        self._quiet: tuple[float, Any] | None = None  # since training last acted
        self._evaluated_to: float | None = None
        self._taken = Taken(None, False)  # of the last step

    # Data

    def fetch(
        self, advance: Callable[[], Any], loader: int, expected: Any = None, source: Any = None
    ) -> Any:
        """Get the next batch by ``advance()`` and count it.

        Args:
            advance: raises StopIteration at the end.
            loader: a key of the loader that is the same in each pass.
            expected: called after the fetch for ``(samples expected or None, new pass)``.
            source: the iterator.
        """
        here = get_ident() == self.thread
        if not here:
            return self._fetch_ahead(advance, loader, expected)
        if not self.clock.opens(DATA):
            return advance()
        asked = self.clock.enter(DATA)
        self.recorder.begin(asked)
        if self._quiet is None:
            self._quiet = (asked, self.clock.copy())
        try:
            batch = advance()
        except StopIteration:
            ended = self.clock.leave()
            if self.ledger.exhausted(loader):
                self._evaluation(ended)
            raise
        except BaseException:
            self.clock.leave()
            raise
        ended = self.clock.leave()
        if self.ledger.tracked and loader != TRACKED:
            return batch
        samples, new_pass = expected() if expected is not None else (None, False)
        found = Batch(loader, count_samples(batch, samples), weak(source))
        if self.ledger.fetched(found, new_pass):
            self._evaluation(asked)
            self.clock.seconds[DATA] += ended - asked  # this fetch is after the evaluation
        return batch

    def _fetch_ahead(self, advance: Callable[[], Any], loader: int, expected: Any) -> Any:
        batch = advance()
        if not self.ledger.tracked or loader == TRACKED:
            samples = expected()[0] if expected is not None else None
            found = Batch(loader, count_samples(batch, samples))
            found.pointers = pointers(batch)
            self.ledger.ahead.append(found)
        return batch

    def iterate(self, iterator: Iterator[Any], loader: int) -> Iterator[Any]:
        """The batches of a library's own loader, each counted when it is handed out."""
        first = [True]

        def expected() -> tuple[None, bool]:
            new_pass, first[0] = first[0], False
            return None, new_pass

        while True:
            try:
                batch = self.fetch(iterator.__next__, loader, expected, iterator)
            except StopIteration:
                return
            yield batch

    # Forward and backward

    def call(self, module: Any, call: Any, args: Any, kwargs: Any) -> Any:
        """Call a module; where it is the outermost one, that is the forward."""
        clock = self.clock
        if not clock.opens(FORWARD) or get_ident() != self.thread:
            return call(module, *args, **kwargs)
        self.seen_forward = True
        grad = self.grad_enabled()
        now = clock.enter(FORWARD)
        try:
            if grad:
                self._training_forward(module, args, kwargs, now)
            elif self._quiet is None:
                self._quiet = (now, clock.copy())
            return call(module, *args, **kwargs)
        finally:
            now = clock.leave()
            if not grad or not getattr(module, "training", True):
                self.ledger.looked_at()
                if not grad and not module.training and id(module) in self._trained:
                    self._evaluation(now)

    def _training_forward(self, module: Any, args: Any, kwargs: Any, now: float) -> None:
        self.recorder.begin(now)
        if getattr(module, "training", True):
            if self._quiet is not None:
                self._end_evaluation()
            if id(module) not in self._trained:
                parts = vars(module).get("_modules", {})  # what a wrapper holds is evaluated bare
                held = [parts[name] for name in ("module", "_orig_mod") if name in parts]
                self._trained.update(id(part) for part in (module, *held))
        self.ledger.forward(module, args, kwargs)
        if self.on_call is not None:
            self.on_call(module, args, kwargs)

    def backward(self, call: Any, args: Any, kwargs: Any, is_step: bool) -> Any:
        """Run a backward. Without any optimizer in the process it ends a step, if it may."""
        clock = self.clock
        if not clock.opens(BACKWARD) or not self._trains_here():
            return call(*args, **kwargs)
        self.recorder.begin(clock.enter(BACKWARD))
        self._end_evaluation()
        self.ledger.backward()  # before it runs: an optimizer may step inside
        try:
            return call(*args, **kwargs)
        finally:
            now = clock.leave()
            if is_step and not self.optimizers:
                taken, phases = self._cut()
                self._emit(now, taken, phases, False)
                self._stepped(None, taken)

    def _trains_here(self) -> bool:
        if get_ident() != self.thread:
            if self.updates or self.recorder.steps:
                return False
            self.thread = get_ident()  # training runs on a thread of its own
            self.clock.reset()
        return True

    # The optimizer

    def before_update(self, optimizer: Any) -> None:
        """An optimizer begins its step."""
        if not self._trains_here():
            return
        if self.clock.stack[-1] == OPTIMIZER:
            if optimizer is not self._last_optimizer:
                self._nested += 1  # a wrapper's inner optimizer
                return
            self.clock.stack[1:] = []  # its last step raised
            self._nested = 0
        self._last_optimizer = optimizer
        self.recorder.begin(self.clock.enter(OPTIMIZER))

    def after_update(self, optimizer: Any, skipped: bool = False) -> None:
        """An optimizer has ended its step."""
        if get_ident() != self.thread or self.clock.stack[-1] != OPTIMIZER:
            return
        if self._nested:
            self._nested -= 1
            return
        self.update(optimizer, self.clock.leave(), skipped)

    def update(self, optimizer: Any, now: float, skipped: bool) -> None:
        """An optimizer has stepped, or a gradient scaler has skipped it."""
        self.updates += 1
        self._end_evaluation()
        steps = self.recorder.steps
        self._taken = Taken(None, False)
        self.leader.stepped(optimizer, now, skipped)
        if self.recorder.steps != steps:
            self._stepped(optimizer, self._taken)

    def skipped(self, optimizer: Any) -> None:
        """A gradient scaler did not let the optimizer step."""
        if get_ident() == self.thread:
            self.update(optimizer, time.perf_counter(), True)

    def _cut(self) -> tuple[Taken, tuple[float, ...]]:
        return self.ledger.take(self._several), self.clock.take()

    def _emit(self, end: float, taken: Taken, phases: tuple[float, ...], skipped: bool) -> None:
        self._taken = taken
        self._quiet = None
        if self.clock.device is not None:
            self.clock.device.step(end, taken.samples, phases, skipped)
        else:
            self.recorder.step(end, taken.samples, phases, skipped)

    def _stepped(self, optimizer: Any, taken: Taken) -> None:
        if self.on_step is not None:
            self.on_step(optimizer, taken)

    # Pauses

    def _evaluation(self, now: float) -> None:
        """What happened since training last acted was evaluation; it is in no phase."""
        if self._quiet is not None:
            self._evaluated_to = now
            self.clock.restore(self._quiet[1])

    def _end_evaluation(self) -> None:
        if self._quiet is not None and self._evaluated_to is not None:
            if self.recorder.steps:
                self.recorder.pause("evaluation", self._quiet[0], self._evaluated_to)
            else:
                self.recorder.restart(self._evaluated_to)
        self._quiet = self._evaluated_to = None

    def paused(self, kind: str, call: Any, args: Any, kwargs: Any) -> Any:
        """Run a call that is not training, as a pause of that kind."""
        start = self.begin_pause()
        try:
            return call(*args, **kwargs)
        finally:
            self.end_pause(kind, start)

    def begin_pause(self) -> float | None:
        """Open a pause; its start, or None where it does not count."""
        if get_ident() != self.thread or not self.clock.opens(PAUSE):
            return None
        return self.clock.enter(PAUSE)

    def end_pause(self, kind: str, start: float | None) -> None:
        """Close the pause that was opened."""
        if start is not None:
            self.recorder.pause(kind, start, self.clock.leave())

    def timed(self, phase: int, call: Any, args: Any, kwargs: Any) -> Any:
        """Run a call in a phase."""
        if get_ident() != self.thread or not self.clock.opens(phase):
            return call(*args, **kwargs)
        self.clock.enter(phase)
        try:
            return call(*args, **kwargs)
        finally:
            self.clock.leave()

    def tell_doubts(self) -> None:
        """Note what the samples rest on, where that is doubtful."""
        remedy = "Tell them with --samples-per-step N, or loop over underdog.track(batches)."
        if self._taken.samples is None:
            if self.recorder.samples_per_step is None:
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
        if self.clock.device is not None:
            self.clock.device.drain(wait=True)


class TrackedFetch:
    """What ``underdog.track`` fetches with where this hook is at work."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def fetch(self, iterator: Iterator[Any], default: Any) -> Any:
        """The next batch, or the default at the end."""
        self._observer.ledger.tracked = True
        try:
            return self._observer.fetch(iterator.__next__, TRACKED, None, iterator)
        except StopIteration:
            return default
