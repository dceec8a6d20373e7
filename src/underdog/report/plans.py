"""The plan for a deadline that mixes spot and on demand, for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.text import Text

from underdog.core.views.plan import plan_words


def first(plans: Sequence[Mapping[str, Any]], number: Callable[[float], str]) -> Text:
    """The first plan: what it costs and how surely it is in time, against each way alone."""
    told = plan_words(plans, number)
    if told is None:
        return Text()
    text = Text(f"{told.title}: ", style="bold")
    text.append(told.said, style="not bold")
    text.append(f" {told.rests_on}", style="dim not bold")
    return text
