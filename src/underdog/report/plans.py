"""Spot while it is to be had, on demand where it must: the plan for a deadline, in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.text import Text

_FROM = {
    "prior": "as on public records, for nothing of it is on record",
    "attempts": "by what is on record",
    "told": "as is told",
    "given": "as given",
}
_SURE = 0.995  # that rounds to all


def first(plans: Sequence[Mapping[str, Any]], number: Callable[[float], str]) -> Text:
    """The first plan: what it costs and how surely it is in time, against each way alone."""
    plan = plans[0]
    alone = plan["alone"]
    many = f"{plan['nodes']} × " if plan["nodes"] > 1 else ""
    title = "The cheapest way that keeps the deadline" if plan["cheapest"] else "By the deadline"
    text = Text(f"{title}: ", style="bold")
    about = "" if plan["source"] == "measured" else "predicted, "
    text.append(
        f"{many}{plan['spot']} while it is to be had, {plan['on_demand']} where it must be: {about}"
        f"{_cost(plan, number)}, {_chance(plan)}. On demand alone "
        f"{_cost(alone['on_demand'], number)}, {_chance(alone['on_demand'])}; spot alone "
        f"{_cost(alone['spot'], number)}, {_chance(alone['spot'])}.",
        style="not bold",
    )
    often = number(plan["interruptions_per_hour"]["value"])
    text.append(
        f" Spot is taken away {often} times an hour ({_FROM[plan['from']]}), for "
        f"{number(plan['away_hours'])} h.",
        style="dim not bold",
    )
    return text


def _cost(way: Mapping[str, Any], number: Callable[[float], str]) -> str:
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
