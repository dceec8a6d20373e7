"""A price of one type at one place, and what happens where several stand for the same."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import msgspec

from underdog.catalog.providers.aws.shapes import Attributes
from underdog.catalog.sources import LeftOut, number
from underdog.model import Price

HOURS_OF_A_YEAR = 8760
UPFRONT = {
    "No Upfront": "",
    "Partial Upfront": "-partial-upfront",
    "All Upfront": "-all-upfront",
}


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """A price; ``rank`` tells the parts of a managed service apart, the lowest goes first.

    ``said`` is what the price list says of the machine, ``doubt`` the caveat of the offer.
    """

    region: str
    instance_type: str
    purchase: str
    price: Price
    zone: str | None = None
    term: str | None = None
    service: str | None = None
    rank: int = 0
    doubt: str | None = None
    said: Attributes | None = None

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """What an offer is told apart by: region, zone, type, purchase, term."""
        return (
            self.region,
            self.zone or "",
            self.instance_type,
            self.purchase,
            self.term or "",
        )


Quotes = Iterable[Quote | LeftOut]


def left_out(region: str | None, instance_type: str | None, reason: str) -> LeftOut:
    return LeftOut("aws", region or "", instance_type or "", reason)


def lowest(quotes: Quotes, kept: dict[tuple[str, ...], Quote]) -> Iterator[LeftOut]:
    """Put into ``kept`` one quote for each offer, and yield the others with the reason."""
    for quote in quotes:
        if isinstance(quote, LeftOut):
            yield quote
            continue
        key = quote.key
        other = kept.setdefault(key, quote)
        if other is quote:
            continue
        better, worse = sorted((other, quote), key=_order)
        kept[key] = better
        reason = "two prices stand for one type; the lower is kept"
        if better.rank != worse.rank:
            reason = "the price of another part of SageMaker than the one that is kept"
        elif other.doubt or _differ(better.price, worse.price):
            kept[key] = msgspec.structs.replace(better, doubt="two_prices")
        yield left_out(quote.region, quote.instance_type, reason)


def _differ(one: Price, other: Price) -> bool:
    return None not in (one.per_hour, other.per_hour) and one.per_hour != other.per_hour


def _order(quote: Quote) -> tuple[bool, int, float, str]:
    price = quote.price
    amount = math.inf if price.per_hour is None else price.per_hour
    return price.per_hour is None, quote.rank, amount, price.unknown_reason or ""


def shown(computed: float) -> str:
    """A computed price as text: to eight digits, which no rounding makes 0."""
    return f"{computed:.8g}"


def amount(value: str | float | None) -> float | None:
    """An amount that may be 0, or None where it is missing, negative or no number."""
    found = number(value)
    if found is not None:
        return found
    try:
        return 0.0 if value is not None and float(value) == 0 else None
    except ValueError:
        return None
