"""The user's own history of throughput: where its level changed, and what changed with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from underdog.core.change import last_change
from underdog.core.evidence import POOLED, Shape, accelerator_unused, shape_of
from underdog.core.problems import LARGEST, SMALLEST
from underdog.core.regression import judge, machine_of, moved, reading, software_of
from underdog.model import Estimate, Trial

Key = tuple[str, Shape, tuple[tuple[str, str], ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shift:
    """A change of level on one machine with one set of knobs.

    ``ratio`` is of the throughput after over that before; ``since`` is when the first trial of the
    new level began, ``first`` its id; ``earlier`` are the ids of the trials before it. ``changed``
    tells the software and settings that changed with it, old and new.
    """

    machine: str
    shape: Shape
    knobs: dict[str, str]
    ratio: Estimate
    since: str
    first: str
    earlier: frozenset[str]
    changed: dict[str, tuple[str, str]]


def counted(trials: Iterable[Trial]) -> list[Trial]:
    """The trials with a throughput that can be compared, the oldest first."""
    found = [t for t in trials if t.status == "ok" and _rate(t) and not accelerator_unused(t)]
    return sorted(found, key=lambda t: (t.started_at, t.id))


def shifts(trials: Iterable[Trial]) -> list[Shift]:
    """The last change of level of each machine and set of knobs of one workload."""
    series: dict[Key, list[Trial]] = {}
    for trial in counted(trials):
        key = (machine_of(trial), shape_of(trial), tuple(sorted(trial.knobs.items())))
        series.setdefault(key, []).append(trial)
    return [found for tried in series.values() if (found := _shift(tried)) is not None]


def _shift(tried: Sequence[Trial]) -> Shift | None:
    found = last_change([_rate(trial) for trial in tried])
    if found is None:
        return None
    before, after = tried[: found.at], tried[found.at :]
    # the throughput alone: what prices did is told elsewhere
    old, new = (replace(reading(part[-POOLED:]), price_per_hour=None) for part in (before, after))
    return Shift(
        machine=old.machine,
        shape=shape_of(after[0]),
        knobs=old.knobs,
        ratio=judge(old, new, drop=0.5).ratio,
        since=after[0].started_at,
        first=after[0].id,
        earlier=frozenset(trial.id for trial in before),
        changed=_changed(before[-1], after[0]),
    )


def _changed(before: Trial, after: Trial) -> dict[str, tuple[str, str]]:
    old, new = ({**software_of(t), **_settings(t)} for t in (before, after))
    return moved(old, new)


def _settings(trial: Trial) -> dict[str, str]:
    said: dict[str, Any] = trial.software.settings
    return {name: str(value) for name, value in said.items()}


def _rate(trial: Trial) -> float:
    """Samples per second, 0 where there is none that counts."""
    rate = trial.measurement.samples_per_second if trial.measurement else None
    return rate.value if rate is not None and SMALLEST < rate.value < LARGEST else 0.0
