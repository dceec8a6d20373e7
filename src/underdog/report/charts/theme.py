"""How charts look, light and dark. A specification names styles; a theme says what they are.

The colours are those of Okabe and Ito (https://jfly.uni-koeln.de/color/), which people tell apart
whatever their colour vision. No chart relies on them: shape, fill, dash or a label says the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FONT = "system-ui, -apple-system, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif"
SMALLEST = 11  # pixels of any text

_RING = 0.62  # inner radius of a hollow symbol, of the outer one


def _hollow(corners: str, inner: str) -> str:
    """A symbol with a hole: the inner outline runs the other way round, so that it is not filled.

    One channel then carries shape and fill, in the chart as in its legend.
    """
    return f"M{corners}ZM{inner}Z"


CIRCLE = "circle"
RING = _hollow(
    "1,0A1,1,0,1,1,-1,0A1,1,0,1,1,1,0",
    f"{_RING},0A{_RING},{_RING},0,1,0,-{_RING},0A{_RING},{_RING},0,1,0,{_RING},0",
)
HOLLOW_DIAMOND = _hollow("0,-1.25L1.25,0L0,1.25L-1.25,0", "0,-.7L-.7,0L0,.7L.7,0")
HOLLOW_SQUARE = _hollow("-1,-1L1,-1L1,1L-1,1", "-.55,-.55L-.55,.55L.55,.55L.55,-.55")
HOLLOW_TRIANGLE = _hollow("0,1.2L-1.2,-.9L1.2,-.9", "0,.55L.6,-.55L-.6,-.55")
CROSS = (
    "M-.9,-.65L-.65,-.9L0,-.25L.65,-.9L.9,-.65L.25,0L.9,.65L.65,.9L0,.25L-.65,.9L-.9,.65L-.25,0Z"
)
STAR = "M0,-1.5L.4,-.5L1.45,-.45L.6,.2L.9,1.2L0,.6L-.9,1.2L-.6,.2L-1.45,-.45L-.4,-.5Z"

# one for each machine of a history, in this order, with the dashes of its line
SYMBOLS = [CIRCLE, HOLLOW_DIAMOND, "square", RING, "triangle-up", HOLLOW_SQUARE, "diamond", CROSS]
DASHES = [[1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [4, 6], [1, 3], [10, 3, 1, 3, 1, 3]]


@dataclass(frozen=True, slots=True)
class Palette:
    """The colours of one scheme. ``paper`` is behind everything, ``ink`` is text."""

    paper: str
    ink: str
    soft: str  # axis labels, notes
    line: str  # grid lines
    band: str  # areas behind data: an interval, a warm-up, a group
    faint: str  # data that are out
    series: tuple[str, ...]


LIGHT = Palette(
    paper="#ffffff",
    ink="#1c2126",
    soft="#555e68",
    line="#e3e7eb",
    band="#dde5ec",
    faint="#8d969f",
    series=(
        "#0072b2",
        "#c44e00",
        "#00805d",
        "#4a525a",
        "#a8508c",
        "#8a6d00",
        "#1f78ad",
        "#7d5ba6",
    ),
)
DARK = Palette(
    paper="#15191d",
    ink="#e8ebee",
    soft="#a9b2bb",
    line="#2c333a",
    band="#2e3a45",
    faint="#78828c",
    series=(
        "#56b4e9",
        "#f0913a",
        "#2fc497",
        "#b4bcc4",
        "#dd93bf",
        "#f0e442",
        "#8fcdf2",
        "#b9a1dc",
    ),
)


def palette(dark: bool = False) -> Palette:
    """The colours of a scheme."""
    return DARK if dark else LIGHT


def config(dark: bool = False) -> dict[str, Any]:
    """The Vega-Lite ``config`` of a scheme; every specification here relies on its styles."""
    colours = palette(dark)
    return {
        "background": colours.paper,
        "font": FONT,
        "padding": 8,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "frame": "group",
            "color": colours.ink,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleColor": colours.soft,
            "subtitleFontSize": 12,
            "subtitlePadding": 4,
            "offset": 10,
        },
        "axis": _axis(colours),
        "legend": {
            "orient": "top",
            "direction": "horizontal",
            "labelColor": colours.ink,
            "labelFontSize": 12,
            "labelLimit": 200,
            "symbolSize": 90,
            "title": None,
            "offset": 4,
            "columnPadding": 14,
        },
        "range": {"category": list(colours.series)},
        "style": _styles(colours),
    }


def _axis(colours: Palette) -> dict[str, Any]:
    return {
        "aria": False,  # what matters of it is in the description of the chart
        "labelColor": colours.soft,
        "labelFontSize": 12,
        "titleColor": colours.soft,
        "titleFontSize": 12,
        "titleFontWeight": 500,
        "titlePadding": 8,
        "gridColor": colours.line,
        "domain": False,
        "tickColor": colours.line,
        "tickSize": 4,
        "labelPadding": 4,
        "labelOverlap": "greedy",
        "labelSeparation": 6,
    }


def _styles(colours: Palette) -> dict[str, Any]:
    text = {"color": colours.soft, "fontSize": 12}
    first, second = colours.series[0], colours.series[1]
    return {
        "measured": {"color": first, "strokeWidth": 2},
        "predicted": {"color": second, "strokeWidth": 2},
        "out": {"color": colours.faint},
        "rule": {"color": colours.soft, "strokeWidth": 1},
        "band": {"color": colours.band},
        "interval": {"color": first, "opacity": 0.18},
        "mean": {"color": colours.ink, "strokeWidth": 1.5},
        "pause": {"color": colours.band, "stroke": colours.faint, "strokeDash": [2, 2]},
        "key": {"color": colours.paper, "fontSize": 12, "fontWeight": 600}
        | {"align": "center", "baseline": "middle"},
        "bracket": {"color": colours.ink, "strokeWidth": 2},
        "ink": {"color": colours.ink},
        "paper": {"color": colours.paper},
        "separator": {"stroke": colours.paper, "strokeWidth": 2},
        "name": {"color": colours.ink, "fontSize": 12, "align": "left", "baseline": "middle"},
        "figure": {**text, "align": "right", "baseline": "middle"},
        "note": {**text, "fontSize": SMALLEST, "align": "left", "baseline": "middle"},
        "halo": {  # behind a label, so that lines do not cross its letters
            "color": colours.paper,
            "stroke": colours.paper,
            "strokeWidth": 4,
            "strokeJoin": "round",
            "fontSize": 12,
            "baseline": "middle",
            "align": "left",
        },
    }
