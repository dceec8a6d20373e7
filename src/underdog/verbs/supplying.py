"""What choosing knows of getting machines and keeping them: attempts, tables, and what jobs do."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from underdog.catalog import supply_file
from underdog.core.attempts import Attempt, of_trials
from underdog.core.availability import FIRST_RATE, INHERITED_EVENTS, Told, gamma_ends
from underdog.core.constraints import shown
from underdog.core.supply import CHECKPOINT_SECONDS, RESTART_SECONDS, Supply
from underdog.errors import UsageError
from underdog.model import Caveat, Trial
from underdog.store import Store
from underdog.units import format_seconds, parse_duration
from underdog.verbs.attempts import refusal

Ranking = Sequence[Mapping[str, Any]]
PATIENCE = 1200.0
# an attempt of before says next to nothing: its weight is below a thousandth
OLDEST = 140 * 86400.0
_QUOTA_DAYS = 14
_ENDS, _MOST_TRIALS = ("no_capacity", "interrupted"), 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Obtaining:
    """What ``choose`` may be told of getting machines and keeping them.

    Args:
        availability: a CSV or Parquet file of what is told of places.
        patience: how long to ask for an offer before going on with the next.
        checkpoint_seconds: of one checkpoint, seconds or text.
        checkpoint_every: work between two checkpoints; the best interval without it.
        restart_seconds: from getting a machine to training on.
        interruptions_per_hour: of any spot machine.
    """

    availability: str | Path | None = None
    patience: float | str = PATIENCE
    checkpoint_seconds: float | str | None = None
    checkpoint_every: float | str | None = None
    restart_seconds: float | str | None = None
    interruptions_per_hour: float | None = None


def supply(
    options: Obtaining,
    store: Store,
    trials: Sequence[Trial],
    others: Sequence[Trial],
    now: float | None = None,
) -> Supply:
    """What is on record and told, with what the options say.

    Args:
        trials: of the workload: how long its checkpoints took.
        others: that ended well, of any workload. Besides all trials that found no capacity or were
            interrupted they tell of getting machines and keeping them.
        now: seconds since 1970.

    Raises:
        UsageError: an option that cannot be.
        CatalogError: a file of places that cannot be read.
        StoreError: the store cannot be read.
    """
    now = time.time() if now is None else now
    recorded = on_record(store, now)
    ended = [t for s in _ENDS for t in store.trials(status=s, limit=_MOST_TRIALS)]
    every = {trial.id: trial for trial in (*trials, *others, *ended)}
    attempts = [*recorded, *of_trials(every.values(), recorded)]
    told = supply_file.load(options.availability) if options.availability is not None else []
    return of(options, attempts, told, trials, now)


def on_record(store: Store, now: float | None = None) -> list[Attempt]:
    """The attempts of a store that still say something."""
    return store.attempts(since=(time.time() if now is None else now) - OLDEST)


def before(recorded: Sequence[Attempt], stored: Sequence[Trial], workload: str) -> Supply:
    """What attempts on record, and trials, tell a search of a workload.

    Args:
        stored: trials of any workload but those of the search itself, so that it goes on as it
            began.
    """
    told = ("ok", *_ENDS)
    every = [trial for trial in stored if trial.workload == workload or trial.status in told]
    attempts = [*recorded, *of_trials(every, recorded)]
    mine = [trial for trial in stored if trial.workload == workload]
    return of(Obtaining(), attempts, [], mine, time.time())


def of(
    options: Obtaining,
    attempts: Sequence[Attempt],
    told: Sequence[Told],
    trials: Sequence[Trial],
    now: float,
) -> Supply:
    """The same from attempts and facts at hand."""
    times = {
        name: _seconds(name, getattr(options, name))
        for name in ("patience", "checkpoint_seconds", "checkpoint_every", "restart_seconds")
    }
    often = options.interruptions_per_hour
    if often is not None and not 0 <= often < math.inf:
        raise UsageError(f"--interruptions-per-hour must not be negative, not {often}.")
    checkpoint, said = times["checkpoint_seconds"], "as given"
    if checkpoint is None:
        checkpoint, said = _measured(trials) or (CHECKPOINT_SECONDS, "not measured")
    restart = times["restart_seconds"]
    habits = (
        f"a checkpoint takes {format_seconds(checkpoint)} ({said}), going on after an interruption "
        f"{format_seconds(RESTART_SECONDS if restart is None else restart)} "
        f"({'not measured' if restart is None else 'as given'})"
    )
    return Supply(
        attempts=attempts,
        told=told,
        now=now,
        checkpoint_seconds=checkpoint,
        restart_seconds=RESTART_SECONDS if restart is None else restart,
        interval_seconds=times["checkpoint_every"],
        interruptions=often,
        patience=times["patience"] or PATIENCE,
        habits=habits,
    )


def _seconds(name: str, given: float | str | None) -> float | None:
    seconds = parse_duration(given) if isinstance(given, str) else given
    if seconds is None:
        return None
    least = 0.0 if name in ("checkpoint_seconds", "restart_seconds") else 1e-9
    if not least <= seconds < math.inf:
        flag = name.replace("_", "-")
        raise UsageError(f"--{flag} must be a duration, not {given}.", "Write it like 90s or 5m.")
    return seconds


def _measured(trials: Sequence[Trial]) -> tuple[float, str] | None:
    """Seconds of a checkpoint in the latest trial that saved one."""
    for trial in sorted(trials, key=lambda t: (t.started_at, t.id), reverse=True):
        if trial.measurement is None:
            continue
        seconds = trial.measurement.pauses.get("checkpoint")
        if seconds:
            count = trial.measurement.pause_counts.get("checkpoint") or 1
            return seconds / count, f"measured in {trial.id}"
    return None


def assumptions(known: Supply, ranking: Ranking) -> list[str]:
    """What the figures take for granted about waiting and about spot, each said once."""
    made = []
    waits = [entry["availability"] for entry in ranking]
    if not known.known:
        made.append(
            "No attempt to get a machine is on record, so waiting for one counts as nothing."
        )
    elif any(told is None or told["wait_seconds"] is None for told in waits):
        made.append("Where no wait for a machine is on record, it counts as nothing.")
    on_spot = [entry["spot"] for entry in ranking if entry["spot"] is not None]
    if on_spot:
        made.append(f"On spot {known.habits}; lost work is done again (Young, Daly).")
    if any(spot["from"] == "prior" for spot in on_spot):
        few, many = gamma_ends(INHERITED_EVENTS)
        made.append(
            f"Where nothing of it is on record, a spot machine is taken away {FIRST_RATE:g} times "
            f"an hour ({FIRST_RATE * few:.2g}–{FIRST_RATE * many:.2g}), as on public records of "
            "AWS and Google Cloud of 2022 and 2023."
        )
    return made


def caveats(known: Supply, ranking: Ranking) -> list[Caveat]:
    """Offers of the ranking that the latest attempt could not get for want of quota."""
    names = ("provider", "region", "instance_type", "purchase")
    latest: dict[tuple[str, ...], Attempt] = {}
    for attempt in sorted(known.attempts, key=lambda a: a.at):
        latest[tuple(getattr(attempt.place, name) for name in names)] = attempt
    found: dict[str, Caveat] = {}
    for entry in ranking:
        offer = entry["offer"]
        last = latest.get(tuple(offer[name] for name in names))
        if last is None or last.got or last.refusal != "quota":
            continue
        days = (known.now - last.at) / 86400
        if days > _QUOTA_DAYS:
            continue
        told = refusal(last)
        found[offer["id"]] = Caveat(
            code="quota",
            message=f"{offer['id']} was refused for want of quota {shown(days)} days ago.",
            remedy=f"{told.next_step[:1].upper()}{told.next_step[1:]}.",
        )
    return list(found.values())
