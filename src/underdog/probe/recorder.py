"""What the probe writes down: one file per observed process, in the run's folder of records.

The format is documented in ``docs/reference/records.md``. Nothing here raises into the user's
program: a folder that is gone or a disk that is full ends the recording with one line on stderr.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

PHASES = ("data", "transfer", "forward", "backward", "optimizer", "communication")
_STEP_FORMAT = "[{:.7f},{:.7f},{:.12g}" + ",{:.7g}" * len(PHASES) + ",{:d}]"
NO_PHASES = (0.0,) * len(PHASES)
FLUSH_SECONDS = 0.25

if TYPE_CHECKING:  # not evaluated: Python 3.8 could not
    # called after each step with its index in this file, start, end (perf_counter seconds) and
    # samples (None where unknown)
    StepListener = Callable[[int, float, float, float | None], None]


class Recorder:
    """Buffers records and appends them to ``<pid>-<start_ns>.jsonl`` in the folder.

    A worker of ``multiprocessing`` and a forked child hold their records back until they take a
    training step, so that a data-loader worker leaves no file, while a rank that was spawned does.

    Args:
        folder: where the records go; it exists.
        samples_per_step: overrides what the hooks count, for each step of this process.
        worker: this process is a worker of ``multiprocessing``.
    """

    def __init__(
        self, folder: str, samples_per_step: float | None = None, worker: bool = False
    ) -> None:
        self.folder = folder
        self.samples_per_step = samples_per_step
        self.steps = 0
        self.framework: str | None = None
        self.fetcher: Any = None  # a hook's own way to fetch and count for `underdog.track`
        self._framework_version: str | None = None
        self._listeners: list[StepListener] = []
        self._before_flush: list[Callable[[bool], None]] = []
        self._forked = False
        self._clear(held=worker)

    def _clear(self, held: bool) -> None:
        self._lock = threading.RLock()
        self._buffer: list[str] = []
        self._pending: list[tuple[Any, ...]] = []
        self.last_step_seconds = 0.0
        self._descriptor: int | None = None
        self._held = held
        self._off = False
        self._flushing = False
        self._noted: dict[str, bool] = {}
        self._start: float | None = None
        self._flushed = time.perf_counter()
        self.steps = 0

    # What hooks call

    def process(self, framework: str, version: str, **fields: Any) -> None:
        """Say which process this is. May be said again when more is known; the last counts."""
        self.framework, self._framework_version = framework, version
        self._write_process(fields)
        if not self._held:
            self.flush()

    def begin(self, start: float) -> bool:
        """Where the first step starts; False, and no effect, once a step was taken or begun."""
        if self._start is not None:
            return False
        self._start = start
        return True

    def restart(self, start: float) -> None:
        """Move the start of the step in progress: what came before belongs to no step."""
        self._start = start

    def step(
        self,
        end: float,
        samples: float | None = None,
        phases: Sequence[float] = NO_PHASES,
        skipped: bool = False,
    ) -> None:
        """One attempt to update the weights ended.

        Args:
            end: ``time.perf_counter()`` at its end; it started where the step before ended.
            samples: how many samples it used; None where unknown.
            phases: seconds of data, transfer, forward, backward, optimizer, communication.
            skipped: a gradient scaler skipped the update.
        """
        if self._off:
            return
        start = end if self._start is None else self._start
        if self.samples_per_step is not None:
            samples = self.samples_per_step
        with self._lock:
            self._start = end
            self._pending.append(
                (start, end, -1 if samples is None else samples, *phases, int(skipped))
            )
            self.steps += 1
            self.last_step_seconds = end - start
        for listener in self._listeners:
            self._guard(listener, self.steps - 1, start, end, samples)
        if self._held:
            self._release()
        if end - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def pause(self, kind: str, start: float, end: float) -> None:
        """Time inside a step that is not training: evaluation, checkpoint, compile, profile."""
        self.write("pause", pause=kind, start=start, end=end)

    def note(self, code: str, message: str, remedy: str) -> None:
        """A caveat that the probe itself raises; said once per code."""
        if code not in self._noted:
            self._noted[code] = True
            self.write("note", code=code, message=message, remedy=remedy)

    def write(self, kind: str, **fields: Any) -> None:
        """Any other record of the format, in order with the steps."""
        if self._off:
            return
        try:
            line = json.dumps({"kind": kind, **fields}, default=str, allow_nan=False)
        except (TypeError, ValueError):  # a value that is no number, or cannot be told
            return
        with self._lock:
            self._format_steps()
            self._buffer.append(line)

    def after_step(self, listener: StepListener) -> None:
        """Call the listener after each step; what it raises ends its calls, not the program."""
        self._listeners.append(listener)

    def before_flush(self, callback: Callable[[bool], None]) -> None:
        """Call back before each flush, with True at the last one, so that it can add records."""
        self._before_flush.append(callback)

    # The file

    def flush(self, last: bool = False) -> None:
        """Append what is buffered to the file, if this process is not held back."""
        if self._held or self._off or self._flushing:
            return
        with self._lock:
            self._flushing = True
            for callback in self._before_flush:
                self._guard(callback, last)
            self._format_steps()
            lines, self._buffer = self._buffer, []
            self._flushed = time.perf_counter()
            try:
                self._append("".join(line + "\n" for line in lines).encode("utf-8", "replace"))
            except OSError as error:
                self._off = True
                self._say(f"cannot write its records to '{self.folder}' ({error.strerror})")
            finally:
                self._flushing = False

    def end(self) -> None:
        """The interpreter shuts down: record an exception that ended the script, and the end."""
        self._write_error(getattr(sys, "last_value", None))
        self.flush(last=True)  # what callbacks add comes before the end
        self.write("end", perf=time.perf_counter(), reason="exit")
        self.flush()

    def after_fork(self) -> None:
        """In the child of a fork: the parent's file and buffer are the parent's alone."""
        if self._descriptor is not None:
            os.close(self._descriptor)
        self._forked = True
        self._clear(held=True)
        if self.framework is not None:
            self._write_process({})

    def _append(self, data: bytes) -> None:
        if not data:
            return
        if self._descriptor is None:
            path = os.path.join(self.folder, f"{os.getpid()}-{time.time_ns()}.jsonl")
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
            self._descriptor = os.open(path, flags, 0o644)
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _format_steps(self) -> None:
        if self._pending:
            self._buffer.extend(map(_step_line, self._pending))
            self._pending = []

    def _release(self) -> None:
        self._held = False
        if self._forked:  # a forked worker ends without the interpreter's exit handlers
            util = sys.modules.get("multiprocessing.util")
            if util is not None:
                util.Finalize(None, self.end, exitpriority=-1000)

    def _write_process(self, fields: dict[str, Any]) -> None:
        record = {
            "pid": os.getpid(),
            "ppid": os.getppid(),
            "rank": _whole_number("RANK"),
            "local_rank": _whole_number("LOCAL_RANK"),
            "world_size": _whole_number("WORLD_SIZE"),
            "framework": self.framework,
            "framework_version": self._framework_version,
            "python": platform.python_version(),
            "executable": sys.executable,
            "argv": list(getattr(sys, "argv", [])),
            "perf": time.perf_counter(),
            "unix": time.time(),
        }
        record.update(fields)
        self.write("process", **record)

    def _write_error(self, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, SystemExit):
            self.write(
                "error",
                type=type(error).__name__,
                message=str(error)[:2000],
                out_of_memory=is_out_of_memory(error),
            )

    def _guard(self, function: Callable[..., None], *args: Any) -> None:
        try:
            function(*args)
        except Exception as error:
            for registered in (self._listeners, self._before_flush):
                if function in registered:
                    registered.remove(function)
            self.note(
                "probe_error",
                f"A part of the probe failed and was taken out: {type(error).__name__}: {error}",
                "The samples and steps are not concerned; please report it.",
            )

    @staticmethod
    def _say(what: str) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):  # no stderr, or closed
            sys.stderr.write(f"underdog: the probe {what}; the run goes on unmeasured.\n")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on the host or on an accelerator."""
    text = str(error).lower()
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or any(words in text for words in ("out of memory", "can't allocate memory"))
    )


def _step_line(step: tuple[Any, ...]) -> str:
    return _STEP_FORMAT.format(*step)


def _whole_number(variable: str) -> int | None:
    value = os.environ.get(variable, "")
    return int(value) if value.isdigit() else None
