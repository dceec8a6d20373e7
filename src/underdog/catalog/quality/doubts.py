"""What is said of ranked offers that a rule doubts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any

from underdog.catalog.quality.checking import RULES
from underdog.catalog.quality.limits import STALE_DAYS, STALE_SPOT_DAYS
from underdog.model import Caveat

_NAMED = 3


def doubts(offers: Iterable[Mapping[str, Any]]) -> list[Caveat]:
    """A caveat for each rule that doubts some of the offers, in the order of the offers.

    Args:
        offers: dicts with ``id``, the name of the offer, and ``caveats``, the column.
    """
    doubted: dict[str, list[str]] = {}
    for offer in offers:
        for rule in filter(None, (offer["caveats"] or "").split(",")):
            doubted.setdefault(rule, []).append(offer["id"])
    return [_caveat(rule, list(dict.fromkeys(names))) for rule, names in doubted.items()]


def with_age(offer: Mapping[str, Any], today: date) -> str | None:
    """The column ``caveats`` of an offer, with ``stale_price`` where its price is old by now.

    The age is of the day of use, so a snapshot cannot have it.
    """
    names = set(filter(None, (offer["caveats"] or "").split(",")))
    days = STALE_SPOT_DAYS if offer["purchase"] == "spot" else STALE_DAYS
    try:
        old = date.fromisoformat(offer["price_date"] or "") < today - timedelta(days=days)
    except ValueError:
        old = False  # a price without a date is another doubt
    if old and offer["price_per_hour"] is not None:
        names.add("stale_price")
    return ",".join(sorted(names)) or None


def _caveat(name: str, offers: list[str]) -> Caveat:
    rule, more = RULES.get(name), len(offers) - _NAMED
    listed = ", ".join(offers[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    if rule is None:  # of the user's own offers, or of a later version
        remedy = "Look at where the offer comes from."
        return Caveat(code=name, message=f"Doubted: {listed}. {name}.", remedy=remedy)
    message = f"Doubted, as {rule.says}: {listed}."
    return Caveat(code=name, message=message, remedy=rule.remedy)
