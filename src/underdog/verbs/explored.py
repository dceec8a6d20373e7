"""What an exploration has found out so far, and what it comes to at its end."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from underdog.core import footing
from underdog.core.exploration import Ended, Exploration, Why
from underdog.core.exploring import Best, Explorer
from underdog.core.objective import Objective
from underdog.core.tested import doubt_of, rate_of, setting_of
from underdog.model import Decision, Trial
from underdog.store import Store
from underdog.verbs import choose
from underdog.verbs.studies import HERE, Field, command_with

SHOWN_BELIEFS = 5


class Record:
    """The tests that ended, in their order, and what they cost.

    Args:
        explorer: is to know of a trial before it is noted here.
    """

    def __init__(self, field: Field, explorer: Explorer, objective: Objective) -> None:
        self._field, self._explorer, self._objective = field, explorer, objective
        self.trials: list[Trial] = []  # of the workload, those that ended
        self.tested: list[Ended] = []
        self.before: list[Ended] = []  # trials of other studies, or of none
        self.spent = self.saved = 0.0
        self.unpriced = 0
        self._at_first = self._weight()

    def pay(self, trial: Trial) -> None:
        """Count a trial of this study, and what it cost."""
        self.spent += trial.dollars or 0.0
        self.unpriced += trial.dollars is None

    def note(self, index: int, trial: Trial, number: int) -> Ended:
        """The record of a test that ended; it is kept for the end."""
        best = self._explorer.best()
        told = self._ended(index, trial, number, best)
        self.saved += told.saved or 0.0
        self.tested.append(told)
        return told

    def note_earlier(self, index: int, trial: Trial) -> None:
        """Keep what a trial showed that is not of this study."""
        self.before.append(self._ended(index, trial, 0, None))

    def _ended(self, index: int, trial: Trial, number: int, best: Best | None) -> Ended:
        rate = rate_of(trial)
        missed = rate is not None and self._explorer.value(index, rate.value) == -math.inf
        return Ended(
            number=number,
            trial=trial.id,
            offer=self._field.names[index],
            knobs=setting_of(trial),
            status=trial.status,
            reason=trial.reason or doubt_of(trial),
            rate=rate,
            utility=None if rate is None else self._utility(index, rate.value),
            dollars=trial.dollars,
            saved=trial.usage.get("saved_dollars"),
            best=None if best is None else self._field.names[best.index],
            best_utility=None if best is None else self._objective.as_given(best.value),
            spent=self.spent,
            best_knobs={} if best is None else best.setting,
            missed=missed,
            references=self._weight() if number else None,
        )

    def _weight(self) -> float | None:
        """How much the other workloads explain together; None where there are none."""
        if not self._field.references:
            return None
        return sum(self._explorer.references().values())

    def _utility(self, index: int, rate: float) -> float | None:
        rates = np.full(len(self._field.names), np.nan)
        rates[index] = rate
        prices = self._explorer.candidates.price_per_hour
        value = float(self._objective.raw(rates, prices)[index])
        return None if np.isnan(value) else value

    def result(self, ended: Why, store: Store | None) -> Exploration:
        """What it came to; the decision is kept in the store."""
        explorer, field, study = self._explorer, self._field, self._field.study
        best, stopping = explorer.best(), explorer.stopping()
        asked = field.catalog, field.workload, self.trials, field.request
        answer = choose.answer(*asked, known=field.expected.supply)
        setting = {} if best is None else best.setting
        complete = best is not None and set(study.knobs) <= set(setting)
        found = Exploration(
            study=field.id,
            workload=field.workload,
            runner=study.runner,
            utility=field.request.utility.text,
            better=field.request.utility.first.better,
            candidates=len(field.names),
            earlier=len(self.before),
            tests=self.tested,
            spent=self.spent,
            saved=self.saved,
            best=None if best is None else field.names[best.index],
            best_knobs=setting,
            best_rate=None if best is None else best.rate,
            best_utility=None if best is None else self._objective.as_given(best.value),
            ended=ended,
            expected_loss=stopping.expected_loss,
            high_loss=stopping.high_loss,
            stopping=stopping.reason,
            command=command_with(study, setting) if complete else (),
            before=self.before,
            unpriced=self.unpriced,
            settings=explorer.settings,
            settings_left=explorer.settings if best is None else explorer.settings_left(best.index),
            references=explorer.references(),
            references_at_first=self._at_first,
            beliefs=self._beliefs(),
            test_seconds=study.test,
            kept=store is not None,
        )
        if store is not None:
            kept = _finite(msgspec.to_builtins(found))
            rests_on = _rests_on(field, answer.decision, self.trials)
            store.save(
                replace(answer.decision, study=field.id, exploration=kept, rests_on=rests_on)
            )
        return replace(found, decision=replace(answer.full(), study=field.id))

    def _beliefs(self) -> Sequence[Mapping[str, Any]]:
        """The candidates that were not tested and may be the best."""
        if not (self._explorer.best() or self._field.references or self._field.prediction):
            return ()  # prices alone tell nothing yet
        held = self._explorer.beliefs()
        open_ = np.flatnonzero(np.isnan(held.measured) & ~held.failed & np.isfinite(held.value))
        value = held.value[open_]
        # what may fail is worth so much less
        likely = np.where(value > 0, value * (1 - held.chance_of_failure[open_]), value)
        order = open_[np.argsort(-likely, kind="stable")].tolist()
        ends = {"utility": held.value, "low": held.value_low, "high": held.value_high}
        found = []
        for i in order[:SHOWN_BELIEFS]:
            given = {name: self._objective.as_given(float(v[i])) for name, v in ends.items()}
            given["low"], given["high"] = sorted((given["low"], given["high"]))
            given["chance_of_failure"] = float(held.chance_of_failure[i])
            found.append({"offer": self._field.names[i], **given})
        return found


def _rests_on(field: Field, decision: Decision, trials: Sequence[Trial]) -> dict[str, Any]:
    """With what ``choose`` is asked for the same; empty where this machine is the only offer."""
    study = field.study
    if study.runner == HERE and not any(field.more):
        return {}
    options = choose.Options(
        by=study.by,
        better=study.better,
        tolerance=study.tolerance,
        where=study.where,
        purchase=study.purchase,
        needs=study.needs,
        samples=study.samples,
        deadline=study.job_deadline,
        budget=study.job_budget,
        offers=study.offers,
    )
    return footing.rests_on(choose.asked(options), decision, trials)


def _finite(value: Any) -> Any:
    """Plain values with None for numbers that are none, which no store keeps."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
