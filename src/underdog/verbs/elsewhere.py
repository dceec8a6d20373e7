"""Measure a command on another machine: a runner carries it there and brings the trial back."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from underdog import runners
from underdog.errors import UnderdogError, UsageError
from underdog.measuring.command import combinations
from underdog.measuring.interrupts import Interrupts
from underdog.model import Trial
from underdog.runners import Job, Request, Runner, Setup, State
from underdog.runners._remote import TOO_LONG
from underdog.store import Store, open_store
from underdog.store.owner import death
from underdog.verbs import carrying, places
from underdog.verbs.carrying import Carried
from underdog.verbs.measure import PRECISION, SECONDS, Settings, new_id, printable
from underdog.verbs.places import Place

POLL = 1.0  # seconds between two looks at a job on another machine
PATIENCE = 120.0  # seconds that a cancelled job gets to end
AT_MOST = 24 * 3600.0  # seconds of a whole run, where nothing else is said
LEAST = 2.0  # seconds; less is no trial but a mistake

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
        UsageError: a spending cap where the price is unknown, or limits that leave no time.
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
    seconds = settings.seconds or SECONDS
    if settings.whole:
        seconds = where.at_most or AT_MOST
    for command, knobs in combinations(settings.command, settings.knobs):
        job = Job(
            id=new_id(),
            workload=settings.name,
            candidate=place.name,
            offer=offer,
            command=tuple(command),
            knobs={name: printable(value) for name, value in knobs.items()},
            price=price,
            seconds=seconds,
            precision=settings.precision or PRECISION,
            timeout=settings.timeout,
            pattern=settings.pattern,
            samples_per_step=settings.samples_per_step,
            whole=settings.whole,
            target=place.target,
            folder=where.folder,
            dollars=where.dollars,
        )
        if job.longest < LEAST:
            raise UsageError(
                f"{job.longest:.2g} s is all that the limits leave a trial on '{place.name}'"
                + (f", at ${price:g} per hour." if price is not None else "."),
                "Allow more time or more dollars: --at-most, --max-dollars.",
            )
        yield job


def plan(settings: Settings, where: Where) -> list[dict[str, Any]]:
    """What ``measure_there`` would submit, and what it may cost; nothing happens."""
    place = places.find(where.on, where.runner, where.offers)
    with tempfile.TemporaryDirectory(prefix="underdog-") as folder:
        runner = runners.make(place.runner, Setup(folder=Path(folder)))
        asked = list(jobs(settings, place, where))
        requests = carrying.render_all(asked, place.runner, runner)
        return [planned(request, place) for request in requests]


def planned(request: Request, place: Place) -> dict[str, Any]:
    """What would be submitted, and what it may cost."""
    job, price = request.job, request.job.price
    return {
        "offer": place.name,
        "runner": place.runner,
        "knobs": dict(job.knobs),
        "would_submit": list(request.lines),
        "price_per_hour": price,
        "longest_seconds": job.longest,
        "most_dollars": None if price is None else price * job.longest / 3600,
    }


def measure_there(
    settings: Settings,
    where: Where,
    tell: Tell = lambda name, state: None,
    interrupts: Interrupts | None = None,
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
        interrupts or Interrupts() as interrupts,
        tempfile.TemporaryDirectory(prefix="underdog-") as folder,
    ):
        runner = runners.make(place.runner, Setup(folder=Path(folder)))
        asked = list(jobs(settings, place, where))
        # an engine that takes several at once gives each a machine of its own
        several = runners.together(place.runner) is not None
        for group in [asked] if several else [[job] for job in asked]:
            if interrupts.count:
                break
            found += carry(group, place, runner, store, interrupts, tell)
    if not found:
        raise KeyboardInterrupt
    return found


def carry(
    asked: Sequence[Job],
    place: Place,
    runner: Runner,
    store: Store,
    interrupts: Interrupts,
    tell: Tell = lambda name, state: None,
) -> list[Trial]:
    """Have jobs carried out that begin together, and keep their trials; Ctrl-C ends them there.

    Raises:
        UnderdogError: the engine does not answer any more, or does not end them; ``recover`` finds
            the trials.
    """
    begun = [carrying.begun(job, place.runner) for job in asked]
    found = carrying.submit_all(asked, begun, runner, store)
    trials = []
    for k, (job, carried) in enumerate(zip(asked, found, strict=True)):
        if isinstance(carried, Trial):
            trials.append(carried)
            continue
        beside = [one for one in found[k + 1 :] if isinstance(one, Carried)]
        say, limit = partial(tell, place.name), _limit(job, place.runner)
        trial = _to_the_end(carried, store, interrupts, say, limit, beside=beside)
        if job.whole and job.folder is not None and not job.target.get("folder"):
            trial = replace(trial, files=runners.files(place.runner, carried.handle))
            store.save(trial)
        trials.append(trial)
    return trials


def _limit(job: Job, runner: str) -> float:
    """Seconds after which we end a job: those of an engine that ends with us, no other holds."""
    if not runners.ends_with_us(runner):
        return math.inf
    return job.longest


def _to_the_end(
    carried: Carried,
    store: Store,
    interrupts: Interrupts,
    tell: Callable[[State], None],
    limit: float = math.inf,
    *,
    leave: bool = False,
    beside: Sequence[Carried] = (),
) -> Trial:
    """Wait for a job, or end it where the user or its ``limit`` asks for that; keep its trial.

    Args:
        beside: jobs that run at the same time and are waited for afterwards: they are looked at,
            and end with it where the user asks for that.

    Raises:
        KeyboardInterrupt: the user does not wait any longer, and ``leave`` says that it goes on.
    """
    deadline, over = None, False
    while True:
        carried.look()
        if carried.state.ended:
            break
        tell(carried.state)
        _look_beside(beside)
        if interrupts.count and leave:
            raise KeyboardInterrupt
        over = over or time.monotonic() - carried.since > limit
        if (interrupts.count or over) and deadline is None:
            for one in (carried, *(beside if interrupts.count else ())):
                one.cancel()
            deadline = time.monotonic() + PATIENCE
        if deadline is not None and time.monotonic() > deadline:
            raise UnderdogError(
                f"The job of trial '{carried.trial.id}' was asked to end, and goes on.",
                "underdog trials recover --cancel asks it again.",
            )
        left = carried.since + limit - time.monotonic()
        time.sleep(min(POLL, max(left, 0.05)))
    trial = carrying.collect(carried)
    if over and not interrupts.count and trial.status == "interrupted":
        trial = replace(trial, reason=TOO_LONG)
    if interrupts.count and trial.status != "ok":
        trial = replace(trial, status="interrupted")
    store.save(trial)
    return trial


def _look_beside(jobs: Sequence[Carried]) -> None:
    """See when they begin; an engine that cannot be asked now is asked again when they count."""
    for one in jobs:
        if not one.state.ended:
            with suppress(UnderdogError):
                one.look()


@contextmanager
def _told(trial: Trial, still_out: list[tuple[Trial, str]]) -> Iterator[None]:
    """One trial that cannot be brought in, or a record that makes no sense, keeps no other out."""
    try:
        yield
    except (UnderdogError, ValueError, LookupError, TypeError) as error:
        still_out.append((trial, str(error) or type(error).__name__))


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

    Ctrl-C ends the waiting, and the jobs only with ``cancel``.

    Args:
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder.
        cancel: end the jobs that still run, instead of waiting for them.

    Raises:
        StoreError: the store cannot be opened or written.
    """
    trials: list[Trial] = []
    still_out: list[tuple[Trial, str]] = []
    with (
        open_store(store) as opened,
        Interrupts() as interrupts,
        tempfile.TemporaryDirectory(prefix="underdog-") as folder,
    ):
        out = [t for t in opened.trials(status="running") if t.handle and death(t.owner)]
        found: list[Carried] = []
        for number, trial in enumerate(out):
            own = Path(folder) / str(number)
            own.mkdir()
            with _told(trial, still_out):
                carried = carrying.again(
                    trial, runners.make(trial.runner, Setup(folder=own)), opened
                )
                if cancel:
                    carried.cancel()
                carried.look()
                found.append(carried)
        # those that have ended first: where a machine gives itself back, their records go with it
        for carried in sorted(found, key=lambda one: not one.state.ended):
            trial = carried.trial
            name = trial.offer.id if trial.offer else trial.workload
            say = partial(tell, name)
            with _told(trial, still_out):
                trials.append(_to_the_end(carried, opened, interrupts, say, leave=not cancel))
    return Recovered(trials, still_out)
