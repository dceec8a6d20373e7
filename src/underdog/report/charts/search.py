"""A search: every test where it stands in dollars, and the best that was found so far."""

from __future__ import annotations

from collections.abc import Sequence

from underdog.core.views.facts import STATUS_WORDS
from underdog.core.views.records import Range, StudyView, TestLine
from underdog.core.views.words import plural
from underdog.report.charts import marks, parts
from underdog.report.charts.marks import where
from underdog.report.charts.parts import Axis, Row, Spec, drawn, said, words
from underdog.report.charts.theme import CIRCLE, CROSS, HOLLOW_SQUARE, HOLLOW_TRIANGLE, RING

HEIGHT = 340
MEASURED, STOPPED, EARLIER, FAILED, RUNNING = (
    "measured",
    "stopped early",
    "from before",
    "failed",
    "running",
)
KINDS = [MEASURED, STOPPED, EARLIER, FAILED, RUNNING]  # in the order of the colours
SHAPES = [CIRCLE, HOLLOW_TRIANGLE, HOLLOW_SQUARE, CROSS, RING]
NUMBERED = 30  # tests: from there on only those that found a better offer have their number

TOOLTIP = {
    "test": "test",
    "offer": "offer",
    "knobs": "setting",
    "state": "state",
    "rate": "samples/s",
    "value": "value",
    "cost": "cost",
    "saved": "saved",
    "best": "best so far",
    "why": "asked for, as",
    "reason": "reason",
}


def spec(view: StudyView) -> Spec | None:
    """The utility of every test against the dollars spent up to it; None where nothing was tested.

    The steps are the best so far. A test without a value stands at the lower edge. A dotted line
    behind a test that was stopped early is what it would have cost besides. Where no price is
    known, the tests are drawn against their number.
    """
    if not view.tests:
        return None
    by_cost = any((drawn(test.spent) or 0) > 0 for test in view.tests)
    values = [drawn(test.utility) for test in view.tests]
    bests = [drawn(test.best_utility) for test in view.tests]
    y = parts.axis_of([*values, *bests])
    spent = [_spent(test, by_cost) for test in view.tests]
    rows = [_row(test, at, y, view) for test, at in zip(view.tests, spent, strict=True)]
    tails = _tails(rows, view.tests) if by_cost else []
    x = parts.axis_of([0.0, *spent, *(row["x2"] for row in tails)], zero=True, log=False)
    _label(rows, view, x, y)
    unit = words(view.unit or view.utility, 60)
    less = ", less is better" if view.better == "lower" else ""
    layers = _layers(
        x.channel("x", "US dollars spent on tests" if by_cost else "tests"),
        y.channel("y", f"{unit}{less}"),
        [kind for kind in KINDS if any(row["kind"] == kind for row in rows)],
        view.better == "lower",
    )
    data = [*_steps(bests, spent), *tails, *rows]
    return parts.chart(_heading(view, unit), data, layers, HEIGHT)


def _spent(test: TestLine, by_cost: bool) -> float:
    return drawn(test.spent) or 0.0 if by_cost else float(test.number)


def _row(test: TestLine, at: float, y: Axis, view: StudyView) -> Row:
    value = drawn(test.utility)
    unit = f" {words(view.unit, 60)}" if view.unit else ""
    row: Row = {
        "kind": _kind(test),
        "x": at,
        "y": y.low if value is None else value,
        "number": str(test.number) if test.number else "",
        "test": str(test.number) if test.number else "from before this study",
        "offer": words(test.offer, 120),
        "knobs": words(", ".join(f"{name}={value}" for name, value in test.knobs.items()), 160),
        "state": STATUS_WORDS.get(test.status, words(test.status, 40)),
        "value": "none" if value is None else f"{parts.figure(value)}{unit}",
        "cost": "" if drawn(test.dollars) is None else f"${parts.figure(test.dollars or 0)}",
        "saved": f"${parts.figure(test.saved or 0)}" if drawn(test.saved) else "",
        "rate": said(_range(test)),
        "best": "",
        "why": words(test.why or ""),
        "reason": words(test.reason or ""),
    }
    if test.best is not None and drawn(test.best_utility) is not None:
        row["best"] = f"{parts.figure(test.best_utility or 0)}{unit} on {words(test.best, 120)}"
    return row


def _range(test: TestLine) -> Range | None:
    rate = test.rate
    return None if rate is None else Range(value=rate.value, low=rate.low, high=rate.high)


def _kind(test: TestLine) -> str:
    if test.number == 0:
        return EARLIER
    if test.status in ("ok", "running"):
        return MEASURED if test.status == "ok" else RUNNING
    stopped = test.status == "stopped" or test.utility is not None
    return STOPPED if stopped else FAILED


def _label(rows: Sequence[Row], view: StudyView, x: Axis, y: Axis) -> None:
    """Give the tests their numbers, and the one that found the best its offer."""
    best: float | None = None
    sign = 1 if view.better == "higher" else -1
    found: Row | None = None
    for row, test in zip(rows, view.tests, strict=True):
        value = drawn(test.utility)
        better = value is not None and (best is None or sign * value > sign * best)
        if better:
            best, found = value, row
        if not better and len(rows) > NUMBERED:
            row.pop("number")
    if found is not None:
        number_ = found.pop("number", "")
        found["label"] = f"{number_}: {found['offer']}" if number_ else found["offer"]
        found["side"] = "left" if x.place(found["x"]) > 0.5 else "right"


def _steps(bests: Sequence[float | None], spent: Sequence[float]) -> list[Row]:
    """The best so far: it holds from the end of its test to the end of all."""
    steps: list[Row] = []
    for best, at in zip(bests, spent, strict=True):
        if best is not None and (not steps or best != steps[-1]["y"]):
            steps.append({"line": 1, "x": at, "y": best})
    return [*steps, steps[-1] | {"x": max(spent)}] if steps else []


def _tails(rows: Sequence[Row], tests: Sequence[TestLine]) -> list[Row]:
    """What tests that were stopped early would have cost besides."""
    saved = [drawn(test.saved) or 0.0 for test in tests]
    return [
        {"tail": 1, "x": row["x"], "x2": end, "y": row["y"]}
        for row, more in zip(rows, saved, strict=True)
        if more > 0 and (end := drawn(row["x"] + more)) is not None
    ]


def _layers(x: Spec, y: Spec, kinds: Sequence[str], falling: bool) -> list[Spec]:
    places = {"x": x, "y": y, "tooltip": marks.tooltip(TOOLTIP)}
    return [
        {
            "transform": where("datum.line === 1"),
            "mark": {"type": "line", "style": "measured", "interpolate": "step-after"}
            | {"aria": False},
            "encoding": {"x": x, "y": y},
        },
        {
            "transform": where("datum.tail === 1"),
            "mark": {"type": "rule", "style": "predicted", "strokeDash": [2, 3], "aria": False},
            "encoding": {"x": x, "x2": {"field": "x2"}, "y": y},
        },
        *marks.labels("halo", x, y),
        marks.symbols(places, KINDS, SHAPES, kinds, size=80),
        {
            "transform": where("isValid(datum.number)"),
            "mark": {"type": "text", "style": "note", "align": "center", "aria": False}
            | {"dy": 13 if falling else -13},
            "encoding": {"x": x, "y": y, "text": marks.text("number")},
        },
        *marks.labels("name", x, y),
    ]


def _heading(view: StudyView, unit: str) -> parts.Heading:
    own = [test for test in view.tests if test.number]
    subtitle = f"{plural(len(own), 'test')}, ${parts.figure(view.spent)} spent"
    saved = drawn(view.saved)
    told = f"Stopping losers early saved ${parts.figure(saved)} (dotted)." if saved else ""
    text = f"Best so far against dollars spent over {plural(len(own), 'test')}"
    text += f", ${parts.figure(view.spent)} in all."
    if view.best is not None and drawn(view.best_utility) is not None:
        best = f"{parts.figure(view.best_utility or 0)} {unit} on {words(view.best, 120)}"
        text += f" The best found is {best}."
    failed = sum(_kind(test) == FAILED for test in own)
    if failed:
        text += f" {failed} failed."
    if saved:
        text += f" Stopping losers early saved ${parts.figure(saved)}."
    lines = [f"{words(view.workload, 60)}: {subtitle}", "The line is the best so far."]
    lines += [told] if told else []
    return parts.Heading("The search", lines, text)
