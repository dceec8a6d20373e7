"""The text of views: what a terminal of each kind and width is given."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

import sample_views
from underdog.core.views.records import HistoryPoint, HistoryView, Marker, Range, TrialView
from underdog.model import Caveat
from underdog.report.show import print_view, show_text, style_of
from underdog.report.show_study import best_so_far
from underdog.report.show_words import Style, bar, line_chart, thinned

VIEWS = {
    "decision": sample_views.decision_view(),
    "study": sample_views.study_view(),
    "trial": sample_views.trial_view(),
    "history": sample_views.history_view(),
}


def told(view: Any, width: int = 100, *, plain: bool = False, **console: Any) -> str:
    screen = Console(file=io.StringIO(), width=width, **({"color_system": None} | console))
    with screen.capture() as captured:
        screen.print(show_text(view, Style(width, plain)))
    return captured.get()


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    for line in told(VIEWS[name], width).splitlines():
        assert cell_len(line) <= width, line


def test_the_answer_comes_first() -> None:
    view = VIEWS["decision"]
    lines = told(view, 300).splitlines()
    assert lines[0].strip() == view.answer
    assert lines[1].strip() == view.runner_up


def test_measured_and_predicted_are_told_apart_without_colour() -> None:
    text = told(VIEWS["decision"], 140)
    measured = [line for line in text.splitlines() if "● " in line and "measured" not in line]
    predicted = [line for line in text.splitlines() if "○ " in line and "predicted" not in line]
    assert measured
    assert predicted
    assert all("█" in line and "░" not in line for line in measured)
    assert all("░" in line and "█" not in line and "~" in line for line in predicted)


def test_a_narrow_terminal_keeps_the_figures() -> None:
    point = VIEWS["decision"].points[0]
    assert point.utility is not None
    figure = told(replace(VIEWS["decision"], points=[point]), 200).splitlines()
    row = next(line for line in figure if line.strip().startswith("1 "))
    value = row.split("  ")[-2].strip() if "█" in row else row.split("  ")[-1].strip()
    narrow = told(replace(VIEWS["decision"], points=[point]), 44)
    assert value in narrow


def test_a_search_has_every_test_with_its_reason() -> None:
    view = VIEWS["study"]
    text = " ".join(told(view, 300).split())
    for test in view.tests:
        assert test.offer in text
        assert test.why is None or test.why in text


def test_the_chart_of_the_best_rises_where_something_better_was_found() -> None:
    tests = [
        replace(VIEWS["study"].tests[0], number=i, spent=float(i), best_utility=value)
        for i, value in enumerate((None, 25.0, 100.0, 100.0), start=1)
    ]
    view = replace(VIEWS["study"], tests=tests)
    drawn = best_so_far(view, Style(48))
    lines = str(drawn[1]).splitlines()[:-1]
    heights = [sum(line[4 + i : 5 + i] == "█" for line in lines) for i in range(40)]
    assert heights[5] == 0  # before anything was found
    assert 0 < heights[22] < heights[38] == 5
    assert heights == sorted(heights)
    assert str(drawn[1]).splitlines()[-1].split() == ["$0", "$4.00", "spent"]
    free = [replace(test, spent=0.0) for test in tests]
    assert "4 tests" in str(best_so_far(replace(view, tests=free), Style(48))[1])


def test_a_trial_has_its_curve_and_one_stacked_bar() -> None:
    view: TrialView = VIEWS["trial"]
    text = told(view, 100)
    assert "samples/s  " in text
    lines = text.splitlines()
    place = next(i for i, line in enumerate(lines) if line.startswith("Where the time of a step"))
    assert len(lines[place + 1].rstrip()) == 72
    for share in view.phases.values():
        assert f"{100 * share:.1f} %" in text
    doubted = replace(view, caveats=[Caveat(code="c", message="It was noisy.", remedy="Wait.")])
    assert "! It was noisy. Wait." in told(doubted, 100)


def test_a_history_has_its_markers() -> None:
    points = [
        HistoryPoint(
            trial=f"t{i}",
            at=f"2026-08-{i:02}T00:00:00",
            machine="aws g5.xlarge",
            samples_per_second=Range(value=rate),
        )
        for i, rate in enumerate((10.0, 10.0, 80.0, 80.0), start=1)
    ]
    mark = Marker(at="2026-08-03T00:00:00", machine="aws g5.xlarge", kind="change", text="faster")
    view = HistoryView(workload="gpt", points=points, markers=[mark], machines=["aws g5.xlarge"])
    text = told(view)
    assert "gpt: 4 measurements on 1 kind of machine." in text
    assert "▁▁██  10 to 80 samples/s" in text
    assert "2026-08-03 00:00  faster" in text
    assert "nothing that was measured" in told(HistoryView(workload="gpt"))


@pytest.mark.parametrize("name", VIEWS)
def test_plain_where_nothing_else_can_be_shown(name: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    screen = Console(file=stream, width=80, force_terminal=True, color_system="standard")
    print_view(VIEWS[name], screen)
    text = raw.getvalue().decode("ascii")
    assert len(text.splitlines()) > 3
    assert "#" in text or name == "history"


def test_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = told(VIEWS["decision"], color_system="standard", force_terminal=True)
    assert "\x1b[3" not in text  # bold may be there, colours are not
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[32" in told(VIEWS["decision"], color_system="standard", force_terminal=True)


def test_what_a_console_can_show() -> None:
    wide = Console(file=io.StringIO(), width=200)
    assert style_of(wide, "xterm") == Style(200, plain=False)
    assert style_of(wide, "dumb").plain
    assert style_of(Console(file=io.StringIO(), width=10), "xterm").width == 40


@given(st.floats(), st.integers(1, 80), st.booleans(), st.booleans())
def test_a_bar_is_as_long_as_its_share(share: float, width: int, plain: bool, hollow: bool) -> None:
    drawn = bar(share, width, Style(plain=plain), hollow=hollow)
    assert len(drawn) <= width
    assert (len(drawn) > 0) == (share > 0 and share != float("inf"))
    if 0 <= share <= 1:
        assert abs(len(drawn) - share * width) <= 1


@given(st.lists(st.none() | st.floats(), max_size=50), st.integers(1, 30), st.booleans())
def test_a_line_has_a_character_for_each_value(
    values: list[float | None], most: int, plain: bool
) -> None:
    few = thinned(values, most)
    assert len(few) == min(len(values), most)
    drawn = line_chart(few, Style(plain=plain))
    assert len(drawn) in (0, len(few))
    assert not plain or drawn.isascii()


def test_a_line_goes_from_low_to_high() -> None:
    assert line_chart([1, 2, None, 8, 4.5], Style()) == "▁▂ █▅"
    assert line_chart([1, None, 8], Style(plain=True)) == "_ #"
    assert line_chart([3, 3], Style()) == "▅▅"
    assert thinned([1, 3, None, 5, 7, 9], 3) == [2, 5, 8]
