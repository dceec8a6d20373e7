"""The loop of ``underdog explore``: what runs, what was found, what it cost."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from underdog.core.evidence import UNUSED, accelerator_unused
from underdog.core.exploration import Ended, Event, Exploration, Running, Started, Why
from underdog.core.exploring import Attempt, Explorer, Planned
from underdog.core.objective import Job as WholeJob
from underdog.core.objective import Objective
from underdog.core.racing import Race, seconds_left
from underdog.core.search import Settings
from underdog.core.trials_file import COUNTED
from underdog.errors import UnderdogError
from underdog.measuring.command import filled
from underdog.model import Estimate, Machine, Software, Trial
from underdog.runners import Handle, Job, Runner
from underdog.store import Store
from underdog.store.owner import current_owner
from underdog.verbs import choose
from underdog.verbs.measure import new_id, now
from underdog.verbs.studies import Field

POLL = 0.2  # seconds between two looks at what runs
PATIENCE = 60.0  # seconds that cancelled tests get to end
SHOWN_BELIEFS = 5

Tell = Callable[[Event], None]


@dataclass(slots=True)
class _Test:
    """A test that runs."""

    planned: Planned
    begun: Trial
    handle: Handle
    number: int
    since: float = field(default_factory=time.monotonic)
    race: Race = field(default_factory=Race)
    lost: str | None = None  # why it cannot win any more
    saved: float | None = None


class Exploring:
    """One exploration: what runs, what was found, what it cost."""

    def __init__(self, laid_out: Field, runner: Runner, store: Store | None, tell: Tell) -> None:
        study = self.study = laid_out.study
        self.field, self.runner, self.store, self.tell = laid_out, runner, store, tell
        job = WholeJob(study.samples, laid_out.request.deadline_hours, study.job_budget)
        self.objective = Objective(laid_out.request.utility, laid_out.rows, job)
        self.candidates = dataclasses.replace(
            laid_out.candidates, price_per_hour=self.objective.prices
        )
        self.explorer = Explorer(
            self.candidates,
            self.objective,
            values=study.knobs,
            test_seconds=study.test,
            search={
                "references": laid_out.references,
                "prediction": laid_out.prediction,
                "seed": study.seed,
                "settings": Settings(test_seconds=study.test),
            },
        )
        self.began = time.monotonic()
        self.running: list[_Test] = []
        self.trials: list[Trial] = []  # of the workload, those that ended
        self.tested: list[Ended] = []
        self.spent = self.saved = 0.0
        self.earlier = 0
        self.interrupted = False
        for trial in laid_out.trials:
            if trial.status != "running":
                self._remember(trial)

    def _remember(self, trial: Trial) -> None:
        """Take in a trial of the store."""
        mine = trial.study == self.field.id
        self.trials.append(trial)
        index = self.field.index_of(trial)
        if mine:
            self.spent += trial.dollars or 0.0
        # that there was no room then, or that somebody ended it, says nothing about now
        known = _rate(trial) is not None or trial.status not in ("no_capacity", "interrupted")
        if index is None or not known:
            return
        self.explorer.record(_attempt(index, trial))
        if mine:
            self._note(index, trial, len(self.tested) + 1)
        else:
            self.earlier += 1

    def go(self) -> Why:
        """Until there is a reason to end."""
        try:
            while True:
                ended = self._begin()
                if ended is not None and not self.running:
                    return ended
                if not self._look():
                    time.sleep(POLL)
        except KeyboardInterrupt:
            self._cancel_all()
            return "interrupted"

    def dollars_left(self) -> float | None:
        """What the budget still allows, with what runs paid for."""
        if self.study.budget is None:
            return None
        reserved = sum(test.planned.dollars for test in self.running)
        return self.study.budget - self.spent - reserved

    def job(self, test: Planned) -> Job:
        """What the runner is asked for."""
        study, index = self.study, test.index
        price = self.field.rows[index].get("price_per_hour")
        return Job(
            workload=self.field.workload,
            candidate=self.field.names[index],
            offer=self.field.offers[index],
            command=tuple(filled(word, test.setting) for word in study.command)
            if study.knobs
            else study.command,
            knobs=test.setting,
            price=price,
            seconds=study.test,
            precision=study.precision,
            timeout=study.timeout,
            pattern=study.pattern,
            samples_per_step=study.samples_per_step,
        )

    def _begin(self) -> Why | None:
        """Start as many tests as may run; say why where none is to follow."""
        study = self.study
        free = study.parallel - len(self.running)
        free = min(free, study.max_trials - len(self.tested) - len(self.running))
        if len(self.tested) >= study.max_trials:
            return "trials"
        if study.deadline is not None and self._elapsed() + study.test > study.deadline:
            return "deadline"
        if free <= 0:
            return None
        closing = bool(self.tested or self.earlier) and self.explorer.stopping().stop
        busy = [(test.planned.index, test.planned.setting) for test in self.running]
        tests = self.explorer.next(free, busy, self.dollars_left(), closing)
        for test in tests:
            self._submit(test)
        if tests:
            return None
        if study.budget is not None and self.explorer.next(1, busy, None, closing):
            return "budget"
        return "enough" if closing and self.explorer.untested else "exhausted"

    def _elapsed(self) -> float:
        """Seconds since the search began; in a replay those that its tests would have taken."""
        if self.field.recorded is None:
            return time.monotonic() - self.began
        return self.study.test * len(self.tested) / self.study.parallel

    def _submit(self, test: Planned) -> None:
        job = self.job(test)
        number = len(self.tested) + len(self.running) + 1
        dollars = None if np.isnan(test.dollars) else test.dollars
        self.tell(Started(number, job.candidate, job.knobs, test.reason, dollars, test.suggestion))
        request = self.runner.render(job)
        begun = Trial(
            id=new_id(),
            workload=job.workload,
            command=list(job.command),
            knobs=self._knobs(test),
            status="running",
            started_at=now(),
            runner=self.study.runner,
            offer=job.offer,
            price=job.offer.price,
            machine=Machine(),
            software=Software(),
            study=self.field.id,
            dollars=dollars,  # in full, until it is known: a kill now must not make it free
            owner=current_owner(),
        )
        if self.store is not None:
            self.store.save(begun)
        self.running.append(_Test(test, begun, self.runner.submit(request), number))

    def _knobs(self, test: Planned) -> dict[str, str]:
        """The trial's: the offer's name stands among them where the machine alone does not tell."""
        if not self.field.ambiguous(test.index):
            return dict(test.setting)
        return {**test.setting, "offer": self.field.names[test.index]}

    def _look(self) -> bool:
        """Look once at all that runs; whether a test ended."""
        ended = False
        for test in list(self.running):
            state = self.runner.status(test.handle)
            if state.ended:
                self._finish(test)
                ended = True
            elif state.look is not None:
                name = self.field.names[test.planned.index]
                self.tell(Running(test.number, name, state.look))
                self._race(test, state.look)
        return ended

    def _race(self, test: _Test, look: Any) -> None:
        """Stop a test that cannot win any more."""
        best = self.explorer.best()
        highest = None if best is None or test.lost else test.race.highest(look)
        if best is None or highest is None:
            return
        index = test.planned.index
        if not self.explorer.value(index, highest) < best.low:
            return
        test.lost = (
            f"it cannot win any more: at most {highest:.4g} samples/s, "
            f"behind {self.field.names[best.index]}"
        )
        price = self.field.rows[index].get("price_per_hour")
        if price is not None:
            seconds = seconds_left(look, self.study.test, self.study.precision)
            test.saved = price * seconds / 3600
        self.runner.cancel(test.handle)

    def _finish(self, test: _Test) -> None:
        """Bring the trial in, keep it, and learn from it."""
        self.running.remove(test)
        trial = self._collected(test)
        if self.store is not None:
            self.store.save(trial)
        self.trials.append(trial)
        self.spent += trial.dollars or 0.0
        self.saved += test.saved or 0.0
        self.explorer.record(_attempt(test.planned.index, trial))
        self.tell(self._note(test.planned.index, trial, test.number))

    def _collected(self, test: _Test) -> Trial:
        begun = dataclasses.replace(test.begun, ended_at=now(), owner={})
        try:
            found = msgspec.json.decode(self.runner.collect(test.handle).read_bytes(), type=Trial)
        except (UnderdogError, msgspec.MsgspecError, OSError) as error:
            price = begun.price.per_hour
            return dataclasses.replace(
                begun,
                status="interrupted" if self.interrupted else "failed",
                reason=str(error),
                dollars=price and price * (time.monotonic() - test.since) / 3600,
            )
        seconds = found.usage.get("elapsed_seconds") or self.study.test
        price = begun.price.per_hour or found.price.per_hour
        status, reason = found.status, found.reason
        if test.lost and status in COUNTED:
            status, reason = "stopped", test.lost
        elif self.interrupted and status != "ok":
            status, reason = "interrupted", reason or "the exploration was interrupted"
        return dataclasses.replace(
            found,
            id=begun.id,
            workload=begun.workload,
            knobs={**found.knobs, **begun.knobs},
            status=status,
            reason=reason,
            started_at=begun.started_at,
            ended_at=begun.ended_at,
            runner=begun.runner,
            offer=begun.offer,
            price=begun.price if begun.price.per_hour else found.price,
            study=begun.study,
            dollars=None if price is None else price * seconds / 3600,
            usage={**found.usage, "saved_dollars": test.saved} if test.saved else found.usage,
        )

    def _note(self, index: int, trial: Trial, number: int) -> Ended:
        """The record of a test that ended, kept for the report."""
        rate, best = _rate(trial), self.explorer.best()
        told = Ended(
            number=number,
            trial=trial.id,
            offer=self.field.names[index],
            knobs={k: v for k, v in trial.knobs.items() if k != "offer"},
            status=trial.status,
            reason=trial.reason or _doubt(trial),
            rate=rate,
            utility=None if rate is None else self._utility(index, rate.value),
            dollars=trial.dollars,
            saved=trial.usage.get("saved_dollars"),
            best=None if best is None else self.field.names[best.index],
            best_utility=None if best is None else self.objective.as_given(best.value),
            spent=self.spent,
        )
        self.tested.append(told)
        return told

    def _utility(self, index: int, rate: float) -> float | None:
        rates = np.full(len(self.field.names), np.nan)
        rates[index] = rate
        value = float(self.objective.raw(rates, self.candidates.price_per_hour)[index])
        return None if np.isnan(value) else value

    def _cancel_all(self) -> None:
        """End what runs; what it measured is kept."""
        self.interrupted = True
        for test in self.running:
            self.runner.cancel(test.handle)
        patience = time.monotonic() + PATIENCE
        while self.running and time.monotonic() < patience:
            if not self._look():
                time.sleep(POLL)

    def result(self, ended: Why) -> Exploration:
        """What it came to."""
        search, best = self.explorer.search, self.explorer.best()
        stopping, field_ = search.stop(), self.field
        answer = choose.answer(field_.catalog, field_.workload, self.trials, field_.request)
        decision = answer.full()
        if self.store is not None:
            self.store.save(answer.decision)
        return Exploration(
            study=field_.id,
            workload=field_.workload,
            runner=self.study.runner,
            utility=field_.request.utility.text,
            better=field_.request.utility.first.better,
            candidates=len(field_.names),
            earlier=self.earlier,
            tests=self.tested,
            spent=self.spent,
            saved=self.saved,
            best=None if best is None else field_.names[best.index],
            best_knobs={} if best is None else best.setting,
            best_rate=None if best is None else best.rate,
            best_utility=None if best is None else self.objective.as_given(best.value),
            ended=ended,
            expected_loss=stopping.expected_loss,
            high_loss=stopping.high_loss,
            stopping=stopping.reason,
            references={k: float(v) for k, v in search.beliefs().reference_weights.items()},
            beliefs=self._beliefs(),
            decision=decision,
            kept=self.store is not None,
        )

    def _beliefs(self) -> Sequence[dict[str, Any]]:
        """The candidates that were not tested and may be the best."""
        held = self.explorer.search.beliefs()
        untested = np.isnan(held.measured) & ~held.failed & np.isfinite(held.value)
        order = [int(i) for i in np.argsort(-held.value) if untested[i]][:SHOWN_BELIEFS]
        ends = {"utility": held.value, "low": held.value_low, "high": held.value_high}
        found = []
        for i in order:
            given = {name: self.objective.as_given(float(v[i])) for name, v in ends.items()}
            given["low"], given["high"] = sorted((given["low"], given["high"]))
            given["chance_of_failure"] = float(held.chance_of_failure[i])
            found.append({"offer": self.field.names[i], **given})
        return found


def _rate(trial: Trial) -> Estimate | None:
    """Samples per second, where the trial is one to learn from."""
    if trial.status not in COUNTED or trial.measurement is None or accelerator_unused(trial):
        return None
    return trial.measurement.samples_per_second


def _doubt(trial: Trial) -> str | None:
    """Why a trial that gave a throughput is none to learn from."""
    if not accelerator_unused(trial):
        return None
    said = [caveat.message for caveat in trial.caveats if caveat.code == UNUSED]
    return said[0] if said else "the accelerator was not used"


def _attempt(index: int, trial: Trial) -> Attempt:
    setting = {name: value for name, value in trial.knobs.items() if name != "offer"}
    return Attempt(index, setting, trial.status, _rate(trial))
