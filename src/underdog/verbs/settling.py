"""Running the tests that would settle a decision, here and on other machines, within a budget.

A test may cost what was said of it and no more: the machine that it runs on is given back when its
time is over, whatever has become of us, and no test begins that the rest of the budget cannot pay.
"""

from __future__ import annotations

import shlex
import signal
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from underdog import runners
from underdog.catalog import offers_file
from underdog.core.evidence import shape_of, shape_of_machine
from underdog.core.watched import Test
from underdog.errors import UnderdogError
from underdog.measuring.interrupts import Interrupts
from underdog.measuring.machine import describe
from underdog.measuring.nvml import Nvml
from underdog.model import Trial
from underdog.runners import Job, Setup, State
from underdog.store import open_store
from underdog.store.owner import death
from underdog.verbs import elsewhere, places
from underdog.verbs.elsewhere import Where
from underdog.verbs.measure import Settings, measure_all
from underdog.verbs.places import Place

MEASURING = 0.5  # of a test's time; the rest is for setting up, starting and warming up
HERE = "local"
Told = Callable[[str, State], None]  # where a test runs, and how its job stands
_STANDARD_ERROR = 2  # the script's output is no data of ours


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What came of a test: the id of its trial and what it cost, or why it was not run."""

    test: Test
    trial: str | None = None
    status: str | None = None
    dollars: float = 0.0
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Planned:
    """What a test would submit, as ``measure --on --dry-run`` tells it, or why it is not run."""

    test: Test
    plan: dict[str, Any] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Means:
    """What tests are run with.

    Attributes:
        budget: the most that all of them may cost, USD.
        folder: what they run in and what is carried to other machines; None: nothing is.
        store: a URL or a path.
    """

    budget: float
    folder: Path | None = None
    store: str | None = None


@dataclass(frozen=True, slots=True)
class _Ready:
    """A test that can be run: the trial that it repeats, and where; None: on this machine."""

    test: Test
    example: Trial
    place: Place | None


def this_machine() -> tuple[str, str]:
    """Provider and instance type of this machine, as its trials have them."""
    nvml = Nvml()
    machine = describe(nvml)
    nvml.close()
    provider, kind, _ = shape_of_machine(machine)
    return provider, kind


def plan(tests: Sequence[Test], means: Means) -> list[Planned]:
    """What ``settle`` would submit where each test costs the most that it may; nothing happens."""
    left, found = means.budget, []
    for test in tests:
        ready = _ready(test, means, left)
        try:
            told = ready if isinstance(ready, str) else _plan_of(ready, means)
        except UnderdogError as error:
            told = _by_hand(test, means, error)
        if isinstance(told, str):
            found.append(Planned(test=test, reason=told))
            continue
        left -= test.dollars or 0.0
        found.append(Planned(test=test, plan=told))
    return found


def settle(
    tests: Sequence[Test],
    means: Means,
    tell: Callable[[str], None],
    told: Told | None = None,
) -> list[Done]:
    """Run the tests, the cheapest first, as far as the budget goes.

    Args:
        tell: is called with lines for people.
        told: is called with how a job on another machine stands.

    Raises:
        KeyboardInterrupt: the user ended one; what was measured is kept.
    """
    spent, done = 0.0, []
    for test in tests:
        ready = _ready(test, means, means.budget - spent)
        if isinstance(ready, str):
            one = Done(test=test, reason=ready)
        else:
            where = "this machine" if ready.place is None else ready.place.name
            tell(f"measuring {test.workload} on {where}, for ${test.dollars:.4g} at most")
            one = _here(ready, means) if ready.place is None else _there(ready, means, told)
        if one.trial is None:
            tell(f"not run: {test.workload} on {test.offer}: {one.reason}")
        spent += one.dollars
        done.append(one)
    return done


def _ready(test: Test, means: Means, left: float) -> _Ready | str:
    """The test with all that it takes, or why it cannot be run."""
    with open_store(means.store) as store:
        trials = store.trials(workload=test.workload)
    example = _example(test, trials)
    if example is None:
        return "no trial of it tells its command"
    if test.dollars is None:
        return "its price is unknown, so no budget can be kept"
    if test.dollars > left:
        return f"it may cost ${test.dollars:.4g}, and ${max(left, 0):.4g} of the budget is left"
    for trial in trials:
        if trial.status == "running" and shape_of(trial)[:2] == test.machine[:2]:
            if death(trial.owner) is None:
                return f"trial {trial.id} measures it just now"
            if trial.handle is not None:
                return (
                    f"trial {trial.id} of a process that is gone is still out. Bring it in: "
                    "underdog trials recover"
                )
    if test.here and test.runner is None:
        return _Ready(test, example, None)
    try:
        return _Ready(test, example, _place(test))
    except UnderdogError as error:
        return _by_hand(test, means, error)


def _example(test: Test, trials: Sequence[Trial]) -> Trial | None:
    """The latest trial of the workload that tells its command, of that machine if there is one."""
    trials = [t for t in trials if t.command and t.status != "running"]
    alike = [t for t in trials if shape_of(t)[:2] == test.machine[:2]]
    return max(alike or trials, key=lambda t: (t.started_at, t.id), default=None)


def _place(test: Test) -> Place:
    """Where a test is run: by the file of offers that says how, else by what reaches clouds."""
    if test.offers is None:
        place = places.find(test.offer)
        price = replace(place.offer.price, per_hour=_per_hour(test))
        place = replace(place, offer=replace(place.offer, nodes=test.machine.nodes, price=price))
    else:
        found = places.of_machine(test.machine, offers_file.entries(test.offers))
        if found is None:
            raise UnderdogError(f"'{test.offers}' has no such machine any more.")
        place = found
    places.check(place.name, place.runner, place.target)
    return place


def _per_hour(test: Test) -> float:
    """USD per hour of all its nodes."""
    assert test.dollars is not None
    return test.dollars / test.minutes * 60


def _by_hand(test: Test, means: Means, error: UnderdogError) -> str:
    """Why a test cannot be run from here, and how to run it there."""
    with open_store(means.store) as store:
        example = _example(test, store.trials(workload=test.workload))
    command = shlex.join(example.command if example else [])
    said = " ".join(str(error).split())
    return (
        f"{said.rstrip('.')}. There, with this store: "
        f"underdog measure --workload {shlex.quote(test.workload)} -- {command}"
    )


def _settings(ready: _Ready, means: Means) -> Settings:
    return Settings(
        command=ready.example.command,
        seconds=ready.test.minutes * 60 * MEASURING,
        workload=ready.test.workload,
        price=_per_hour(ready.test) if ready.place is None else None,
        store=means.store,
        here=ready.place is None,
    )


def _job(ready: _Ready, place: Place, means: Means) -> Job:
    """What is submitted, under the knobs of the trial that it repeats."""
    where = Where(folder=means.folder, dollars=ready.test.dollars)
    (job,) = elsewhere.jobs(_settings(ready, means), place, where)
    # its name there told offers of one kind apart
    knobs = {name: value for name, value in ready.example.knobs.items() if name != "offer"}
    return replace(job, knobs=knobs)


def _plan_of(ready: _Ready, means: Means) -> dict[str, Any]:
    place = ready.place
    if place is not None:
        with tempfile.TemporaryDirectory(prefix="underdog-") as folder:
            runner = runners.make(place.runner, Setup(folder=Path(folder)))
            return elsewhere.planned(runner.render(_job(ready, place, means)), place)
    asked, test = _settings(ready, means), ready.test
    words = ["underdog", "measure", f"--for={asked.seconds:g}s", f"--workload={test.workload}"]
    return {
        "offer": test.offer,
        "runner": HERE,
        "knobs": dict(ready.example.knobs),
        "would_submit": [shlex.join([*words, f"--price={asked.price:g}", "--", *asked.command])],
        "price_per_hour": asked.price,
        "longest_seconds": test.minutes * 60,
        "most_dollars": test.dollars,
    }


def _there(ready: _Ready, means: Means, told: Told | None) -> Done:
    """Have a runner carry the test to its machine; Ctrl-C ends it there, and it is kept."""
    place, test = ready.place, ready.test
    assert place is not None
    with (
        open_store(means.store) as store,
        Interrupts() as interrupts,
        tempfile.TemporaryDirectory(prefix="underdog-") as folder,
    ):
        job = None
        try:
            job = _job(ready, place, means)
            runner = runners.make(place.runner, Setup(folder=Path(folder)))
            (trial,) = elsewhere.carry([job], place, runner, store, interrupts, told or _untold)
        except UnderdogError as error:
            out = job is not None and store.trials(id=job.id, status="running")
            # what nobody saw end may cost all that it may
            spent = (test.dollars or 0.0) if out else 0.0
            return Done(test=test, dollars=spent, reason=_by_hand(test, means, error))
    if interrupts.count and not interrupts.polite:
        signal.raise_signal(signal.SIGTERM)  # it was for us, too
    if interrupts.count:
        raise KeyboardInterrupt
    return _done(test, trial)


def _untold(name: str, state: State) -> None:
    pass


def _here(ready: _Ready, means: Means) -> Done:
    try:
        (trial,) = measure_all(_settings(ready, means), stdout_to=_STANDARD_ERROR)
    except UnderdogError as error:
        return Done(test=ready.test, reason=error.message)
    elapsed = trial.usage.get("elapsed_seconds") or ready.test.minutes * 60
    dollars = _per_hour(ready.test) * elapsed / 3600
    trial = replace(trial, knobs=ready.example.knobs, dollars=dollars)
    with open_store(means.store) as opened:
        opened.save(trial)
    if trial.status == "interrupted":
        raise KeyboardInterrupt
    return _done(ready.test, trial)


def _done(test: Test, trial: Trial) -> Done:
    return Done(
        test=test,
        trial=trial.id,
        status=trial.status,
        dollars=trial.dollars or 0.0,
        reason=trial.reason,
    )
