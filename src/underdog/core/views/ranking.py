"""The ranking of a stored decision as points, whatever version or hand wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from underdog.core.views import words
from underdog.core.views.records import Point, Range, Source
from underdog.core.views.words import finite, positive, range_of, text_of, unit_of
from underdog.model import Decision

MILLION = 1e6


def name_of(offer: str, nodes: int) -> str:
    """The name of an offer with the number of machines that share the job."""
    return f"{nodes} × {offer}" if nodes > 1 else offer


def points_of(decision: Decision, samples: float | None) -> list[Point]:
    """The ranked offers, the best first; entries without an offer are left out.

    Args:
        samples: of the whole job; None: hours and dollars are of a million samples.
    """
    made = []
    for place, entry in enumerate(decision.ranking, start=1):
        offer = _offer(entry)
        if text_of(offer.get("id")):
            made.append(_point(decision, entry, offer, place, samples))
    return sorted(made, key=lambda point: point.rank or 0)


def _offer(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    found = entry.get("offer")
    if isinstance(found, str):  # all that is known of it is its name
        return {"id": found}
    return found if isinstance(found, Mapping) else {}


def _point(
    decision: Decision,
    entry: Mapping[str, Any],
    offer: Mapping[str, Any],
    place: int,
    samples: float | None,
) -> Point:
    nodes = max(1, int(positive(entry.get("nodes")) or 1))
    source = _source(entry.get("source"))
    ties = entry.get("tied_with")
    tied = [name for name in ties if isinstance(name, str)] if isinstance(ties, list) else []
    verdict = _verdict(decision, str(offer["id"]), source, tied)
    price = positive(offer.get("price_per_hour"))
    utility = range_of(entry.get("utility"))
    return Point(
        offer=str(offer["id"]),
        provider=text_of(offer.get("provider")),
        region=text_of(offer.get("zone")) or text_of(offer.get("region")),
        instance_type=text_of(offer.get("instance_type")),
        purchase=text_of(offer.get("purchase")) or "on-demand",
        nodes=nodes,
        accelerator=text_of(offer.get("accelerator")) or None,
        accelerator_count=positive(offer.get("accelerator_count")) or 0,
        vcpus=positive(offer.get("vcpus")),
        memory_gib=positive(offer.get("memory_gib")),
        price_per_hour=None if price is None else finite(price * nodes),
        rank=int(positive(entry.get("rank")) or place),
        verdict=verdict,
        reason=_reason(source, utility, decision.utility),
        source=source,
        samples_per_second=range_of(entry.get("samples_per_second")),
        samples_per_dollar=range_of(entry.get("samples_per_dollar")),
        hours=_hours(entry, samples),
        dollars=_dollars(entry, samples),
        utility=utility,
        pareto=entry.get("pareto") is True,
        tied_with=tied,
        caveats=_doubts(offer.get("caveats")),
    )


def _source(found: Any) -> Source:
    known: dict[str, Source] = {"measured": "measured", "predicted": "predicted"}
    return known.get(text_of(found), "unknown")


def _verdict(decision: Decision, name: str, source: Source, tied: Sequence[str]) -> str:
    if source != "measured":
        return "untested"
    if name == decision.best_measured:
        return "best"
    return "tied" if decision.best_measured in tied else "beaten"


def _reason(source: Source, utility: Range | None, asked: str) -> str:
    said = {"measured": "measured", "predicted": "not tested; predicted"}.get(source, "ranked")
    if utility is None:
        return said
    unit = unit_of(asked)
    ends = ""
    if utility.low is not None and utility.high is not None:
        ends = f" ({words.amount(utility.low)}–{words.amount(utility.high)})"
    return f"{said} {words.amount(utility.value)}{ends}{f' {unit}' if unit else ''}"


def _hours(entry: Mapping[str, Any], samples: float | None) -> Range | None:
    if samples is not None:
        return range_of(entry.get("hours_to_train"))
    rate, useful = range_of(entry.get("samples_per_second")), range_of(entry.get("useful_share"))
    if rate is None:
        return None
    useful = useful or Range(value=1.0)
    low = None if rate.low is None else rate.low * (useful.low or useful.value)
    high = None if rate.high is None else rate.high * (useful.high or useful.value)
    paid = Range(value=rate.value * useful.value, low=low, high=high)
    return words.inverse(paid, MILLION / 3600)


def _dollars(entry: Mapping[str, Any], samples: float | None) -> Range | None:
    if samples is not None:
        return range_of(entry.get("dollars_to_train"))
    return range_of(entry.get("dollars_per_million_samples"))


def _doubts(found: Any) -> list[str]:
    """The rules of the catalog that doubt an offer, in either form in which they are kept."""
    if isinstance(found, str):
        found = found.split(",")
    given = found if isinstance(found, list | tuple) else []
    return [rule.strip() for rule in given if isinstance(rule, str) and rule.strip()]
