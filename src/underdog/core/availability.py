"""The chance to get an offer now, and how long to wait for it, from every attempt that was made.

An offer without a record of its own inherits from its type in the region, that from its family
there, that from the family anywhere: at each level the mean above counts as ``INHERITED`` attempts.
Old attempts fade. Probabilities are Beta, waits Gamma; intervals hold 95 %.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from underdog.model import Estimate

INHERITED = 4.0  # attempts that the mean of the level above counts for
HALF_LIFE = 14 * 86400.0  # seconds after which an attempt counts half: markets move in weeks
FIRST_CHANCE = 0.5  # where nothing was ever asked
FIRST_WAIT = 600.0  # seconds, likewise
_GRID = 2001


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where and what was asked for; ``zone`` may be empty."""

    provider: str
    region: str
    zone: str
    instance_type: str
    purchase: str

    @property
    def family(self) -> str:
        """``g5`` of ``g5.xlarge``, ``a2-highgpu`` of ``a2-highgpu-1g``, ``NCads_H100_v5``."""
        bare = re.sub(r"(?<=[A-Za-z])\d+(?=[a-z]*_)", "", self.instance_type, count=1)
        return re.sub(r"\..*|-\d+\w*$|^Standard_", "", bare)

    def levels(self) -> list[Hashable]:
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
    """One attempt: ``waited`` seconds until it was got, or until it was given up."""

    place: Place
    at: float  # seconds since 1970
    got: bool
    waited: float = 0.0
    count: int = 1  # machines that were asked for together

    def __post_init__(self) -> None:
        if not (math.isfinite(self.at) and math.isfinite(self.waited) and self.waited >= 0):
            raise ValueError(f"an attempt at {self.at} that waited {self.waited} s is none")


@dataclass(frozen=True, kw_only=True, slots=True)
class Availability:
    """What is expected of an offer.

    ``chance`` that an attempt now succeeds; ``wait`` in seconds until one does, where it is asked
    for without a pause; ``attempts`` of the offer's own that this rests on.
    """

    chance: Estimate
    wait: Estimate
    attempts: int


def availability(
    place: Place, attempts: Iterable[Attempt], now: float, told: float | None = None
) -> Availability:
    """What the attempts say of a place.

    Args:
        attempts: all that are known, of any place.
        now: seconds since 1970; attempts after it are not counted.
        told: a chance that the provider itself tells (a placement score as a share, one less an
            interruption band); it stands in for the widest level.
    """
    if told is not None and not 0 <= told <= 1:
        raise ValueError(f"a chance of {told} is none")
    chance, wait, own = FIRST_CHANCE if told is None else told, FIRST_WAIT, 0
    known = [a for a in attempts if a.at <= now]
    alpha = beta = events = seconds = 0.0
    for level, group in enumerate(place.levels()):
        here = [a for a in known if a.place.levels()[level] == group]
        weights = [0.5 ** ((now - a.at) / HALF_LIFE) for a in here]
        got = sum(w for w, a in zip(weights, here, strict=True) if a.got)
        alpha, beta = INHERITED * chance + got, INHERITED * (1 - chance) + sum(weights) - got
        events = INHERITED + got
        seconds = INHERITED * wait + sum(w * a.waited for w, a in zip(weights, here, strict=True))
        chance, wait, own = alpha / (alpha + beta), seconds / events, len(here)
    low, high = _quantiles(lambda x: (alpha - 1) * np.log(x) + (beta - 1) * np.log1p(-x), 1.0)
    # the rate at which machines come is Gamma(events, seconds); the wait is its inverse
    slow, fast = _quantiles(lambda x: (events - 1) * np.log(x) - events * x, 8.0)
    return Availability(
        chance=Estimate(value=chance, low=min(low, chance), high=max(high, chance), n=own),
        wait=Estimate(value=wait, low=wait / fast, high=wait / slow, n=own),
        attempts=own,
    )


def _quantiles(log_density: Callable[[np.ndarray], np.ndarray], end: float) -> tuple[float, float]:
    """The points below which 2.5 % and 97.5 % of a density over (0, end) lie."""
    x = (np.arange(_GRID) + 0.5) * end / _GRID
    logs = log_density(x)
    mass = np.cumsum(np.exp(logs - logs.max()))
    low, high = np.searchsorted(mass / mass[-1], [0.025, 0.975])
    return float(x[low]), float(x[high])


@dataclass(frozen=True, kw_only=True, slots=True)
class Fallback:
    """A step of a plan: ask for an offer for so long, then go on with the next."""

    offer: int
    patience: float  # seconds
    reached: float  # chance that the plan comes to this step


def plan(
    costs: Sequence[float], waits: Sequence[Availability], patience: float, most: int = 5
) -> list[Fallback]:
    """Which offer to ask for, and which then, where none is to be had within ``patience`` seconds.

    Args:
        costs: of the whole job on each offer, lower is better; NaN and infinite are left out.
        waits: of each offer.
        patience: seconds to ask for each before going on.
        most: steps of the plan.
    """
    if not patience > 0:
        raise ValueError(f"a patience of {patience} s is none")
    order = [i for i in np.argsort(np.asarray(costs, dtype=float)) if math.isfinite(costs[i])]
    steps, reached = [], 1.0
    for i in order[:most]:
        steps.append(Fallback(offer=int(i), patience=patience, reached=reached))
        at_once = waits[i].chance.value
        later = -math.expm1(-patience / waits[i].wait.value)
        reached *= (1 - at_once) * (1 - later)
    return steps
