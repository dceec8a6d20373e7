"""Charts as files."""

from __future__ import annotations

import struct
import sys
from xml.etree import ElementTree

import pytest
from chart_views import ODD, USUAL, decision, point, spec_of

from underdog.core.views.records import FunnelLine
from underdog.errors import MissingPackageError
from underdog.report.charts.theme import DARK, LIGHT
from underdog.report.images import image


def test_svg_is_well_formed_and_as_wide_as_asked() -> None:
    root = ElementTree.fromstring(image(spec_of("front", USUAL["front"]), "svg", width=640))
    assert root.tag.endswith("svg")
    assert float(root.attrib["width"]) == 640


def test_svg_has_the_description_for_who_does_not_see_it() -> None:
    spec = spec_of(
        "funnel", decision([], funnel=[FunnelLine(verdict="excluded", cause=ODD, offers=1)])
    )
    svg = ElementTree.fromstring(image(spec, "svg"))
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-label"] == spec["description"]


def test_png_has_two_pixels_for_one() -> None:
    png = image(spec_of("phases", USUAL["phases"]), "png", width=390)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">I", png[16:20])[0] == 780


def test_schemes() -> None:
    spec = spec_of("phases", USUAL["phases"])
    assert LIGHT.paper in image(spec, "svg").decode()
    assert DARK.paper in image(spec, "svg", dark=True).decode()


def test_names_are_text() -> None:
    view = decision([point(ODD, 1, 1, rank=1)], workload=ODD)
    svg = image(spec_of("ranking", view), "svg", width=2000).decode()
    assert "<script" not in svg
    texts = [element.text or "" for element in ElementTree.fromstring(svg).iter()]
    assert any("<script>" in text and "漢字" in text for text in texts)


def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingPackageError, match=r"underdog\[report\]"):
        image(spec_of("phases", USUAL["phases"]), "svg")
