"""The view of a decision: the answer first, then what carries it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from underdog.core.views.answer import answer, runner_up
from underdog.core.views.plan import plan_words
from underdog.core.views.ranking import name_of, points_of
from underdog.core.views.records import DecisionView, FunnelLine, LedgerLine, Point
from underdog.core.views.words import plain, positive, text_of, unit_of
from underdog.errors import UsageError
from underdog.model import Decision
from underdog.units import parse_duration


def decision_view(
    decision: Decision,
    drawn: Sequence[Point] | None = None,
    ledger: Iterable[Mapping[str, Any]] | None = None,
) -> DecisionView:
    """All that is shown of a decision. It takes any decision that a store can hold.

    Args:
        drawn: its candidates to draw, of ``underdog.core.points``; None where it could not be
            asked again: then there are those of its ranking.
        ledger: every candidate with verdict and reason; None where only its counts are known.
    """
    asked = decision.rests_on.get("asked")
    asked = asked if isinstance(asked, Mapping) else {}
    samples = positive(asked.get("samples"))
    ranked = points_of(decision, samples)
    told = ledger if ledger is not None else decision.ledger
    return DecisionView(
        id=decision.id,
        workload=decision.workload,
        created_at=decision.created_at,
        expires_at=decision.expires_at,
        utility=decision.utility,
        unit=unit_of(decision.utility),
        better=decision.better,
        answer=answer(decision, ranked),
        runner_up=runner_up(decision, ranked),
        samples=samples,
        deadline_hours=_hours(asked.get("deadline")),
        budget=positive(asked.get("budget")),
        candidates=decision.candidates,
        snapshot=decision.snapshot,
        snapshot_date=decision.snapshot_date,
        constraints=decision.constraints,
        assumptions=decision.assumptions,
        caveats=decision.caveats,
        points=_merged(ranked, drawn or ()),
        groups=groups(ranked),
        funnel=[_funnel_line(line) for line in decision.funnel],
        ledger=[_ledger_line(line) for line in told],
        whole=ledger is not None,
        test_next=decision.test_next,
        fallback=decision.fallback,
        plan=_plan(decision),
        services=decision.services,
        trials=decision.trials,
        study=decision.study,
    )


def _plan(decision: Decision) -> str | None:
    told = plan_words(decision.plans, plain)
    return None if told is None else f"{told.title}: {told.said} {told.rests_on}"


def groups(ranked: Sequence[Point]) -> list[list[str]]:
    """The offers that cannot be told apart, the best group first; one alone is no group.

    Each group is the best offer that is in none yet and those that its interval overlaps. What
    was measured and what is predicted are kept apart, as the ranking does.
    """
    made, taken = [], set()
    for first in ranked:
        if _key(first) in taken:
            continue
        members = [
            point
            for point in ranked
            if _key(point) not in taken
            and point.source == first.source
            and (point is first or point.offer in first.tied_with)
        ]
        taken |= {_key(point) for point in members}
        if len(members) > 1:
            made.append([name_of(point.offer, point.nodes) for point in members])
    return made


def _merged(ranked: Sequence[Point], drawn: Sequence[Point]) -> list[Point]:
    """The ranking as it was kept, with the reasons of what was drawn, then the others."""
    there = {_key(point): point for point in drawn}
    mine = [
        replace(point, reason=found.reason) if (found := there.pop(_key(point), None)) else point
        for point in ranked
    ]
    rest = sorted(there.values(), key=lambda point: (point.rank is None, point.rank or 0))
    return [*mine, *rest]


def _key(point: Point) -> tuple[str, int]:
    return point.offer, point.nodes


def _hours(deadline: Any) -> float | None:
    """A deadline as it was asked for: seconds, or a text such as 48h."""
    if isinstance(deadline, str):
        try:
            deadline = parse_duration(deadline)
        except UsageError:
            return None
    seconds = positive(deadline)
    return None if seconds is None else seconds / 3600


def _funnel_line(line: Mapping[str, Any]) -> FunnelLine:
    count = positive(line.get("offers"))
    return FunnelLine(
        verdict=text_of(line.get("verdict")),
        cause=text_of(line.get("cause")),
        offers=0 if count is None else int(count),
    )


def _ledger_line(line: Mapping[str, Any]) -> LedgerLine:
    return LedgerLine(
        offer=text_of(line.get("offer")),
        verdict=text_of(line.get("verdict")),
        reason=text_of(line.get("reason")),
    )
