"""The part of the hook that runs inside every step: look at the clock, note it, go on.

In a real step these few lines run with cold caches, so they do no more than append to a log. The
``Observer`` reads the log a few times a second, in one go, and works out what it meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import get_ident
from time import perf_counter
from typing import Any
from weakref import ref

from ..batches import count_samples, leading_dimension
from .torch_clock import BACKWARD, DATA, FORWARD, OPENS, OPTIMIZER, OTHER, PAUSE
from .torch_samples import Batch, pointers

TRACKED = -1  # the loader's key of `underdog.track`


class Tap:
    """What the patched calls call. Only the thread that trains is timed.

    An entry of the log is ``(method of the Observer, time, mark of the device, …)``.

    Args:
        observer: reads the log.
        grad_enabled: ``torch.is_grad_enabled``.
    """

    def __init__(self, observer: Any, grad_enabled: Callable[[], bool]) -> None:
        self.observer = observer
        self.grad_enabled = grad_enabled
        self._on_call: Callable[..., None] | None = None
        self.mark: Callable[[], Any] | None = None  # queues an event on the device
        self.reset()

    def reset(self) -> None:
        """As at the start of the process; also in the child of a fork."""
        self.thread = get_ident()
        self.log: list[tuple[Any, ...]] = []
        self.stack = [OTHER]
        self.optimizers = 0  # that were made
        self.updates = 0  # optimizer steps, of any optimizer
        self.due = 0.0  # when to drain the log
        self.tracked = False  # `underdog.track` tells the samples; loaders are not asked
        self._fetched = 0  # batches since the last update
        self._input_known = False  # since the last backward
        self._known: set[int] = set()  # ids of modules that were told
        self._curious = True  # a profile or a reader on another thread has to see the input
        self._updating: Any = None
        self._nested = 0

    def show_calls(self, to: Callable[..., None] | None) -> None:
        """Show the outermost calls that train to ``to(module, args, kwargs)``; None ends it."""
        self._on_call = to
        self._curious = True

    def opens(self, kind: int) -> bool:
        """Whether a phase of that kind counts where this thread is now."""
        return OPENS[kind][self.stack[-1]] and get_ident() == self.thread

    def note(self, event: str, *about: Any) -> float:
        """Log an event of now."""
        now = perf_counter()
        self.log.append((event, now, self.mark and self.mark(), *about))
        return now

    def drain(self) -> None:
        """Let the observer read the log."""
        log, self.log = self.log, []
        stack, self.stack = self.stack, [PAUSE]  # what the reading itself calls is nobody's step
        try:
            self.due = self.observer.replay(log)
        finally:
            self.stack = stack

    # Data

    def fetch(self, advance: Any, iterator: Any, loader: int, expected: Any = None) -> Any:
        """Get the next batch by ``advance(iterator)`` and count it.

        Args:
            advance: raises StopIteration at the end.
            iterator: what is read.
            loader: a key of the loader that is the same in each pass.
            expected: called after the fetch with the iterator for ``(samples expected or None,
                new pass)``.
        """
        if get_ident() != self.thread:
            return self._fetch_ahead(advance, iterator, loader, expected)
        stack = self.stack
        if not OPENS[DATA][stack[-1]]:
            return advance(iterator)
        mark = self.mark
        self.log.append(("fetch_begins", perf_counter(), mark and mark()))
        stack.append(DATA)
        try:
            batch = advance(iterator)
        except BaseException as error:
            del stack[-1]
            end = isinstance(error, StopIteration)
            self.note(*(("fetch_ends", loader, None) if end else ("leave",)))
            raise
        del stack[-1]
        if self.tracked and loader != TRACKED:
            self.note("leave")
            return batch
        now = perf_counter()
        samples, new_pass = expected(iterator) if expected is not None else (None, False)
        samples = count_samples(batch, samples)
        source = None if loader == TRACKED else ref(iterator)
        self._fetched += 1
        self.log.append(("fetch_ends", now, mark and mark(), loader, samples, new_pass, source))
        if now > self.due:
            self.drain()
        return batch

    def _fetch_ahead(self, advance: Any, iterator: Any, loader: int, expected: Any) -> Any:
        batch = advance(iterator)
        if not self.tracked or loader == TRACKED:
            samples = expected(iterator)[0] if expected is not None else None
            found = Batch(loader, count_samples(batch, samples))
            found.pointers = pointers(batch)
            self._curious = True
            self.observer.ledger.ahead.append(found)
        return batch

    def iterate(self, iterator: Iterator[Any], loader: int) -> Iterator[Any]:
        """The batches of a library's own loader, each counted when it is handed out."""
        new_pass = True
        while True:
            try:
                batch = self.fetch(next, iterator, loader, lambda _, n=new_pass: (None, n))
            except StopIteration:
                return
            new_pass = False
            yield batch

    # Forward and backward

    def call(self, module: Any, call: Any, args: Any, kwargs: Any) -> Any:
        """Call a module; where it is the outermost one, that is the forward."""
        stack = self.stack
        if not OPENS[FORWARD][stack[-1]] or get_ident() != self.thread:
            return call(module, *args, **kwargs)
        mark = self.mark
        grad = self.grad_enabled()
        trains = (grad, module.training)
        usual = self._fetched == 1 and id(module) in self._known and not self._curious
        news = () if usual or not grad else self._input(module, args, kwargs)
        self.log.append(("forward_begins", perf_counter(), mark and mark(), trains, *news))
        stack.append(FORWARD)
        try:
            return call(module, *args, **kwargs)
        finally:
            del stack[-1]
            now = perf_counter()
            self.log.append(("forward_ends", now, mark and mark(), trains, id(module)))
            if not grad and now > self.due:
                self.drain()

    def _input(self, module: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
        """What the observer has to know of a call, and no more."""
        if self._on_call is not None:
            self._on_call(module, args, kwargs)
        ahead = self.observer.ledger.ahead
        self._curious = bool(ahead or self._on_call)
        found = pointers((args, kwargs)) if ahead else ()
        size = None
        if not self._input_known and self._fetched != 1:
            size = leading_dimension((args, kwargs))
            self._input_known = size is not None
        if id(module) in self._known and size is None and not found:
            return ()
        self._known.add(id(module))
        return (module, size, found)

    def backward(self, call: Any, args: Any, kwargs: Any, is_step: bool) -> Any:
        """Run a backward. Without any optimizer in the process it ends a step, if it may."""
        stack = self.stack
        if not OPENS[BACKWARD][stack[-1]] or (
            get_ident() != self.thread and not self._moves_here()
        ):
            return call(*args, **kwargs)
        mark = self.mark
        self.log.append(("backward_begins", perf_counter(), mark and mark()))
        self._input_known = False
        stack.append(BACKWARD)
        try:
            return call(*args, **kwargs)
        finally:
            del stack[-1]
            ends_step = is_step and not self.optimizers
            now = perf_counter()
            self.log.append(("backward_ends", now, mark and mark(), ends_step))
            if ends_step:
                self._fetched = 0
                if now > self.due:
                    self.drain()

    def _moves_here(self) -> bool:
        """Training may run on a thread of its own, but not on several."""
        if self.updates or self.observer.recorder.steps:
            return False
        self.thread = get_ident()
        self.log, self.stack = [], [OTHER]
        self.observer.clock.reset()
        return True

    # The optimizer

    def before_update(self, optimizer: Any) -> None:
        """An optimizer begins its step."""
        if get_ident() != self.thread and not self._moves_here():
            return
        stack = self.stack
        if stack[-1] == OPTIMIZER:
            if optimizer is not self._updating:
                self._nested += 1  # a wrapper's inner optimizer
                return
            del stack[1:]  # its last step raised
            self._nested = 0
            self.log.append(("abandon", perf_counter(), None))
        self._updating = optimizer
        mark = self.mark
        self.log.append(("update_begins", perf_counter(), mark and mark()))
        stack.append(OPTIMIZER)

    def after_update(self, optimizer: Any, skipped: bool = False) -> None:
        """An optimizer has ended its step."""
        if self.stack[-1] != OPTIMIZER or get_ident() != self.thread:
            return
        if self._nested:
            self._nested -= 1
            return
        del self.stack[-1]
        self._updated("update_ends", optimizer, skipped)

    def skipped(self, optimizer: Any) -> None:
        """A gradient scaler did not let the optimizer step."""
        if get_ident() == self.thread:
            self._updated("update_skipped", optimizer, True)

    def _updated(self, event: str, optimizer: Any, skipped: bool) -> None:
        self.updates += 1
        self._fetched = 0
        mark = self.mark
        now = perf_counter()
        self.log.append((event, now, mark and mark(), optimizer, skipped))
        if now > self.due:
            self.drain()

    # Pauses and other phases

    def begin_pause(self) -> bool:
        """Open a pause, if it counts here."""
        counts = self.opens(PAUSE)
        if counts:
            self.note("enter", PAUSE)
            self.stack.append(PAUSE)
        return counts

    def end_pause(self, kind: str) -> None:
        """Close the pause that was opened."""
        del self.stack[-1]
        self.note("pause_ends", kind)

    def paused(self, kind: str, call: Any, args: Any, kwargs: Any) -> Any:
        """Run a call that is not training, as a pause of that kind."""
        counts = self.begin_pause()
        try:
            return call(*args, **kwargs)
        finally:
            if counts:
                self.end_pause(kind)

    def timed(self, phase: int, call: Any, args: Any, kwargs: Any) -> Any:
        """Run a call in a phase."""
        if not self.opens(phase):
            return call(*args, **kwargs)
        self.note("enter", phase)
        self.stack.append(phase)
        try:
            return call(*args, **kwargs)
        finally:
            del self.stack[-1]
            self.note("leave")


class TrackedFetch:
    """What ``underdog.track`` fetches with where this hook is at work."""

    def __init__(self, tap: Tap) -> None:
        self._tap = tap

    def fetch(self, iterator: Iterator[Any], default: Any) -> Any:
        """The next batch, or the default at the end."""
        self._tap.tracked = True
        try:
            return self._tap.fetch(next, iterator, TRACKED)
        except StopIteration:
            return default
