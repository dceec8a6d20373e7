"""Recorded trials as a thing to explore: what a file has of one workload, and of the others."""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from underdog.core.candidates import reachable
from underdog.core.problems import Problems
from underdog.core.trials_file import Key, Repeats, build_trial, parse_trials, suspects
from underdog.core.trials_offers import Known, parse_offers
from underdog.errors import TrialsError, UsageError, did_you_mean
from underdog.model import Caveat, Machine, Software, Trial
from underdog.runners import Job
from underdog.store.table_file import read_rows

NOT_RECORDED = "the file has no trial of it"


@dataclass(frozen=True, slots=True)
class Recorded:
    """One workload's recorded trials.

    Attributes:
        workload: its name.
        candidates: names of the offers that it might have been tried on.
        others: of each workload of another group, samples per second by offer; None: it failed.
        trial: the trial of a job, as it was recorded.
    """

    workload: str
    candidates: frozenset[str]
    others: Mapping[str, Mapping[str, float | None]]
    trial: Callable[[Job], Trial]


def read_recorded(trials: Path, offers: Path | None, workload: str | None) -> Recorded:
    """Read files in the format of ``docs/reference/trials-format.md``.

    Args:
        offers: what the offers are; None where the rows of the trials say so.
        workload: the one to explore; may be None where the file has no other.

    Raises:
        TrialsError: the files have faults; the message names row and field of the first ten.
        UsageError: no such workload; the message names the nearest.
    """
    problems, offer_problems = Problems(trials.name), Problems((offers or trials).name)
    rows = list(read_rows(trials, problems, ["offer", "throughput", "workload"]))
    if offers is not None:
        described = list(read_rows(offers, offer_problems, ["offer"]))
    else:
        first = {str(row["offer"]).strip(): (number, row) for number, row in reversed(rows)}
        described = list(reversed(first.values()))
    known = parse_offers(described, offer_problems, trials.name)
    found = parse_trials(rows, problems, known)
    _refuse(offer_problems, problems)
    groups = {str(row["workload"]).strip(): str(row.get("group") or "") for _, row in rows}
    name = _named(workload, {key.workload for key in found})
    by_workload: dict[str, dict[str, float | None]] = {}
    for key, repeats in found.items():
        rates = by_workload.setdefault(key.workload, {})
        rates[key.offer] = max(
            (one for one in (_rate(repeats), rates.get(key.offer)) if one is not None),
            default=None,
        )
    mine = by_workload.pop(name)
    tried = set(mine).union(*by_workload.values())
    group = groups.get(name) or None
    return Recorded(
        workload=name,
        candidates=frozenset(reachable(mine, by_workload.values()) | (set(known) - tried)),
        others={
            other: rates
            for other, rates in by_workload.items()
            if group is None or groups.get(other) != group
        },
        trial=_lookup(name, found, known, trials.name),
    )


def _refuse(*files: Problems) -> None:
    """Raise the faults of the first file that has any: those of the next may follow from them."""
    for problems in files:
        if problems.count:
            text = problems.text_of_all().replace("cannot be imported", "cannot be replayed")
            raise TrialsError(text, "docs/reference/trials-format.md says what the files hold.")


def _named(given: str | None, there: set[str]) -> str:
    if given is None and len(there) == 1:
        return next(iter(there))
    if given is None:
        listed = ", ".join(sorted(there)[:5]) or "none"
        raise UsageError(
            f"The file has {len(there)} workloads, and none was named.",
            f"Name one with --workload: {listed}{', …' if len(there) > 5 else ''}",
        )
    if given not in there:
        raise UsageError(f"The file has no workload '{given}'.", did_you_mean(given, there))
    return given


def _rate(repeats: Repeats) -> float | None:
    return statistics.fmean(repeats.throughputs) if repeats.throughputs else None


def _lookup(
    workload: str, found: Mapping[Key, Repeats], known: Mapping[str, Known], source: str
) -> Callable[[Job], Trial]:
    mine = {key: repeats for key, repeats in found.items() if key.workload == workload}
    doubts: dict[str, Caveat] = suspects(found, known)
    by_offer: dict[str, list[Key]] = {}
    for key in mine:
        by_offer.setdefault(key.offer, []).append(key)

    def trial(job: Job) -> Trial:
        keys = by_offer.get(job.candidate, [])
        if job.knobs:
            keys = [key for key in keys if dict(key.knobs) == dict(job.knobs)]
        if not keys:
            return _nothing(job, known[job.candidate], source)
        key = max(keys, key=lambda one: _rate(mine[one]) or 0.0)
        of_it = (known[key.offer], doubts.get(key.offer))
        made = build_trial(key, mine[key], *of_it, source)
        usage = {**made.usage, "elapsed_seconds": job.seconds}
        return dataclasses.replace(made, runner="replay", usage=usage)

    return trial


def _nothing(job: Job, known: Known, source: str) -> Trial:
    knobs = dict(job.knobs)
    return Trial(
        id="",
        workload=job.workload,
        knobs=knobs | {"offer": job.candidate} if known.ambiguous else knobs,
        status="failed",
        reason=NOT_RECORDED,
        runner="replay",
        offer=known.offer,
        price=known.offer.price,
        machine=known.machine or Machine(),
        software=Software(),
        source=source,
        usage={"elapsed_seconds": job.seconds},
    )
