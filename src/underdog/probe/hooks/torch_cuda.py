"""Phases and step ends on the accelerator's clock, without ever waiting for it.

The processor only queues the work. So an event is queued at each change of phase, and when the
device has passed the last one of a step, the times between them are what the phases took, and
the step is written.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from .torch_clock import OTHER, WRITTEN

MEMORY_SECONDS = 5.0


class DeviceTimeline:
    """Steps whose end the device has not reached yet.

    Args:
        new_event: makes an event with ``record()``, ``query()``, ``synchronize()`` and
            ``elapsed_time(other)`` in milliseconds, like ``torch.cuda.Event``.
        write: ``write(end, samples, phases, skipped)`` of the recorder.
        may_record: False while the stream is captured into a graph.
    """

    def __init__(
        self,
        new_event: Callable[[], Any],
        write: Callable[..., None],
        may_record: Callable[[], bool] = lambda: True,
    ) -> None:
        self._new_event = new_event
        self._write = write
        self._may_record = may_record
        self._spare: list[Any] = []
        self._marks: list[tuple[int, Any]] = []
        self._waiting: deque[tuple[list[tuple[int, Any]], tuple[Any, ...]]] = deque()
        self._ended: float | None = None

    def mark(self) -> Any:
        """Queue an event on the device now; None where that may not be."""
        if not self._may_record():
            return None
        event = self._spare.pop() if self._spare else self._new_event()
        event.record()
        return event

    def switch(self, phase: int, mark: Any) -> None:
        """From that mark on the device worked on that phase."""
        if mark is not None:
            self._marks.append((phase, mark))

    def position(self) -> int:
        """Where in the step the queue is now."""
        return len(self._marks)

    def leave_out(self, position: int) -> None:
        """What was queued since that position belongs to no phase."""
        self._marks[position:] = [(OTHER, event) for _, event in self._marks[position:]]

    def step(
        self, end: float, samples: float | None, phases: tuple[float, ...], skipped: bool
    ) -> None:
        """A step was queued to its end, the last mark; it is written when the device gets there."""
        if not self._marks:
            self._write(end, samples, phases, skipped)
            return
        self._waiting.append((self._marks, (end, samples, phases, skipped)))
        self._marks = [(OTHER, self._marks[-1][1])]
        self.drain()

    def drain(self, wait: bool = False) -> None:
        """Write the steps that the device has ended, or all, waiting for it."""
        while self._waiting:
            marks, known = self._waiting[0]
            last = marks[-1][1]
            if wait:
                last.synchronize()
            elif not last.query():
                return
            self._waiting.popleft()
            self._resolve(marks, known)

    def _resolve(self, marks: list[tuple[int, Any]], known: tuple[Any, ...]) -> None:
        end, samples, phases, skipped = known
        seconds = [0.0] * 8
        for (phase, event), (_, after) in zip(marks, marks[1:]):  # noqa: B905, RUF007
            seconds[phase] += event.elapsed_time(after) / 1000
        if self._ended is None:
            self._ended = end
        else:
            self._ended += sum(seconds)
            phases = tuple(seconds[:WRITTEN])
        self._write(self._ended, samples, phases, skipped)
        self._spare.extend(event for _, event in marks[:-1])


def watch_work(torch: Any, tap: Any, recorder: Any) -> None:
    """Use the device's clock from the first step on that uses the device."""

    def after_step(index: int, start: float, end: float, samples: float | None) -> None:
        if tap.mark is None and torch.cuda.is_initialized():
            timeline = DeviceTimeline(
                lambda: torch.cuda.Event(enable_timing=True),
                recorder.step,
                lambda: not torch.cuda.is_current_stream_capturing(),
            )
            tap.mark, tap.observer.clock.device = timeline.mark, timeline

    recorder.after_step(after_step)


def watch_memory(torch: Any, recorder: Any) -> None:
    """Record the peak of the device's memory now and then, and at the end."""
    import time

    told = [time.perf_counter(), 0]

    def before_flush(last: bool) -> None:
        now = time.perf_counter()
        if (last or now - told[0] >= MEMORY_SECONDS) and torch.cuda.is_initialized():
            told[0] = now
            peak = torch.cuda.max_memory_allocated()
            if peak > told[1]:
                told[1] = peak
                reserved = torch.cuda.max_memory_reserved()
                recorder.write(
                    "memory", accelerator_peak_bytes=peak, accelerator_reserved_bytes=reserved
                )

    recorder.before_flush(before_flush)
