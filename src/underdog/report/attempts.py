"""Attempts to get machines as a table for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from rich.table import Table
from rich.text import Text

from underdog.core.attempts import Attempt
from underdog.report.measurement import shown
from underdog.units import format_seconds


def attempts_table(attempts: Sequence[Attempt], next_step: Callable[[Attempt], str]) -> Table:
    """One line for each attempt.

    Args:
        next_step: what to do after it.
    """
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for name in ("asked", "offer", "machines", "result", "waited", "held", "next"):
        right = name in ("machines", "waited", "held")
        table.add_column(
            name, justify="right" if right else "left", overflow="fold", no_wrap=name == "asked"
        )
    for one in attempts:
        table.add_row(
            f"{datetime.fromtimestamp(one.at, UTC):%Y-%m-%d %H:%M}",
            Text(shown(one.place.offer)),
            str(one.count),
            Text(_result(one), style="green" if one.got and not one.interrupted else "yellow"),
            _seconds(one.waited),
            _seconds(one.held),
            Text(shown(next_step(one))),
        )
    return table


def _result(one: Attempt) -> str:
    if one.interrupted:
        return "got, taken away"
    return "got" if one.got else (one.refusal or "refused").replace("_", " ")


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else format_seconds(seconds) if seconds else "0 s"
