"""Views to draw: plain ones, odd ones, and any that hypothesis thinks of."""

from __future__ import annotations

import dataclasses
import math
import os
import sys
import tempfile
from typing import Any

import pytest
from hypothesis import strategies as st

import sample_views
from underdog.core.views.records import (
    DecisionView,
    FunnelLine,
    HistoryPoint,
    HistoryView,
    Marker,
    Point,
    Range,
    StudyView,
    TestLine,
    TrialView,
)
from underdog.model import Estimate, Timeline
from underdog.report.charts import CHARTS
from underdog.report.charts.theme import config

ODD = (
    "<script>alert('x')</script> & \"quotes\" \\back \\n {{x}} datum['x'] a.b[0] %d ${y} 漢字 שלום"
)
KEPT = ("verdict", "source", "purchase", "status", "better", "kind", "at", "bound_by")
NAMES = (ODD, "", ".", "[0]", "a'b", 'a"b', "\\", "x" * 500, "नमस्ते", "مرحبا", "\x00\x1b[1m\n\ud800")


def compiled(spec: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The Vega of a specification in our look, and what the compiler said meanwhile."""
    vl_convert = pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    sys.stderr.flush()
    with tempfile.TemporaryFile() as heard:
        kept = os.dup(2)
        os.dup2(heard.fileno(), 2)
        try:
            vega = vl_convert.vegalite_to_vega(spec, config=config(), show_warnings=True)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        heard.seek(0)
        return vega, heard.read().decode()


def spec_of(name: str, view: Any) -> dict[str, Any]:
    """The specification of a view that has something to draw."""
    spec = CHARTS[name](view)
    assert spec is not None
    return spec


def rows(spec: dict[str, Any], field: str) -> list[dict[str, Any]]:
    """The rows of a chart that have a field."""
    return [row for row in spec["data"]["values"] if field in row]


def renamed(view: Any, text: str) -> Any:
    """A view of which every text that a user may have written is another one."""
    if isinstance(view, list):
        return [renamed(one, text) for one in view]
    if not dataclasses.is_dataclass(view) or isinstance(view, type):
        return view
    changed = {}
    for field in dataclasses.fields(view):
        value = getattr(view, field.name)
        free = isinstance(value, str) and field.name not in KEPT
        changed[field.name] = text if free else renamed(value, text)
    return dataclasses.replace(view, **changed)


def around(value: float, share: float = 0.1) -> Range:
    return Range(value=value, low=value * (1 - share), high=value * (1 + share))


def point(offer: str, hours: float, dollars: float, **more: Any) -> Point:
    more.setdefault("source", "measured")
    return Point(
        offer=offer,
        hours=around(hours),
        dollars=around(dollars),
        utility=around(1000 / dollars),
        samples_per_dollar=around(1000 / dollars),
        price_per_hour=dollars / hours,
        **more,
    )


def decision(points: list[Point], **more: Any) -> DecisionView:
    return DecisionView(
        id="d1",
        workload=more.pop("workload", "train_gpt"),
        created_at="2026-11-30T12:00:00Z",
        expires_at="2026-12-30T12:00:00Z",
        utility="samples_per_dollar",
        unit=more.pop("unit", "samples/$"),
        better=more.pop("better", "higher"),
        answer="",
        points=points,
        **more,
    )


USUAL = {
    "front": sample_views.decision_view(),
    "ranking": sample_views.decision_view(),
    "funnel": sample_views.decision_view(),
    "search": sample_views.study_view(),
    "throughput": sample_views.trial_view(),
    "phases": sample_views.trial_view(),
    "machine": sample_views.trial_view(),
    "history": sample_views.history_view(),
}

texts = st.sampled_from(NAMES) | st.text(max_size=30)
wild = st.floats() | st.sampled_from([0.0, -1.0, 1e-9, 1e12, 1e-320, 1e308, math.nan, math.inf])
tame = st.floats(1e-9, 1e12)
numbers_ = tame | wild
maybe = st.none() | numbers_
ranges = st.builds(Range, value=numbers_, low=maybe, high=maybe)
points_ = st.builds(
    Point,
    offer=texts,
    instance_type=texts,
    nodes=st.integers(1, 4),
    purchase=st.sampled_from(["on-demand", "spot"]),
    price_per_hour=maybe,
    rank=st.none() | st.integers(1, 9),
    verdict=st.sampled_from(["best", "tied", "beaten", "excluded", "untested"]),
    reason=texts,
    source=st.sampled_from(["measured", "predicted", "reference", "unknown"]),
    samples_per_dollar=st.none() | ranges,
    hours=st.none() | ranges,
    dollars=st.none() | ranges,
    utility=st.none() | ranges,
    pareto=st.booleans(),
    tied_with=st.lists(texts, max_size=3),
)
funnel_lines = st.builds(
    FunnelLine,
    verdict=st.sampled_from(["best", "tied", "beaten", "excluded", "untested", "odd"]),
    cause=texts,
    offers=st.integers(0, 10**6),
)
decisions = st.builds(
    DecisionView,
    id=texts,
    workload=texts,
    created_at=texts,
    expires_at=texts,
    utility=texts,
    unit=texts,
    better=st.sampled_from(["higher", "lower"]),
    answer=texts,
    samples=maybe,
    deadline_hours=maybe,
    budget=maybe,
    points=st.lists(points_, max_size=8),
    groups=st.lists(st.lists(texts, max_size=4), max_size=3),
    funnel=st.lists(funnel_lines, max_size=6),
)
estimates = st.builds(Estimate, value=numbers_, low=numbers_, high=numbers_, n=st.integers(0, 9))
statuses = st.sampled_from(["ok", "running", "stopped", "interrupted", "failed", "odd"])
studies = st.builds(
    StudyView,
    id=texts,
    workload=texts,
    utility=texts,
    unit=texts,
    better=st.sampled_from(["higher", "lower"]),
    tests=st.lists(
        st.builds(
            TestLine,
            number=st.integers(0, 50),
            trial=texts,
            offer=texts,
            knobs=st.dictionaries(texts, texts, max_size=2),
            status=statuses,
            reason=st.none() | texts,
            why=st.none() | texts,
            rate=st.none() | estimates,
            utility=maybe,
            dollars=maybe,
            saved=maybe,
            spent=numbers_,
            best=st.none() | texts,
            best_utility=maybe,
        ),
        max_size=6,
    ),
    spent=numbers_,
    saved=numbers_,
    best=st.none() | texts,
    best_utility=maybe,
)
columns = st.lists(maybe, max_size=5)
timelines = st.builds(
    Timeline,
    steps=st.fixed_dictionaries({}, optional={"seconds": columns, "samples_per_second": columns}),
    usage=st.fixed_dictionaries(
        {}, optional={"seconds": columns, "cores": columns, "host_cores": columns}
    ),
    pauses=st.dictionaries(
        texts, st.lists(st.lists(wild | tame, max_size=3), max_size=3), max_size=2
    ),
)
trials = st.builds(
    TrialView,
    id=texts,
    workload=texts,
    offer=texts,
    status=statuses,
    headline=texts,
    rate=st.none() | estimates,
    warmup_seconds=numbers_,
    phases=st.dictionaries(texts, numbers_, max_size=12),
    bound_by=texts,
    timeline=st.none() | timelines,
)
moments = texts | st.datetimes().map(lambda at: at.isoformat())
histories = st.builds(
    HistoryView,
    workload=texts,
    points=st.lists(
        st.builds(
            HistoryPoint,
            trial=texts,
            at=moments,
            machine=texts,
            samples_per_second=st.none() | ranges,
            price_per_hour=maybe,
            samples_per_dollar=st.none() | ranges,
            version=st.none() | texts,
        ),
        max_size=12,
    ),
    markers=st.lists(
        st.builds(
            Marker,
            at=moments,
            machine=texts,
            kind=st.sampled_from(["change", "price", "version"]),
            text=texts,
        ),
        max_size=4,
    ),
)
ANY = {
    "front": decisions,
    "ranking": decisions,
    "funnel": decisions,
    "search": studies,
    "throughput": trials,
    "phases": trials,
    "machine": trials,
    "history": histories,
}
