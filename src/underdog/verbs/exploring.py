"""The loop of ``underdog explore``: start tests, watch them, stop the losers, bring them in."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from underdog import runners
from underdog.core.exploration import Event, Exploration, Running, Started, Why
from underdog.core.exploring import Explorer, Planned
from underdog.core.objective import Job as WholeJob
from underdog.core.objective import Objective
from underdog.core.racing import Look, Race, seconds_left
from underdog.core.search import Settings
from underdog.core.tested import Cut, attempt_of, cut_short, says_something, setting_of
from underdog.errors import UnderdogError
from underdog.model import Trial
from underdog.progress import say
from underdog.runners import Job, Runner
from underdog.store import Store
from underdog.verbs import carrying
from underdog.verbs.carrying import Carried
from underdog.verbs.explored import Record
from underdog.verbs.measure import new_id
from underdog.verbs.studies import Field, command_with

POLL = 0.2  # seconds between two looks at what runs
PATIENCE = 60.0  # seconds that cancelled tests get to end

Tell = Callable[[Event], None]


@dataclass(slots=True)
class _Test:
    """A test that runs."""

    planned: Planned
    carried: Carried
    number: int
    race: Race = field(default_factory=Race)
    cut: Cut | None = None

    def cancel(self) -> None:
        """Ask it to end; an engine that cannot be asked now lets it end by itself."""
        with contextlib.suppress(UnderdogError):
            self.carried.cancel()


class Exploring:
    """One exploration."""

    def __init__(self, laid_out: Field, runner: Runner, store: Store | None, tell: Tell) -> None:
        study = self.study = laid_out.study
        self.field, self.runner, self.store, self.tell = laid_out, runner, store, tell
        job = WholeJob(study.samples, laid_out.request.deadline_hours, study.job_budget)
        asked = laid_out.request.utility, laid_out.rows, job
        objective = Objective(*asked, laid_out.expected)
        self.explorer = Explorer(
            dataclasses.replace(laid_out.candidates, price_per_hour=objective.prices),
            objective,
            values=study.knobs,
            test_seconds=study.test,
            search={
                "references": laid_out.references,
                "prediction": laid_out.prediction,
                "had": laid_out.had,
                "seed": study.seed,
                "settings": Settings(test_seconds=study.test),
            },
            waits=laid_out.waits,
        )
        self.record = Record(laid_out, self.explorer, objective)
        self.began = time.monotonic()
        # the folder that goes along to another machine
        self.folder = None if runners.ends_with_us(study.runner) else Path.cwd()
        self.running: list[_Test] = []
        for trial in laid_out.trials:
            if trial.status != "running":
                self._remember(trial)
        for trial in laid_out.in_flight():
            self._take_over(trial)

    def _take_over(self, trial: Trial) -> None:
        """Go on with a test on another machine whose process was killed."""
        index = self.field.index_of(trial)
        if index is not None:
            dollars = float(self.explorer.dollars[index])  # what it may still come to
            reason = "It was begun by a process that is gone, and goes on."
            test = Planned(index, setting_of(trial), reason, dollars)
            number = self._announce(test)
            carried = carrying.again(trial, self.runner, self.store)
            self.running.append(_Test(test, carried, number))

    def _remember(self, trial: Trial) -> None:
        """Take in a trial of the store."""
        self.record.trials.append(trial)
        mine = trial.study == self.field.id
        if mine:
            self.record.pay(trial)
        index = self.field.index_of(trial)
        if index is None or not says_something(trial, mine):
            return
        self.explorer.record(attempt_of(index, trial))
        if mine:
            self.record.note(index, trial, len(self.record.tested) + 1)
        else:
            self.record.note_earlier(index, trial)

    def go(self) -> Exploration:
        """Until there is a reason to end."""
        try:
            ended = self._until_the_end()
        except KeyboardInterrupt:
            self._end_all("the exploration was interrupted")
            ended = "interrupted"
        except BaseException:
            for test in self.running:  # what nobody waits for must cost nothing
                test.cancel()
            raise
        return self.record.result(ended, self.store)

    def _until_the_end(self) -> Why:
        while True:
            tests, ended = self.next()
            started = self._submit(tests)
            if ended is not None and not self.running:
                return ended
            while started and not self._look():
                time.sleep(POLL)
                if self._overdue():
                    self._end_all("the deadline of the search came")
                    break

    def next(self) -> tuple[list[Planned], Why | None]:
        """The tests to start now, and where none is to follow, why."""
        study, tested = self.study, len(self.record.tested)
        free = min(study.parallel, study.max_trials - tested) - len(self.running)
        if tested >= study.max_trials:
            return [], "trials"
        if study.deadline is not None and self._elapsed() + study.test > study.deadline:
            return [], "deadline"
        if free <= 0:
            return [], None
        closing = bool(tested or self.record.before) and self.explorer.stopping().stop
        busy = [(test.planned.index, test.planned.setting) for test in self.running]
        dollars, seconds = self._dollars_left(), None
        if study.deadline is not None:
            seconds = study.deadline - self._elapsed()
        tests = self.explorer.next(free, busy, dollars, closing, seconds)
        if tests:
            return tests, None
        if seconds is not None and self.explorer.next(1, busy, dollars, closing):
            return [], "deadline"
        if study.budget is not None and self.explorer.next(1, busy, None, closing):
            return [], "budget"
        return [], "enough" if closing and self.explorer.untested else "exhausted"

    def _dollars_left(self) -> float | None:
        """What the budget still allows, with what runs paid for."""
        if self.study.budget is None:
            return None
        reserved = sum(test.planned.dollars for test in self.running)
        return self.study.budget - self.record.spent - reserved

    def _elapsed(self) -> float:
        """Seconds since the search began; in a replay those that its tests would have taken."""
        if self.field.recorded is None:
            return time.monotonic() - self.began
        at = [self.field.names.index(test.offer) for test in self.record.tested]
        waited = float(self.field.waits[at].sum())
        return (self.study.test * len(self.record.tested) + waited) / self.study.parallel

    def _overdue(self) -> bool:
        """Whether a test runs on beyond the deadline, as one may that is slow to start."""
        limit = self.study.deadline
        if limit is None or self.field.recorded is not None:
            return False
        return bool(self.running) and self._elapsed() > limit

    def jobs(self, tests: Sequence[Planned]) -> list[Job]:
        """What the runner is asked for, each within what those before it leave of the budget."""
        left, found = self._dollars_left(), []
        for test in tests:
            found.append(self._job(test, left))
            left = None if left is None else left - test.dollars
        return found

    def _job(self, test: Planned, dollars: float | None) -> Job:
        study, index = self.study, test.index
        return Job(
            id=new_id(),
            workload=self.field.workload,
            candidate=self.field.names[index],
            offer=self.field.offers[index],
            command=command_with(study, test.setting),
            knobs=test.setting,
            price=self.field.rows[index].get("price_per_hour"),
            seconds=study.test,
            precision=study.precision,
            timeout=study.timeout,
            pattern=study.pattern,
            samples_per_step=study.samples_per_step,
            target=self.field.target(index),
            folder=self.folder,
            dollars=dollars,
        )

    def _submit(self, tests: Sequence[Planned]) -> bool:
        """Start tests; whether they run, and none failed at once."""
        several = len(tests) > 1 and runners.together(self.study.runner) is not None
        begun = [self._begin(group) for group in ([tests] if several else [[t] for t in tests])]
        return all(begun)

    def _begin(self, tests: Sequence[Planned]) -> bool:
        """Start tests by one request."""
        jobs = self.jobs(tests)
        numbers = [self._announce(test, place) for place, test in enumerate(tests)]
        begun = [
            carrying.begun(
                job,
                self.study.runner,
                knobs=self._knobs(test),
                study=self.field.id,
                why=test.reason,
            )
            for job, test in zip(jobs, tests, strict=True)
        ]
        found = carrying.submit_all(jobs, begun, self.runner, self.store)
        for test, number, carried in zip(tests, numbers, found, strict=True):
            if isinstance(carried, Trial):
                self._bring_in(test, carried, number)
            else:
                self.running.append(_Test(test, carried, number))
        return not any(isinstance(carried, Trial) for carried in found)

    def _announce(self, test: Planned, place: int = 0) -> int:
        """Tell that a test begins; its number. ``place`` counts those that begin together."""
        number = len(self.record.tested) + len(self.running) + 1 + place
        name, dollars = self.field.names[test.index], test.dollars
        cost = None if math.isnan(dollars) else dollars
        self.tell(Started(number, name, test.setting, test.reason, cost, test.suggestion))
        return number

    def _knobs(self, test: Planned) -> dict[str, str]:
        """The trial's: the offer's name stands among them where the machine alone does not tell."""
        if not self.field.ambiguous(test.index):
            return dict(test.setting)
        return {**test.setting, "offer": self.field.names[test.index]}

    def _look(self) -> bool:
        """Look once at all that runs; whether a test ended."""
        ended = False
        for test in list(self.running):
            try:
                look = test.carried.look()
            except UnderdogError as error:
                trial = self._lost(test, error)
            else:
                if not test.carried.state.ended:
                    self._watch(test, look)
                    continue
                trial = carrying.collect(test.carried)
            self.running.remove(test)
            self._bring_in(test.planned, cut_short(trial, test.cut), test.number)
            ended = True
        return ended

    def _lost(self, test: _Test, error: UnderdogError) -> Trial:
        """The trial of a test whose engine does not answer any more."""
        test.cancel()
        return carrying.failed(test.carried.trial, error, time.monotonic() - test.carried.since)

    def _watch(self, test: _Test, look: Look | None) -> None:
        if look is not None:
            name = self.field.names[test.planned.index]
            self.tell(Running(test.number, name, look))
            self._race(test, look)

    def _race(self, test: _Test, look: Look) -> None:
        """Stop a test that cannot win any more."""
        best = self.explorer.best()
        highest = None if best is None or test.cut else test.race.highest(look)
        if best is None or highest is None:
            return
        index = test.planned.index
        if not self.explorer.value(index, highest) < best.low:
            return
        ahead = self.field.names[best.index]
        if best.index == index:  # the same machine with other knobs
            ahead = ", ".join(f"{name}={value}" for name, value in best.setting.items())
        said = f"it cannot win any more: at most {highest:.4g} samples/s, behind {ahead}"
        seconds = seconds_left(look, self.study.test, self.study.precision)
        price = self.field.rows[index].get("price_per_hour")
        test.cut = Cut("stopped", said, None if price is None else price * seconds / 3600)
        test.cancel()

    def _bring_in(self, test: Planned, trial: Trial, number: int) -> None:
        """Keep the trial, and learn from it."""
        if self.store is not None:
            self.store.save(trial)
        self.record.trials.append(trial)
        self.record.pay(trial)
        self.explorer.record(attempt_of(test.index, trial))
        self.tell(self.record.note(test.index, trial, number))
        say("tests", len(self.record.tested), self.study.max_trials)

    def _end_all(self, reason: str) -> None:
        """End what runs; what it measured is kept."""
        for test in self.running:
            test.cut = test.cut or Cut("interrupted", reason)
            test.cancel()
        patience = time.monotonic() + PATIENCE
        while self.running and time.monotonic() < patience:
            if not self._look():
                time.sleep(POLL)
