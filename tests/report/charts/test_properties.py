"""Whatever a store holds, a chart is finite JSON, compiles in silence, and text stays data."""

from __future__ import annotations

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from chart_views import ANY, ODD, USUAL, compiled, renamed, spec_of
from hypothesis import HealthCheck, given, settings

from underdog.report.charts import CHARTS
from underdog.report.images import image


@pytest.mark.parametrize("name", list(CHARTS))
def test_any_view_makes_a_chart_that_compiles_in_silence(name: str) -> None:
    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(view=ANY[name])
    def holds(view: Any) -> None:
        spec = CHARTS[name](view)
        if spec is not None:
            json.dumps(spec, allow_nan=False, ensure_ascii=False).encode()
            assert compiled(spec)[1] == ""

    holds()


@pytest.mark.parametrize("name", list(CHARTS))
def test_text_of_users_is_only_data(name: str) -> None:
    """It stands in rows, titles and the description: never in an expression or a field's name."""
    spec = spec_of(name, renamed(USUAL[name], ODD))
    places = [spec.pop(key) for key in ("data", "title", "description")]
    assert any("<script>" in json.dumps(place) for place in places)
    for channel in channels(spec):
        # the title of an axis is a utility that has no unit; machines are the domain of a scale
        (channel.get("axis") or {}).pop("title", None)
        channel.get("scale", {}).pop("domain", None)
    left = json.dumps(spec)
    assert "script" not in left
    assert "alert" not in left


def channels(spec: dict[str, Any]) -> list[dict[str, Any]]:
    """The encodings of all layers."""
    found = [channel for layer in spec["layer"] for channel in layer["encoding"].values()]
    return [channel for channel in found if isinstance(channel, dict)]


@pytest.mark.parametrize("name", list(CHARTS))
def test_odd_names_are_drawn_as_they_are(name: str) -> None:
    spec = spec_of(name, renamed(USUAL[name], ODD))
    svg = image(spec, "svg", width=700).decode()
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert "NaN" not in svg
    assert "undefined" not in svg
