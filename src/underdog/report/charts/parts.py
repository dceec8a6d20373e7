"""What the charts share: numbers and words as they are drawn, axes, and the frame of a chart.

Text of users is only ever data: never part of an expression, a field's name or a format.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from underdog.core.views.records import Range
from underdog.core.views.words import shown
from underdog.report.decision import number

Spec = dict[str, Any]
Row = dict[str, Any]

SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
LOG_FROM = 10.0  # largest over smallest value, from which on an axis is logarithmic
DIGITS = 5  # that are drawn; more cannot be seen
LONGEST = 300  # characters of a text in a tooltip
SMALLEST, LARGEST = 1e-30, 1e30  # what an axis can hold in the numbers of a browser

_NUMBER = (
    "datum.value == 0 ? '0' : abs(datum.value) < 1000 && abs(datum.value) >= 0.0001 "
    "? format(datum.value, '.6~g') : abs(datum.value) < 0.0001 "
    "? format(datum.value, '.2~e') : format(datum.value, '.6~s')"
)


def drawn(value: float | None) -> float | None:
    """The value as it is drawn, rounded; None where nothing can be drawn."""
    if value is None or not math.isfinite(value) or abs(value) > LARGEST:
        return None
    return 0.0 if abs(value) < SMALLEST else float(f"{value:.{DIGITS}g}")


def words(text: str, longest: int = LONGEST) -> str:
    """A text from outside as one harmless line, cut where it is longer than anyone reads."""
    line = shown(" ".join(text.split()))
    return line if len(line) <= longest else line[: longest - 1] + "…"


def figure(value: float) -> str:
    """A number for people: three digits, four where they are before the point."""
    return f"{value:,.0f}" if 999.5 <= abs(value) < 9_999.5 else number(value)


def said(value: Range | None, before: str = "", after: str = "") -> str:
    """A value with its interval for people: ``$12.3 (11–14)``."""
    if value is None or drawn(value.value) is None:
        return "unknown"
    text = f"{before}{figure(value.value)}"
    low, high = drawn(value.low), drawn(value.high)
    if low is not None and high is not None:
        text += f" ({figure(low)}–{figure(high)})"
    return text + after


@dataclass(frozen=True, slots=True)
class Axis:
    """A quantitative axis: its scale and the range that it shows."""

    low: float
    high: float
    log: bool

    def place(self, value: float) -> float:
        """Where a value lies, 0 at the low end and 1 at the high one."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def inside(self, value: float | None) -> float | None:
        """The value, or the nearest end that the axis can show; None stays None."""
        return None if value is None else min(max(value, self.low), self.high)

    def channel(self, field: str, title: str | None, **options: Any) -> Spec:
        """The encoding of a position by it; ``options`` are of the axis."""
        axis: Spec = {"title": title, "labelExpr": _NUMBER, **options}
        if self.log:
            axis["values"] = self.ticks()
        else:
            axis.setdefault("tickCount", 6)
        scale: Spec = {"domain": [self.low, self.high], "nice": False}
        scale |= {"type": "log"} if self.log else {"type": "linear", "zero": False}
        return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}

    def ticks(self) -> list[float]:
        """Round values of a logarithmic axis, at most a dozen."""
        decades = math.log10(self.high / self.low)
        steps = (1, 2, 5) if decades < 2.5 else (1, 3) if decades < 4 else (1,)
        stride = max(1, math.ceil(decades / 7))
        first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        values = (
            float(f"{step}e{power}")
            for power in range(first - first % stride, last + 1, stride)
            for step in steps
        )
        return [value for value in values if self.low <= value <= self.high]


def axis_of(values: Iterable[float | None], *, zero: bool = False, log: bool = True) -> Axis:
    """An axis on which all of the values can be seen.

    Args:
        zero: begin at 0, as lengths from there are compared.
        log: be logarithmic where the values ask for it: all positive, and far apart.
    """
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if log and low > 0 and high / low > LOG_FROM:
        room = (high / low) ** 0.04
        return Axis(rounded(low / room), rounded(high * room), True)
    if zero:
        low = min(low, 0.0)
    if high == low:
        low, high = min(0.0, 2 * low), max(2 * high, 0.0) or 1.0
    room = 0.05 * (high - low)
    start = 0.0 if low >= 0 and (zero or low < room) else low - room
    return Axis(rounded(start), rounded(high + room), False)


def rounded(value: float) -> float:
    """The end of an axis, with more digits than the data, so that they lie inside."""
    return float(f"{value:.{DIGITS + 2}g}")


def interval(value: Range | None) -> tuple[float | None, float | None, float | None]:
    """Value, low and high end as they are drawn; a half-known interval is none."""
    if value is None or (middle := drawn(value.value)) is None:
        return None, None, None
    low, high = drawn(value.low), drawn(value.high)
    return (middle, low, high) if low is not None and high is not None else (middle, None, None)


def clock(seconds: float) -> tuple[float, str]:
    """Seconds of the unit that suits a span of time, and its name."""
    for limit, unit, name in ((600, 1, "seconds"), (4 * 3600, 60, "minutes"), (2e5, 3600, "hours")):
        if seconds < limit:
            return unit, name
    return 86400, "days"


@dataclass(frozen=True, slots=True)
class Heading:
    """What is said about a chart: title and subtitle for the eye, description for the ear."""

    title: str
    subtitle: Sequence[str]
    description: str


def chart(heading: Heading, rows: Sequence[Row], layers: Sequence[Spec], height: int) -> Spec:
    """The whole specification. Its layers share the rows, which are in it once."""
    title: Spec = {"text": heading.title, "subtitle": list(heading.subtitle)}
    title["limit"] = {"expr": "width"}
    return {
        "$schema": SCHEMA,
        "description": heading.description,
        "title": title,
        "width": "container",
        "height": height,
        "data": {"values": [compact(row) for row in rows]},
        "layer": list(layers),
    }


def compact(row: Row) -> Row:
    """A row without what is unknown: fewer bytes, and Vega draws it the same."""
    return {name: value for name, value in row.items() if value is not None}
