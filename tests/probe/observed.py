"""Runs a script with the probe inside and reads what both of them say."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from underdog.measuring import injection

SCRIPTS = Path(__file__).parent / "scripts"
FIRST = 4  # steps that the rates leave out, as in scripts/truth.py


@dataclass
class Process:
    """The records of one observed process."""

    steps: list[list[float]] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [r for r in self.records if r["kind"] == kind]

    @property
    def about(self) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for record in self.of("process"):
            merged |= record
        return merged

    @property
    def samples(self) -> float:
        return sum(step[2] for step in self.steps)

    @property
    def rate(self) -> float:
        return sum(s[2] for s in self.steps[FIRST:]) / (
            self.steps[-1][1] - self.steps[FIRST - 1][1]
        )

    def paused(self, kind: str) -> float:
        return sum(r["end"] - r["start"] for r in self.of("pause") if r["pause"] == kind)

    @property
    def notes(self) -> set[str]:
        return {r["code"] for r in self.of("note")}


@dataclass
class Observed:
    """What the script said of itself (one object per rank), and what the probe saw."""

    truths: list[dict[str, Any]]
    processes: list[Process]
    returncode: int
    stderr: str

    @property
    def trained(self) -> list[Process]:
        return [p for p in self.processes if p.steps]

    @property
    def only(self) -> Process:
        (process,) = self.trained
        return process


def observe(
    arguments: Sequence[str],
    folder: Path,
    python: Sequence[str] = (sys.executable,),
    environment: dict[str, str] | None = None,
    **options: Any,
) -> Observed:
    """Run ``python SCRIPT …`` under the probe; ``options`` are those of the injection."""
    folder.mkdir(exist_ok=True)
    options.setdefault("profile", False)
    child = injection.environment(folder, **options)
    child |= {"OMP_NUM_THREADS": "1"} | (environment or {})
    done = subprocess.run(
        [*python, *arguments],
        env=child,
        cwd=SCRIPTS,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    truths = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"pid"')]
    processes = [read(path) for path in sorted(folder.glob("*.jsonl"))]
    return Observed(truths, processes, done.returncode, done.stderr)


def read(path: Path) -> Process:
    process = Process()
    for line in path.read_text().splitlines():
        value = json.loads(line)
        if isinstance(value, list):
            process.steps.append(value)
        else:
            process.records.append(value)
    return process


def rate_differs(process: Process, truth: dict[str, Any]) -> bool:
    """Whether the rate is off by 2 %, between two steps that both clocks saw end undisturbed.

    On a busy machine another process may run between the probe's look at the clock and the
    script's; so the window's ends are the closest of the first and of the last few steps.
    """
    gap = [abs(s[1] - end) for s, end in zip(process.steps, truth["ends"], strict=True)]
    first = min(range(FIRST - 1, min(FIRST + 4, len(gap) - 1)), key=gap.__getitem__)
    last = min(range(max(first + 1, len(gap) - 5), len(gap)), key=gap.__getitem__)
    theirs = truth["ends"][last] - truth["ends"][first]
    ours = process.steps[last][1] - process.steps[first][1]
    # the samples between are the same; a step that ended at the wrong event would be 4 ms off
    return abs(theirs - ours) > max(0.02 * ours, 0.001)


def check(observed: Observed) -> None:
    """Counts exact and the rate within 2 %, for each process that trained."""
    assert observed.returncode == 0, observed.stderr
    assert len(observed.truths) == len(observed.trained) > 0, observed.stderr
    ours = {p.about["pid"]: p for p in observed.trained}
    for truth in observed.truths:
        process = ours[truth["pid"]]
        found = {
            "steps": len(process.steps),
            "samples": process.samples,
            "skipped": sum(step[9] for step in process.steps),
        }
        assert found == {name: truth[name] for name in found}
        if truth["rate"] is not None:
            assert not rate_differs(process, truth)
        for step, before in zip(process.steps[1:], process.steps, strict=False):
            assert step[0] == before[1]
        for step in process.steps:
            assert min(step[3:9]) >= 0
            assert sum(step[3:9]) <= step[1] - step[0] + 1e-5
