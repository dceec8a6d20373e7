"""The view of one trial, as measured or while it runs."""

from __future__ import annotations

import math

from underdog.core.views import words
from underdog.core.views.facts import PHASE_NAMES, STATUS_WORDS, facts
from underdog.core.views.records import Range, TrialView
from underdog.core.views.words import brief, finite, positive, range_of
from underdog.model import Estimate, Measurement, Trial


def trial_view(trial: Trial) -> TrialView:
    """All that is shown of a trial. It takes any trial that a store can hold."""
    m = trial.measurement or Measurement()
    rate = _sound(m.samples_per_second)
    price = _price(trial)
    return TrialView(
        id=trial.id,
        workload=trial.workload,
        offer=place(trial),
        status=trial.status,
        headline=_headline(trial, m),
        running=trial.status == "running",
        started_at=trial.started_at,
        ended_at=trial.ended_at,
        updated_at=trial.updated_at,
        runner=trial.runner,
        command=trial.command,
        knobs=trial.knobs,
        reason=trial.reason,
        rate=rate,
        price_per_hour=price,
        samples_per_dollar=per_dollar(range_of(rate), price),
        dollars=finite(trial.dollars),
        steps=m.steps,
        samples=m.samples,
        warmup_seconds=finite(m.warmup_seconds) or 0.0,
        warmup_steps=m.warmup_steps,
        phases=_phases(trial.phases),
        bound_by=trial.bound_by,
        bound_reason=trial.bound_reason,
        peak_memory_gib=trial.peak_memory_gib,
        usage=trial.usage,
        caveats=trial.caveats,
        facts=facts(trial),
        timeline=trial.timeline,
        study=trial.study,
    )


def place(trial: Trial) -> str:
    """The name of the offer, else the machine by provider and type, else its host."""
    if trial.offer is not None:
        return trial.offer.id
    machine = trial.machine
    if machine.provider and machine.instance_type:
        return f"{machine.provider} {machine.instance_type}"
    return machine.hostname or "this machine"


def per_dollar(rate: Range | None, price_per_hour: float | None) -> Range | None:
    """Samples per dollar of samples per second."""
    price = positive(price_per_hour)
    return None if price is None else words.times(rate, 3600 / price)


def _price(trial: Trial) -> float | None:
    """USD per hour: what was said at the measurement, else what the offer cost."""
    offered = trial.offer.price.per_hour if trial.offer else None
    return offered if trial.price.per_hour is None else trial.price.per_hour


def _sound(rate: Estimate | None) -> Estimate | None:
    """A rate that can be drawn: its value and both ends are numbers."""
    if rate is None or not all(map(math.isfinite, (rate.value, rate.low, rate.high))):
        return None
    return rate


def _phases(shares: dict[str, float]) -> dict[str, float]:
    """The shares above zero, in the order in which a step goes through them."""
    order = {name: i for i, name in enumerate(PHASE_NAMES)}
    known = {name: share for name, share in shares.items() if positive(share)}
    return dict(sorted(known.items(), key=lambda pair: order.get(pair[0], len(order))))


def _headline(trial: Trial, measurement: Measurement) -> str:
    """One sentence: the rate with its interval, or what went wrong."""
    where = f"on {brief(place(trial))}"
    said = _rate_words(measurement)
    name = STATUS_WORDS.get(trial.status, brief(trial.status))
    if trial.status == "ok" and said:
        rate, interval = said
        return f"{rate} {where}{interval}."
    told = f"{name[:1].upper()}{name[1:]} {where}"
    if trial.status == "running":
        return f"{told}: {f'{said[0]} so far{said[1]}' if said else 'nothing measured yet'}."
    if trial.reason:
        first = trial.reason.strip().partition("\n")[0].rstrip(". ")
        told += f": {brief(first, 200)}"
    elif trial.status == "ok":
        told += ", but no step was timed"
    return f"{told}.{f' It did {said[0]} until then.' if said else ''}"


def _rate_words(measurement: Measurement) -> tuple[str, str] | None:
    """The rate and, with the comma before it, its interval."""
    found = range_of(measurement.samples_per_second)
    if found is not None:
        return f"{words.amount(found.value)} samples per second", words.interval(found)
    step = measurement.step_seconds
    seconds = None if step is None else positive(step.value)
    if seconds is None or positive(1 / seconds) is None:
        return None
    return f"{words.plain(1 / seconds)} steps per second", ", the samples of a step are not known"
