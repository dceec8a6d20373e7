"""Two trials or two decisions side by side, with what differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from underdog.core.views.facts import BOUND_NAMES, PHASE_NAMES, STATUS_WORDS
from underdog.core.views.records import DecisionView, Range, TrialView
from underdog.core.views.words import amount, range_of, with_interval
from underdog.errors import UsageError
from underdog.web.asking import Asked
from underdog.web.charts import specs
from underdog.web.pages import Site
from underdog.web.rendering import Answer

PLACES = 10  # of two rankings that are compared
SUGGESTED = 40  # ids that the fields offer


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One thing that is known of either side, in words; empty where it is known of one alone."""

    name: str
    a: str
    b: str
    differs: bool


def compare(site: Site, asked: Asked) -> Answer:
    """The page: without two ids only the fields that ask for them."""
    a, b = asked.text("a"), asked.text("b")
    more: dict[str, Any] = {"filter": {"a": a, "b": b}, "known": _known(site)}
    if a is None or b is None:
        data: dict[str, Any] = {"kind": None, "a": None, "b": None, "rows": []}
        return Answer(data=data, template="compare.html", title="Compare", more=more)
    kinds = [site.reader.kind_of(id) for id in (a, b)]
    if kinds[0] != kinds[1]:
        raise UsageError(
            f"A {kinds[0]} and a {kinds[1]} cannot be compared.",
            "Give the ids of two trials, or of two decisions.",
        )
    drawn = ["ranking"] if kinds[0] == "decision" else ["throughput", "phases"]
    read = site.reader.decision if kinds[0] == "decision" else site.reader.trial
    views: list[Any] = [read(a), read(b)]
    data = {"kind": kinds[0], "a": views[0], "b": views[1], "rows": rows(*views)}
    return Answer(
        data=data,
        template="compare.html",
        title="Compare",
        more=more,
        charts=lambda: {side: specs(drawn, data[side]) for side in ("a", "b")},
    )


def rows(a: TrialView | DecisionView, b: TrialView | DecisionView) -> list[Row]:
    """What is known of two of a kind, in words, in the order in which it is told of the first."""
    left, right = (
        dict(_of_trial(one) if isinstance(one, TrialView) else _of_decision(one)) for one in (a, b)
    )
    names = list(left) + [name for name in right if name not in left]
    found = ((name, left.get(name, ""), right.get(name, "")) for name in names)
    return [Row(name=n, a=x, b=y, differs=x != y) for n, x, y in found if x or y]


def _known(site: Site) -> list[tuple[str, str]]:
    trials = site.reader.trials(limit=SUGGESTED).lines
    decisions = site.reader.decisions(limit=SUGGESTED)
    return [(one.id, f"trial of {one.workload}, {one.machine}") for one in trials] + [
        (one.id, f"decision for {one.workload}") for one in decisions
    ]


def _of_trial(view: TrialView) -> Iterator[tuple[str, str]]:
    yield "workload", view.workload
    yield "offer", view.offer
    yield "status", STATUS_WORDS.get(view.status, view.status)
    yield "reason", view.reason or ""
    yield "samples per second", _range(range_of(view.rate))
    yield "samples per dollar", _range(view.samples_per_dollar)
    yield "dollars per hour", _number(view.price_per_hour)
    yield "machine time, dollars", _number(view.dollars)
    yield "steps", f"{view.steps:,}"
    yield "warm-up, seconds", _number(view.warmup_seconds)
    yield "bound by", BOUND_NAMES.get(view.bound_by, "")
    for name, share in view.phases.items():
        yield f"time: {PHASE_NAMES.get(name, name)}", f"{100 * share:.1f} %"
    for name, gib in view.peak_memory_gib.items():
        yield f"peak memory, {name}, GiB", _number(gib)
    for name, value in view.knobs.items():
        yield f"knob: {name}", value
    yield from view.facts
    yield "command", " ".join(view.command)
    yield "caveats", ", ".join(dict.fromkeys(caveat.code for caveat in view.caveats))
    yield "runner", view.runner
    yield "study", view.study or ""
    yield "started", view.started_at


def _of_decision(view: DecisionView) -> Iterator[tuple[str, str]]:
    yield "answer", view.answer
    yield "workload", view.workload
    yield "ranked by", view.utility
    yield "candidates", f"{view.candidates:,}"
    yield "samples of the job", _number(view.samples)
    yield "deadline, hours", _number(view.deadline_hours)
    yield "budget, dollars", _number(view.budget)
    yield "catalog of", view.snapshot_date
    yield "catalog", view.snapshot[:12]
    for line in view.constraints:
        name, _, said = line.partition(": ")
        yield f"constraint: {name}", said or line
    ranked = sorted((p for p in view.points if p.rank is not None), key=lambda p: p.rank or 0)
    for point in ranked[:PLACES]:
        source = f", {point.source}" if point.source != "unknown" else ""
        told = f": {_range(point.utility)}" if point.utility else ""
        yield f"place {point.rank}", f"{point.offer}{told}{source}"
    for count in view.funnel:
        yield f"{count.verdict}: {count.cause}", f"{count.offers:,} offers"
    yield "trials", f"{len(view.trials):,}"
    yield "caveats", ", ".join(dict.fromkeys(caveat.code for caveat in view.caveats))
    yield "study", view.study or ""
    yield "decided", view.created_at


def _range(found: Range | None) -> str:
    return with_interval(found) if found else ""


def _number(value: float | None) -> str:
    return "" if value is None else amount(value)
