"""Time against cost: what is measured, what is predicted, what is ruled out, and the front."""

from __future__ import annotations

import math
from collections.abc import Sequence

from underdog.core.views.ranking import name_of
from underdog.core.views.records import DecisionView, Point
from underdog.core.views.words import plural
from underdog.report.charts import marks, parts
from underdog.report.charts.marks import where
from underdog.report.charts.parts import Axis, Row, Spec, drawn, said, words
from underdog.report.charts.theme import CIRCLE, CROSS, HOLLOW_DIAMOND, RING

HEIGHT = 400
MEASURED, PREDICTED, REFERENCE, OUT = (
    "measured",
    "predicted",
    "from other workloads",
    "ruled out",
)
KINDS = [MEASURED, PREDICTED, REFERENCE, OUT]
SHAPES = [CIRCLE, HOLLOW_DIAMOND, RING, CROSS]
FAINT = 0.4
CELLS = 90  # along each axis: points of the crowd that would lie on one another are one mark
CROWD_FROM = 40  # offers that are not measured: from there on only the first of them stand out
STAND_OUT = 15
END = {"dy": -9, "dx": -4, "align": "right"}  # of a rule, above it
MOST_LABELS = 6
APART = (0.36, 0.06)  # of the width and height, so that two labels do not touch on a phone

TOOLTIP = {
    "offer": "offer",
    "state": "state",
    "time": "time",
    "cost": "cost",
    "price": "price",
    "reason": "why",
    "here": "also here",
}


def spec(view: DecisionView) -> Spec | None:
    """Hours against dollars of every candidate of which both are known; None where none is.

    Both axes are of the whole job, or of a million samples where its samples are not known; each
    is logarithmic where its values span more than a factor of ten. Of many offers those that were
    not measured are a crowd, drawn faint and without their intervals, but for the best of them.
    """
    points = [point for point in view.points if _position(point)]
    if not points:
        return None
    first = _leading(points)
    x, y = (_axis(points, first, name) for name in ("dollars", "hours"))
    rows = _thinned([_row(point, i in first, x, y) for i, point in enumerate(points)], x, y)
    _label(rows, x, y)
    of = "of the whole job" if view.samples else "per million samples"
    layers = _layers(x.channel("x", f"US dollars {of}"), y.channel("y", f"hours {of}"), rows)
    heading = parts.Heading("Time against cost", _subtitle(view), _description(view, points))
    return parts.chart(heading, [*_limits(view, x, y), *_fronts(points), *rows], layers, HEIGHT)


def _position(point: Point) -> bool:
    ends = (point.dollars, point.hours)
    return all(end is not None and (drawn(end.value) or 0) > 0 for end in ends)


def _leading(points: Sequence[Point]) -> set[int]:
    """Places of those that are drawn with their intervals."""
    guessed = [i for i, p in enumerate(points) if _kind(p) not in (MEASURED, OUT)]
    if len(guessed) > CROWD_FROM:
        by_rank = sorted(guessed, key=lambda i: points[i].rank or math.inf)
        guessed = [*by_rank[:STAND_OUT], *(i for i in guessed if points[i].pareto)]
    return {*guessed, *(i for i, p in enumerate(points) if _kind(p) == MEASURED)}


def _axis(points: Sequence[Point], first: set[int], name: str) -> Axis:
    values: list[float | None] = []
    for i, point in enumerate(points):
        middle, low, high = parts.interval(getattr(point, name))
        ends = (low, high) if i in first else ()
        values += [middle, *(end for end in ends if end is not None and end > 0)]
    return parts.axis_of(values)


def _row(point: Point, first: bool, x: Axis, y: Axis) -> Row:
    cost, cost_low, cost_high = parts.interval(point.dollars)
    hours, hours_low, hours_high = parts.interval(point.hours)
    row: Row = {
        "kind": _kind(point),
        "x": cost,
        "y": hours,
        "offer": words(name_of(point.offer, point.nodes), 120),
        "state": _state(point),
        "cost": said(point.dollars, "$"),
        "time": said(point.hours, after=" h"),
        "price": "",
        "reason": words(point.reason, 240 if first else 120),
        "here": "",
    }
    if point.price_per_hour is not None and drawn(point.price_per_hour):
        row["price"] = f"${parts.figure(point.price_per_hour)} an hour"
    if not first:
        return row | {"crowd": 1}
    row |= {"x0": x.inside(cost_low), "x1": x.inside(cost_high)}
    row |= {"y0": y.inside(hours_low), "y1": y.inside(hours_high)}
    if point.rank == 1 or (point.pareto and point.source == "measured"):
        shape = name_of(point.instance_type or point.offer, point.nodes)
        row["name"] = words(shape, 60) + (" spot" if point.purchase == "spot" else "")
        row["best"] = point.rank == 1
    return row


def _kind(point: Point) -> str:
    if point.verdict == "excluded":
        return OUT
    return {"measured": MEASURED, "reference": REFERENCE}.get(point.source, PREDICTED)


def _state(point: Point) -> str:
    rank = f", rank {point.rank}" if point.rank else ""
    front = ", on the Pareto front" if point.pareto else ""
    return f"{_kind(point)}{rank}{front}"


def _thinned(rows: Sequence[Row], x: Axis, y: Axis) -> list[Row]:
    """Rows in the order in which they are drawn, the measured last and so on top.

    Of a crowd the ones that would lie on one another are one row, which says how many it stands
    for.
    """
    cells: dict[tuple[str, int, int], tuple[Row, int]] = {}
    for row in rows:
        if "crowd" in row:
            place = (round(CELLS * x.place(row["x"])), round(CELLS * y.place(row["y"])))
            first, others = cells.get((row["kind"], *place), (row, -1))
            cells[(row["kind"], *place)] = (first, others + 1)
    crowd = [
        row | ({"here": f"{others:,} more"} if others else {}) for row, others in cells.values()
    ]
    leading = [row for row in rows if "crowd" not in row]
    return [*sorted(crowd, key=_depth), *sorted(leading, key=_depth)]


def _depth(row: Row) -> int:
    return -KINDS.index(row["kind"])


def _label(rows: Sequence[Row], x: Axis, y: Axis) -> None:
    """Give the best and the measured ones on the front their names, as far as there is room."""
    taken: list[tuple[float, float]] = []
    named = [row for row in rows if "name" in row]
    for row in sorted(named, key=lambda row: (not row["best"], row["y"])):
        name, best = row.pop("name"), row.pop("best")
        at = x.place(row["x"]), y.place(row["y"])
        free = all(
            abs(at[0] - one[0]) > APART[0] or abs(at[1] - one[1]) > APART[1] for one in taken
        )
        if free and len(taken) < MOST_LABELS:
            taken.append(at)
            row["label"] = f"best: {name}" if best else name
            row["side"] = "left" if at[0] > 0.5 else "right"


def _fronts(points: Sequence[Point]) -> list[Row]:
    """The steps of the front of the measured, and of all where the predictions reach further."""
    measured = _front([p for p in points if p.pareto and p.source == "measured"])
    everything = _front([p for p in points if p.pareto and p.verdict != "excluded"])
    rows = [{"line": "measured", "x": x, "y": y} for x, y in measured]
    if everything != measured:
        rows += [{"line": "predicted", "x": x, "y": y} for x, y in everything]
    return rows


def _front(points: Sequence[Point]) -> list[tuple[float, float]]:
    """Cost and time of those that no other one beats on both, the cheapest first."""
    places = sorted(
        (cost, hours)
        for point in points
        if (cost := parts.interval(point.dollars)[0]) is not None
        and (hours := parts.interval(point.hours)[0]) is not None
    )
    front: list[tuple[float, float]] = []
    for place in places:
        if not front or place[1] < front[-1][1]:
            front.append(place)
    return front


def _limits(view: DecisionView, x: Axis, y: Axis) -> list[Row]:
    rows: list[Row] = []
    budget, deadline = drawn(view.budget), drawn(view.deadline_hours)
    if budget is not None and x.low <= budget <= x.high:
        rows.append({"limit": "budget", "x": budget, "label": f"budget ${parts.figure(budget)}"})
    if deadline is not None and y.low <= deadline <= y.high:
        rows.append({"limit": "deadline", "y": deadline, "label": f"deadline {deadline:,g} h"})
    return rows


def _layers(x: Spec, y: Spec, rows: Sequence[Row]) -> list[Spec]:
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    places = {"x": x, "y": y, "tooltip": marks.tooltip(TOOLTIP)}
    crowd = marks.symbols(places, KINDS, SHAPES, kinds, size=30, opacity=FAINT)
    layers = [
        crowd | {"transform": where("datum.crowd === 1")},
        *_limit_layers(x, y),
    ]
    for kind, style, opacity in (
        (f"datum.kind !== '{MEASURED}'", "predicted", FAINT),
        (f"datum.kind === '{MEASURED}'", "measured", 0.8),
    ):
        mark = {"type": "rule", "style": style, "opacity": opacity, "strokeWidth": 1.5}
        for end, ends in (
            ("x0", {"x": x | {"field": "x0"}, "x2": {"field": "x1"}, "y": y}),
            ("y0", {"y": y | {"field": "y0"}, "y2": {"field": "y1"}, "x": x}),
        ):
            layers.append(
                {
                    "transform": where(f"isValid(datum.{end}) && {kind}"),
                    "mark": mark | {"aria": False},
                    "encoding": ends,
                }
            )
    for style, dash in (("predicted", [5, 4]), ("measured", [1, 0])):
        mark = {"type": "line", "style": style, "interpolate": "step-after", "strokeDash": dash}
        layers.append(
            {
                "transform": where(f"datum.line === '{style}'"),
                "mark": mark | {"aria": False},
                "encoding": {"x": x, "y": y},
            }
        )
    test = "isValid(datum.kind) && !isValid(datum.crowd)"
    points = marks.symbols(places, KINDS, SHAPES, kinds, size=80) | {"transform": where(test)}
    return [*layers, *marks.labels("halo", x, y), points, *marks.labels("name", x, y)]


def _limit_layers(x: Spec, y: Spec) -> list[Spec]:
    rule = {"type": "rule", "style": "rule", "strokeDash": [2, 3]}
    return [
        {"transform": where("datum.limit === 'budget'"), "mark": rule, "encoding": {"x": x}},
        {"transform": where("datum.limit === 'deadline'"), "mark": rule, "encoding": {"y": y}},
        *(
            {"transform": where(test), "mark": {"type": "text", "style": style, **mark}}
            | {"encoding": {**place, "text": marks.text("label")}}
            for test, mark, place in (
                ("datum.limit === 'budget'", {"dx": 4}, {"x": x, "y": {"value": 8}}),
                ("datum.limit === 'deadline'", END, {"x": {"value": "width"}, "y": y}),
            )
            for style in ("halo", "note")
        ),
    ]


def _subtitle(view: DecisionView) -> list[str]:
    job = f", {parts.figure(view.samples)} samples" if view.samples else ""
    return [f"{words(view.workload, 60)}{job}"]


def _description(view: DecisionView, points: Sequence[Point]) -> str:
    kinds = [_kind(point) for point in points]
    told = [f"{kinds.count(kind):,} {kind}" for kind in KINDS if kind in kinds]
    text = f"Time against cost of {plural(len(points), 'offer')}: {', '.join(told)}."
    best = next((point for point in points if point.rank == 1), None)
    if best is not None:
        text += (
            f" Best is {words(best.offer, 120)} with {said(best.hours, after=' hours')} and "
            f"{said(best.dollars, '$')}."
        )
    front = [p.offer for p in points if p.pareto and p.source == "measured"]
    if front:
        text += f" {plural(len(front), 'measured offer')} on the Pareto front."
    return text
