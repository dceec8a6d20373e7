"""Figures and names as sentences have them; whatever a store holds, nothing here raises."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from underdog.core.columns import BY_NAME
from underdog.core.metrics import METRICS
from underdog.core.views.records import Range
from underdog.model import Estimate

LONGEST = 80  # characters of a name in a sentence
_SCALES = ((1e12, " trillion"), (1e9, " billion"), (1e6, " million"))
_LARGEST = 1e15  # beyond it a number is written with its exponent
_UNITS = {
    "samples/s": "samples per second",
    "samples/$": "samples per dollar",
    "$/M samples": "dollars per million samples",
    "samples/kWh": "samples per kilowatt-hour",
    "h": "hours",
    "$": "dollars",
    "kg": "kg of CO2",
    "$/h": "dollars an hour",
}


def finite(value: Any) -> float | None:
    """A number that is one, else None: a text, NaN and infinity are none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def positive(value: Any) -> float | None:
    """A number above zero, else None."""
    number = finite(value)
    return number if number is not None and number > 0 else None


def range_of(found: Any) -> Range | None:
    """The range of an estimate, or of a table of ``value``, ``low`` and ``high``.

    Ends that do not hold the value between them are no interval.
    """
    if isinstance(found, Estimate):
        found = {"value": found.value, "low": found.low, "high": found.high}
    if not isinstance(found, Mapping):
        return None
    value, low, high = (finite(found.get(name)) for name in ("value", "low", "high"))
    if value is None:
        return None
    if low is None or high is None or not low <= value <= high or low == high:
        return Range(value=value)
    return Range(value=value, low=low, high=high)


def times(found: Range | None, factor: float) -> Range | None:
    """A range in another unit; None where that leaves the range of a number."""
    if found is None:
        return None
    return _made(found.value * factor, *(_by(end, factor) for end in (found.low, found.high)))


def inverse(found: Range | None, factor: float) -> Range | None:
    """``factor`` over a range; None where it is not above zero."""
    if found is None or positive(found.value) is None:
        return None
    ends = (positive(end) for end in (found.high, found.low))
    return _made(factor / found.value, *(None if end is None else factor / end for end in ends))


def _by(end: float | None, factor: float) -> float | None:
    return None if end is None else end * factor


def _made(value: float, low: float | None, high: float | None) -> Range | None:
    return range_of({"value": value, "low": low, "high": high})


def amount(value: float, digits: int = 3) -> str:
    """A number for a sentence: ``0.0123``, ``1,230``, ``1.23 million``."""
    shown_, word = _scale(value)
    return plain(shown_, digits) + word


def plain(value: float, digits: int = 3) -> str:
    """So many significant digits, thousands set apart, an exponent only for the very large."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.{digits - 1}e}"
    rounded = float(f"{value:.{digits - 1}e}")  # 0.9999 has one digit more after it
    size = math.floor(math.log10(abs(rounded)))
    places = digits - 1 - size
    return f"{round(value, places):,.{max(0, places)}f}"


def gain_words(gain: float) -> str:
    """How much better, of a share: ``12 % better``, ``3.3 times as good``."""
    if gain < 1:
        return f"{amount(100 * gain, 2)} % better"
    return f"{plain(1 + gain, 2)} times as good"


def _scale(value: float) -> tuple[float, str]:
    if abs(value) < _LARGEST:
        for scale, word in _SCALES:
            if abs(value) >= scale * 0.9995:
                return value / scale, word
    return value, ""


def with_interval(found: Range, unit: str = "") -> str:
    """``1.2 million samples per dollar, 95 % interval 1.1 to 1.3 million``."""
    return f"{amount(found.value)}{f' {unit}' if unit else ''}{interval(found)}"


def interval(found: Range) -> str:
    """``, 95 % interval 1.1 to 1.3 million``, nothing where none is known."""
    if found.low is None or found.high is None:
        return ""
    return f", 95 % interval {between(found.low, found.high)}"


def between(low: float, high: float, digits: int = 3) -> str:
    """``82,400 to 10.2 million``; a word that both share stands once."""
    (first, word), (_, other) = _scale(low), _scale(high)
    return f"{plain(first, digits)}{'' if word == other else word} to {amount(high, digits)}"


def unit_of(utility: str) -> str:
    """The unit of a utility's leading term as tables have it, ``''`` where it has none."""
    first = utility.split(",")[0].strip()
    if first.lower() in METRICS:
        return METRICS[first.lower()].unit
    return BY_NAME[first].unit if first in BY_NAME else ""


def unit_words(utility: str) -> str:
    """The same in words; of an expression, what was asked."""
    unit = unit_of(utility)
    return _UNITS.get(unit, unit) or f"by '{brief(utility)}'"


def text_of(value: Any) -> str:
    """A text that is one, else an empty one."""
    return value if isinstance(value, str) else ""


def shown(text: str, keep_lines: bool = False) -> str:
    """Text from outside, made harmless: what a terminal would obey is spelled out."""
    kept = "\n" if keep_lines else ""
    return "".join(
        c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text
    )


def brief(text: str, longest: int = LONGEST) -> str:
    """Text from outside on one line of a sentence: harmless, and cut in its middle."""
    line = shown(" ".join(text.split()))
    if len(line) <= longest:
        return line
    half = longest // 2
    return f"{line[: half - 1]} … {line[-half + 2 :]}"


def plural(count: int, noun: str) -> str:
    """``1 test``, ``2,000 tests``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"
