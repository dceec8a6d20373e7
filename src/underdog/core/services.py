"""Ways to pay for the same work: a machine by the hour, or an API by the unit, and where they meet.

A machine that is kept is paid for whether it works or not, and there are whole machines only; one
that is given back is paid for while it works, and for the idle hours around it. An API costs the
same for every sample. With the price P per hour, h hours in which the machine is kept, and c per
sample, a kept machine breaks even at P·h/c samples, if it can do so many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

HOURS_PER_MONTH = 730.0  # 8760 hours a year over 12


@dataclass(frozen=True, kw_only=True, slots=True)
class Rented:
    """A machine, or several that share the job, by the hour.

    ``utilisation`` is the share of its time for which there is work when it is kept: demand that
    comes in peaks leaves a machine idle between them. ``idle_hours`` are paid for besides the work
    where it is given back: start, set-up and what it waits for.

    Raises:
        ValueError: a price or a throughput that is not positive and finite, a utilisation that is
            not above 0 and at most 1, or idle hours below 0.
    """

    price_per_hour: float
    samples_per_second: float
    utilisation: float = 1.0
    idle_hours: float = 0.0

    def __post_init__(self) -> None:
        for value in (self.price_per_hour, self.samples_per_second):
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"a price and a throughput are positive and finite, not {value}")
        if not 0 < self.utilisation <= 1:
            raise ValueError(f"a utilisation is above 0 and at most 1, not {self.utilisation}")
        if not (math.isfinite(self.idle_hours) and self.idle_hours >= 0):
            raise ValueError(f"idle hours are 0 or more, not {self.idle_hours}")

    @property
    def working(self) -> float:
        """Dollars per sample while it works."""
        return self.price_per_hour / (3600.0 * self.samples_per_second)

    def capacity(self, hours: float) -> float:
        """The samples that one does in so many hours at its utilisation."""
        return 3600.0 * self.samples_per_second * self.utilisation * hours


@dataclass(frozen=True, slots=True)
class Meeting:
    """Volumes at which a machine and a price per unit cost the same.

    The unit is cheaper below ``first``; from ``always`` on the machine is, None where steps of
    whole machines keep both ahead in turn.
    """

    first: float
    always: float | None


def machines(rented: Rented, samples: float, hours: float) -> int:
    """How many kept machines a volume takes in so many hours; at least one."""
    return max(math.ceil(samples / rented.capacity(hours)), 1)


def kept(rented: Rented, samples: float, hours: float) -> float:
    """Dollars of machines that are kept for so many hours, for a volume in that time."""
    return machines(rented, samples, hours) * rented.price_per_hour * hours


def given_back(rented: Rented, samples: float) -> float:
    """Dollars of a machine that is given back when the work is done."""
    return rented.working * samples + rented.price_per_hour * rented.idle_hours


def meets_kept(rented: Rented, per_sample: float, hours: float) -> Meeting | None:
    """Where kept machines and a price per sample cost the same; None where the unit stays cheaper.

    The k-th machine is worth its price from k·P·h/c samples on. Two prices meet at all where one
    machine at its capacity C is no dearer than the same work by the unit: P·h <= c·C.
    """
    fixed, most = rented.price_per_hour * hours, per_sample * rented.capacity(hours)
    first = fixed / per_sample
    if fixed > most or not math.isfinite(first):
        return None
    if fixed == most:
        return Meeting(first, None)
    # beyond this number of machines one more never makes them dearer than the unit
    last = max(math.ceil(fixed / (most - fixed)), 1)
    return Meeting(first, last * first)


def meets_given_back(rented: Rented, per_sample: float) -> Meeting | None:
    """Where a machine that is given back and a price per sample cost the same.

    None where the unit stays cheaper; at 0 samples where no hours are idle.
    """
    gain = per_sample - rented.working
    if gain <= 0:
        return None
    volume = rented.price_per_hour * rented.idle_hours / gain
    return Meeting(volume, volume) if math.isfinite(volume) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Api:
    """The price list of an API in USD; None is not charged by it.

    ``per_million_tokens`` is for all tokens alike; the other two for those sent and those made.
    """

    name: str
    per_million_tokens: float | None = None
    per_million_input_tokens: float | None = None
    per_million_output_tokens: float | None = None
    per_request: float | None = None
    source: str = ""
    date: str = ""

    @property
    def by_tokens(self) -> bool:
        """Whether tokens are charged."""
        prices = (self.per_million_input_tokens, self.per_million_output_tokens)
        return self.per_million_tokens is not None or any(price is not None for price in prices)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one sample: those sent, and those made."""

    sent: float
    made: float = 0.0


def per_sample(api: Api, tokens: Tokens | None) -> float | None:
    """Dollars for one sample, which is one request; None where its tokens are charged and unknown.

    Tokens that are sent and made cost apart where the list has two prices; where it has a price
    only for one of them, the other is free.
    """
    if api.by_tokens and tokens is None:
        return None
    sent, made = (tokens.sent, tokens.made) if tokens else (0.0, 0.0)
    millions = (
        (api.per_million_tokens or 0.0) * (sent + made)
        + (api.per_million_input_tokens or 0.0) * sent
        + (api.per_million_output_tokens or 0.0) * made
    )
    cost = millions / 1e6 + (api.per_request or 0.0)
    return cost if math.isfinite(cost) and cost > 0 else None
