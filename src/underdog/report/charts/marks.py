"""Layers that several charts have: symbols, names in rows, labels, words above a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from underdog.report.charts.parts import Row, Spec

LETTER = 6.2 / 320  # width of a letter, of the width of a chart on a phone
LANE = 14  # pixels of a line of words above a picture


def where(test: str) -> list[Spec]:
    """A filter on rows; the test is ours and names fields only."""
    return [{"filter": test}]


def tooltip(fields: Mapping[str, str]) -> list[Spec]:
    """The tooltip of a mark: titles by field.

    All are texts that are ready to be read, and each row has them all, if only as an empty one:
    Vega says "undefined" of what is not there.
    """
    return [{"field": f, "type": "nominal", "title": title} for f, title in fields.items()]


def text(field: str) -> Spec:
    """The encoding of words by a field."""
    return {"field": field, "type": "nominal"}


def symbols(
    places: Mapping[str, Any],
    names: Sequence[str],
    shapes: Sequence[str],
    shown: Sequence[str] = (),
    **mark: Any,
) -> Spec:
    """Points of which shape and colour say the same; the colours are those of the theme in order.

    Args:
        places: the encodings of positions and the tooltip.
        names, shapes: what the field ``kind`` may be, and the symbol of each.
        shown: which of the names the legend has; none: no legend.
        mark: what else the mark has, such as its size.
    """
    legend = {"values": list(shown), "symbolOpacity": 1, "symbolSize": 80} if shown else None
    by_kind = text("kind") | {"legend": legend}
    return {
        "transform": where("isValid(datum.kind)"),
        "mark": {"type": "point", "filled": True, "opacity": 1, **mark},
        "encoding": {
            **places,
            "shape": by_kind | {"scale": {"domain": list(names), "range": list(shapes)}},
            "color": by_kind | {"scale": {"domain": list(names)}},
        },
    }


def down(many: int) -> Spec:
    """The encoding of a row's place from the top, of so many."""
    scale = {"domain": [0, many], "nice": False, "reverse": True, "zero": False}
    return {"type": "quantitative", "axis": None, "scale": scale}


def captions(at: Spec, tip: Sequence[Spec], figures: int, indent: int = 0) -> list[Spec]:
    """The ``label`` at the left of a row and its ``figure`` at the right.

    Args:
        at: the encoding of their height.
        figures: pixels that are kept for the figure.
        indent: pixels before the label.
    """
    test = where("isValid(datum.figure)")
    limit = {"expr": f"width - {figures + indent}"}
    return [
        {
            "transform": test,
            "mark": {"type": "text", "style": "name", "limit": limit},
            "encoding": {"x": {"value": indent}, "y": at, "text": text("label"), "tooltip": tip},
        },
        {
            "transform": test,
            "mark": {"type": "text", "style": "figure"},
            "encoding": {"x": {"value": "width"}, "y": at, "text": text("figure")},
        },
    ]


def labels(style: str, x: Spec, y: Spec) -> list[Spec]:
    """Texts of the field ``label`` beside their points, on the ``side`` that the row says.

    Args:
        style: ``halo``, the paper behind the letters, which is drawn before the points;
            ``name``, the letters, after them.
        x, y: positions.
    """
    return [
        {
            "transform": where(f"isValid(datum.label) && datum.side === '{side}'"),
            "mark": {"type": "text", "style": style, "align": align, "dx": dx, "dy": -9}
            | {"limit": {"expr": "min(260, 0.55 * width)"}},
            "encoding": {"x": x, "y": y, "text": {"field": "label", "type": "nominal"}},
        }
        for side, align, dx in (("right", "left", 9), ("left", "right", -9))
    ]


def spread(texts: Sequence[tuple[float, str]], lanes: int) -> list[Row]:
    """The line and side on which each text stands, so that none touches another on a phone.

    Args:
        texts: where each stands, 0 to 1 along the width, and what it says; in any order.
        lanes: how many lines there are.

    Returns:
        For each ``lane``, ``side`` and ``label``, or nothing where there is no room.
    """
    taken: list[list[tuple[float, float]]] = [[] for _ in range(lanes)]
    found: list[Row] = [{} for _ in texts]
    for index in sorted(range(len(texts)), key=lambda i: texts[i][0]):
        at, text = texts[index]
        length = (len(text) + 1) * LETTER
        side = "right" if at < 0.5 else "left"
        begin, end = (at, at + length) if side == "right" else (at - length, at)
        for lane, others in enumerate(taken):
            if begin > -0.02 and all(end <= one or begin >= other for one, other in others):
                others.append((begin, end))
                found[index] = {"lane": lane, "side": side, "label": text}
                break
    return found


def above(test: str, x: Spec, lanes: int, first: int = 9) -> list[Spec]:
    """Words above the picture, as ``spread`` laid them out.

    Args:
        test: which rows have some.
        first: pixels of the lowest line above the picture.
    """
    return [
        {
            "transform": where(f"{test} && datum.lane === {lane} && datum.side === '{side}'"),
            "mark": {"type": "text", "style": "note", "align": align, "dx": dx},
            "encoding": {
                "x": x,
                "y": {"value": -first - LANE * lane},
                "text": {"field": "label", "type": "nominal"},
            },
        }
        for lane in range(lanes)
        for side, align, dx in (("right", "left", 3), ("left", "right", -3))
    ]
