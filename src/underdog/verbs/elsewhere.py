"""Measure a command on another machine: a runner carries it there and brings the trial back."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from underdog import runners
from underdog.errors import UnderdogError, UsageError
from underdog.measuring.command import combinations
from underdog.measuring.interrupts import Interrupts
from underdog.model import Trial
from underdog.runners import Job, Runner, Setup, State
from underdog.store import Store, open_store
from underdog.store.owner import death
from underdog.verbs import carrying, places
from underdog.verbs.carrying import Carried
from underdog.verbs.measure import PRECISION, SECONDS, Settings, new_id, printable
from underdog.verbs.places import Place

POLL = 1.0  # seconds between two looks at a job on another machine
PATIENCE = 120.0  # seconds that a cancelled job gets to end
AT_MOST = 24 * 3600.0  # seconds of a whole run, where nothing else is said

Tell = Callable[[str, State], None]  # the offer's name, and how its job stands


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """Where to measure; see ``underdog.verbs.places.find``.

    Args:
        folder: carried to the machine and worked in; None: nothing is carried.
        dollars: the most that one trial may cost, USD.
        at_most: seconds of a whole run.
    """

    on: str | None = None
    runner: str | None = None
    offers: str | Path | None = None
    folder: Path | None = None
    dollars: float | None = None
    at_most: float | None = None


def jobs(settings: Settings, place: Place, where: Where) -> Iterator[Job]:
    """The job of each combination of knobs.

    Raises:
        UsageError: a spending cap where the price is unknown.
    """
    price = settings.price or place.offer.price.per_hour
    if where.dollars is not None and price is None:
        raise UsageError(
            f"A spending cap needs a price, and that of '{place.name}' is unknown.",
            "Give it with --price, in USD per hour.",
        )
    offer = place.offer
    if settings.price is not None:
        known = replace(offer.price, per_hour=price, source="--price", unknown_reason=None)
        offer = replace(offer, price=known)
    for command, knobs in combinations(settings.command, settings.knobs):
        yield Job(
            id=new_id(),
            workload=settings.name,
            candidate=place.name,
            offer=offer,
            command=tuple(command),
            knobs={name: printable(value) for name, value in knobs.items()},
            price=price,
            seconds=settings.seconds or SECONDS if not settings.whole else where.at_most or AT_MOST,
            precision=settings.precision or PRECISION,
            timeout=settings.timeout,
            pattern=settings.pattern,
            samples_per_step=settings.samples_per_step,
            whole=settings.whole,
            target=place.target,
            folder=where.folder,
            dollars=where.dollars,
        )


def plan(settings: Settings, where: Where) -> list[dict[str, Any]]:
    """What ``measure_there`` would submit, and what it may cost; nothing happens."""
    place = places.find(where.on, where.runner, where.offers)
    with tempfile.TemporaryDirectory(prefix="underdog-") as folder:
        runner = runners.make(place.runner, Setup(folder=Path(folder)))
        return [_planned(job, place, runner) for job in jobs(settings, place, where)]


def _planned(job: Job, place: Place, runner: Runner) -> dict[str, Any]:
    price = job.price
    return {
        "offer": place.offer.id,
        "runner": place.runner,
        "knobs": dict(job.knobs),
        "would_submit": list(runner.render(job).lines),
        "price_per_hour": price,
        "longest_seconds": job.longest,
        "most_dollars": None if price is None else price * job.longest / 3600,
    }


def measure_there(
    settings: Settings, where: Where, tell: Tell = lambda name, state: None
) -> list[Trial]:
    """Carry out ``settings`` on another machine, one trial per combination of knobs.

    Ctrl-C ends the job there and brings back what it measured. Where this process is killed,
    ``recover`` finds the trial again.

    Raises:
        UsageError: the place cannot be found or reached so.
        StoreError: the store cannot be opened or written.
    """
    place = places.find(where.on, where.runner, where.offers)
    found = []
    with (
        open_store(settings.store) as store,
        Interrupts() as interrupts,
        tempfile.TemporaryDirectory(prefix="underdog-") as folder,
    ):
        runner = runners.make(place.runner, Setup(folder=Path(folder)))
        for job in jobs(settings, place, where):
            if interrupts.count:
                break
            trial = carrying.begun(job, place.runner)
            carried = carrying.submit(job, trial, runner, store)
            if isinstance(carried, Carried):
                trial = _to_the_end(carried, store, interrupts, lambda s: tell(place.name, s))
            else:
                trial = carried
            found.append(trial)
    if not found:
        raise KeyboardInterrupt
    return found


def _to_the_end(
    carried: Carried, store: Store, interrupts: Interrupts, tell: Callable[[State], None]
) -> Trial:
    """Wait for a job, or end it where the user asks for that, and keep its trial."""
    deadline = None
    while True:
        carried.look()
        if carried.state.ended:
            break
        tell(carried.state)
        if interrupts.count and deadline is None:
            carried.cancel()
            deadline = time.monotonic() + PATIENCE
        if deadline is not None and time.monotonic() > deadline:
            raise UnderdogError(
                f"The job of trial '{carried.trial.id}' was asked to end, and goes on.",
                "underdog trials recover --cancel asks it again.",
            )
        time.sleep(POLL)
    trial = carrying.collect(carried)
    if interrupts.count and trial.status != "ok":
        trial = replace(trial, status="interrupted")
    store.save(trial)
    return trial


@dataclass(frozen=True, slots=True)
class Recovered:
    """What ``recover`` brought in, and the trials that it could not, each with the reason."""

    trials: list[Trial]
    still_out: list[tuple[Trial, str]]


def recover(
    store: str | None = None,
    *,
    cancel: bool = False,
    tell: Tell = lambda name, state: None,
) -> Recovered:
    """Bring in the trials whose process is gone while their job was on another machine.

    Args:
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder.
        cancel: end the jobs that still run, instead of waiting for them.

    Raises:
        StoreError: the store cannot be opened or written.
    """
    trials, still_out = [], []
    with (
        open_store(store) as opened,
        Interrupts() as interrupts,
        tempfile.TemporaryDirectory(prefix="underdog-") as folder,
    ):
        for number, trial in enumerate(opened.trials(status="running")):
            if trial.handle is None or death(trial.owner) is None:
                continue
            own = Path(folder) / str(number)
            own.mkdir()
            try:
                runner = runners.make(trial.runner, Setup(folder=own))
                carried = carrying.again(trial, runner, opened)
                if cancel:
                    carried.cancel()
                name = trial.offer.id if trial.offer else trial.workload
                trials.append(_to_the_end(carried, opened, interrupts, lambda s: tell(name, s)))  # noqa: B023
            except UnderdogError as error:
                still_out.append((trial, str(error)))
    return Recovered(trials, still_out)
