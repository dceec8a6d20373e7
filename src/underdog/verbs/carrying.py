"""A trial that a runner carries: its record from before the start to the end, whoever asked for it.

The record is kept before anything is submitted, and again with the handle, so that a trial is found
again when this process is gone: nothing is lost, and nothing is counted twice.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from underdog import runners
from underdog.core.attempts import Attempt, Place
from underdog.core.figures import Figures, faults_of
from underdog.core.racing import Look
from underdog.errors import RefusedError, RunnerError, UnderdogError
from underdog.measuring.live import Live
from underdog.model import Machine, Measurement, Software, Status, Trial
from underdog.runners import Handle, Job, Request, Runner, State
from underdog.store import Store
from underdog.store.owner import current_owner
from underdog.verbs import attempts
from underdog.verbs.measure import cost, new_id, now, printable, so_far

HEARD = 20.0  # seconds of failing looks at a job before its engine is taken for unreachable
LONGEST = 100 * 365 * 86400.0  # seconds; no trial takes as long


def begun(
    job: Job,
    runner: str,
    *,
    knobs: Mapping[str, str] | None = None,
    study: str | None = None,
    why: str | None = None,
) -> Trial:
    """The record of a trial that is about to be submitted, under the job's id.

    Its dollars are the most that it may cost: a kill before it is heard of must not make it free.

    Args:
        study: id of the study that asks for it, and why it does.
    """
    return Trial(
        id=job.id or new_id(),
        workload=job.workload,
        command=[printable(word) for word in job.command],
        knobs=dict(job.knobs if knobs is None else knobs),
        status="running",
        started_at=now(),
        runner=runner,
        offer=job.offer,
        price=job.offer.price,
        machine=Machine(),
        software=Software(),
        study=study,
        why=why,
        dollars=None if job.price is None else job.price * job.seconds / 3600,
        owner=current_owner(),
    )


@dataclass(slots=True)
class Carried:
    """A trial at its runner. While it runs, its record in the store is brought up to date."""

    trial: Trial
    runner: Runner
    handle: Handle
    store: Store | None = None
    since: float = field(default_factory=time.monotonic)
    state: State = field(default_factory=lambda: State(ended=False))
    attempt: Attempt | None = None  # to get the machine, once it was got
    cancelled: bool = False
    live: Live | None = None
    _silent_since: float | None = None

    def __post_init__(self) -> None:
        if self.store is not None:
            self.live = Live(self.store.update)

    def cancel(self) -> None:
        """Ask the job to end."""
        self.cancelled = True
        self.runner.cancel(self.handle)

    def look(self) -> Look | None:
        """Ask the runner once; ``state`` has the answer.

        Raises:
            UnderdogError: it could not be asked for ``HEARD`` seconds.
        """
        try:
            self.state = self.runner.status(self.handle)
        except UnderdogError:
            moment = time.monotonic()
            if self._silent_since is None:
                self._silent_since = moment
            elif moment - self._silent_since > HEARD:
                raise
        else:
            self._silent_since = None
            if self.attempt is None and self.state.waiting is None and not self.state.ended:
                waited = time.monotonic() - self.since
                self.attempt = _attempted(self.trial, self.store, got=True, waited=waited)
        look = self.state.look
        if look is not None and self.live is not None and not self.state.ended:
            self.live.tell(partial(_renewed, self.trial, look))
        return look


def _renewed(begun: Trial, look: Look) -> Trial:
    figures = look.figures
    if figures is None:
        rate, seconds = look.rate, look.seconds
        figures = Figures()
        if rate is not None:
            figures = Figures(measurement=Measurement(samples_per_second=rate, seconds=seconds))
    return so_far(begun, figures, cost(begun.price, look.elapsed))


def submit(job: Job, trial: Trial, runner: Runner, store: Store | None) -> Carried | Trial:
    """Keep the record, start the job, keep its handle; or the record of why it did not start."""
    if store is not None:
        store.save(trial)
    began = time.monotonic()
    try:
        handle = runner.submit(runner.render(job))
    except UnderdogError as error:
        return _not_taken(trial, store, error, time.monotonic() - began)
    return _taken(trial, runner, handle, store)


def submit_all(
    jobs: Sequence[Job], trials: Sequence[Trial], runner: Runner, store: Store | None
) -> list[Carried | Trial]:
    """As ``submit``, of jobs of one runner that begin together: by one request where it can."""
    together = runners.together(trials[0].runner) if len(jobs) > 1 else None
    if together is None:
        pairs = zip(jobs, trials, strict=True)
        return [submit(job, trial, runner, store) for job, trial in pairs]
    if store is not None:
        store.save(*trials)
    began = time.monotonic()
    told: Sequence[Handle | UnderdogError]
    try:
        told = together.submit_all(together.render_all(jobs))
    except UnderdogError as error:
        told = [error] * len(jobs)
    seconds = time.monotonic() - began
    return [
        _taken(trial, runner, one, store)
        if isinstance(one, Handle)
        else _not_taken(trial, store, one, seconds)
        for trial, one in zip(trials, told, strict=True)
    ]


def render_all(jobs: Sequence[Job], name: str, runner: Runner) -> list[Request]:
    """What ``submit_all`` would submit; nothing happens."""
    together = runners.together(name) if len(jobs) > 1 else None
    return together.render_all(jobs) if together else [runner.render(job) for job in jobs]


def _not_taken(trial: Trial, store: Store | None, error: UnderdogError, seconds: float) -> Trial:
    if isinstance(error, RefusedError):
        _refused(trial, store, error, seconds)
    ended = failed(trial, error, seconds, started=False)
    if store is not None:
        store.save(ended)
    return ended


def _taken(trial: Trial, runner: Runner, handle: Handle, store: Store | None) -> Carried:
    if not runners.ends_with_us(trial.runner):
        trial = dataclasses.replace(trial, handle=handle)
    if store is not None and trial.handle is not None:
        store.save(trial)
    return Carried(trial, runner, handle, store)


def collect(carried: Carried) -> Trial:
    """The trial of a job that has ended: what was measured there, under the record of here."""
    begun = carried.trial
    if carried.live is not None:
        carried.live.finish()
    trial = _collected(carried, begun)
    if carried.attempt is not None and carried.store is not None:
        held = time.monotonic() - carried.since - (carried.attempt.waited or 0.0)
        spot = begun.offer is not None and begun.offer.purchase == "spot"
        taken = spot and trial.status == "interrupted" and not carried.cancelled
        ended = dataclasses.replace(carried.attempt, held=max(held, 0.0), interrupted=taken)
        attempts.record(carried.store, ended)
    return trial


def _collected(carried: Carried, begun: Trial) -> Trial:
    try:
        path = carried.runner.collect(carried.handle)
        found = msgspec.json.decode(path.read_bytes(), type=Trial)
        _believable(found)
    except (UnderdogError, msgspec.MsgspecError, OSError) as error:
        seconds = time.monotonic() - carried.since
        if isinstance(error, RefusedError):
            _refused(begun, carried.store, error, seconds)
        return failed(begun, error, seconds)
    price = begun.price if begun.price.per_hour else found.price
    seconds = found.usage.get("elapsed_seconds") or time.monotonic() - carried.since
    return dataclasses.replace(
        found,
        id=begun.id,
        workload=begun.workload,
        command=begun.command,
        source=begun.source,
        knobs={**found.knobs, **begun.knobs},
        started_at=begun.started_at,
        ended_at=now(),
        runner=begun.runner,
        offer=begun.offer,
        price=price,
        study=begun.study,
        why=begun.why,
        dollars=cost(price, seconds),
        owner={},
        handle=None,
    )


def _believable(found: Trial) -> None:
    """Raise where another machine tells what no measurement can be."""
    faults = [] if found.status != "running" else ["it says that it still runs"]
    faults += faults_of(found.measurement, found.phases, found.timeline)
    elapsed = found.usage.get("elapsed_seconds")
    if elapsed is not None and not 0 <= elapsed < LONGEST:
        faults.append(f"it took {elapsed:g} s")
    if faults:
        raise RunnerError(f"What came back is no measurement: {'; '.join(faults)[:500]}.")


def failed(begun: Trial, error: Exception, seconds: float, started: bool = True) -> Trial:
    """The record of a trial that brought nothing back.

    Args:
        seconds: that its machine may have been held.
        started: False where no machine was ever held, which costs nothing.
    """
    refused = isinstance(error, RefusedError)
    status: Status = "failed"
    if isinstance(error, RefusedError) and error.kind == "no_capacity":
        status = "no_capacity"
    held = 0.0 if refused or not started else seconds
    return dataclasses.replace(
        begun,
        status=status,
        reason=str(error),
        ended_at=now(),
        dollars=cost(begun.price, held),
        updated_at=None,
        owner={},
        handle=None,
    )


def _refused(trial: Trial, store: Store | None, error: RefusedError, waited: float) -> None:
    _attempted(trial, store, got=False, waited=waited, refusal=error.kind, words=error.message)


def _attempted(trial: Trial, store: Store | None, **about: Any) -> Attempt | None:
    """Keep what became of the attempt to get the machine of a trial."""
    if store is None or trial.offer is None or runners.ends_with_us(trial.runner):
        return None
    attempt = Attempt(
        place=Place.of(trial.offer),
        at=datetime.fromisoformat(trial.started_at).timestamp(),
        count=trial.offer.nodes,
        trial=trial.id,
        source=trial.runner,
        **about,
    )
    return attempts.record(store, attempt)


def again(trial: Trial, runner: Runner, store: Store | None = None) -> Carried:
    """A trial of an earlier process, found by its handle."""
    began = datetime.fromisoformat(trial.started_at).timestamp()
    since = time.monotonic() - max(time.time() - began, 0.0)
    # the machine was got by that process: what waiting it saw stands
    known = [] if store is None else store.attempts(since=began - 1)
    attempt = next((one for one in known if one.trial == trial.id and one.got), None)
    return Carried(trial, runner, trial.handle or "", store, since, attempt=attempt)
