"""The chance to get an offer now, how long to wait for it, and how long it stays.

From every attempt that was made and what providers tell. An offer without a record of its own
inherits from its type in the region, that from its family there, that from the family anywhere: at
each level the mean above counts as so many attempts, or interruptions. Old attempts fade.
Probabilities are Beta, waits and interruptions Gamma; intervals hold 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from underdog.core.attempts import Attempt, Group, Place
from underdog.core.spot import Z95
from underdog.model import Estimate

Origin = Literal["attempts", "told", "prior", "given"]

INHERITED = 4.0  # attempts that the mean of the level above counts for
HALF_LIFE = 14 * 86400.0  # seconds after which an attempt counts half: markets move in weeks
FIRST_CHANCE = 0.5  # where nothing was ever asked
FIRST_WAIT = 600.0  # seconds, likewise; without any attempt no wait is told at all
# Interruptions per hour of a spot machine of which nothing is known, and how many of them a mean
# counts for: the Gamma distribution that fits (maximum likelihood) how often 24 public records of
# spot markets were interrupted, AWS and GCP 2022 and 2023 (Wu et al., Can't Be Late, NSDI 2024).
FIRST_RATE = 0.54
INHERITED_EVENTS = 1.05
# a refusal of these kinds tells of the account or the request, not of the supply
_NOT_OF_SUPPLY = ("quota", "permission", "malformed", "transient")
_GRID = 2001
LEVELS = 5  # of ``Place.levels``


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """What a provider, or a table of the user's, tells of a place; None where it tells nothing.

    Without a zone it holds for every zone of the region. ``chance`` is that of getting it at once,
    ``wait`` in seconds, ``interruptions`` per hour of one machine, ``prices`` the lowest and the
    highest of late, USD per hour of one machine.
    """

    place: Place
    offered: bool | None = None
    chance: float | None = None
    wait: float | None = None
    interruptions: float | None = None
    prices: tuple[float, float] | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if self.chance is not None and not 0 <= self.chance <= 1:
            raise ValueError(f"a chance of {self.chance} is none")
        for value in (self.wait, self.interruptions):
            if value is not None and not (math.isfinite(value) and value > 0):
                raise ValueError(f"neither a wait nor a rate: {value}")
        if self.prices is not None and not 0 < self.prices[0] <= self.prices[1] < math.inf:
            raise ValueError(f"no lowest and highest price: {self.prices}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Availability:
    """What is expected of an offer.

    Attributes:
        chance: that an attempt now succeeds.
        wait: seconds until one does, where it is asked for without a pause; None where nobody
            ever saw.
        attempts: of the offer's own that this rests on.
        interruptions: per hour of one machine that may be taken away.
        origin: what they rest on: ``attempts`` of it or of its like, ``told``, or the ``prior``.
        offered: whether it is sold there at all, None where nobody tells.
        known: whether anything at all is on record or told, of it or of its like.
        prices: lowest and highest of late, where they are told of it.
    """

    chance: Estimate
    wait: Estimate | None
    attempts: int
    interruptions: Estimate
    origin: Origin
    offered: bool | None = None
    known: bool = True
    prices: tuple[float, float] | None = None


@dataclass(slots=True)
class _Sums:
    """Of the attempts of one group, each with its weight."""

    asked: float = 0.0
    got: float = 0.0
    waits: float = 0.0  # that ended with a machine
    waited: float = 0.0
    hours: float = 0.0
    events: float = 0.0
    attempts: int = 0
    endings: int = 0


@dataclass(slots=True)
class _State:
    """What is believed at one level: means, and the weights that they have in the next."""

    chance: float = FIRST_CHANCE
    wait: float = FIRST_WAIT
    rate: float = FIRST_RATE
    alpha: float = INHERITED * FIRST_CHANCE
    beta: float = INHERITED * (1 - FIRST_CHANCE)
    waits: float = INHERITED
    events: float = INHERITED_EVENTS
    waits_known: bool = False
    origin: Origin = "prior"
    offered: bool | None = None
    known: bool = False
    prices: tuple[float, float] | None = None
    own: int = 0
    endings: int = 0


@dataclass(slots=True)
class Records:
    """All attempts and all that is told, to be asked place by place.

    Args:
        attempts: of any place; those after ``now`` do not count.
        now: seconds since 1970.
        told: what providers tell.
        count: machines that are wanted together. A refusal of more than that says nothing.
    """

    attempts: Sequence[Attempt]
    now: float
    told: Sequence[Told] = ()
    count: int = 1
    _sums: list[dict[Group, _Sums]] = field(init=False)
    _told: list[dict[Group, Told]] = field(init=False)
    _places: list[dict[Group, Place]] = field(init=False)
    _states: dict[tuple[int, Group], _State] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._sums = [{} for _ in range(LEVELS)]
        self._told = [{} for _ in range(LEVELS)]
        self._places = [{} for _ in range(LEVELS)]
        for attempt in self.attempts:
            if attempt.at <= self.now and _counts(attempt, self.count):
                self._add(attempt)
        for told in self.told:
            level = 4 if told.place.zone else 3
            group = told.place.levels()[level]
            self._told[level][group] = told
            self._places[level].setdefault(group, told.place)
        self._best_zones()

    def _add(self, attempt: Attempt) -> None:
        weight = 0.5 ** ((self.now - attempt.at) / HALF_LIFE)
        for level, group in enumerate(attempt.place.levels()):
            self._places[level].setdefault(group, attempt.place)
            sums = self._sums[level].setdefault(group, _Sums())
            sums.attempts += 1
            sums.asked += weight
            sums.got += weight * attempt.got
            if attempt.waited is not None:
                sums.waits += weight * attempt.got
                sums.waited += weight * attempt.waited
            if attempt.held is not None:
                sums.hours += weight * attempt.count * attempt.held / 3600
                sums.events += weight * attempt.interrupted
                sums.endings += attempt.interrupted

    def _best_zones(self) -> None:
        """A region of which only zones are told is as good as its best one: any will do."""
        by_region: dict[Group, list[Told]] = {}
        for told in self._told[4].values():
            by_region.setdefault(told.place.levels()[3], []).append(told)
        for region, zones in by_region.items():
            place = replace(zones[0].place, zone="")
            group = place.levels()[4]
            if region in self._told[3]:
                continue
            chances, waits, rates = (
                [v for z in zones if z.offered is not False and (v := getattr(z, name)) is not None]
                for name in ("chance", "wait", "interruptions")
            )
            self._places[4].setdefault(group, place)
            self._told[4][group] = Told(
                place=place,
                offered=False if all(z.offered is False for z in zones) else None,
                chance=max(chances, default=None),
                wait=min(waits, default=None),
                interruptions=min(rates, default=None),
            )

    def at(self, place: Place) -> Availability:
        """What is expected at a place."""
        return _availability(self._state(place.levels(), LEVELS - 1))

    def groups(self) -> Iterator[tuple[int, Place, Availability]]:
        """Every group of which something is known: its level, a place in it, what is expected.

        Below the last level that is what a place inherits that has nothing of its own.
        """
        for level, places in enumerate(self._places):
            for place in places.values():
                state = self._state(place.levels(), level)
                if level < 4:
                    state = _inherited(state)
                yield level, place, _availability(state, with_chance=False)

    def _state(self, groups: Sequence[Group], level: int) -> _State:
        """What is believed of the group at a level; the groups are those of one place."""
        key = (level, groups[level])
        if key in self._states:
            return self._states[key]
        state = _inherited(self._state(groups, level - 1) if level else _State())
        told, sums = self._told[level].get(key[1]), self._sums[level].get(key[1])
        state.known |= told is not None or sums is not None
        if told is not None:
            _tell(state, told)
        if sums is not None:
            _count(state, sums)
            state.own, state.endings = sums.attempts, sums.endings
        self._states[key] = state
        return state


def _counts(attempt: Attempt, count: int) -> bool:
    if attempt.got:
        return True
    return attempt.refusal not in _NOT_OF_SUPPLY and attempt.count <= count


def _inherited(above: _State) -> _State:
    """What a group believes of which nothing is known, from the one above."""
    return _State(
        chance=above.chance,
        wait=above.wait,
        rate=above.rate,
        alpha=INHERITED * above.chance,
        beta=INHERITED * (1 - above.chance),
        waits_known=above.waits_known,
        origin=above.origin,
        offered=above.offered,
        known=above.known,
        prices=above.prices,
    )


def _tell(state: _State, told: Told) -> None:
    if told.offered is not None:
        state.offered = told.offered
    if told.prices is not None:
        state.prices = told.prices
    if told.chance is not None:
        state.chance = told.chance
        state.alpha, state.beta = INHERITED * told.chance, INHERITED * (1 - told.chance)
    if told.wait is not None:
        state.wait, state.waits_known = told.wait, True
    if told.interruptions is not None:
        state.rate, state.origin = told.interruptions, "told"


def _count(state: _State, sums: _Sums) -> None:
    state.alpha += sums.got
    state.beta += sums.asked - sums.got
    state.chance = state.alpha / (state.alpha + state.beta)
    if sums.waited or sums.waits:
        state.waits_known = True
    state.waits = INHERITED + sums.waits
    state.wait = (INHERITED * state.wait + sums.waited) / state.waits
    if sums.hours > 0:
        state.events = INHERITED_EVENTS + sums.events
        state.rate = state.events / (INHERITED_EVENTS / state.rate + sums.hours)
        state.origin = "attempts"


def _availability(state: _State, with_chance: bool = True) -> Availability:
    low, high = state.chance, state.chance
    if with_chance:
        a, b = state.alpha, state.beta
        low, high = _quantiles(lambda x: (a - 1) * np.log(x) + (b - 1) * np.log1p(-x), 1.0)
    wait = None
    if state.waits_known:
        slow, fast = gamma_ends(state.waits)
        wait = Estimate(
            value=state.wait, low=state.wait / fast, high=state.wait / slow, n=state.own
        )
    few, many = gamma_ends(state.events)
    return Availability(
        chance=Estimate(
            value=state.chance,
            low=min(low, state.chance),
            high=max(high, state.chance),
            n=state.own,
        ),
        wait=wait,
        attempts=state.own,
        interruptions=Estimate(
            value=state.rate, low=state.rate * few, high=state.rate * many, n=state.endings
        ),
        origin=state.origin,
        offered=state.offered,
        known=state.known,
        prices=state.prices,
    )


def gamma_ends(shape: float) -> tuple[float, float]:
    """The 2.5 % and 97.5 % points of a Gamma distribution of that shape, over its mean.

    By the cube root of Wilson and Hilferty (1931): from a shape of 1 on the upper one is exact to
    2 %, and the lower one to 0.02 of the mean.
    """
    spread = Z95 / (3 * math.sqrt(shape))
    middle = 1 - 1 / (9 * shape)
    return max(middle - spread, 0.0) ** 3, (middle + spread) ** 3


def availability(
    place: Place, attempts: Iterable[Attempt], now: float, told: float | None = None
) -> Availability:
    """What the attempts say of one place.

    Args:
        attempts: all that are known, of any place.
        now: seconds since 1970; attempts after it are not counted.
        told: a chance that the provider itself tells.

    Raises:
        ValueError: ``told`` is no probability.
    """
    known = [] if told is None else [Told(place=place, chance=told)]
    return Records(list(attempts), now, known).at(place)


def _quantiles(log_density: Callable[[np.ndarray], np.ndarray], end: float) -> tuple[float, float]:
    """The points below which 2.5 % and 97.5 % of a density over (0, end) lie."""
    x = (np.arange(_GRID) + 0.5) * end / _GRID
    logs = log_density(x)
    mass = np.cumsum(np.exp(logs - logs.max()))
    low, high = np.searchsorted(mass / mass[-1], [0.025, 0.975])
    return float(x[low]), float(x[high])


@dataclass(frozen=True, kw_only=True, slots=True)
class Fallback:
    """A step of a plan: ask for an offer for so long, then go on with the next.

    ``reached`` is the chance that the plan comes to this step, None where nothing tells.
    """

    offer: int
    patience: float  # seconds
    reached: float | None


def plan(
    costs: Sequence[float],
    waits: Sequence[Availability | None],
    patience: float,
    most: int = 5,
) -> list[Fallback]:
    """Which offer to ask for, and which then, where none is to be had within ``patience`` seconds.

    Args:
        costs: of the whole job on each offer, lower is better; NaN and infinite are left out.
        waits: of each offer, None where nothing is known.
        patience: seconds to ask for each before going on.
        most: steps of the plan.

    Raises:
        ValueError: the patience is not positive.
    """
    if not patience > 0:
        raise ValueError(f"a patience of {patience} s is none")
    order = [i for i in np.argsort(np.asarray(costs, dtype=float)) if math.isfinite(costs[i])]
    steps: list[Fallback] = []
    reached: float | None = 1.0
    for i in order[:most]:
        steps.append(Fallback(offer=int(i), patience=patience, reached=reached))
        known = waits[i]
        if known is None or reached is None:
            reached = None
            continue
        later = 0.0 if known.wait is None else -math.expm1(-patience / known.wait.value)
        reached *= (1 - known.chance.value) * (1 - later)
    return steps
