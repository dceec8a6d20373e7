"""How a trial went over time, thinned to what a chart can show. Pure.

Nothing is picked: every step and every second counts in some stretch, so that the totals are kept.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from underdog.core.series import Series
from underdog.core.stats import usable
from underdog.model import Timeline

Floats = NDArray[np.float64]
Column = list[float | None]

MOST = 120  # points of a column, pauses of a kind
_COLUMNS = 64  # more were never made
_SHORTEST = 1e-6  # share of a stretch that must be known


@dataclass(frozen=True, slots=True)
class Readings:
    """One kind of reading at each of some times; NaN where it is not known.

    ``counter`` counts up, and its rate is told; ``level`` is told as it is.
    """

    kind: Literal["counter", "level"]
    values: Floats  # (n,)


def of_steps(series: Series, most: int = MOST) -> dict[str, Column]:
    """The steps in equal stretches, at most so many; empty where no step counts.

    The samples of a stretch over its seconds without pauses are its rate: None where a sample is
    not known or no time went by.

    Args:
        series: of the job; steps whose times cannot be are left out.
    """
    series = _seen(series)
    count = len(series)
    if not count:
        return {}
    zero = float(series.start[0])
    active = np.maximum(series.seconds - series.pause_seconds(), 0.0)
    ends: list[int] = []
    seconds: list[float] = []
    for end in np.unique(np.linspace(0, count, min(most, count) + 1).round().astype(int))[1:]:
        at = round(float(series.end[end - 1]) - zero, 6)
        while seconds and at <= seconds[-1]:  # no time went by: it joins the one before
            ends.pop()
            seconds.pop()
        ends.append(int(end))
        seconds.append(at)
    begins = [0, *ends[:-1]]
    samples = np.add.reduceat(series.samples, begins)
    elapsed = np.add.reduceat(active, begins)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rates = samples / elapsed
    return {
        "seconds": [*seconds],
        "step": [float(end) for end in ends],
        "samples_per_second": [_told(rate) for rate in rates.tolist()],
    }


def of_pauses(series: Series, most: int = MOST) -> dict[str, list[list[float]]]:
    """Begin and end of each pause by its kind, in order; of more than ``most`` the longest."""
    series = _seen(series)
    if not len(series):
        return {}
    zero, last = float(series.start[0]), float(series.end[-1])
    found = {}
    for kind in sorted({kind for kind, _, _ in series.pauses}):
        spans = np.clip(series.pause_spans(kind), zero, last) - zero
        lengths = spans[:, 1] - spans[:, 0]
        longest = np.sort(np.argsort(-lengths, kind="stable")[:most])
        kept = spans[longest[lengths[longest] > 0]]
        if len(kept):
            found[kind] = [[round(begin, 6), round(end, 6)] for begin, end in kept.tolist()]
    return found


def of_readings(
    times: Floats, readings: Mapping[str, Readings], zero: float, most: int = MOST
) -> dict[str, Column]:
    """The means of readings over equal stretches of time, at most so many.

    Between two readings a counter grows evenly and a level moves evenly; what lies between two of
    which one is unknown, or where a counter falls, is unknown. A column that is all unknown is left
    out.

    Args:
        times: of the readings, increasing, shape (n,).
        zero: the time that is told as 0.
    """
    fresh = np.diff(np.maximum.accumulate(times), prepend=-np.inf) > 0
    times = times[fresh]
    if len(times) < 2:
        return {}
    edges = np.linspace(times[0], times[-1], min(most, len(times) - 1) + 1)
    widths = np.diff(times)
    found: dict[str, Column] = {}
    for name, one in readings.items():
        values = one.values[fresh]
        with np.errstate(invalid="ignore"):
            amount = np.diff(values) if one.kind == "counter" else _area(values, widths)
            known = np.isfinite(amount) & (amount >= 0)
        told = _between(edges, times, np.where(known, amount, 0.0))
        length = _between(edges, times, np.where(known, widths, 0.0))
        enough = length > _SHORTEST * np.diff(edges)
        means = np.divide(told, length, out=np.full(len(told), np.nan), where=enough)
        if enough.any():
            found[name] = [_told(mean) for mean in means.tolist()]
    seconds: Column = [round(float(edge) - zero, 6) for edge in edges[1:]]
    return {"seconds": seconds, **found} if found else {}


def _seen(series: Series) -> Series:
    """The steps whose times can be."""
    return usable(series)[0] if len(series) else series


def _area(values: Floats, widths: Floats) -> Floats:
    return widths * (values[1:] + values[:-1]) / 2


def _between(edges: Floats, times: Floats, amounts: Floats) -> Floats:
    """How much of what was added between the times falls between each two edges."""
    total = np.concatenate(([0.0], np.cumsum(amounts)))
    return np.diff(np.interp(edges, times, total))


def _told(value: float) -> float | None:
    """With the six digits that a chart can show at most; None where it is no number."""
    return float(f"{value:.6g}") if math.isfinite(value) and value >= 0 else None


def fault_of(timeline: Timeline) -> str | None:
    """Why a timeline that came from elsewhere cannot be, or None."""
    for name, table in (("steps", timeline.steps), ("usage", timeline.usage)):
        seconds = table.get("seconds", [])
        if len(table) > _COLUMNS or len(seconds) > MOST:
            return f"its {name} are more than a timeline has"
        if any(len(column) != len(seconds) for column in table.values()):
            return f"its {name} are of different lengths"
        if not all(_finite(column) for column in table.values()) or not _increase(seconds):
            return f"its {name} have times or figures that cannot be"
    for kind, spans in timeline.pauses.items():
        if len(spans) > MOST or len(timeline.pauses) > _COLUMNS:
            return "its pauses are more than a timeline has"
        if not all(len(span) == 2 and _finite(span) and span[0] <= span[1] for span in spans):
            return f"its pauses of the kind '{kind}' cannot be"
    return None


def _finite(column: Sequence[float | None]) -> bool:
    return all(value is None or math.isfinite(value) for value in column)


def _increase(seconds: Column) -> bool:
    known = [value for value in seconds if value is not None]
    return len(known) == len(seconds) and all(a < b for a, b in itertools.pairwise(known))
