"""The throughput of a trial over time, with what does not count: warm-up and pauses."""

from __future__ import annotations

from collections.abc import Sequence

from underdog.core.views.records import Range, TrialView
from underdog.core.views.words import plural
from underdog.report.charts import marks, parts
from underdog.report.charts.marks import where
from underdog.report.charts.parts import Axis, Row, Spec, drawn, said, words

HEIGHT = 240
LANES = 2  # lines of words above the picture
HEADROOM = 1.6  # of the largest reading: a wider interval is cut there


def spec(view: TrialView) -> Spec | None:
    """Samples per second over the time since the first step; None without a reading.

    Each reading is over a stretch of steps and is drawn along all of it. The warm-up and pauses
    are shaded and named; the line is the mean over what counts, the band its 95 % interval.
    """
    table = view.timeline.steps if view.timeline else {}
    rates = [drawn(rate) for rate in table.get("samples_per_second", [])]
    times = [drawn(time) for time in table.get("seconds", [])]
    readings = [
        (at, rate) for at, rate in zip(times, rates, strict=False) if at is not None and at >= 0
    ]
    known = [rate for _, rate in readings if rate is not None]
    if not known:
        return None
    end = max(at for at, _ in readings)
    unit, name = parts.clock(end)
    rate = _rate(view)
    top = HEADROOM * max(known)
    tops = [min(end, top) for end in (rate.value, rate.high) if end is not None] if rate else []
    y = parts.axis_of([*known, *tops], zero=True, log=False)
    x = parts.axis_of([0.0, *(at / unit for at, _ in readings)], zero=True, log=False)
    rows: list[Row] = [{"line": 1, "x": 0.0, "y": readings[0][1]}]
    rows += [{"line": 1, "x": drawn(at / unit), "y": value} for at, value in readings]
    rows += _mean(rate, view.warmup_seconds / unit, end / unit, y)
    rows += spans(view, end, unit, x)
    layers = _layers(x.channel("x", f"{name} since the first step"), y.channel("y", "samples/s"))
    return parts.chart(_heading(view, known, rate), rows, layers, HEIGHT)


def _rate(view: TrialView) -> Range | None:
    if view.rate is None or drawn(view.rate.value) is None:
        return None
    low, high = drawn(view.rate.low), drawn(view.rate.high)
    return Range(value=view.rate.value, low=low, high=high)


def _mean(rate: Range | None, start: float, end: float, y: Axis) -> list[Row]:
    if rate is None:
        return []
    value, low, high = parts.interval(rate)
    row: Row = {"mean": 1, "x": drawn(min(max(start, 0.0), end)), "x2": drawn(end), "y": value}
    if value is not None and not y.low <= value <= y.high:
        return []
    return [row | {"y0": y.inside(low), "y1": y.inside(high)}]


def spans(view: TrialView, end: float, unit: float, x: Axis) -> list[Row]:
    """Rows of the warm-up and of all pauses, of which the first of each kind is named.

    Args:
        end: seconds that are drawn.
        unit: seconds of one unit of the axis ``x``.
    """
    found: list[tuple[str, float, float]] = []
    if (warmup := drawn(view.warmup_seconds)) is not None and warmup > 0:
        found.append(("warm-up", 0.0, min(warmup, end)))
    for kind, pauses in (view.timeline.pauses if view.timeline else {}).items():
        for pause in pauses:
            ends = [at for one in pause[:2] if (at := drawn(one)) is not None]
            if len(ends) == 2 and ends[0] < end:
                found.append((words(kind, 24), max(ends[0], 0.0), min(max(ends), end)))
    rows: list[Row] = [
        {
            "span": "warm-up" if index == 0 and name == "warm-up" else "pause",
            "x": drawn(start / unit),
            "x2": drawn(stop / unit),
            "name": name,
            "lasts": f"{parts.figure(stop - start)} s",
        }
        for index, (name, start, stop) in enumerate(found)
    ]
    firsts = [row for i, row in enumerate(rows) if row["name"] not in [r["name"] for r in rows[:i]]]
    places = [(x.place(row["x"]), row["name"]) for row in firsts]
    for row, place in zip(firsts, marks.spread(places, LANES), strict=True):
        row |= place
    return rows


def span_layers(x: Spec, height: int, first: int = 9) -> list[Spec]:
    """The shaded spans, with their names above the picture.

    Args:
        height: pixels that are shaded.
        first: pixels of the lowest line of names above the picture.
    """
    encoding: Spec = {
        "x": x,
        "x2": {"field": "x2"},
        "y": {"value": 0},
        "y2": {"value": height},
        "tooltip": marks.tooltip({"name": "what", "lasts": "lasts"}),
    }
    shades = [
        {
            "transform": where(f"datum.span === '{kind}'"),
            "mark": {"type": "rect", "style": style},
            "encoding": encoding,
        }
        for kind, style in (("warm-up", "band"), ("pause", "pause"))
    ]
    return [*shades, *marks.above("isValid(datum.span)", x, LANES, first)]


def _layers(x: Spec, y: Spec) -> list[Spec]:
    return [
        *span_layers(x, HEIGHT),
        {
            "transform": where("datum.mean === 1 && isValid(datum.y0)"),
            "mark": {"type": "rect", "style": "interval", "aria": False},
            "encoding": {"x": x, "x2": {"field": "x2"}, "y": y | {"field": "y0"}}
            | {"y2": {"field": "y1"}},
        },
        {
            "transform": where("datum.line === 1"),
            "mark": {"type": "line", "style": "measured", "interpolate": "step-before"},
            "encoding": {"x": x, "y": y},
        },
        {
            "transform": where("datum.mean === 1"),
            "mark": {"type": "rule", "style": "mean", "strokeDash": [6, 4]},
            "encoding": {"x": x, "x2": {"field": "x2"}, "y": y},
        },
    ]


def _heading(view: TrialView, known: Sequence[float], rate: Range | None) -> parts.Heading:
    where_ = f"{words(view.workload, 50)} on {words(view.offer, 70)}"
    low, high = parts.figure(min(known)), parts.figure(max(known))
    text = f"Throughput over time, from {low} to {high} samples/s."
    if rate is not None:
        text += f" The mean is {said(rate)} samples/s"
        text += f", without the first {parts.figure(view.warmup_seconds)} seconds of warm-up."
    lines = [] if rate is None else [f"Dashed: the mean, {said(rate)} samples/s."]
    pauses = sum(len(found) for found in view.timeline.pauses.values()) if view.timeline else 0
    if pauses:
        text += f" {plural(pauses, 'pause')} for evaluation and the like left out."
    return parts.Heading("Throughput", [where_, *lines], text)
