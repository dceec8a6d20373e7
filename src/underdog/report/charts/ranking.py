"""The ranking: each offer with its interval, and which of them cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence

from underdog.core.views.ranking import name_of
from underdog.core.views.records import DecisionView, Point, Range
from underdog.core.views.words import plural
from underdog.report.charts import marks, parts
from underdog.report.charts.marks import where
from underdog.report.charts.parts import Axis, Row, Spec, drawn, said, words
from underdog.report.charts.theme import CIRCLE, HOLLOW_DIAMOND, RING

SHOWN = 20
LEAST_PREDICTED = 5  # of them, where there are so many
ROW = 38  # pixels: the name above, its mark below
NAME, MARK = 0.3, 0.72  # of a row, from its top
LANE = 7  # pixels between two brackets
LANES = 4  # brackets that may stand beside one another
KINDS = ["measured", "predicted", "from other workloads"]
SHAPES = [CIRCLE, HOLLOW_DIAMOND, RING]
FIGURES = 122  # pixels for the figures at the end of a row

TOOLTIP = {
    "offer": "offer",
    "rank": "rank",
    "kind": "state",
    "figure": "value",
    "tied": "not distinguishable from",
    "reason": "why",
}


def spec(view: DecisionView) -> Spec | None:
    """The first ranked offers by what was asked for, from the best down; None where none has it.

    The utility, or samples per dollar where the utility of none is known. The axis is logarithmic
    where values span more than a factor of ten.
    """
    ranked = sorted((p for p in view.points if p.rank is not None), key=lambda p: p.rank or 0)
    by_utility = any(_drawn(point.utility) for point in ranked)
    name = "utility" if by_utility else "samples_per_dollar"
    known = [point for point in ranked if _drawn(getattr(point, name))]
    if not known:
        return None
    points = _shown(known)
    values = [getattr(point, name) for point in points]
    x = parts.axis_of(end for value in values for end in _ends(value))
    rows = [
        _row(i, point, value, x)
        for i, (point, value) in enumerate(zip(points, values, strict=True))
    ]
    brackets = _brackets(view.groups, points)
    unit = words(view.unit or view.utility, 60) if by_utility else "samples/$"
    less = by_utility and view.better == "lower"
    title = f"{unit}, less is better" if less else unit
    heading = _heading(view, unit, known, values[0], brackets)
    lanes = 1 + max((row["lane"] for row in brackets), default=-1)
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    layers = _layers(x, title, lanes, len(points), kinds)
    return parts.chart(
        heading, [*_first(rows, len(points)), *brackets, *rows], layers, ROW * len(points)
    )


def _shown(known: Sequence[Point]) -> list[Point]:
    """The first of the ranking, with room for predicted ones, which stand behind the measured."""
    measured = [point for point in known if point.source == "measured"]
    others = [point for point in known if point.source != "measured"]
    room = SHOWN - min(LEAST_PREDICTED, len(others))
    shown = measured[:room]
    return sorted([*shown, *others[: SHOWN - len(shown)]], key=lambda point: point.rank or 0)


def _drawn(value: Range | None) -> bool:
    return value is not None and drawn(value.value) is not None


def _ends(value: Range) -> list[float | None]:
    """What of a range has to be on the axis; an end below zero is cut on a logarithmic one."""
    middle, low, high = parts.interval(value)
    if middle is not None and middle > 0 and low is not None and low <= 0:
        low = None
    return [middle, low, high]


def _row(index: int, point: Point, value: Range, x: Axis) -> Row:
    middle, low, high = parts.interval(value)
    name = name_of(point.offer, point.nodes)
    return {
        "kind": point.source
        if point.source in KINDS
        else KINDS[2 if point.source == "reference" else 1],
        "x": middle,
        "x0": x.inside(low),
        "x1": x.inside(high),
        "at": index + NAME,
        "y": index + MARK,
        "label": f"{point.rank}.\u2002{words(name, 120)}",
        "figure": said(value),
        "offer": words(name, 120),
        "rank": str(point.rank),
        "tied": words(", ".join(point.tied_with)),
        "reason": words(point.reason),
    }


def _first(rows: Sequence[Row], many: int) -> list[Row]:
    """The interval of the best, behind all others."""
    best = rows[0]
    if best["x0"] is None or many == 1:
        return []
    return [{"band": 1, "x0": best["x0"], "x1": best["x1"], "from": MARK, "to": many}]


def _brackets(groups: Sequence[Sequence[str]], points: Sequence[Point]) -> list[Row]:
    """One row per bracket and one per member; brackets that overlap stand beside one another."""
    places: dict[str, list[int]] = {}
    for index, point in enumerate(points):
        for name in {name_of(point.offer, point.nodes), point.offer}:
            places.setdefault(name, []).append(index)
    free = [-1] * LANES
    rows: list[Row] = []
    for group in groups:
        members = sorted({index for name in group for index in places.get(name, ())})
        if len(members) < 2:
            continue
        lane = next((i for i, end in enumerate(free) if members[0] > end), None)
        if lane is None:
            continue
        free[lane] = members[-1]
        rows.append(
            {"lane": lane, "from": members[0] + NAME - 0.12, "to": members[-1] + MARK + 0.12}
        )
        rows += [{"lane": lane, "member": 1, "at": index + NAME} for index in members]
    return rows


def _layers(x: Axis, title: str, lanes: int, many: int, kinds: Sequence[str]) -> list[Spec]:
    across, down = x.channel("x", title, orient="top", grid=True), marks.down(many)
    y, tip = {"field": "y", **down}, marks.tooltip(TOOLTIP)
    indent = LANE * lanes + (3 if lanes else 0)
    return [
        {
            "transform": where("datum.band === 1"),
            "mark": {"type": "rect", "style": "band", "aria": False},
            "encoding": {
                "x": across | {"field": "x0"},
                "x2": {"field": "x1"},
                "y": {"field": "from", **down},
                "y2": {"field": "to"},
            },
        },
        *_bracket_layers(down, lanes),
        *marks.captions({"field": "at", **down}, tip, FIGURES, indent),
        *(
            {
                "transform": where(f"datum.kind {same} 'measured' && isValid(datum.x0)"),
                "mark": {"type": "rule", "style": style, "aria": False},
                "encoding": {"x": across | {"field": "x0"}, "x2": {"field": "x1"}, "y": y},
            }
            for same, style in (("===", "measured"), ("!==", "predicted"))
        ),
        marks.symbols({"x": across, "y": y, "tooltip": tip}, KINDS, SHAPES, kinds, size=80),
    ]


def _bracket_layers(down: Spec, lanes: int) -> list[Spec]:
    layers: list[Spec] = []
    for lane in range(lanes):
        x = {"value": 2 + LANE * lane}
        layers += [
            {
                "transform": where(f"datum.lane === {lane} && isValid(datum.from)"),
                "mark": {"type": "rule", "style": "bracket", "aria": False},
                "encoding": {"x": x, "y": {"field": "from", **down}, "y2": {"field": "to"}},
            },
            {
                "transform": where(f"datum.lane === {lane} && datum.member === 1"),
                "mark": {"type": "point", "style": "bracket", "filled": True}
                | {"size": 36, "opacity": 1, "aria": False},
                "encoding": {"x": x, "y": {"field": "at", **down}},
            },
        ]
    return layers


def _heading(
    view: DecisionView, unit: str, known: Sequence[Point], value: Range, brackets: Sequence[Row]
) -> parts.Heading:
    subtitle = [words(view.workload, 60)]
    if len(known) > SHOWN:
        subtitle.append(f"The best {SHOWN} of {len(known):,}, measured and predicted.")
    if len(known) > 1:
        subtitle.append("Shaded: the 95 % interval of the first.")
    if brackets:
        subtitle.append("A bracket joins offers that cannot be told apart.")
    best = known[0]
    text = (
        f"{plural(len(known), 'offer')} ranked by {unit}, with 95 % intervals. The first is "
        f"{words(name_of(best.offer, best.nodes), 120)} with {said(value)}."
    )
    joined = [row for row in brackets if "member" not in row]
    if joined:
        text += f" {plural(len(joined), 'group')} of offers cannot be told apart."
    return parts.Heading(f"Ranked by {unit}", subtitle, text)
