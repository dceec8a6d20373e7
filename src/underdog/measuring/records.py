"""Reading the records folder while it is being written; ``docs/reference/records.md`` is the form.

Nothing in the folder is trusted: a line that is cut off, garbage, or not of the documented form
is counted and passed over.
"""

from __future__ import annotations

import contextlib
import math
import os
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import msgspec

STEP_FIELDS = 10
PHASES = ("data", "transfer", "forward", "backward", "optimizer", "communication")
CHUNK = 1 << 22  # bytes read of one file at a time
LINE_LIMIT = 1 << 22  # a longer line is garbage


@dataclass(slots=True)
class ProcessRecords:
    """What one process wrote. ``steps`` is flat: ten numbers per step, as documented."""

    path: Path
    process: dict[str, Any] = field(default_factory=dict)
    steps: array[float] = field(default_factory=lambda: array("d"))
    pauses: list[tuple[str, float, float]] = field(default_factory=list)  # kind, start, end
    rates: list[tuple[float, float, float]] = field(default_factory=list)  # start, end, samples
    software: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    notes: list[dict[str, str]] = field(default_factory=list)
    error: dict[str, Any] | None = None
    ended: bool = False
    garbage: int = 0

    @property
    def step_count(self) -> int:
        """How many steps it took."""
        return len(self.steps) // STEP_FIELDS

    @property
    def rank(self) -> int:
        """Its rank in the job, 0 where it is alone."""
        rank = self.process.get("rank")
        return rank if isinstance(rank, int) and rank >= 0 else 0

    @property
    def span(self) -> tuple[float, float]:
        """From the start of its first step to the end of its last; it must have one."""
        return self.steps[0], self.steps[-STEP_FIELDS + 1]

    def take(self, value: Any) -> bool:
        """One decoded line; False where it is not of the documented form."""
        if isinstance(value, list):
            return self._take_step(value)
        if not isinstance(value, dict):
            return False
        kind = value.pop("kind", None)
        taker = getattr(self, f"_take_{kind}", None) if isinstance(kind, str) else None
        return bool(taker and taker(value))

    def _take_step(self, value: list[Any]) -> bool:
        if len(value) < 3 or not all(is_number(x) for x in value) or value[1] < value[0]:
            return False
        if self.steps and value[1] < self.span[1]:
            return False  # time does not run backwards
        self.steps.extend((value + [0.0] * STEP_FIELDS)[:STEP_FIELDS])
        return True

    def _take_process(self, value: dict[str, Any]) -> bool:
        self.process = {**self.process, **value}
        return True

    def _take_pause(self, value: dict[str, Any]) -> bool:
        start, end, name = value.get("start"), value.get("end"), value.get("pause")
        if not (is_number(start) and is_number(end) and isinstance(name, str) and end >= start):
            return False
        self.pauses.append((name, start, end))
        return True

    def _take_phases(self, value: dict[str, Any]) -> bool:
        step = value.get("step")
        if not isinstance(step, int) or not 0 <= step < self.step_count:
            return False
        for index, name in enumerate(PHASES):
            if is_number(value.get(name)) and value[name] >= 0:
                self.steps[step * STEP_FIELDS + 3 + index] = value[name]
        return True

    def _take_software(self, value: dict[str, Any]) -> bool:
        for name in ("libraries", "settings"):
            if isinstance(value.get(name), dict):
                self.software[name] = {**self.software.get(name, {}), **value[name]}
        return True

    def _take_profile(self, value: dict[str, Any]) -> bool:
        self.profile |= {k: v for k, v in value.items() if v is not None}
        return True

    def _take_memory(self, value: dict[str, Any]) -> bool:
        self.memory |= {k: v for k, v in value.items() if is_number(v)}
        return True

    def _take_note(self, value: dict[str, Any]) -> bool:
        texts = {k: value.get(k, "") for k in ("code", "message", "remedy")}
        if not all(isinstance(v, str) for v in texts.values()) or not texts["code"]:
            return False
        self.notes.append(texts)
        return True

    def _take_rate(self, value: dict[str, Any]) -> bool:
        samples, seconds, end = value.get("samples"), value.get("seconds"), value.get("end")
        if not (is_number(samples) and is_number(seconds) and is_number(end) and seconds > 0):
            return False
        self.rates.append((end - seconds, end, samples))
        return True

    def _take_error(self, value: dict[str, Any]) -> bool:
        self.error = value
        return True

    def _take_end(self, value: dict[str, Any]) -> bool:
        self.ended = True
        return True


class RecordsReader:
    """Follows all files of a folder as they appear and grow."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._files: dict[str, _File] = {}

    def poll(self, all_of_it: bool = False) -> bool:
        """Read what is new, a chunk per file or ``all_of_it``; True where there was any.

        A folder that was deleted has nothing new.
        """
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(self.folder)):
                if name.endswith(".jsonl") and name not in self._files:
                    self._files[name] = _File(self.folder / name)
        found = False
        for file in self._files.values():
            while file.read():
                found = True
                if not all_of_it:
                    break
        return found

    @property
    def processes(self) -> list[ProcessRecords]:
        """Of every file that was seen."""
        return [file.records for file in self._files.values()]

    @property
    def garbage(self) -> int:
        """Lines that could not be read."""
        return sum(file.records.garbage for file in self._files.values())


class _File:
    """One file and how far it is read."""

    def __init__(self, path: Path) -> None:
        self.records = ProcessRecords(path)
        self._offset = 0
        self._rest = b""
        self._decoder = msgspec.json.Decoder()

    def read(self) -> bool:
        try:
            with open(self.records.path, "rb") as file:
                file.seek(self._offset)
                data = file.read(CHUNK)
        except OSError:
            return False
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_LIMIT:
            self._rest = b""
            self.records.garbage += 1
        for line in lines:
            if line.strip():
                self._take(line)
        return bool(data)

    def _take(self, line: bytes) -> None:
        try:
            known = self.records.take(self._decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            known = False
        self.records.garbage += not known


def is_number(value: Any) -> TypeGuard[float]:
    """True for a finite int or float; JSON has no other numbers, but NaN slips in."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
