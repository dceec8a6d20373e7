"""Where the time of a step goes: one stacked bar, and what each part of it is."""

from __future__ import annotations

from underdog.core.views.facts import BOUND_NAMES, PHASE_NAMES
from underdog.core.views.records import TrialView
from underdog.report.charts import marks, parts
from underdog.report.charts.marks import where
from underdog.report.charts.parts import Row, Spec, drawn, words
from underdog.report.charts.theme import DASHES

BAR = 34  # pixels, its height
ROW = 22  # pixels, of each line below it
LETTERED = 0.05  # share from which on a part has room for its letter
MOST = len(DASHES)  # parts with a colour each; more are one


def spec(view: TrialView) -> Spec | None:
    """The shares of the step time; None where they are not known.

    Each part has a letter that stands in the bar and before its name, so that no colour is needed.
    """
    shares = [(name, share) for name, share in view.phases.items() if (drawn(share) or 0) > 0]
    total = sum(share for _, share in shares)
    if not shares or drawn(total) is None:
        return None
    shares = _fewer(shares)
    rows: list[Row] = []
    begin = 0.0
    for index, (name, share) in enumerate(shares):
        part, letter = share / total, chr(ord("A") + index)
        rows.append(
            {
                "letter": letter,
                "x": drawn(begin),
                "x2": drawn(begin + part),
                "middle": drawn(begin + part / 2),
                "inside": letter if part >= LETTERED else None,
                "at": BAR + ROW * (index + 1),
                "label": PHASE_NAMES.get(name, words(name, 60)),
                "share": f"{100 * part:.1f} %",
            }
        )
        begin += part
    height = BAR + ROW * len(rows) + ROW // 2
    return parts.chart(_heading(view, rows), rows, _layers(height), height)


def _fewer(shares: list[tuple[str, float]]) -> list[tuple[str, float]]:
    if len(shares) <= MOST:
        return shares
    rest = sum(share for _, share in shares[MOST - 1 :])
    return [*shares[: MOST - 1], (f"{len(shares) - MOST + 1} others", rest)]


def _layers(height: int) -> list[Spec]:
    scale = {"domain": [0, 1], "nice": False}
    across = {"field": "x", "type": "quantitative", "scale": scale, "axis": None}
    down: Spec = {"type": "quantitative", "axis": None}
    down["scale"] = {"domain": [0, height], "reverse": True, "nice": False}
    letters = [chr(ord("A") + index) for index in range(MOST)]
    color = {"field": "letter", "type": "nominal", "legend": None, "scale": {"domain": letters}}
    at = {"field": "at", **down}
    tip = marks.tooltip({"label": "part", "share": "of the step time"})
    bar = {"y": {"datum": 0, **down}, "y2": {"datum": BAR}}
    return [
        {
            "mark": {"type": "rect", "style": "separator", "cornerRadius": 2},
            "encoding": {"x": across, "x2": {"field": "x2"}, **bar, "color": color, "tooltip": tip},
        },
        {
            "transform": where("isValid(datum.inside)"),
            "mark": {"type": "text", "style": "key", "aria": False},
            "encoding": {
                "x": across | {"field": "middle"},
                "y": {"datum": BAR / 2, **down},
                "text": {"field": "letter", "type": "nominal"},
            },
        },
        {
            "mark": {"type": "point", "shape": "square", "filled": True, "size": 220}
            | {"opacity": 1, "aria": False},
            "encoding": {"x": {"value": 8}, "y": at, "color": color},
        },
        *(
            {
                "mark": {"type": "text", "style": style, **mark},
                "encoding": {
                    "x": {"value": left},
                    "y": at,
                    "text": {"field": field, "type": "nominal"},
                },
            }
            for style, field, left, mark in (
                ("key", "letter", 8, {"aria": False}),
                ("figure", "share", 72, {}),
                ("name", "label", 82, {"limit": {"expr": "width - 82"}}),
            )
        ),
    ]


def _heading(view: TrialView, rows: list[Row]) -> parts.Heading:
    told = ", ".join(f"{row['label']} {row['share']}" for row in rows)
    bound = BOUND_NAMES.get(view.bound_by)
    lines = [f"{words(view.workload, 50)} on {words(view.offer, 70)}"]
    if bound:
        lines.append(f"It is bound by {bound}.")
    text = f"Where the time of a step goes: {told}." + (
        f" It is bound by {bound}." if bound else ""
    )
    return parts.Heading("Where the time of a step goes", lines, text)
