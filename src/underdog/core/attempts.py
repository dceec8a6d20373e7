"""Attempts to get machines: where, for how many, and what became of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache

from underdog.core.refusals import Kind
from underdog.model import Offer, Trial, offer_id

Group = tuple[str, ...]
YEAR_10000 = 253402300800  # seconds since 1970: from then on there are no dates
PURCHASES = ("on-demand", "spot", "reserved")


@cache
def family_of(instance_type: str) -> str:
    """``g5`` of ``g5.xlarge``, ``a2-highgpu`` of ``a2-highgpu-1g``, ``NCads_H100_v5``."""
    bare = re.sub(r"(?<=[A-Za-z])\d+(?=[a-z]*_)", "", instance_type, count=1)
    return re.sub(r"\..*|-\d+\w*$|^Standard_", "", bare)


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where and what was asked for; ``zone`` may be empty."""

    provider: str
    region: str
    zone: str
    instance_type: str
    purchase: str

    @classmethod
    def of(cls, offer: Offer) -> Place:
        """Where an offer is sold."""
        return cls(
            provider=offer.provider,
            region=offer.region,
            zone=offer.zone or "",
            instance_type=offer.instance_type,
            purchase=offer.purchase,
        )

    @property
    def offer(self) -> str:
        """The offer's name."""
        return offer_id(self.provider, self.zone or self.region, self.instance_type, self.purchase)

    @property
    def family(self) -> str:
        """That of its type; ``family_of`` says what it is."""
        return family_of(self.instance_type)

    def levels(self) -> list[Group]:
        """The groups that it belongs to, the widest first."""
        same = (self.provider, self.purchase)
        return [
            same,
            (*same, self.family),
            (*same, self.family, self.region),
            (*same, self.instance_type, self.region),
            (*same, self.instance_type, self.region, self.zone),
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Attempt:
    """One attempt to get machines, and what became of them.

    The same attempt saved again with the same ``id`` stands in the place of the first: a machine
    that was got and is taken away later is still one attempt.

    Attributes:
        at: when it was asked, seconds since 1970.
        waited: seconds until it was got or given up; None where nobody saw.
        count: machines that were asked for together.
        refusal: why it was not got, None where it was; ``verbs.attempts.record`` fills it in.
        words: the provider's own.
        held: seconds from getting it to its end; None while it is held, or where nobody saw.
        interrupted: the provider took it away at the end of them.
        trial: id of the trial that it was for.
        source: where it comes from: the name of a runner or of a file.
    """

    id: str = ""
    place: Place
    at: float
    got: bool
    waited: float | None = None
    count: int = 1
    refusal: Kind | None = None
    words: str = ""
    held: float | None = None
    interrupted: bool = False
    trial: str | None = None
    source: str = ""

    def __post_init__(self) -> None:
        times = (self.at, self.waited or 0.0, self.held or 0.0)
        finite = all(map(math.isfinite, times)) and min(times[1:]) >= 0
        if not (finite and 0 <= self.at < YEAR_10000):
            raise ValueError(
                f"an attempt at {self.at} that waited {self.waited} s and was held {self.held} s "
                "is none"
            )
        if self.count < 1:
            raise ValueError(f"an attempt for {self.count} machines is none")
        if self.got and self.refusal is not None:
            raise ValueError("an attempt that was got was not refused")
        if self.interrupted and not (self.got and self.held is not None):
            raise ValueError("what was interrupted was got, and held for some time")


# who ended these trials: not the provider
_BY_HAND = re.compile("by the user|cancelled|exploration was interrupted", re.IGNORECASE)
_OF_ONE_MACHINE = ("local", "replay")  # runners that ask nobody for a machine


def of_trials(trials: Iterable[Trial], recorded: Iterable[Attempt]) -> list[Attempt]:
    """The attempts that trials tell of, besides those that are on record.

    One that found no capacity was refused. One on spot was got and held until it ended, and was
    taken away where it ended as interrupted, by nobody's hand. Trials of one spot machine that was
    there already are one attempt.
    """
    known = {attempt.trial for attempt in recorded}
    found: dict[tuple[Place, str], Attempt] = {}
    for trial in trials:
        place, started = _place(trial), seconds_of(trial.started_at)
        if place is None or started is None or trial.id in known:
            continue
        if trial.status == "no_capacity":
            attempt = Attempt(
                id=f"attempt-{trial.id}",
                place=place,
                at=started,
                got=False,
                refusal="no_capacity",
                words=trial.reason or "",
                trial=trial.id,
                source=trial.runner,
            )
            found[place, trial.id] = attempt
        elif place.purchase == "spot" and trial.status != "running":
            machine = trial.machine.hostname if trial.runner in _OF_ONE_MACHINE else ""
            key = (place, machine or trial.id)
            found[key] = _held(trial, place, started, found.get(key))
    return list(found.values())


def _held(trial: Trial, place: Place, started: float, before: Attempt | None) -> Attempt:
    ended = seconds_of(trial.ended_at or "")
    held = None if ended is None else max(ended - started, 0.0)
    taken = trial.status == "interrupted" and not _BY_HAND.search(trial.reason or "")
    if before is not None:
        taken |= before.interrupted
        if held is not None or before.held is not None:
            held = (held or 0.0) + (before.held or 0.0)
    return Attempt(
        id=before.id if before else f"attempt-{trial.id}",
        place=place,
        at=before.at if before else started,
        got=True,
        held=held,
        interrupted=taken and held is not None,
        trial=trial.id,
        source=trial.runner,
    )


def _place(trial: Trial) -> Place | None:
    if trial.offer is not None:
        return Place.of(trial.offer)
    machine = trial.machine
    if not (machine.provider and machine.instance_type and machine.region):
        return None
    return Place(
        provider=machine.provider,
        region=machine.region,
        zone=machine.zone or "",
        instance_type=machine.instance_type,
        purchase=machine.purchase or "on-demand",
    )


def seconds_of(moment: str) -> float | None:
    """Seconds since 1970 of a moment in ISO 8601; without an offset it is in UTC."""
    try:
        read = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
