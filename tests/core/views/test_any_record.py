"""Whatever a store holds can be looked at, and its views hold no number that is none."""

from __future__ import annotations

import dataclasses
import io
import math
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from hostile import decisions, texts, trials
from underdog.core.views.decision import decision_view
from underdog.core.views.history import history_view
from underdog.core.views.page import Page
from underdog.core.views.records import Range
from underdog.core.views.study import study_view
from underdog.core.views.trial import trial_view
from underdog.core.views.words import amount, brief, finite, inverse, plain, range_of, times
from underdog.model import Decision, Trial
from underdog.report.page_json import to_json
from underdog.report.page_markdown import to_markdown
from underdog.report.show import Style, show_text

few = settings(max_examples=int(os.environ.get("UNDERDOG_EXAMPLES", "25")))


def ranges(value: Any) -> Iterator[Range]:
    if isinstance(value, Range):
        yield value
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from ranges(getattr(value, field.name))
    elif isinstance(value, list):
        for item in value:
            yield from ranges(item)


def check(view: Any, **page: Any) -> None:
    """It can be written in every form, and its ranges hold."""
    for found in ranges(view):
        assert math.isfinite(found.value)
        if found.low is not None or found.high is not None:
            assert found.low is not None
            assert found.high is not None
            assert found.low <= found.value <= found.high
    whole = Page(title="t", created_at="2026-08-01T00:00:00+00:00", **page)
    to_json(whole)
    markdown = to_markdown(whole)
    assert "\x1b" not in markdown
    assert "<script" not in markdown
    for style in (Style(40), Style(140), Style(60, plain=True)):
        console = Console(file=io.StringIO(), width=style.width, color_system=None)
        with console.capture() as captured:
            console.print(show_text(view, style))
        told = style.text(captured.get())
        assert "\x1b" not in told
        assert "\u202e" not in told
        if style.plain:
            assert told.isascii()


@few
@given(trials)
def test_any_trial(trial: Trial) -> None:
    view = trial_view(trial)
    check(view, trials=[view])


@few
@given(decisions)
def test_any_decision(decision: Decision) -> None:
    view = decision_view(decision)
    assert view.answer
    check(view, decision=view)


@few
@given(texts, st.lists(trials, max_size=3), st.none() | decisions)
def test_any_study(id: str, tried: list[Trial], decision: Decision | None) -> None:
    view = study_view(id, tried, decision)
    assert (view is None) == (not tried and decision is None)
    if view is not None:
        assert len(view.tests) >= len(tried)
        check(view, study=view)


@few
@given(texts, st.lists(trials, max_size=4))
def test_any_history(workload: str, tried: list[Trial]) -> None:
    view = history_view(workload, tried)
    assert len(view.points) <= len(tried)
    check(view, history=view)


@given(st.floats(-1e307, 1e307))
def test_amounts_say_the_number(value: float) -> None:
    text = amount(value)
    words = {"trillion": 1e12, "billion": 1e9, "million": 1e6}
    figure, _, word = text.partition(" ")
    told = float(figure.replace(",", "")) * words.get(word, 1.0)
    assert told == pytest.approx(value, rel=0.006)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.9999, "1.00"), (99.96, "100"), (-9.996, "-10.0"), (1.797e308, "1.80e+308")],
)
def test_rounding_up_adds_no_digit(value: float, text: str) -> None:
    assert plain(value) == text


@given(st.floats(1e-6, 1e6), st.floats(1.0, 10.0), st.floats(1.0, 10.0), st.floats(1e-3, 1e3))
def test_ranges_in_other_units(value: float, below: float, above: float, factor: float) -> None:
    found = range_of({"value": value, "low": value / below, "high": value * above})
    assert found is not None
    scaled, turned = times(found, factor), inverse(found, factor)
    assert scaled is not None
    assert turned is not None
    assert scaled.value == pytest.approx(value * factor)
    assert turned.value == pytest.approx(factor / value)
    if found.low is not None:
        assert scaled.low is not None
        assert turned.low is not None
        assert turned.high is not None
        assert scaled.low == pytest.approx(found.low * factor)
        assert turned.low <= turned.value <= turned.high
        assert turned.high == pytest.approx(factor / found.low)


@pytest.mark.parametrize("odd", [True, "1", None, math.nan, math.inf, 10**400, [1.0]])
def test_what_is_no_number(odd: Any) -> None:
    assert finite(odd) is None
    assert range_of({"value": odd}) is None


def test_a_name_in_a_sentence_is_short_and_harmless() -> None:
    assert brief("a\n b") == "a b"
    assert len(brief("x" * 10_000)) <= 80
    assert brief("\x1b[31m") == "\\x1b[31m"
