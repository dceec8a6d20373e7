"""What the text of views has in common, in a terminal and in Markdown: figures, times, bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from underdog.core.views.records import Point, Range
from underdog.report.decision import number

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEVELS = "▁▂▃▄▅▆▇█"
_PLAIN_LEVELS = "_.-=+*#"
_PLAIN = str.maketrans(
    {"–": "-", "…": "~", "×": "x", "●": "*", "○": "o", "◆": "^", "·": "-", "→": ">", "µ": "u"}
)


@dataclass(frozen=True, slots=True)
class Style:
    """What a terminal can show.

    Attributes:
        width: of a line, in columns.
        plain: nothing but ASCII.
    """

    width: int = 100
    plain: bool = False

    def text(self, words: str) -> str:
        """Text as this terminal can show it; what it cannot is spelled out."""
        if not self.plain:
            return words
        return words.translate(_PLAIN).encode("ascii", "backslashreplace").decode()


def bar(share: float, width: int, style: Style, *, hollow: bool = False) -> str:
    """A bar of a share of so many columns; what is above nothing is seen.

    Args:
        hollow: of something that was not measured.
    """
    share = min(max(share, 0.0), 1.0) if math.isfinite(share) else 0.0
    if hollow or style.plain:
        mark = ("-" if hollow else "#") if style.plain else "░"
        return mark * max(round(share * width), share > 0)
    eighths = max(round(share * width * 8), share > 0)
    return "█" * (eighths // 8) + (_EIGHTHS[eighths % 8] if eighths % 8 else "")


def line_chart(values: Sequence[float | None], style: Style) -> str:
    """One character for each value, from the lowest to the highest; a blank where it is unknown."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    levels = _PLAIN_LEVELS if style.plain else _LEVELS
    if not known:
        return ""
    low, high = min(known), max(known)
    made = []
    for value in values:
        if value is None or not math.isfinite(value):
            made.append(" ")
            continue
        share = 0.5 if high == low else value / (high - low) - low / (high - low)
        made.append(levels[min(int(share * len(levels)), len(levels) - 1)])
    return "".join(made)


def thinned(values: Sequence[float | None], most: int) -> list[float | None]:
    """At most so many values: the means of stretches of equal length."""
    if len(values) <= most:
        return list(values)
    edges = [round(i * len(values) / most) for i in range(most + 1)]
    parts = [values[a:b] for a, b in pairwise(edges)]
    return [_mean(part) for part in parts]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(value / len(known) for value in known) if known else None


def ranged(found: Range | None, predicted: bool = False) -> str:
    """``1.23M (1.1M–1.3M)``; a prediction has a ``~`` before it and fewer digits."""
    if found is None:
        return "unknown"
    about, digits = ("~", 2) if predicted else ("", 3)
    text = f"{about}{number(found.value, digits)}"
    if found.low is None or found.high is None:
        return text
    return f"{text} ({number(found.low, digits)}–{number(found.high, digits)})"


def named(point: Point) -> str:
    """The name of an offer, with the number of machines where it is not one."""
    return f"{point.nodes} × {point.offer}" if point.nodes > 1 else point.offer


def minute(moment: str) -> str:
    """A time as records have it, to the minute: ``2026-11-30 16:53``."""
    return moment[:16].replace("T", " ")
