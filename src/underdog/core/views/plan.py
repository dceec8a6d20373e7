"""Spot while it is to be had, on demand where it must: the plan for a deadline, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Number = Callable[[float], str]

_FROM = {
    "prior": "as on public records",
    "attempts": "by what is on record",
    "told": "as is told",
    "given": "as given",
}
_SURE = 0.995  # that rounds to all


class Words(NamedTuple):
    """The plan in words: what it is, what it costs against each way alone, what it rests on."""

    title: str
    said: str
    rests_on: str


def plan_words(plans: Sequence[Mapping[str, Any]], number: Number) -> Words | None:
    """The first plan of a decision in words; None where there is none that can be read.

    Args:
        plans: ``Decision.plans``.
        number: a figure as text.
    """
    try:
        return _words(plans[0], number) if plans else None
    except (LookupError, TypeError, ValueError, AttributeError):
        return None  # of another version


def _words(plan: Mapping[str, Any], number: Number) -> Words:
    alone = plan["alone"]
    many = f"{plan['nodes']} × " if plan["nodes"] > 1 else ""
    about = "" if plan["source"] == "measured" else "predicted, "
    said = (
        f"{many}{plan['spot']} while it is to be had, {plan['on_demand']} where it must be: {about}"
        f"{_cost(plan, number)} on average, {_chance(plan)}. On demand alone "
        f"{_cost(alone['on_demand'], number)}, {_chance(alone['on_demand'])}; spot alone "
        f"{_cost(alone['spot'], number)}, {_chance(alone['spot'])}."
    )
    if not plan["cheapest"]:
        said += " Another offer above does it for less."
    often = number(plan["interruptions_per_hour"]["value"])
    rests_on = (
        f"Spot is taken away {often} times an hour ({_FROM[plan['from']]}), for "
        f"{number(plan['away_hours'])} h."
    )
    title = "The cheapest way that keeps the deadline" if plan["cheapest"] else "By the deadline"
    return Words(title, said, rests_on)


def _cost(way: Mapping[str, Any], number: Number) -> str:
    dollars = way["dollars"]
    if dollars is None:
        return "at no known cost"
    value, low, high = (number(dollars[end]) for end in ("value", "low", "high"))
    return f"${value} ({low}–{high})"


def _chance(way: Mapping[str, Any]) -> str:
    share = way["in_time"]
    if share >= _SURE:
        return "in time"
    return "never in time" if share < 1 - _SURE else f"in time with a chance of {share:.0%}"
