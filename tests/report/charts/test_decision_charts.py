"""The charts of a decision say what the decision says."""

from __future__ import annotations

from typing import Any

import numpy as np
from chart_views import compiled, decision, point, rows, spec_of
from hypothesis import given
from hypothesis import strategies as st

from underdog.core import pareto
from underdog.core.views.records import DecisionView, FunnelLine

BEST, OTHER, WORSE, GUESS, OUT = (
    "aws/us-east-1/g5.xlarge/spot",
    "gcp/us-central1/g2/on-demand",
    "azure/eastus/NC4/on-demand",
    "lium/UA/RTX4090_1x/on-demand",
    "aws/us-east-1/p5/on-demand",
)


def usual(**more: Any) -> DecisionView:
    """Two measured offers that cannot be told apart, a worse one, a predicted, an excluded one."""
    late = {"verdict": "excluded", "source": "predicted", "reason": "deadline: it would take 99 h"}
    points = [
        point(BEST, 10, 5, rank=1, verdict="best", pareto=True),
        point(OTHER, 8, 5.2, rank=2, verdict="tied", pareto=True),
        point(WORSE, 90, 40, rank=3, verdict="beaten"),
        point(GUESS, 4, 3, rank=4, source="predicted", pareto=True),
        point(OUT, 1, 900, **late),
    ]
    return decision(points, groups=[[BEST, OTHER]], **more)


def scale(spec: dict[str, Any], channel: str) -> str:
    points = next(layer for layer in spec["layer"] if "shape" in layer["encoding"])
    kind: str = points["encoding"][channel]["scale"]["type"]
    return kind


def test_front_has_every_offer_where_its_time_and_cost_are() -> None:
    found = {row["offer"]: row for row in rows(spec_of("front", usual()), "kind")}
    assert {name: (row["x"], row["y"]) for name, row in found.items()} == {
        BEST: (5, 10),
        OTHER: (5.2, 8),
        WORSE: (40, 90),
        GUESS: (3, 4),
        OUT: (900, 1),
    }
    assert found[BEST]["kind"] == "measured"
    assert found[GUESS]["kind"] == "predicted"
    assert (found[BEST]["x0"], found[BEST]["x1"]) == (4.5, 5.5)
    assert "label" in found[BEST]


def test_what_is_ruled_out_has_its_reason_and_no_interval() -> None:
    (out,) = [row for row in rows(spec_of("front", usual()), "kind") if row["offer"] == OUT]
    assert out["kind"] == "ruled out"
    assert out["reason"] == "deadline: it would take 99 h"
    assert "x0" not in out
    assert out["crowd"] == 1


def test_axes_are_logarithmic_where_the_data_want_them() -> None:
    far = spec_of("front", usual())
    assert (scale(far, "x"), scale(far, "y")) == ("log", "log")
    near = spec_of("front", decision([point("a", 2, 2, rank=1), point("b", 1, 3, rank=2)]))
    assert (scale(near, "x"), scale(near, "y")) == ("linear", "linear")


def test_front_line_is_that_of_the_measured_and_a_dashed_one_with_the_predicted() -> None:
    lines = rows(spec_of("front", usual()), "line")
    assert [(r["x"], r["y"]) for r in lines if r["line"] == "measured"] == [(5, 10), (5.2, 8)]
    assert [(r["x"], r["y"]) for r in lines if r["line"] == "predicted"] == [(3, 4)]


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=30))
def test_front_line_joins_what_nothing_beats(places: list[tuple[int, int]]) -> None:
    points = [point(f"o{i}", h, d, rank=i + 1, pareto=True) for i, (h, d) in enumerate(places)]
    lines = rows(spec_of("front", decision(points)), "line")
    hours, dollars = np.array(places, dtype=float).T
    best = pareto.front((-hours, -dollars))
    assert {(r["y"], r["x"]) for r in lines} == {
        p for p, kept in zip(places, best, strict=True) if kept
    }


def test_deadline_and_budget_are_rules() -> None:
    spec = spec_of("front", usual(samples=1e6, deadline_hours=50, budget=100))
    assert {row["limit"]: row["label"] for row in rows(spec, "limit")} == {
        "budget": "budget $100",
        "deadline": "deadline 50 h",
    }
    assert not rows(spec_of("front", usual()), "limit")


def test_front_tells_what_its_hours_are_of() -> None:
    assert "of the whole job" in str(spec_of("front", usual(samples=1e6)))
    assert "per million samples" in str(spec_of("front", usual()))


def test_front_in_words() -> None:
    said = spec_of("front", usual())["description"]
    assert "5 offers: 3 measured, 1 predicted, 1 ruled out" in said
    assert f"Best is {BEST} with 10 (9–11) hours and $5 (4.5–5.5)" in said


def test_ranking_is_in_order_with_intervals() -> None:
    named = rows(spec_of("ranking", usual()), "offer")
    assert [row["offer"] for row in named] == [BEST, OTHER, WORSE, GUESS]
    assert [row["x"] for row in named] == [200, 192.31, 25, 333.33]
    assert named[0]["figure"] == "200 (180–220)"


def test_a_bracket_joins_what_cannot_be_told_apart() -> None:
    spec = spec_of("ranking", usual())
    brackets = rows(spec, "lane")
    assert [row["at"] for row in brackets if "member" in row] == [0.3, 1.3]
    assert "1 group of offers cannot be told apart" in spec["description"]
    alone = spec_of("ranking", decision(usual().points))
    assert not rows(alone, "lane")


def test_brackets_that_overlap_stand_beside_one_another() -> None:
    points = [point(f"o{i}", 1 + i, 1 + i, rank=i + 1) for i in range(6)]
    view = decision(points, groups=[["o0", "o2"], ["o1", "o3"], ["o4", "o5"]])
    lanes = [row["lane"] for row in rows(spec_of("ranking", view), "lane") if "member" not in row]
    assert lanes == [0, 1, 0]
    assert compiled(spec_of("ranking", view))[1] == ""


def test_a_long_ranking_keeps_room_for_what_is_predicted() -> None:
    measured = [point(f"m{i}", 1, 1 + i, rank=i + 1) for i in range(40)]
    guessed = [point(f"p{i}", 1, 1 + i, rank=i + 41, source="predicted") for i in range(40)]
    named = rows(spec_of("ranking", decision([*measured, *guessed])), "offer")
    assert len(named) == 20
    assert [row["offer"] for row in named if row["kind"] == "predicted"] == [
        f"p{i}" for i in range(5)
    ]


def test_ranking_of_what_should_be_low_says_so() -> None:
    title = spec_of("ranking", usual(better="lower", unit="h"))
    assert "h, less is better" in str(title)


def test_funnel_has_every_count_written_out() -> None:
    lines = [
        FunnelLine(verdict="best", cause="measured", offers=1),
        FunnelLine(verdict="untested", cause="predicted", offers=512),
        FunnelLine(verdict="excluded", cause="memory", offers=80_000),
        FunnelLine(verdict="excluded", cause="where", offers=0),
    ]
    spec = spec_of("funnel", decision([], funnel=lines))
    assert [(row["label"], row["figure"]) for row in rows(spec, "kind")] == [
        ("ruled out by: memory", "80,000 (99.4 %)"),
        ("not tested, predicted", "512 (0.6 %)"),
        ("the best of the measured", "1 (under 0.1 %)"),
    ]
    assert "Of 80,513 offers, 80,000 are ruled out (80,000 by memory)" in spec["description"]
    assert all(row["x0"] < row["x"] for row in rows(spec, "kind"))
