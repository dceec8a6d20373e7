"""Reading a script's own rate from its output: ``--pattern``."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from pathlib import Path

from underdog.errors import UsageError, did_you_mean

GROUPS = ("rate", "samples", "seconds", "step")
EXAMPLE = r"Write it like --pattern '(?P<rate>[\d.,]+) samples/s'."


def compile_pattern(text: str, samples_per_step: float | None) -> re.Pattern[str]:
    """The regular expression, checked for the named groups that it needs.

    Raises:
        UsageError: it is no regular expression, names an unknown group, or gives no way to know
            the samples.
    """
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise UsageError(f"'{text}' is not a regular expression: {error}.", EXAMPLE) from None
    groups = set(pattern.groupindex)
    for name in sorted(groups - set(GROUPS)):
        raise UsageError(
            f"'{text}' names a group '{name}' that means nothing here.", did_you_mean(name, GROUPS)
        )
    if not groups & {"rate", "samples", "step"}:
        raise UsageError(f"'{text}' names no group 'rate', 'samples' or 'step'.", EXAMPLE)
    if groups & {"rate", "samples"} == set() and samples_per_step is None:
        raise UsageError(
            f"'{text}' reads steps only, from which samples do not follow.",
            "Say how many samples a step takes: --samples-per-step 64",
        )
    return pattern


class RateReader:
    """Turns matching lines into ``rate`` records of the records folder.

    Each match stands for the time since the match before (or for its group ``seconds``), so the
    first one without ``seconds`` only starts the clock. ``rate`` is samples per second,
    ``samples`` counts those of that time, ``step`` is a running number of steps.
    """

    def __init__(
        self,
        pattern: re.Pattern[str],
        folder: Path,
        samples_per_step: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.matches = 0
        self.unreadable = 0
        self._pattern = pattern
        self._path = folder / f"pattern-{time.time_ns()}.jsonl"
        self._samples_per_step = samples_per_step
        self._clock = clock
        self._last_time: float | None = None
        self._last_step: float | None = None

    def line(self, text: str) -> None:
        """One line of the script's output."""
        for match in self._pattern.finditer(text):
            now = self._clock()
            values = {k: number(v) for k, v in match.groupdict().items() if v is not None}
            if None in values.values():
                self.unreadable += 1
                continue
            self.matches += 1
            self._record(now, {k: v for k, v in values.items() if v is not None})

    def _record(self, now: float, values: dict[str, float]) -> None:
        since = None if self._last_time is None else now - self._last_time
        seconds = values.get("seconds", since)
        samples = self._samples(values, seconds)
        self._last_time = now
        self._last_step = values.get("step", self._last_step)
        if not seconds or samples is None or seconds <= 0 or samples <= 0:
            return
        record = {"kind": "rate", "samples": samples, "seconds": seconds, "end": now}
        try:
            with self._path.open("a") as file:
                file.write(json.dumps(record) + "\n")
        except OSError:  # the folder was deleted or the disk is full; the script goes on
            self.unreadable += 1

    def _samples(self, values: dict[str, float], seconds: float | None) -> float | None:
        if "samples" in values:
            return values["samples"]
        if "rate" in values:
            return None if seconds is None else values["rate"] * seconds
        if self._samples_per_step and self._last_step is not None:
            return (values["step"] - self._last_step) * self._samples_per_step
        return None


def number(text: str) -> float | None:
    """A number as people print it, ``1,234.5`` or ``1.2e3``; None where it is none."""
    try:
        value = float(text.replace(",", "").replace("_", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None
