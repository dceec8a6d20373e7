"""Views of what a store holds, and what a name in it means."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from underdog.catalog import archive, offers_file
from underdog.catalog.snapshot import Snapshot
from underdog.core import footing, points
from underdog.core.supply import Supply
from underdog.core.views import decision as of_decision
from underdog.core.views import history as of_history
from underdog.core.views import study as of_study
from underdog.core.views import trial as of_trial
from underdog.core.views.records import DecisionView, HistoryView, StudyView, TrialView
from underdog.core.watched import moment
from underdog.errors import UnderdogError, UsageError, nearest
from underdog.model import Decision, Trial
from underdog.store import Store
from underdog.verbs import choose, supplying

Kind = Literal["decision", "study", "trial", "workload"]
_NEAR = 1000  # latest records among which the first letters of an id are looked for
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Found:
    """What a name means: the kind of thing, and its whole id or name."""

    kind: Kind
    id: str


def found(store: Store, name: str) -> Found:
    """What a decision's, trial's or study's id, a workload's name, or the first letters of an id
    mean.

    Raises:
        UsageError: nothing is called so, or several things begin so; the message names them.
        StoreError: the store cannot be read.
    """
    if store.decisions(id=name):
        return Found("decision", name)
    if store.trials(id=name, limit=1):
        return Found("trial", name)
    if store.trials(study=name, limit=1):
        return Found("study", name)
    if store.trials(workload=name, limit=1) or store.decisions(workload=name, limit=1):
        return Found("workload", name)
    known = _known(store)
    if not known:
        raise UsageError(f"There is no '{name}': the store is empty.", EMPTY)
    begun = sorted((id, kind) for id, kind in known.items() if name and id.startswith(name))
    if len(begun) == 1:
        return Found(begun[0][1], begun[0][0])
    if begun:
        listed = ", ".join(id for id, _ in begun[:_SHOWN])
        more = f" and {len(begun) - _SHOWN} more" if len(begun) > _SHOWN else ""
        raise UsageError(f"'{name}' stands for several: {listed}{more}.", "Give more of the id.")
    near = nearest(name, known)
    raise UsageError(
        f"No decision, study, trial or workload is called '{name}'.",
        f"Did you mean '{near}'?" if near else "List what there is: underdog trials",
    )


EMPTY = (
    "Measure a workload: underdog measure -- python train.py\n"
    "or bring in trials measured elsewhere: underdog trials import FILE"
)


def latest(store: Store) -> Found:
    """The study that runs, else the latest study or decision, else the workload measured last.

    Raises:
        UsageError: the store is empty.
        StoreError: the store cannot be read.
    """
    running = [trial for trial in store.trials(status="running") if trial.study]
    if running:
        last = max(running, key=lambda trial: trial.started_at)
        return Found("study", str(last.study))
    decisions = store.decisions(limit=1)
    if decisions:
        newest = decisions[0]
        return Found("study", newest.study) if newest.study else Found("decision", newest.id)
    trials = store.trials(limit=1)
    if trials:
        return Found("study", trials[0].study) if trials[0].study else Found("trial", trials[0].id)
    raise UsageError("The store is empty: there is nothing to show yet.", EMPTY)


def _known(store: Store) -> dict[str, Kind]:
    """The names of the latest records of each kind."""
    named: dict[str, Kind] = {}
    for count in store.tally():
        named[count.workload] = "workload"
        if count.study:
            named[count.study] = "study"
    for trial in store.trials(limit=_NEAR):
        named[trial.id] = "trial"
    for decision in store.decisions(limit=_NEAR):
        named[decision.id] = "decision"
        named.setdefault(decision.workload, "workload")
        if decision.study:
            named[decision.study] = "study"
    return named


def view_of(store: Store, meant: Found) -> DecisionView | StudyView | TrialView | HistoryView:
    """The view of what was found; of a decision what it keeps, without its whole ledger.

    Raises:
        UsageError, StoreError: it is gone meanwhile, or the store cannot be read.
    """
    if meant.kind == "study":
        return study_view(store, meant.id)
    if meant.kind == "trial":
        return trial_view(store, meant.id)
    if meant.kind == "workload":
        return history_view(store, meant.id)
    decisions = store.decisions(id=meant.id)
    if not decisions:
        raise UsageError(f"No decision '{meant.id}' is in the store.")
    return decision_view(store, decisions[0], whole=False)


def decision_view(store: Store, decision: Decision, *, whole: bool = True) -> DecisionView:
    """The view of a decision.

    Args:
        whole: ask its question again on its own snapshot and trials, so that the offers that are
            ruled out or not tested are there, with the ledger. Where these are gone, or give
            another answer by now, there is what the decision keeps. Nothing is written.

    Raises:
        StoreError: the store cannot be read.
    """
    answer = _asked_again(store, decision) if whole else None
    if answer is None:
        return of_decision.decision_view(decision)
    choice = answer.choice
    return of_decision.decision_view(decision, points.points(choice), choice.ledger())


def trial_view(store: Store, trial_id: str) -> TrialView:
    """The view of a trial with its timeline.

    Raises:
        UsageError: there is none of that id.
        StoreError: the store cannot be read.
    """
    trials = store.trials(id=trial_id, timeline=True)
    if not trials:
        raise UsageError(f"No trial '{trial_id}' is in the store.", "List them: underdog trials")
    return trial_view_of(trials[0])


def trial_view_of(trial: Trial) -> TrialView:
    """The view of a trial at hand."""
    return of_trial.trial_view(trial)


def study_view(store: Store, study_id: str) -> StudyView:
    """The view of a study, while it runs as well.

    Raises:
        UsageError: there is none of that id.
        StoreError: the store cannot be read.
    """
    trials = store.trials(study=study_id)
    view = of_study.study_view(study_id, trials, decision_of(store, study_id, trials))
    if view is None:
        raise UsageError(f"No study '{study_id}' is in the store.", "Begin one: underdog explore")
    return view


def decision_of(store: Store, study_id: str, trials: Sequence[Trial] = ()) -> Decision | None:
    """The last decision of a study; None where it has come to none.

    Args:
        trials: of the study, as far as known: they tell the workload.
    """
    workload = trials[0].workload if trials else None
    made = store.decisions(workload=workload, limit=_NEAR)
    return next((one for one in reversed(made) if one.study == study_id), None)


def history_view(store: Store, workload: str) -> HistoryView:
    """The view of a workload over time.

    Raises:
        StoreError: the store cannot be read.
    """
    return of_history.history_view(workload, store.trials(workload=workload, status="ok"))


def _asked_again(store: Store, decision: Decision) -> choose.Answer | None:
    """The answer to a decision's question as of then; None where it cannot be had any more."""
    try:
        options = _options(decision)
        if options is None:
            return None
        catalog = _catalog(options, decision)
        trials = store.trials(id=decision.trials)
        if catalog is None or len(trials) < len(decision.trials):
            return None
        request = dataclasses.replace(
            choose.request_of(options),
            all_regions=_all_regions(decision),
            limit=max(options.limit, len(decision.ranking)),
        )
        before, now = _before(store, decision)
        known = _supply(store, options, trials, before, now)
        found = choose.answer(catalog, decision.workload, trials, request, before, known)
    except (UnderdogError, TypeError, ValueError, AttributeError):
        return None
    return found if _same(found.decision, decision) else None


def _options(decision: Decision) -> choose.Options | None:
    try:
        asked, why = footing.question(decision)
        return None if why is not None else choose.Options(**asked)
    except (TypeError, AttributeError):  # written by another hand
        return None


def _catalog(options: choose.Options, decision: Decision) -> Snapshot | None:
    """The offers that it was about; None where they are others by now."""
    if options.offers is None:
        return archive.load(decision.snapshot)
    loaded = offers_file.load(options.offers)
    return loaded if loaded.hash == decision.snapshot else None


def _before(store: Store, decision: Decision) -> tuple[list[Trial], float | None]:
    """The trials that there were then and that it drew on, and the moment in seconds."""
    made = moment(decision.created_at)
    if decision.study is not None:  # what ends a search predicts from its own workload alone
        return [], None if made is None else made.timestamp()
    trials = store.trials(status="ok", limit=choose.REFERENCES)
    if made is None:
        return trials, None
    return [trial for trial in trials if _until(trial, made)], made.timestamp()


def _until(trial: Trial, made: Any) -> bool:
    began = moment(trial.started_at)
    return began is None or began <= made


def _supply(
    store: Store,
    options: choose.Options,
    trials: Sequence[Trial],
    others: Iterable[Trial],
    now: float | None,
) -> Supply:
    """What was on record of getting machines."""
    known = supplying.supply(options, store, trials, list(others), now)
    if now is None:
        return known
    then = [attempt for attempt in known.attempts if attempt.at <= now]
    return dataclasses.replace(known, attempts=then)


def _all_regions(decision: Decision) -> bool:
    """Whether it listed every region: then a machine stands there more than once."""
    named = ("provider", "instance_type", "purchase", "term")
    keys = [
        repr(([offer.get(name) for name in named], entry.get("nodes"), entry.get("source")))
        for entry in decision.ranking
        if isinstance(offer := entry.get("offer"), dict)
    ]
    return len(set(keys)) < len(keys)


def _same(again: Decision, decision: Decision) -> bool:
    """Whether the same offers lead; a newer underdog may see it otherwise."""
    return _leader(again) == _leader(decision) and again.best_measured == decision.best_measured


def _leader(decision: Decision) -> Any:
    offer = decision.ranking[0].get("offer") if decision.ranking else None
    return offer.get("id") if isinstance(offer, dict) else None
