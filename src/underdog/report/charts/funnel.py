"""The ledger as a funnel: how many offers fell to which constraint, and what is left."""

from __future__ import annotations

from collections.abc import Sequence

from underdog.core.views.records import DecisionView, FunnelLine
from underdog.core.views.words import plural
from underdog.report.charts import marks, parts
from underdog.report.charts.parts import Row, Spec, words
from underdog.report.charts.theme import CIRCLE, CROSS, HOLLOW_DIAMOND, RING

ROW = 36  # pixels: the words above, the line below
FIGURES = 120  # pixels for the figures at the end of a row
NAME, MARK = 0.3, 0.72  # of a row, from its top
KINDS = ["measured", "not tested", "in doubt", "ruled out"]  # in the order of the colours
SHAPES = [CIRCLE, HOLLOW_DIAMOND, RING, CROSS]
ORDER = {"excluded": 0, "untested": 1, "beaten": 2, "tied": 3, "best": 4}
WORDS = {
    ("untested", "predicted"): "not tested, predicted",
    ("untested", "measured"): "measured, but the utility is unknown",
    ("untested", "not predicted"): "not tested, too little known to predict",
    ("beaten", "measured"): "beaten by a measurement",
    ("tied", "measured"): "measured, not distinguishable from the best",
    ("best", "measured"): "the best of the measured",
}


def spec(view: DecisionView) -> Spec | None:
    """How many offers have which verdict for which cause, those ruled out first; None without any.

    Lines lead from the left to the count, on a logarithmic axis where counts are far apart: their
    lengths compare orders of magnitude, the numbers are written out.
    """
    lines = [line for line in view.funnel if line.offers > 0]
    if not lines:
        return None
    lines.sort(key=lambda line: (ORDER.get(line.verdict, 1), -line.offers))
    total = sum(line.offers for line in lines)
    far = max(line.offers for line in lines) > parts.LOG_FROM * min(line.offers for line in lines)
    # one offer has a line, too
    x = parts.axis_of([0.6 if far else 0, *(line.offers for line in lines)])
    rows = [_row(index, line, total, x.low) for index, line in enumerate(lines)]
    heading = parts.Heading(
        f"Where {plural(total, 'offer')} went",
        [words(view.workload, 60)],
        _description(lines, total),
    )
    return parts.chart(heading, rows, _layers(x, len(rows)), ROW * len(rows))


def _row(index: int, line: FunnelLine, total: int, low: float) -> Row:
    return {
        "kind": _kind(line),
        "x": line.offers,
        "x0": low,
        "at": index + NAME,
        "y": index + MARK,
        "label": _words(line),
        "figure": f"{line.offers:,} ({_percent(100 * line.offers / total)})",
    }


def _percent(share: float) -> str:
    if share < 0.1:
        return "under 0.1 %"
    return f"{share:.1f} %" if share < 10 or share > 99 else f"{share:.0f} %"


def _kind(line: FunnelLine) -> str:
    if line.verdict == "excluded":
        return "ruled out"
    return "measured" if line.verdict in ("best", "tied", "beaten") else "not tested"


def _words(line: FunnelLine) -> str:
    cause = words(line.cause, 80)
    if line.verdict == "excluded":
        return f"ruled out by: {cause}"
    return WORDS.get((line.verdict, line.cause)) or f"{words(line.verdict, 40)}: {cause}"


def _layers(x: parts.Axis, many: int) -> list[Spec]:
    across, down = x.channel("x", "offers", orient="bottom"), marks.down(many)
    y = {"field": "y", **down}
    tip = marks.tooltip({"label": "cause", "figure": "offers"})
    points = marks.symbols({"x": across, "y": y, "tooltip": tip}, KINDS, SHAPES, size=110)
    return [
        {
            "mark": {"type": "rule", "strokeWidth": 4, "aria": False},
            "encoding": {"x": across | {"field": "x0"}, "x2": {"field": "x"}, "y": y}
            | {"color": points["encoding"]["color"]},
        },
        {  # no line shows through a hollow symbol
            "transform": marks.where("datum.kind === 'not tested'"),
            "mark": {"type": "point", "shape": "diamond", "style": "paper", "filled": True}
            | {"size": 150, "opacity": 1, "aria": False},
            "encoding": {"x": across, "y": y},
        },
        points,
        *marks.captions({"field": "at", **down}, tip, FIGURES),
    ]


def _description(lines: Sequence[FunnelLine], total: int) -> str:
    out = [line for line in lines if line.verdict == "excluded"]
    tested = sum(line.offers for line in lines if _kind(line) == "measured")
    text = f"Of {plural(total, 'offer')}, {sum(line.offers for line in out):,} are ruled out"
    if out:
        told = (f"{line.offers:,} by {words(line.cause, 60)}" for line in out[:4])
        text += f" ({', '.join(told)}{', and others' if len(out) > 4 else ''})"
    return f"{text}, and {tested:,} have a measurement."
