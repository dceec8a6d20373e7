"""A workload over time: what each machine gave for a dollar, and what happened meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from underdog.core.views.records import HistoryPoint, HistoryView, Marker, Range
from underdog.core.views.words import plural
from underdog.report.charts import marks, parts
from underdog.report.charts.marks import where
from underdog.report.charts.parts import Axis, Row, Spec, drawn, said, words
from underdog.report.charts.theme import DASHES, SYMBOLS

HEIGHT = 320
MOST = len(SYMBOLS)  # machines that can be told apart; the ones with the most points are drawn
LANES = 4  # lines of words above the picture
LONGEST = 28  # characters of the words at a rule
STROKES = {"change": [1, 0], "price": [6, 3], "version": [2, 3]}
DAY = 86_400_000.0  # milliseconds
EARLIEST, LATEST = -2e12, 8e12  # milliseconds since 1970 that a calendar has a place for

TOOLTIP = {
    "machine": "machine",
    "date": "measured",
    "value": "value",
    "rate": "samples/s",
    "price": "price",
    "version": "framework",
}


def spec(view: HistoryView) -> Spec | None:
    """Samples per dollar of each machine by date; None where nothing was measured.

    Samples per second where no price is known. The axis is logarithmic where values span more
    than a factor of ten. Changes of level, moves of prices and of versions are rules.
    """
    dollars = any(_known(point.samples_per_dollar) for point in view.points)
    name = "samples_per_dollar" if dollars else "samples_per_second"
    points = [
        (at, point)
        for point in view.points
        if (at := moment(point.at)) is not None and _known(getattr(point, name))
    ]
    if not points:
        return None
    machines = _machines([point for _, point in points])
    points = [(at, point) for at, point in points if point.machine in machines]
    y = parts.axis_of(end for _, point in points for end in _ends(getattr(point, name)))
    times = [at for at, _ in points]
    x = _span(times)
    rows = [
        _row(at, point, getattr(point, name), y, machines.index(point.machine))
        for at, point in points
    ]
    markers = _markers(view.markers, x, machines)
    unit = "samples/$" if dollars else "samples/s"
    heading = _heading(view, [point for _, point in points], machines, markers, unit)
    series = [_legend(machine, line) for line, machine in enumerate(machines)]
    layers = _layers(_dates(x), y.channel("y", unit), series)
    return parts.chart(heading, [*markers, *rows], layers, HEIGHT)


def moment(text: str) -> float | None:
    """Milliseconds since 1970 of an ISO 8601 text, UTC where it names no zone; None: not one."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    at = found if found.tzinfo else found.replace(tzinfo=UTC)
    try:
        told = at.timestamp() * 1000
    except (OverflowError, ValueError):
        return None
    return float(round(told)) if EARLIEST < told < LATEST else None


def _known(value: Range | None) -> bool:
    return value is not None and (drawn(value.value) or 0) > 0


def _ends(value: Range) -> list[float | None]:
    return [end for end in parts.interval(value) if end is not None and end > 0]


def _machines(points: Sequence[HistoryPoint]) -> list[str]:
    """The machines with the most points, in the order of their first."""
    many: dict[str, int] = {}
    for point in points:
        many[point.machine] = many.get(point.machine, 0) + 1
    kept = set(sorted(many, key=lambda machine: -many[machine])[:MOST])
    return [machine for machine in many if machine in kept]


def _legend(machine: str, line: int) -> str:
    """The name of a machine in the legend; the number keeps two alike apart."""
    return f"{line + 1}. {words(machine, 80)}"


def _span(times: Sequence[float]) -> Axis:
    low, high = min(times), max(times)
    room = max(0.04 * (high - low), DAY / 2 if high == low else 0.0)
    return Axis(low - room, high + room, False)


def _row(at: float, point: HistoryPoint, value: Range, y: Axis, line: int) -> Row:
    middle, low, high = parts.interval(value)
    price = drawn(point.price_per_hour)
    return {
        "series": _legend(point.machine, line),
        "line": line,
        "x": at,
        "y": middle,
        "y0": y.inside(low),
        "y1": y.inside(high),
        "machine": words(point.machine, 160),
        "date": _date(at),
        "value": said(value),
        "rate": said(point.samples_per_second),
        "price": "unknown" if price is None else f"${parts.figure(price)} an hour",
        "version": words(point.version or "", 60),
    }


def _date(at: float) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _markers(markers: Sequence[Marker], x: Axis, machines: Sequence[str]) -> list[Row]:
    """A rule for each thing that happened, with words as far as there is room for them."""
    found = [
        (at, marker)
        for marker in markers
        if (at := moment(marker.at)) is not None
        and x.low <= at <= x.high
        and marker.machine in machines
    ]
    rows: list[Row] = []
    for at, marker in found:
        same = next((r for r in rows if r["x"] == at and r["mark"] == marker.kind), None)
        if same is not None:
            same["what"] = words(f"{same['what']}; {marker.machine}: {marker.text}")
            continue
        rows.append(
            {
                "mark": marker.kind,
                "x": at,
                "date": _date(at),
                "what": words(f"{marker.machine}: {marker.text}"),
                "text": words(marker.text, LONGEST),
            }
        )
    texts = [(x.place(row["x"]), row.pop("text")) for row in rows]
    return [row | place for row, place in zip(rows, marks.spread(texts, LANES), strict=True)]


def _dates(x: Axis) -> Spec:
    """The axis of time, in UTC whatever the reader's clock says."""
    # as an expression: Vega-Lite would make dates of numbers, which the interpreter of a page that
    # forbids "eval" does not
    scale = {"type": "utc", "domain": {"expr": f"[{x.low:.0f}, {x.high:.0f}]"}, "nice": False}
    days = (x.high - x.low) / DAY
    shown = "%b %Y" if days > 90 else "%d %b" if days > 3 else "%d %b %H:%M"
    axis = {"title": None, "tickCount": 6, "grid": False, "format": shown}
    return {"field": "x", "type": "temporal", "scale": scale, "axis": axis}


def _layers(x: Spec, y: Spec, series: Sequence[str]) -> list[Spec]:
    legend: Spec = {"orient": "bottom", "offset": 14, "columns": {"expr": "width < 600 ? 1 : 3"}}
    legend |= {"labelLimit": 300, "symbolOpacity": 1}
    by_series = {"field": "series", "type": "nominal", "scale": {"domain": series}}
    color = by_series | {"legend": legend}
    shape = by_series | {
        "scale": {"domain": series, "range": SYMBOLS[: len(series)]},
        "legend": legend,
    }
    points = where("isValid(datum.series)")
    return [
        *_marker_layers(x),
        *(
            {
                "transform": where(f"datum.line === {index}"),
                "mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.7, "aria": False}
                | {"strokeDash": DASHES[index]},
                "encoding": {"x": x, "y": y, "color": color},
            }
            for index in range(len(series))
        ),
        {
            "transform": where("isValid(datum.y0)"),
            "mark": {"type": "rule", "strokeWidth": 1.5, "aria": False},
            "encoding": {"x": x, "y": y | {"field": "y0"}, "y2": {"field": "y1"}, "color": color},
        },
        {
            "transform": points,
            "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
            "encoding": {
                "x": x,
                "y": y,
                "color": color,
                "shape": shape,
                "tooltip": marks.tooltip(TOOLTIP),
            },
        },
    ]


def _marker_layers(x: Spec) -> list[Spec]:
    tip = marks.tooltip({"what": "what happened", "date": "at"})
    layers: list[Spec] = [
        {
            "transform": where(f"datum.mark === '{kind}'"),
            "mark": {"type": "rule", "style": "rule", "strokeDash": dash},
            "encoding": {"x": x, "tooltip": tip},
        }
        for kind, dash in STROKES.items()
    ]
    layers += [
        {
            "transform": where(f"isValid(datum.mark) && datum.lane === {lane}"),
            "mark": {"type": "rule", "style": "rule", "aria": False},
            "encoding": {"x": x, "y": {"value": 0}, "y2": {"value": -14 - marks.LANE * lane}},
        }
        for lane in range(LANES)
    ]
    return [*layers, *marks.above("isValid(datum.mark)", x, LANES)]


def _heading(
    view: HistoryView,
    points: Sequence[HistoryPoint],
    machines: Sequence[str],
    markers: Sequence[Row],
    unit: str,
) -> parts.Heading:
    title = "Throughput per dollar over time" if unit == "samples/$" else "Throughput over time"
    everything = {point.machine for point in view.points}
    lines = [words(view.workload, 60)]
    if len(everything) > len(machines):
        lines[0] += f": {len(machines)} of {plural(len(everything), 'machine')}, most measured"
    kinds = [kind for kind in STROKES if any(row["mark"] == kind for row in markers)]
    names = {"change": "level", "price": "price", "version": "version"}
    if kinds:
        dashes = {"change": "solid", "price": "dashed", "version": "dotted"}
        told = ", ".join(f"{names[kind]} ({dashes[kind]})" for kind in kinds)
        lines.append(f"Rules: {told}.")
    name = "samples_per_dollar" if unit == "samples/$" else "samples_per_second"
    last = points[-1]
    text = (
        f"{title}: {plural(len(points), 'measurement')} on {plural(len(machines), 'machine')}. "
        f"The last is {said(getattr(last, name))} {unit} on {words(last.machine, 100)}."
    )
    if markers:
        many = (f"{sum(row['mark'] == kind for row in markers)} of {names[kind]}" for kind in kinds)
        text += f" Changes: {', '.join(many)}."
    return parts.Heading(title, lines, text)
