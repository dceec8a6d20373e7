"""What a job costs on machines that may be taken away: interruptions, checkpoints, lost work.

Times are hours, prices USD per hour of the whole machine. Interruptions are taken as a Poisson
process with a rate per paid hour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from underdog.model import Estimate, Price

Z95 = 1.959964
NEVER = 1e-12  # interruptions in a job below which an exponential has no digits left
STRETCHES = 24  # of a market's history that are looked at: more change the mean by under 1 %


def interruption_rate(events: int, hours: float) -> Estimate:
    """Interruptions per hour from so many events in so many hours of running.

    The value is the posterior mean under Jeffreys' prior, so that none seen is not none to come;
    the 95 % interval is Byar's approximation of the exact Poisson limits (Breslow and Day,
    Statistical Methods in Cancer Research II, 1987, section 2.3).

    Raises:
        ValueError: a negative number of events, or no positive finite time.
    """
    if events < 0 or not (math.isfinite(hours) and hours > 0):
        raise ValueError(f"{events} interruptions in {hours} hours give no rate")
    low = 0.0
    if events:
        low = events * max(0.0, 1 - 1 / (9 * events) - Z95 / (3 * math.sqrt(events))) ** 3
    above = events + 1
    high = above * (1 - 1 / (9 * above) + Z95 / (3 * math.sqrt(above))) ** 3
    return Estimate(value=(events + 0.5) / hours, low=low / hours, high=high / hours, n=events)


def checkpoint_interval(checkpoint_hours: float, rate: float) -> float:
    """Work between two checkpoints that makes the expected time shortest, hours.

    Daly's higher-order form of Young's square root (J. T. Daly, A higher order estimate of the
    optimum checkpoint interval for restart dumps, 2006, equation 37). Without a cost of a
    checkpoint it is 0, without interruptions infinite.
    """
    if rate <= 0:
        return math.inf
    mean = 1 / rate
    if checkpoint_hours >= 2 * mean:
        return mean
    x = checkpoint_hours / (2 * mean)
    root = math.sqrt(2 * checkpoint_hours * mean)
    return root * (1 + math.sqrt(x) / 3 + x / 9) - checkpoint_hours


@dataclass(frozen=True, kw_only=True, slots=True)
class Habits:
    """How a job copes with an interruption, hours.

    ``interval`` is the work between two checkpoints, the best one where it is None; without
    checkpoints it is infinite, and an interruption loses all. ``restart`` is from getting a machine
    to training on; ``wait`` until a new one is to be had, which is not paid.
    """

    checkpoint: float = 0.0
    restart: float = 0.0
    wait: float = 0.0
    interval: float | None = None

    def __post_init__(self) -> None:
        values = (self.checkpoint, self.restart, self.wait, self.interval or 0.0)
        if any(math.isnan(v) or v < 0 for v in values):
            raise ValueError(f"times of a job must not be negative: {self}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What is expected of a job: paid hours, hours from start to end, and interruptions."""

    paid_hours: float
    hours: float
    interruptions: float


def on_spot(work: float, rate: float, habits: Habits) -> Run:
    """Expected run of ``work`` hours under interruptions at ``rate`` per hour.

    Daly's complete model (2006, equation 20): every segment of work and its checkpoint is repeated
    until it goes through, after a restart that may itself be interrupted. Infinite where it never
    ends.
    """
    if not (math.isfinite(work) and work > 0 and rate >= 0):
        raise ValueError(f"{work} hours of work at {rate} interruptions an hour are no job")
    chosen = habits.interval
    interval = checkpoint_interval(habits.checkpoint, rate) if chosen is None else chosen
    if rate * max(work, 1.0) < NEVER:
        segments = 0.0 if math.isinf(interval) or interval == 0 else work / interval
        paid = habits.restart + work + segments * habits.checkpoint
        return Run(paid_hours=paid, hours=paid + habits.wait, interruptions=0.0)
    segment = min(interval, work)
    try:
        if segment == 0:  # checkpoints that cost nothing, all the time
            paid = work * math.exp(habits.restart * rate)
        else:
            once = math.expm1((segment + habits.checkpoint) * rate) / rate
            paid = math.exp(habits.restart * rate) * once * work / segment
    except OverflowError:
        paid = math.inf
    paid += habits.restart
    events = paid * rate
    hours = paid + habits.wait * (1 + events)
    return Run(paid_hours=paid, hours=hours, interruptions=events)


@dataclass(frozen=True, kw_only=True, slots=True)
class Market:
    """What is known of a spot offer over time.

    ``availability`` is the share of time at which it is to be had, ``ups`` the lengths in hours of
    the times without a gap that were seen.
    """

    availability: float
    ups: Sequence[float]

    @classmethod
    def of(cls, available: Iterable[bool], tick_hours: float) -> Market:
        """From what was seen tick by tick."""
        ups, seen, here = [], 0, 0
        for there in available:
            seen += 1
            if there:
                here += 1
            elif here:
                ups.append(here * tick_hours)
                here = 0
        if here:
            ups.append(here * tick_hours)
        if not seen:
            raise ValueError("nothing was seen of the market")
        return cls(availability=sum(ups) / (seen * tick_hours), ups=tuple(ups))

    def efficiency(self, changeover: float) -> float:
        """The share of paid spot time that is progress, where each start costs a changeover."""
        total = sum(self.ups)
        return sum(max(0.0, up - changeover) for up in self.ups) / total if total else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixed:
    """Hours on spot and on demand of a job that must be ready by a deadline."""

    spot_hours: float
    on_demand_hours: float

    def dollars(self, spot_price: float, on_demand_price: float) -> float:
        """What they cost."""
        return self.spot_hours * spot_price + self.on_demand_hours * on_demand_price


def by_deadline(
    work: float, deadline: float, history: Sequence[bool], tick_hours: float, changeover: float
) -> Mixed:
    """Expected hours of each kind under ``core.spot_policy``, from what the market did before.

    The mean over stretches of the history as long as the deadline, for good and bad days do not
    make up for each other: a good one can't use more than the work, a bad one is made up on demand.

    Args:
        history: whether spot was to be had, tick by tick.

    Raises:
        ValueError: the work does not fit into the deadline even on demand, or there is no history.
    """
    if not 0 < work + changeover <= deadline:
        raise ValueError(f"{work:g} h of work do not fit into {deadline:g} h")
    if not history:
        raise ValueError("nothing was seen of the market")
    length = max(1, min(round(deadline / tick_hours), len(history)))
    count = min(STRETCHES, len(history) - length + 1)
    starts = [i * (len(history) - length) // max(count - 1, 1) for i in range(count)]
    found = [
        _flow(work, deadline, Market.of(history[at : at + length], tick_hours), changeover)
        for at in starts
    ]
    return Mixed(
        spot_hours=sum(m.spot_hours for m in found) / count,
        on_demand_hours=sum(m.on_demand_hours for m in found) / count,
    )


def _flow(work: float, deadline: float, market: Market, changeover: float) -> Mixed:
    """Spot whenever it is there; what that does not reach is made on demand in the gaps."""
    efficiency = market.efficiency(changeover)
    there = market.availability * deadline
    reached = there * efficiency
    if reached >= work:
        return Mixed(spot_hours=work / efficiency, on_demand_hours=0.0)
    missing = work - reached
    gaps = there / (sum(market.ups) / len(market.ups)) + 1 if market.ups else 1.0
    starts = min(gaps * changeover, missing)  # each gap costs a start; not more than it makes
    on_demand = min(missing + starts, max(deadline - there, missing))
    return Mixed(spot_hours=there, on_demand_hours=on_demand)


def cheapest(options: Sequence[tuple[Price, Run]]) -> int | None:
    """The index of the option that is expected to cost the least; an unknown price never wins.

    Of equal ones the earlier stands, so on-demand goes first: spot has to be cheaper to win.
    """
    known = [
        (price.per_hour * run.paid_hours, place)
        for place, (price, run) in enumerate(options)
        if price.per_hour is not None and math.isfinite(run.paid_hours)
    ]
    return min(known)[1] if known else None
