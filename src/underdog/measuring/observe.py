"""Watching one run from its start to the end of its last process, and deciding when to end it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from underdog.core.series import Series
from underdog.core.stats import Throughput, is_precise
from underdog.measuring.interrupts import Interrupts
from underdog.measuring.launch import Script
from underdog.measuring.output import Output
from underdog.measuring.readings import read_tree, written_files
from underdog.measuring.records import RecordsReader
from underdog.measuring.sampler import Sampler

Ending = Literal["itself", "precision", "time", "silence", "interrupt"]

POLL = 0.1  # seconds
GRACE = 10.0  # seconds between SIGTERM and SIGKILL
INTERRUPT_GRACE = 30.0  # seconds that a script gets to end by itself after Ctrl-C
FEWEST_SECONDS = 5.0  # after the first step, before the interval is believed
AGREEING_LOOKS = 3  # in a row: an interval that is small once may be so by luck
GROWTH = 1.05  # steps between two looks, so that looks stay cheap and differ
CHECKPOINT_LIMIT = 60.0  # seconds for which a file that is being written holds the end up
CHECKPOINT_LOOK = 0.25  # seconds between two looks at the sizes of open files
CHECKPOINT_GROWTH = 65536  # bytes in that time; a log grows slower, a checkpoint faster
QUIET_CORES = 0.02  # processor use below which a tree does nothing
QUIET_BYTES = 4096  # written in the same time


@dataclass(frozen=True, slots=True)
class Limits:
    """When a run ends at the latest, and when early. None: this never ends it."""

    seconds: float | None = 300.0
    precision: float | None = 0.02  # half the 95 % interval over the mean
    silence: float | None = 120.0  # seconds without step, output and processor use


@dataclass(frozen=True, slots=True)
class Progress:
    """For the one who watches.

    ``elapsed`` counts from ``began``, a time of ``time.perf_counter()`` as those of the steps are.
    """

    elapsed: float
    result: Throughput | None
    series: Series | None = None  # the steps that the result is of
    sampler: Sampler | None = None
    began: float = 0.0

    def span(self) -> tuple[float, float]:
        """The time that counts so far: see ``steady_span``."""
        if self.series is None or self.result is None:
            return self.began, self.began + self.elapsed
        return steady_span(self.series, self.result)


def steady_span(series: Series, result: Throughput) -> tuple[float, float]:
    """From the first step after the warm-up to the last; there must be a step."""
    first = min(result.warmup_steps, len(series) - 1)
    return float(series.start[first]), float(series.end[-1])


class StopRule:
    """Says when the interval is narrow enough."""

    def __init__(self, precision: float | None) -> None:
        self._precision = precision
        self._agreed = 0
        self._next_steps = 0.0

    def satisfied(self, result: Throughput | None) -> bool:
        """One look at a newer result; True when enough looks in a row agree."""
        if self._precision is None or result is None or result.steps < self._next_steps:
            return False
        self._next_steps = result.steps * GROWTH + 1
        narrow = result.seconds >= FEWEST_SECONDS and is_precise(result, self._precision)
        self._agreed = self._agreed + 1 if narrow else 0
        return self._agreed >= AGREEING_LOOKS


class Silence:
    """Tells for how long a tree has shown no sign of life."""

    def __init__(self, now: float) -> None:
        self._since = now
        self._last: tuple[float, float, int] | None = None

    def sign_of_life(self, now: float) -> None:
        """A step, or output."""
        self._since = now

    def sample(self, time_: float, cpu_seconds: float, written: int) -> None:
        """One reading of the tree."""
        if self._last is not None and time_ > self._last[0]:
            cores = abs(cpu_seconds - self._last[1]) / (time_ - self._last[0])
            if cores > QUIET_CORES or abs(written - self._last[2]) > QUIET_BYTES:
                self._since = time_
        self._last = (time_, cpu_seconds, written)

    def seconds(self, now: float) -> float:
        """How long it has been silent."""
        return now - self._since


class Observer:
    """Watches one run.

    Args:
        look: makes the job's steps and their rate so far of the records; its cost is watched and
            bounded.
        progress_line: what a terminal shows meanwhile.
        listener: is told of every look.
    """

    def __init__(
        self,
        script: Script,
        reader: RecordsReader,
        sampler: Sampler,
        output: Output,
        limits: Limits,
        *,
        interrupts: Interrupts,
        look: Callable[[], tuple[Series, Throughput] | None],
        progress_line: Callable[[Progress], str] | None = None,
        listener: Callable[[Progress], None] | None = None,
    ) -> None:
        self.script, self.reader, self.sampler, self.output = script, reader, sampler, output
        self.limits = limits
        self.interrupts = interrupts
        self.look = look
        self.progress_line = progress_line
        self.listener = listener
        self.began = time.perf_counter()
        self.ending: Ending = "itself"
        self._answered = 0  # one that came before the script had started counts too
        self._deadline: float | None = None  # of a script that was interrupted
        self._seen_output = 0

    def watch(self) -> Ending:
        """Until the command has ended; everything it left behind is ended too."""
        rule = StopRule(self.limits.precision)
        silence = Silence(self.began)
        next_look = self.began + 1.0
        stopping = False
        while self.script.poll(POLL) is None:
            fresh = self.reader.poll()
            now = time.perf_counter()
            stopping = self._pass_on_interrupts(now) or stopping
            self._watch_life(silence, now, fresh)
            if now >= next_look:
                series, result = self.look() or (None, None)
                cost = time.perf_counter() - now
                next_look = now + max(0.5, cost * 50)
                elapsed = now - self.began
                self._show(Progress(elapsed, result, series, self.sampler, self.began))
                if not stopping and self.ending == "itself":
                    self.ending = self._reason_to_end(rule, silence, result, now)
            if not stopping and self.ending not in ("itself", "interrupt"):
                stopping = True
                self._end()
        self.script.wait_gone(GRACE + 10)
        return self.ending

    def _reason_to_end(
        self, rule: StopRule, silence: Silence, result: Throughput | None, now: float
    ) -> Ending:
        if rule.satisfied(result):
            return "precision"
        if self.limits.seconds is not None and now - self.began >= self.limits.seconds:
            return "time"
        if self.limits.silence is not None and silence.seconds(now) >= self.limits.silence:
            # the sampler's rhythm is slower than the limit where a look at the machine is dear
            self.sampler.look()
            self._watch_life(silence, time.perf_counter(), fresh=False)
            if silence.seconds(time.perf_counter()) >= self.limits.silence:
                return "silence"
        return "itself"

    def _watch_life(self, silence: Silence, now: float, fresh: bool) -> None:
        if fresh or self.output.total != self._seen_output:
            self._seen_output = self.output.total
            silence.sign_of_life(now)
        if self.sampler.samples:
            sample = self.sampler.samples[-1]
            tree = sample.tree
            silence.sample(sample.time, tree.user + tree.system, tree.write_calls or 0)

    def _show(self, progress: Progress) -> None:
        self.output.follow_window()
        if self.listener:
            with contextlib.suppress(OSError):  # a full disk ends no measurement
                self.listener(progress)
        if self.progress_line and self.output.screen:
            self.output.screen.status(self.progress_line(progress))

    def _pass_on_interrupts(self, now: float) -> bool:
        """Give the user's signals to the script; True once there was one."""
        if self.interrupts.count == self._answered:
            if self._deadline is not None and now > self._deadline:
                self._deadline = None
                self._end()
            return False
        again = self.ending == "interrupt" or self.interrupts.count - self._answered > 1
        self._answered = self.interrupts.count
        self.ending = "interrupt"
        if again:
            self.script.kill()
        elif self.interrupts.polite:
            self.script.interrupt()
            self._deadline = now + INTERRUPT_GRACE
        else:
            self.script.stop(GRACE)
        return True

    def _end(self) -> None:
        """Ask the script to end; a checkpoint that is being written is waited for."""
        deadline = time.perf_counter() + CHECKPOINT_LIMIT
        while time.perf_counter() < deadline and self.writes_checkpoint():
            if self.script.poll() is not None or self.interrupts.count != self._answered:
                break
        self.script.stop(GRACE)

    def writes_checkpoint(self) -> bool:
        """True while a file that a process of the tree has open grows as only a big one does."""
        pids = [pid for pid in read_tree(self.script.root).pids if pid != self.script.root]
        ours = str(self.reader.folder)
        before = written_files(pids, ours)
        time.sleep(CHECKPOINT_LOOK)
        after = written_files(pids, ours)
        return any(size - before.get(key, 0) >= CHECKPOINT_GROWTH for key, size in after.items())
