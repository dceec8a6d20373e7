"""Trials measured elsewhere, from the rows of a file: docs/reference/trials-format.md.

Pure: the file's rows go in, trials come out. Rows of one workload, offer and set of knobs are the
repeats of one trial.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, get_args

from underdog.core.compare import from_repeats
from underdog.core.cut_off import cut_off
from underdog.core.problems import Problems, shown
from underdog.core.suspects import Run, unused_accelerators
from underdog.core.timeline import fault_of
from underdog.core.trials_offers import Known, Row, bare
from underdog.errors import did_you_mean
from underdog.model import Caveat, Estimate, Measurement, Software, Status, Trial

KNOB = "knob."  # what the columns of knobs begin with
COUNTED = ("ok", "stopped", "interrupted")  # ends that leave a throughput behind
_MANY = 1e15  # observations: more were never counted, and a double holds the number
ENDED = tuple(status for status in get_args(Status) if status != "running")


class Key(NamedTuple):
    """What sets the trials of a file apart."""

    workload: str
    offer: str
    knobs: tuple[tuple[str, str], ...] = ()


@dataclasses.dataclass(slots=True)
class Repeats:
    """The rows of one trial."""

    throughputs: list[float] = dataclasses.field(default_factory=list)
    failures: list[tuple[str, str]] = dataclasses.field(default_factory=list)  # status, reason
    ended: str = "ok"  # or how the runs that gave a throughput ended all the same
    started_at: str = ""
    interval: Estimate | None = None  # that the row itself gives


def parse_trials(
    rows: Iterable[Row],
    problems: Problems,
    offers: Mapping[str, Known] | None = None,
    workload: str | None = None,
) -> dict[Key, Repeats]:
    """The repeats of each trial, in the order of their first rows. Faults go to ``problems``.

    Args:
        rows: row number and fields: ``workload, offer, throughput`` (samples per second, empty for
            a trial that failed) and where known ``low, high, n, status, reason, started_at,
            knob.NAME``.
        offers: what is known of the offers; an offer that is missing there is a fault.
        workload: take rows of this workload only; it is the name of rows that have none.
    """
    found: dict[Key, Repeats] = {}
    for number, row in rows:
        name = problems.text(number, "workload", row.get("workload")) or workload
        if workload is not None and name != workload:
            continue
        offer = problems.text(number, "offer", row.get("offer"))
        if name is None:
            problems.add(number, "workload", "it is empty; --workload NAME gives one")
        if offer is None:
            problems.add(number, "offer", "it is empty")
        elif offers is not None and offer not in offers:
            problems.add(number, "offer", f"{shown(offer)} is not in the file of offers")
        key = Key(name or "", offer or "", _knobs(number, row, problems))
        _add(number, row, found.setdefault(key, Repeats()), problems)
    return found


def _knobs(number: int, row: Mapping[str, Any], problems: Problems) -> tuple[tuple[str, str], ...]:
    given = row.get("knobs")
    nested = given if isinstance(given, dict) else {}
    if given is not None and given != "" and not isinstance(given, dict):
        problems.add(number, "knobs", f"{shown(given)} is not a table of names and values")
    flat = {k.removeprefix(KNOB): v for k, v in row.items() if k and k.startswith(KNOB)}
    named = {k: problems.text(number, f"{KNOB}{k}", v) for k, v in (nested | flat).items()}
    return tuple(sorted((k, v) for k, v in named.items() if v is not None))


def _add(number: int, row: Mapping[str, Any], repeats: Repeats, problems: Problems) -> None:
    before = problems.count
    throughput = problems.number(number, "throughput", row.get("throughput"))
    status = problems.text(number, "status", row.get("status"))
    if problems.count > before:
        return
    if status is not None and status not in ENDED:
        problems.add(number, "status", f"{shown(status)}: {did_you_mean(status, ENDED)}")
    elif throughput is None and status == "ok":
        problems.add(number, "throughput", "it is empty though the status is ok")
    elif throughput is not None and status not in (None, *COUNTED):
        problems.add(number, "status", f"{shown(status)} beside a throughput: leave one empty")
    elif throughput is not None:
        repeats.throughputs.append(throughput)
        repeats.ended = status or repeats.ended
        repeats.interval = _interval(number, row, throughput, problems)
    else:
        reason = problems.text(number, "reason", row.get("reason"))
        repeats.failures.append((status or "failed", reason or "the file has no throughput"))
    repeats.started_at = repeats.started_at or _started_at(number, row, problems)


def _interval(
    number: int, row: Mapping[str, Any], value: float, problems: Problems
) -> Estimate | None:
    low = problems.number(number, "low", row.get("low"))
    high = problems.number(number, "high", row.get("high"))
    count = problems.number(number, "n", row.get("n")) or 1.0
    if count > _MANY or not count.is_integer():
        problems.add(number, "n", f"{count:g} is no number of observations")
        return None
    if (low is None) != (high is None):
        problems.add(number, "low", "an interval has both ends, low and high, or none")
    if low is None or high is None:
        return None
    if not low <= value <= high:
        problems.add(number, "low", f"{value:g} is not between {low:g} and {high:g}")
    return Estimate(value=value, low=low, high=high, n=int(count))


def _started_at(number: int, row: Mapping[str, Any], problems: Problems) -> str:
    """The latest trials count, so that a time that cannot be compared is a fault."""
    text = problems.text(number, "started_at", row.get("started_at")) or ""
    try:
        if text:
            datetime.fromisoformat(text)
    except ValueError:
        problems.add(number, "started_at", f"{shown(text)} is not ISO 8601: 2026-01-31T12:00:00")
    return text


def trial_id(key: Key, repeats: Repeats) -> str:
    """An id that the same content always gets, so that a second import adds nothing."""
    content = [*key, repeats.throughputs, repeats.failures, repeats.started_at]
    return "i" + hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def suspects(found: Mapping[Key, Repeats], offers: Mapping[str, Known]) -> dict[str, Caveat]:
    """By offer: the doubt that its trials used the accelerator, where there is one."""
    return unused_accelerators(_runs(found, offers))


def _runs(found: Mapping[Key, Repeats], offers: Mapping[str, Known]) -> Iterator[Run]:
    for key, repeats in found.items():
        known = offers.get(key.offer)
        if known is not None and repeats.throughputs:
            offer = known.offer
            yield Run(
                workload=key.workload,
                machine=key.offer,
                throughput=max(repeats.throughputs),
                vcpus=offer.vcpus,
                accelerator=offer.accelerator,
                accelerator_count=offer.accelerator_count,
            )


def build_trial(
    key: Key, repeats: Repeats, known: Known | None, doubt: Caveat | None, source: str
) -> Trial:
    """One trial; ``doubt`` is what ``suspects`` says of its offer."""
    known = known or bare(key.offer, source)
    knobs = dict(key.knobs)
    if known.ambiguous:  # what sets it apart from others of its shape is told by its name alone
        knobs["offer"] = key.offer
    caveats = list(known.caveats)
    measurement = None
    status, reason = repeats.failures[0] if repeats.failures else ("ok", None)
    if repeats.throughputs:
        if repeats.interval is not None and len(repeats.throughputs) == 1:
            measurement = Measurement(samples_per_second=repeats.interval)
        else:
            estimate, doubts = from_repeats(repeats.throughputs)
            measurement = Measurement(samples_per_second=estimate)
            caveats += doubts
        status, reason = repeats.ended, None
        if repeats.failures:
            caveats.append(_failed_repeats(repeats))
        if doubt is not None:
            caveats.append(doubt)
    return Trial(
        id=trial_id(key, repeats),
        workload=key.workload,
        knobs=knobs,
        status=status,  # type: ignore[arg-type]  # parse_trials lets only these pass
        reason=reason,
        started_at=repeats.started_at,
        runner="imported",
        offer=known.offer,
        price=known.offer.price,
        measurement=measurement,
        caveats=caveats,
        machine=known.machine,
        software=Software(),
        source=source,
    )


def _failed_repeats(repeats: Repeats) -> Caveat:
    failed, count = len(repeats.failures), len(repeats.failures) + len(repeats.throughputs)
    return Caveat(
        code="repeats_failed",
        message=f"{failed} of {count} repeats failed: {repeats.failures[0][1]}.",
        remedy="Find out why before relying on this machine.",
    )


def as_measured(given: Trial) -> Trial:
    """A trial of another store: what was in flight there is not in flight here."""
    if given.status != "running":
        return dataclasses.replace(given, owner={})
    reason = "it was in flight when the file was written"
    return dataclasses.replace(cut_off(given, reason), owner={})


def check_measured(number: int, trial: Trial, problems: Problems) -> None:
    """Note what cannot be in a trial that ``measure --json`` printed."""
    if not trial.id:
        problems.add(number, "id", "it is empty")
    if not trial.workload:
        problems.add(number, "workload", "it is empty")
    offered = trial.offer.price.per_hour if trial.offer else None
    for name, price in (("price", trial.price.per_hour), ("offer.price", offered)):
        problems.number(number, f"{name}.per_hour", price)
    if trial.timeline is not None and (fault := fault_of(trial.timeline)):
        problems.add(number, "timeline", fault)
    measured = trial.measurement
    if measured is None:
        return
    for name in ("samples_per_second", "step_seconds"):
        estimate = getattr(measured, name)
        if estimate is not None:
            for part in ("value", "low", "high"):
                value = getattr(estimate, part)
                problems.number(number, f"measurement.{name}.{part}", value, zero=part == "low")
