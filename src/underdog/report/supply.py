"""What to ask for where an offer is not to be had, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from underdog.units import format_seconds


def fallback(steps: Sequence[Mapping[str, Any]]) -> Text:
    """The first offer, and which then; with the chance to come to each, where it is known."""
    first, *rest = steps
    patience = format_seconds(first["patience_seconds"])
    text = Text(f"If {_name(first)} is not to be had within {patience}: ", style="bold")
    for place, step in enumerate(rest):
        text.append(", then " if place else "", style="not bold")
        text.append(_name(step), style="not bold")
        if step["reached"] is not None:
            text.append(f" ({_chance(step['reached'])})", style="dim not bold")
    return text


def _chance(share: float) -> str:
    return "reached in under 1 %" if share < 0.01 else f"reached in {share:.0%}"


def _name(step: Mapping[str, Any]) -> str:
    return f"{step['nodes']} × {step['offer']}" if step["nodes"] > 1 else str(step["offer"])
