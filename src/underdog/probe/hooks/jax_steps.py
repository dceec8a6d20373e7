"""What the watched calls of JAX mean: training steps, evaluation, compilation.

JAX returns before the work is done, and the probe keeps that: the end of a step is when its
outputs are ready, which is looked at whenever the script calls again, and waited for only once two
later steps are under way. So a device always has the next step queued, and no step's end is known
later than two steps after it.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from typing import Any

from .jax_profile import Profiler
from .jax_samples import BatchFinder, array_leaves
from .torch_samples import Taken
from .torch_steps import StepLeader

LOOKAHEAD = 2
HELD = 64  # gradient calls without an update, after which each of them is a step
NO_PHASES = (0.0,) * 6


class Workload:
    """What is known of one function of the user, over all its compiled versions."""

    def __init__(self, watch: Any, mapped: bool) -> None:
        self.watch = watch
        self.gradients = False
        self.updates = False
        self.looped = False
        self.parameters: list[Any] = []  # (shape, dtype) of what it takes a gradient for
        self.finder = BatchFinder(watch.jax, mapped)
        self.gaps = 0  # between steps, in which it was called

    def tracing(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function that may trace, and learn from what it does."""
        frames = self.watch.frames
        frames.append(self)
        try:
            return function(*args, **kwargs)
        finally:
            frames.pop()

    def call(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Call the compiled function; where it is the outermost one, that may be a step."""
        watch = self.watch
        if watch.frames or not watch.trains_here():
            outer = watch.frames[0] if watch.frames else self
            out = self.tracing(target, args, kwargs)
            outer.learn(self)  # a function traced before is not traced again
            return out
        start = watch.called(self)
        compiled = watch.last_compiled
        out = self.tracing(target, args, kwargs)
        watch.returned(self, target, args, kwargs, out, start)
        if watch.last_compiled > max(compiled, start) and (self.gradients or self.updates):
            watch.recorder.pause("compile", start, watch.last_compiled)
        return out

    def learn(self, inner: Any) -> None:
        """What a function does that this one calls."""
        self.gradients |= inner.gradients
        self.updates |= inner.updates
        if inner.looped:
            self.looped, self.finder.loop_length = True, inner.finder.loop_length
        if not self.parameters:
            self.parameters = inner.parameters


class _Pending:
    """A call whose outputs may not be ready: by which array to know it, and what it was."""

    def __init__(self, workload: Workload, mark: Any, samples: Any) -> None:
        self.workload, self.mark, self.samples = workload, mark, samples
        self.returned = time.perf_counter()

    def ready(self) -> bool:
        mark = self.mark
        return mark is None or mark.is_deleted() or mark.is_ready()

    def wait(self) -> None:
        try:
            if not self.ready():
                self.mark.block_until_ready()
        except Exception:
            return  # the script meets the same error where it uses the outputs


class StepWatch:
    """All that is watched in one process."""

    def __init__(self, jax: Any, recorder: Any) -> None:
        self.jax, self.recorder = jax, recorder
        self.loops: list[Any] = []  # lengths of the loops that are being traced
        self.last_compiled = 0.0
        self._local = threading.local()
        self._thread: Any = None
        self._workloads: Any = weakref.WeakKeyDictionary()
        self._pending: deque[_Pending] = deque()
        self._leader = StepLeader(self._cut, self._emit)
        self._samples: Any = None
        self._held: list[Any] = []
        self._apart: Any = None  # gradients and updates come from different calls
        self._steps = 0
        self._ended = self._lasted = 0.0  # of the last step: its end, its seconds
        self._trained: set[Workload] = set()  # kept alive: the leader is known by identity
        self._gap: dict[Workload, list[float]] = {}
        self._eager = Workload(self, False)
        self.profiler = Profiler(jax, recorder, self.frames)

    @property
    def frames(self) -> list[Workload]:
        """The observed functions that are being traced or called in this thread."""
        try:
            return self._local.frames  # type: ignore[no-any-return]
        except AttributeError:
            self._local.frames = []
            return self._local.frames  # type: ignore[no-any-return]

    def workload(self, function: Any, mapped: bool) -> Workload:
        """The one of this function: JAX shares its traces among all that compile it."""
        key = getattr(function, "__func__", function)
        try:
            known = self._workloads.get(key)
            if known is None:
                known = self._workloads[key] = Workload(self, mapped)
        except TypeError:  # cannot be referred to weakly
            known = Workload(self, mapped)
        return known  # type: ignore[no-any-return]

    def trains_here(self) -> bool:
        """Whether this is the thread that trains; the first one that takes a step is it."""
        return self._thread in (None, threading.get_ident())

    # What is seen while tracing, or eagerly

    def gradient(self, asked: Any) -> None:
        """A gradient is taken for the values ``asked``."""
        if self.frames:
            outer = self.frames[0]
            outer.gradients = True
            if self.loops:
                outer.looped = True
                outer.finder.loop_length = self.loops[-1]
            if not outer.parameters:
                outer.parameters = [
                    (tuple(a.shape), a.dtype) for a in array_leaves(self.jax, asked)
                ]

    def after_gradient(self, function: Any, args: Any, kwargs: Any, out: Any, start: float) -> None:
        """A gradient was computed: outside of any compiled function that is a step."""
        if self.frames or not self.trains_here():
            return
        tracer = self.jax.core.Tracer
        if any(isinstance(a, tracer) for a in self.jax.tree_util.tree_leaves((args, out))):
            return
        workload = self.workload(function, False)
        workload.gradients = True
        self.recorder.begin(start)
        self.returned(workload, None, args, kwargs, out, start)

    def updated(self, args: Any) -> None:
        """Weights are updated by optax."""
        if self.frames:
            self.frames[0].updates = True
        elif self.trains_here():
            tracer = self.jax.core.Tracer
            if not any(isinstance(a, tracer) for a in self.jax.tree_util.tree_leaves(args)):
                self._eager.updates = True
                self._append(_Pending(self._eager, None, None))

    def compiled(self, event: str, seconds: float, **_more: Any) -> None:
        """JAX says that it has traced, lowered or compiled something."""
        if event.startswith("/jax/core/compile/"):
            self.last_compiled = time.perf_counter()

    # Calls of compiled functions

    def called(self, workload: Workload) -> float:
        """An outermost call begins; what was under way may be ready by now."""
        self._drain(LOOKAHEAD)
        if workload.gradients or workload.updates:
            self._end_gap()
        elif self._steps and workload.gaps * 2 <= self._steps:
            self._drain(0)  # rare: an evaluation, to be told apart from the steps before it
        now = time.perf_counter()
        if workload.gradients:
            self.recorder.begin(now)
        return now

    def returned(
        self, workload: Workload, target: Any, args: Any, kwargs: Any, out: Any, start: float
    ) -> None:
        """An outermost call has returned."""
        if not (workload.gradients or workload.updates):
            entry = self._gap.setdefault(workload, [start, 0.0])
            entry[1] += 1
            return
        self._thread = threading.get_ident()
        self._trained.add(workload)
        self.recorder.begin(start)
        samples = None
        if workload.gradients:
            samples = workload.finder.samples(args, kwargs, out)
            self._doubts(workload)
        self._append(_Pending(workload, _mark(array_leaves(self.jax, out)), samples))
        if workload.gradients and target is not None:
            self.profiler.look_at(workload, target, args, kwargs)

    def _append(self, pending: _Pending) -> None:
        self._pending.append(pending)
        self._drain(LOOKAHEAD)

    def _drain(self, most: int) -> None:
        """Take from what is under way what is ready, and wait for all but the last ``most``."""
        while self._pending:
            first = self._pending[0]
            if len(self._pending) > most:
                first.wait()
            elif not first.ready():
                return
            self._pending.popleft()
            self._completed(first.workload, first.samples, time.perf_counter())

    def _completed(self, workload: Workload, samples: Any, end: float) -> None:
        if workload.gradients and (workload.updates or self._apart is False):
            self._count(workload, samples, end)
        elif workload.gradients:
            self._held.append((workload, samples, end))
            if self._apart is None and len(self._held) > HELD:
                self._release()
        elif self._held:
            self._apart = True
            known = [s for _, s, _ in self._held if s is not None]
            self._held = []
            self._count(workload, sum(known) if known else None, end)

    def _release(self) -> None:
        """No update was ever seen: every gradient is a step."""
        self._apart = False
        held, self._held = self._held, []
        for workload, samples, end in held:
            self._count(workload, samples, end)

    def _count(self, workload: Workload, samples: Any, end: float) -> None:
        self._samples = samples
        self._leader.stepped(workload, end)

    def _cut(self) -> Any:
        return Taken(self._samples, True), NO_PHASES

    def _emit(self, end: float, taken: Any, phases: Any, skipped: bool) -> None:
        self._steps += 1
        if self._ended:
            self._lasted = end - self._ended
        self._ended = end
        self.recorder.step(end, taken.samples, phases, skipped)

    def _end_gap(self) -> None:
        """Training goes on: what was called in between, and is not in every gap, was evaluation."""
        if not self._gap:
            return
        gap, self._gap = self._gap, {}
        starts = []
        for workload, (start, times) in gap.items():
            workload.gaps += 1
            rare = workload.gaps * 2 <= self._steps
            if rare or (self._steps <= 1 and times > 1):
                starts.append(start)
        if starts and self._steps:
            self.recorder.pause("evaluation", min(starts), time.perf_counter())

    def looked_at(self) -> None:
        """The script has waited for some outputs."""
        self._drain(LOOKAHEAD)

    def finish(self) -> None:
        """The process ends: write what was kept back.

        When the last steps became ready is not known if the script called nothing since; they are
        taken to have lasted as long as the one before.
        """
        while self._pending and self._pending[0].ready():
            last = self._pending.popleft()
            end = max(self._ended, last.returned) + self._lasted
            self._completed(last.workload, last.samples, min(end, time.perf_counter()))
        self._drain(0)
        if self._held and self._apart is None:
            self._release()
        self._leader.finish()

    # Doubts and the profile

    def _doubts(self, workload: Workload) -> None:
        note, recorder = self.recorder.note, self.recorder
        remedy = "say --samples-per-step N, or iterate over underdog.track(loader)"
        if workload.finder.unknown and recorder.samples_per_step is None:
            note("samples_unknown", "which input holds the samples is not clear", remedy)
        if workload.looped:
            note(
                "steps_inside_jit",
                "a compiled function takes gradients in a loop, so one of its calls, which counts "
                "as one step, may be several steps or one with accumulated gradients",
                "say --samples-per-step N with the samples of one call if they are not right",
            )


def _mark(arrays: Any) -> Any:
    """The smallest output: a loss, most often, that no later call takes over."""
    waitable = [a for a in arrays if hasattr(a, "is_ready") and hasattr(a, "is_deleted")]
    return min(waitable, key=lambda a: a.size, default=None)
