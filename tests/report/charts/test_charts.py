"""What every chart has: words for who does not see it, and no need of colours."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest
from chart_views import USUAL, compiled, decision, point, spec_of

import sample_views
from underdog.core.views.records import FunnelLine, Range, StudyView, TrialView
from underdog.report.charts import CHARTS, applicable
from underdog.report.charts.theme import DARK, DASHES, LIGHT, SMALLEST, SYMBOLS, Palette, config
from underdog.report.images import image

SHAPED = ("front", "ranking", "funnel", "search", "history")


@pytest.mark.parametrize("name", list(CHARTS))
def test_compiles_in_silence(name: str) -> None:
    vega, heard = compiled(spec_of(name, USUAL[name]))
    assert heard == ""
    assert vega["description"] == spec_of(name, USUAL[name])["description"]


@pytest.mark.parametrize("name", list(CHARTS))
def test_picture_has_numbers_in_place_and_text_that_can_be_read(name: str) -> None:
    svg = image(spec_of(name, USUAL[name]), "svg", width=390).decode()
    assert "NaN" not in svg
    assert "undefined" not in svg
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', svg)]
    assert sizes
    assert min(sizes) >= SMALLEST


@pytest.mark.parametrize("name", list(CHARTS))
def test_has_no_colour_of_its_own(name: str) -> None:
    spec = spec_of(name, USUAL[name])
    del spec["data"]
    assert not re.findall(r"#[0-9a-fA-F]{3,8}\b|rgb\(", str(spec))
    channels = [layer["encoding"].get("color", {}) for layer in spec["layer"]]
    assert not any("range" in channel.get("scale", {}) for channel in channels)


@pytest.mark.parametrize("name", SHAPED)
def test_shape_says_what_colour_says(name: str) -> None:
    """In grey, and to the colour blind: one shape for each value of the field that has colours."""
    layers = [
        layer["encoding"]
        for layer in spec_of(name, USUAL[name])["layer"]
        if "color" in layer["encoding"]
    ]
    assert layers
    fields = {encoding["color"]["field"] for encoding in layers}
    shapes = [encoding["shape"] for encoding in layers if "shape" in encoding]
    assert {shape["field"] for shape in shapes} == fields
    for shape in shapes:
        names, forms = shape["scale"].get("domain"), shape["scale"]["range"]
        assert len(set(forms)) == len(forms)
        assert names is None or len(names) == len(forms)


@pytest.mark.parametrize("name", ["front", "ranking"])
def test_measured_is_filled_and_predicted_is_not(name: str) -> None:
    shapes = [
        layer["encoding"]["shape"]["scale"]
        for layer in spec_of(name, USUAL[name])["layer"]
        if "shape" in layer["encoding"]
    ]
    form = dict(zip(shapes[0]["domain"], shapes[0]["range"], strict=True))
    assert form["measured"] == "circle"
    assert form["predicted"].count("Z") == 2  # an outline and a hole in it


def test_lines_and_symbols_of_a_history_differ_without_colour() -> None:
    assert len({str(dash) for dash in DASHES}) == len(SYMBOLS) == len(set(SYMBOLS))


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast(look: Palette) -> None:
    """WCAG 2.2: text 4.5 to 1, also that on coloured areas; what is drawn 3 to 1."""
    for text in (look.ink, look.soft):
        assert contrast(text, look.paper) >= 4.5
        assert contrast(text, look.band) >= 4.5
    for colour in look.series:
        assert contrast(colour, look.paper) >= 4.5  # a letter stands on it
    assert contrast(look.faint, look.paper) >= 3


def contrast(one: str, other: str) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio"""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_both_schemes_have_the_same_styles() -> None:
    light, dark = config(), config(dark=True)
    assert light["style"].keys() == dark["style"].keys()
    assert light["background"] != dark["background"]


@pytest.mark.parametrize("name", list(CHARTS))
def test_styles_are_those_of_the_theme(name: str) -> None:
    marks = [layer["mark"] for layer in spec_of(name, USUAL[name])["layer"]]
    assert {mark["style"] for mark in marks if "style" in mark} <= config()["style"].keys()


def test_page_has_its_charts_in_order() -> None:
    page = sample_views.page()
    names = list(applicable(page))
    assert names[:4] == ["front", "ranking", "funnel", "search"]
    assert names[-1] == "history"
    assert f"throughput:{page.trials[0].id}" in names


def test_page_with_one_trial_names_its_charts_plainly() -> None:
    page = dataclasses.replace(
        sample_views.page(), decision=None, study=None, history=None, trials=[USUAL["phases"]]
    )
    assert list(applicable(page)) == ["throughput", "phases", "machine"]


def empty_trial() -> TrialView:
    return TrialView(id="t", workload="w", offer="o", status="failed", headline="")


@pytest.mark.parametrize(
    ("name", "view"),
    [
        ("front", decision([])),
        ("ranking", decision([])),
        ("funnel", decision([])),
        ("search", dataclasses.replace(USUAL["search"], tests=[])),
        ("throughput", empty_trial()),
        ("phases", empty_trial()),
        ("machine", empty_trial()),
        ("history", dataclasses.replace(USUAL["history"], points=[])),
    ],
)
def test_nothing_to_draw_is_no_chart(name: str, view: Any) -> None:
    assert CHARTS[name](view) is None


def lone(value: float) -> Range:
    return Range(value=value)


@pytest.mark.parametrize("value", [1e-9, 1.0, 1e12])
def test_one_point_without_an_interval(value: float) -> None:
    one = dataclasses.replace(
        point("a", 1, 1, rank=1, pareto=True),
        hours=lone(value),
        dollars=lone(value),
        utility=lone(value),
    )
    view = decision([one], funnel=[FunnelLine(verdict="best", cause="measured", offers=1)])
    for name in ("front", "ranking", "funnel"):
        spec = spec_of(name, view)
        assert compiled(spec)[1] == ""
        assert "NaN" not in image(spec, "svg").decode()


def test_all_the_same_value() -> None:
    view = decision([point(f"offer {i}", 2, 3, rank=i + 1, pareto=True) for i in range(30)])
    for name in ("front", "ranking"):
        assert compiled(spec_of(name, view))[1] == ""


def test_study_that_costs_nothing() -> None:
    free = [dataclasses.replace(t, spent=0.0, dollars=None) for t in USUAL["search"].tests]
    view: StudyView = dataclasses.replace(USUAL["search"], tests=free)
    spec = spec_of("search", view)
    assert compiled(spec)[1] == ""
    assert {row["x"] for row in spec["data"]["values"] if "test" in row} == {t.number for t in free}


def test_a_crowd_of_offers_stays_small() -> None:
    many = [
        point(
            f"aws/us-east-1/m{i}.large/on-demand",
            1 + i % 37,
            1 + i % 41,
            source="predicted",
            rank=i + 2,
        )
        for i in range(1500)
    ]
    spec = spec_of("front", decision([point("best", 5, 5, rank=1), *many]))
    assert compiled(spec)[1] == ""
    assert len(str(spec)) < 700_000
    assert "here" in str(spec)  # marks that stand for several
