"""What the stores of these tests hold."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from core.offers_and_trials import c1_offers, c1_trials, trial
from underdog.model import Caveat, Measurement, Timeline, Trial
from underdog.store import open_store
from underdog.verbs.choose import Options, decide

ORIGIN = "http://localhost"
SCRIPT = "<script>alert(1)</script>"
HOSTILE = (
    SCRIPT,
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "=cmd|' /C calc'!A0",
    "a/b?c=d#e&f=g%2F",
    "name.json",
    "..",
    "名前のとても長い作業負荷 " + "очень длинное имя " * 12 + "مرحبا بالعالم",
    "half of a pair \udc80",
    "\u202eright to left",
    "line\nbreak\ttab\x07bell",
    " ",
)
NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
STATUSES = ("out_of_memory", "failed", "no_capacity", "interrupted", "hung", "no_steps", "stopped")


def timeline() -> Timeline:
    seconds = [float(second) for second in range(60)]
    return Timeline(
        steps={
            "seconds": seconds,
            "step": [10 * second for second in seconds],
            "samples_per_second": [40 + min(60.0, 6 * second) for second in seconds],
        },
        usage={"seconds": seconds, "cores": [3.5] * 60},
        pauses={"evaluation": [[20.0, 25.0]]},
    )


def at(hours: float) -> str:
    return (NOW - timedelta(hours=hours)).isoformat(timespec="seconds")


def fill(path: Path, offers: Path, names: Sequence[str] = HOSTILE) -> None:
    """A store with all that a page may have to show, and the file of its offers."""
    with offers.open("w", newline="") as file:
        columns = ["provider", "region", "instance_type", "price_per_hour", "accelerator"]
        columns += ["accelerator_count", "vcpus", "memory_gib", "arch"]
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(c1_offers())
    with open_store(str(path)) as store:
        store.save(*_trials(names))
    options = Options(workload="gpt", store=str(path), offers=offers)
    first = decide(options).decision
    second = decide(replace(options, by="samples_per_second", samples=1e6, deadline="1h")).decision
    with open_store(str(path)) as store:
        store.save(replace(first, study="study-1"), replace(second, id=f"decision-{SCRIPT}"))


def _trials(names: Sequence[str]) -> Iterator[Trial]:
    for place, one in enumerate(c1_trials()):
        yield replace(
            one,
            started_at=at(place),
            study="study-1",
            why="it may be the best",
            dollars=0.1,
            phases={"data": 0.25, "forward": 0.75},
            knobs={"batch_size": "32"},
            command=["python", "train.py", SCRIPT],
            caveats=[Caveat(code="short_run", message=f"It was {SCRIPT}.", remedy="Longer.")],
            timeline=timeline(),
        )
    for place, status in enumerate(STATUSES):
        reason = f"it ended {SCRIPT}"
        yield trial(
            rate=None, id=f"trial-{status}", status=status, reason=reason, started_at=at(9 + place)
        )
    for place, name in enumerate(names):
        yield trial(
            id=f"trial {name}",
            workload=name,
            started_at=at(20 + place),
            knobs={name: name},
            reason=name,
            study=f"study {name}" if place % 2 else None,
        )


def many(count: int) -> Iterator[Trial]:
    """So many trials of three workloads on four machines."""
    kinds = c1_trials()
    for place in range(count):
        one = kinds[place % len(kinds)]
        yield replace(
            one,
            id=f"trial-{place:06}",
            workload=f"workload-{place % 3}",
            started_at=at(count - place),
            status="ok" if place % 50 else "failed",
        )


def running(**given: Any) -> Trial:
    """A trial that runs: who carries it is told by ``owner``."""
    one = c1_trials()[0]
    measured = replace(one.measurement or Measurement(), steps=120, warmup_steps=10)
    kept: dict[str, Any] = {"id": "trial-running", "status": "running", "started_at": at(0)}
    return replace(one, measurement=measured, **{**kept, **given})
