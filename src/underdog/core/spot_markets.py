"""Many markets at once: what the policy for a deadline comes to on them, and spot alone.

Spot comes and goes as a Poisson process: it stays for an exponential time, and is away for another.
The policy is ``core.spot_policy``, tick by tick, over arrays; the tests hold the two against each
other. Times are hours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from underdog.core.spot import Z95
from underdog.model import Estimate

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

PATHS = 100  # markets that are looked at: the mean cost is known to 2 % or so
TICKS = (96, 240)  # at least and at most so many to a deadline
TICK = 0.25  # hours, between these bounds
_DONE = 1e-9  # hours of work that are none
_IDLE, _SPOT, _ON_DEMAND = 0, 1, 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """As ``core.spot_policy.Job``, arrays that broadcast to one shape; one deadline of all."""

    work: Floats
    changeover: Floats
    pace: Floats
    redo: Floats
    deadline: float


@dataclass(slots=True)
class Runs:
    """How jobs went, arrays of one shape; as ``core.spot_policy.State``."""

    now: float
    progress: Floats
    place: NDArray[np.int8]
    debt: Floats
    spot_hours: Floats
    on_demand_hours: Floats
    up: Floats
    ups: Floats  # hours in the spot times that were seen to end
    endings: Floats  # how many of them

    @classmethod
    def begin(cls, shape: tuple[int, ...]) -> Runs:
        zero = [np.zeros(shape) for _ in range(7)]
        return cls(0.0, zero[0], np.zeros(shape, np.int8), *zero[1:])


def ticks(deadline: float) -> tuple[int, float]:
    """How many ticks a deadline has, and the hours of each."""
    count = min(max(math.ceil(deadline / TICK), TICKS[0]), TICKS[1])
    return count, deadline / count


def replay(jobs: Jobs, available: Iterable[Bools], tick: float) -> Runs:
    """The jobs by the policy, over markets that are given tick by tick.

    Args:
        available: of each tick where spot is to be had, of the shape of the jobs.
    """
    runs = None
    for there in available:
        runs = runs or Runs.begin(there.shape)
        _step(jobs, runs, there, tick)
    if runs is None:
        raise ValueError("no market was given")
    return runs


def alone(jobs: Jobs, available: Iterable[Bools], tick: float) -> tuple[Floats, Floats]:
    """Progress and hours on spot of jobs that stay on spot, whatever comes."""
    shape = np.broadcast_shapes(jobs.work.shape, jobs.changeover.shape)
    debt, progress, hours = (np.zeros(shape) for _ in range(3))
    was = np.zeros(shape, np.bool_)
    for there in available:
        undone = was & ~there & (progress < jobs.work - _DONE)
        progress -= np.minimum(jobs.redo, progress) * undone
        left = jobs.work - progress
        debt = np.where(there & ~was, jobs.changeover, debt)
        lost = np.minimum(debt, tick) * (there & (left > _DONE))
        gained = np.minimum((tick - lost) * there * jobs.pace, left)
        hours += lost + gained / jobs.pace
        debt, progress, was = debt - lost, progress + gained, there
    return progress, hours


def _step(jobs: Jobs, runs: Runs, there: Bools, tick: float) -> None:
    lost_it = (runs.place == _SPOT) & ~there
    runs.place[lost_it] = _IDLE
    undone = lost_it & (runs.progress < jobs.work - _DONE)
    runs.progress -= np.minimum(jobs.redo, runs.progress) * undone
    place = _decide(jobs, runs, there, tick)
    ended = ~there & (runs.up > 0)
    runs.ups += runs.up * ended
    runs.endings += ended
    runs.up = (runs.up + tick) * there
    busy = place != _IDLE
    runs.debt = np.where(busy & (place != runs.place), jobs.changeover, runs.debt)
    runs.place = place
    works = busy & (runs.progress < jobs.work - _DONE)
    on_spot = place == _SPOT
    pace = np.where(on_spot, jobs.pace, 1.0)
    lost = np.minimum(runs.debt, tick) * works
    gained = np.minimum((tick - lost) * works * pace, jobs.work - runs.progress)
    runs.debt -= lost
    runs.progress += gained
    spent = lost + gained / pace
    runs.on_demand_hours += spent * ~on_spot
    runs.spot_hours += spent * on_spot
    runs.now += tick


def _decide(jobs: Jobs, runs: Runs, there: Bools, tick: float) -> NDArray[np.int8]:
    """As ``core.spot_policy.decide`` with its own rule."""
    on_demand = runs.place == _ON_DEMAND
    both_ways = 2 * jobs.changeover
    worth = (runs.endings == 0) | (runs.ups + runs.up > both_ways * runs.endings)
    ahead = both_ways * on_demand
    behind = runs.progress < (runs.now + ahead) * (jobs.work / jobs.deadline)
    to_spot = there & (~on_demand | worth)
    wanted = np.where(to_spot, _SPOT, behind * np.int8(_ON_DEMAND)).astype(np.int8)
    debt = np.where(runs.place == _SPOT, runs.debt, jobs.changeover)
    reached = runs.progress + np.maximum(tick - debt, 0.0) * to_spot * jobs.pace
    needed = jobs.work - reached
    redo = np.minimum(jobs.redo, reached) * to_spot
    late = runs.now + tick + needed + redo + jobs.changeover > jobs.deadline + 1e-9
    wanted[(needed > 0) & late] = _ON_DEMAND
    return wanted


def markets(
    rates: Floats, gaps: Floats, count: int, tick: float, generator: np.random.Generator
) -> Iterator[Bools]:
    """Whether spot is to be had, tick by tick, from how it stands in the long run.

    Args:
        rates: interruptions per hour while it is to be had.
        gaps: hours that it is away, on average, of a shape that broadcasts to that of the rates.
    """
    stays, comes = np.exp(-rates * tick), -np.expm1(-tick / gaps)
    there = generator.random(rates.shape) < 1 / (1 + rates * gaps)
    for _ in range(count):
        yield there
        there = generator.random(rates.shape) < np.where(there, stays, comes)


def spread(estimate: Estimate, count: int, generator: np.random.Generator) -> Floats:
    """So many values of a Gamma distribution of that mean and upper end, in an order by chance.

    By the cube root of Wilson and Hilferty, as ``core.availability.gamma_ends``, at evenly spaced
    probabilities; shape (count,).
    """
    root = np.cbrt(max(estimate.high / estimate.value, 1.0)) if estimate.value > 0 else 1.0
    # the upper end is (1 - s² + Z95 s)³ of the mean; beyond the widest that it can be, that
    wide = (Z95 - math.sqrt(max(Z95**2 - 4 * (root - 1), 0.0))) / 2
    drawn = np.maximum(1 - wide**2 + wide * _normal(count, generator), 0.0) ** 3
    mean = drawn.mean()
    return np.asarray(estimate.value * drawn / mean, dtype=float)


def around(estimate: Estimate, count: int, generator: np.random.Generator) -> Floats:
    """So many values of a lognormal distribution with that middle and those ends."""
    sigma = max(math.log(estimate.high / estimate.low), 0.0) / (2 * Z95)
    return np.asarray(estimate.value * np.exp(sigma * _normal(count, generator)), dtype=float)


def _normal(count: int, generator: np.random.Generator) -> Floats:
    normal = NormalDist()
    points = np.array([normal.inv_cdf((k + 0.5) / count) for k in range(count)])
    return generator.permutation(points)


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """A machine that is sold on spot and on demand, and a job on it.

    Attributes:
        work: samples over samples per second, hours, with its interval.
        pace: the share of an hour on spot that is work; the rest goes to checkpoints.
        redo: hours of work that an interruption undoes.
        changeover: hours that every start costs.
        wait: hours until the machine is to be had on demand.
        gap: hours that spot is away, on average.
        interruptions: per hour on spot.
        spot_price, on_demand_price: USD per hour.
    """

    work: Estimate
    pace: float
    redo: float
    changeover: float
    wait: float
    gap: float
    interruptions: Estimate
    spot_price: float
    on_demand_price: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What a job comes to: dollars with the range that holds 95 of 100 markets, and the chance.

    ``in_time`` is the share of markets in which it is ready by the deadline.
    """

    dollars: Estimate
    in_time: float
    spot_hours: float = 0.0
    on_demand_hours: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcomes:
    """Spot and on demand by the policy, against each alone."""

    mixed: Outcome
    on_demand: Outcome
    spot: Outcome


def simulate(ways: list[Way], deadline: float, seed: int, paths: int = PATHS) -> list[Outcomes]:
    """What each way comes to by a deadline of so many hours; the same for the same seed.

    A deadline of more than ``TICKS[1] * TICK`` hours is looked at by a piece of it that long, with
    the same share of work: costs are in proportion.
    """
    if not ways:
        return []
    generator = np.random.default_rng(seed)
    piece = min(deadline, TICKS[1] * TICK)
    count, tick = ticks(piece)
    work = np.array([around(way.work, paths, generator) for way in ways])
    rates = np.array([spread(way.interruptions, paths, generator) for way in ways])
    column = np.array([[w.changeover + w.wait, w.gap, w.pace, w.redo] for w in ways]).T[:, :, None]
    jobs = Jobs(
        work=work * piece / deadline,
        changeover=column[0],
        pace=column[2],
        redo=column[3],
        deadline=piece,
    )
    market = list(markets(rates, column[1], count, tick, generator))
    runs = replay(jobs, market, tick)
    spot = alone(jobs, market, tick)
    return [
        _outcomes(way, deadline, jobs.work[k], work[k], deadline / piece, _of(runs, spot, k))
        for k, way in enumerate(ways)
    ]


class _Seen(NamedTuple):
    """Of one way over all markets: by the policy, and of spot alone; shape (paths,)."""

    progress: Floats
    spot_hours: Floats
    on_demand_hours: Floats
    alone_progress: Floats
    alone_hours: Floats


def _of(runs: Runs, spot: tuple[Floats, Floats], way: int) -> _Seen:
    found = (runs.progress, runs.spot_hours, runs.on_demand_hours, *spot)
    return _Seen(*(values[way] for values in found))


def _outcomes(
    way: Way, deadline: float, needed: Floats, work: Floats, scale: float, seen: _Seen
) -> Outcomes:
    """Of one way; ``needed`` and what was seen are of the piece, ``work`` is of the whole job."""
    # what is late goes on where it is: on demand by the policy
    left = np.maximum(needed - seen.progress, 0.0)
    on_demand, spot = scale * (seen.on_demand_hours + left), scale * seen.spot_hours
    with np.errstate(divide="ignore", invalid="ignore"):
        dear = scale * seen.alone_hours * needed / seen.alone_progress
    dear = np.where(seen.alone_progress > 0, dear, np.inf)
    return Outcomes(
        mixed=Outcome(
            dollars=_told(spot * way.spot_price + on_demand * way.on_demand_price),
            in_time=_share(left <= _DONE),
            spot_hours=float(spot.mean()),
            on_demand_hours=float(on_demand.mean()),
        ),
        on_demand=Outcome(
            dollars=_told(work * way.on_demand_price),
            in_time=_share(work + way.wait <= deadline),
            on_demand_hours=float(work.mean()),
        ),
        spot=Outcome(
            dollars=_told(dear * way.spot_price),
            in_time=_share(needed - seen.alone_progress <= _DONE),
            spot_hours=float(dear.mean()),
        ),
    )


def _share(which: Bools) -> float:
    return float(which.mean())


def _told(values: Floats) -> Estimate:
    # a market on which nothing is ever done has no finite cost, which must not be interpolated
    low, high = np.quantile(values, [0.025, 0.975], method="inverted_cdf")
    return Estimate(value=float(values.mean()), low=float(low), high=float(high), n=len(values))
