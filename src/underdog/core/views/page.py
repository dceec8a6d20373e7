"""A page: all that one report shows, gathered from a store."""

from __future__ import annotations

from dataclasses import dataclass, field

from underdog.core.views.records import DecisionView, HistoryView, StudyView, TrialView


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """What a report is made from; a part that is None or empty has no section.

    Attributes:
        title: what it is about, in a few words.
        created_at: when it was gathered, ISO 8601, UTC.
        trials: the ones that matter most first; ``more_trials`` are not shown.
    """

    title: str
    created_at: str
    decision: DecisionView | None = None
    study: StudyView | None = None
    trials: list[TrialView] = field(default_factory=list)
    history: HistoryView | None = None
    more_trials: int = 0
