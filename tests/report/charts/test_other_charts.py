"""The charts of a search, a trial and a history say what these say."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import Any

import pytest
from chart_views import compiled, rows, spec_of

from underdog.core.views.records import (
    HistoryPoint,
    HistoryView,
    Marker,
    Range,
    StudyView,
    TestLine,
    TrialView,
)
from underdog.model import Estimate, Timeline
from underdog.report.charts.history import moment
from underdog.report.charts.marks import LETTER, spread


def line_of(number: int, utility: float | None, spent: float, **more: Any) -> TestLine:
    more.setdefault("status", "ok" if utility is not None else "out_of_memory")
    given = {"number": number, "trial": f"t{number}", "offer": f"offer {number}"}
    return TestLine(**given, utility=utility, spent=spent, **more)


def study(**more: Any) -> StudyView:
    """Four tests: one that fails, one that is stopped early, and a best that is found late."""
    first = {"best": "offer 1", "best_utility": 100.0}
    tests = [
        line_of(1, 100, 0.5, **first, why="the cheapest", knobs={"batch": "8"}),
        line_of(2, None, 0.7, **first, reason="no memory"),
        line_of(3, 60, 0.8, status="stopped", saved=0.4, **first),
        line_of(4, 180, 1.2, best="offer 4", best_utility=180.0),
    ]
    given: dict[str, Any] = {"id": "s1", "workload": "train_gpt", "utility": "samples_per_dollar"}
    given |= {"unit": "samples/$", "better": "higher", "tests": tests, "spent": 1.2, "saved": 0.4}
    return StudyView(**(given | {"best": "offer 4", "best_utility": 180.0} | more))


def test_search_has_steps_of_the_best_so_far() -> None:
    steps = rows(spec_of("search", study()), "line")
    assert [(row["x"], row["y"]) for row in steps] == [(0.5, 100), (1.2, 180), (1.2, 180)]


def test_every_test_is_a_mark_with_what_is_known_of_it() -> None:
    marks = rows(spec_of("search", study()), "test")
    assert [row["kind"] for row in marks] == ["measured", "failed", "stopped early", "measured"]
    assert [row["test"] for row in marks] == ["1", "2", "3", "4"]
    assert marks[0]["why"] == "the cheapest"
    assert marks[0]["knobs"] == "batch=8"
    assert marks[1]["reason"] == "no memory"
    assert marks[1]["state"] == "out of memory"
    assert marks[2]["saved"] == "$0.4"
    assert marks[3]["label"] == "4: offer 4"


def test_what_racing_saved_is_drawn_and_told() -> None:
    spec = spec_of("search", study())
    assert [(row["x"], row["x2"]) for row in rows(spec, "tail")] == [(0.8, 1.2)]
    assert "Stopping losers early saved $0.4" in spec["description"]
    assert "1 failed" in spec["description"]


def test_earlier_trials_stand_at_the_left() -> None:
    earlier = line_of(0, 90, 0.0, best="offer 0", best_utility=90.0)
    marks = rows(spec_of("search", study(tests=[earlier, *study().tests])), "test")
    assert (marks[0]["x"], marks[0]["kind"]) == (0, "from before")


def trial(**more: Any) -> TrialView:
    """300 seconds with a warm-up, two evaluations, and readings of processor and memory."""
    seconds: list[float | None] = [float(at) for at in range(10, 310, 10)]
    rates: list[float | None] = [30.0, 40.0, *(100.0 + at % 3 for at in range(28))]
    steps = {"seconds": seconds, "step": seconds, "samples_per_second": rates}
    usage = {"seconds": seconds, "cores": rates, "host_cores": rates, "memory_gib": seconds}
    pauses = {"evaluation": [[100.0, 130.0], [200.0, 230.0]]}
    given: dict[str, Any] = {
        "rate": Estimate(value=101, low=99, high=103, n=28),
        "warmup_seconds": 20,
        "phases": {"data": 0.1, "forward": 0.3, "backward": 0.59, "other": 0.01},
        "timeline": Timeline(steps=steps, usage=usage, pauses=pauses),
    }
    names = {"id": "t1", "workload": "train_gpt", "offer": "g5", "status": "ok", "headline": ""}
    return TrialView(**names, **(given | more))


def test_throughput_has_readings_mean_and_interval() -> None:
    spec = spec_of("throughput", trial())
    line = rows(spec, "line")
    assert [(row["x"], row["y"]) for row in line][:3] == [(0, 30), (10, 30), (20, 40)]
    (mean,) = rows(spec, "mean")
    assert (mean["x"], mean["x2"], mean["y"], mean["y0"], mean["y1"]) == (20, 300, 101, 99, 103)
    assert "mean is 101 (99–103) samples/s" in spec["description"]


def test_throughput_shades_what_does_not_count() -> None:
    spans = rows(spec_of("throughput", trial()), "span")
    assert [(row["name"], row["x"], row["x2"]) for row in spans] == [
        ("warm-up", 0, 20),
        ("evaluation", 100, 130),
        ("evaluation", 200, 230),
    ]
    assert [row.get("label") for row in spans] == ["warm-up", "evaluation", None]


def test_a_wide_interval_does_not_press_the_readings_flat() -> None:
    wide = spec_of("throughput", trial(rate=Estimate(value=101, low=1, high=1e6, n=3)))
    (mean,) = rows(wide, "mean")
    assert mean["y1"] < 200


def test_a_reading_that_is_not_known_is_a_gap() -> None:
    timeline = Timeline(steps={"seconds": [1, 2, 3], "samples_per_second": [5.0, None, 6.0]})
    line = rows(spec_of("throughput", trial(timeline=timeline)), "line")
    assert [row.get("y") for row in line] == [5, 5, None, 6]


@pytest.mark.parametrize(
    ("seconds", "unit"), [(60, "seconds"), (6000, "minutes"), (60_000, "hours"), (9e5, "days")]
)
def test_time_has_a_unit_that_suits_it(seconds: float, unit: str) -> None:
    timeline = Timeline(steps={"seconds": [seconds], "samples_per_second": [5.0]})
    assert f"{unit} since the first step" in str(spec_of("throughput", trial(timeline=timeline)))


def test_phases_fill_the_bar_and_each_has_its_letter() -> None:
    spec = spec_of("phases", trial())
    parts = rows(spec, "letter")
    assert [row["letter"] for row in parts] == ["A", "B", "C", "D"]
    assert [row["share"] for row in parts] == ["10.0 %", "30.0 %", "59.0 %", "1.0 %"]
    assert [row["x"] for row in parts[1:]] == [row["x2"] for row in parts[:-1]]
    assert parts[-1]["x2"] == pytest.approx(1)
    assert "inside" not in parts[-1]  # no room for a letter
    assert "waiting for data 10.0 %" in spec["description"]


def test_machine_has_a_picture_for_each_reading_that_is_there() -> None:
    spec = spec_of("machine", trial())
    titles = [
        row["label"]
        for layer in spec["layer"]
        if "data" in layer
        for row in layer["data"]["values"]
    ]
    assert titles == ["processor, cores (dashed: all of the machine)", "memory, GiB"]
    axes = [layer["encoding"]["y"]["scale"]["range"] for layer in spec["layer"] if lined(layer)]
    assert axes == [[74, 0], [74, 0], [182, 108]]


def lined(layer: dict[str, Any]) -> bool:
    return bool(layer["mark"]["type"] == "line")


def history(**more: Any) -> HistoryView:
    """Two machines over four months, with a change of level and a move of a price."""
    points = [
        HistoryPoint(
            trial=f"{machine}-{month}",
            at=f"2026-{month:02d}-10T12:00:00+00:00",
            machine=machine,
            samples_per_second=Range(value=level),
            samples_per_dollar=Range(value=level * 10, low=level * 9, high=level * 11),
            price_per_hour=360.0,
        )
        for month in range(1, 5)
        for machine, level in (("aws g5.xlarge", 100.0), ("gcp g2", 80.0))
    ]
    markers = [
        Marker(at="2026-02-10T12:00:00+00:00", machine="gcp g2", kind="price", text="$1 to $2"),
        Marker(at="2026-03-10T12:00:00+00:00", machine="gcp g2", kind="change", text="12 % up"),
        Marker(at="2026-03-10T12:00:00+00:00", machine="aws g5.xlarge", kind="change", text="9 %"),
    ]
    return HistoryView(**({"workload": "train_gpt", "points": points, "markers": markers} | more))


def test_history_has_every_measurement_at_its_date() -> None:
    spec = spec_of("history", history())
    marks = rows(spec, "series")
    assert {row["series"] for row in marks} == {"1. aws g5.xlarge", "2. gcp g2"}
    assert marks[0] | {"x": 1768046400000, "y": 1000, "y0": 900, "y1": 1100} == marks[0]
    assert marks[0]["date"] == "2026-01-10 12:00 UTC"
    assert "8 measurements on 2 machines" in spec["description"]


def test_what_happened_is_a_rule_with_words() -> None:
    found = rows(spec_of("history", history()), "mark")
    assert [(row["mark"], row["label"]) for row in found] == [
        ("price", "$1 to $2"),
        ("change", "12 % up"),
    ]
    assert found[1]["what"] == "gcp g2: 12 % up; aws g5.xlarge: 9 %"


def test_without_prices_it_is_throughput() -> None:
    points = [dataclasses.replace(point, samples_per_dollar=None) for point in history().points]
    spec = spec_of("history", history(points=points))
    assert spec["title"]["text"] == "Throughput over time"
    assert rows(spec, "series")[0]["y"] == 100


def test_more_machines_than_can_be_told_apart() -> None:
    points = [
        dataclasses.replace(point, machine=f"machine {i}")
        for i in range(12)
        for point in history().points
    ]
    spec = spec_of("history", history(points=points))
    assert len({row["series"] for row in rows(spec, "series")}) == 8
    assert "8 of 12 machines" in str(spec["title"])
    assert compiled(spec)[1] == ""


def test_moments() -> None:
    assert moment("1970-01-02") == 86_400_000
    assert moment("1970-01-01T01:00:00+01:00") == 0
    assert moment("soon") is None
    assert moment("0001-01-01") is None


def test_words_above_a_picture_do_not_touch() -> None:
    texts = [(place / 40, "a change of level") for place in range(40)]
    length = len("a change of level ") * LETTER
    taken: dict[int, list[tuple[float, float]]] = {}
    for (at, _), row in zip(texts, spread(texts, 3), strict=True):
        if row:
            begin = at if row["side"] == "right" else at - length
            taken.setdefault(row["lane"], []).append((begin, begin + length))
    assert set(taken) == {0, 1, 2}
    for lane in taken.values():
        assert all(one[1] <= other[0] for one, other in pairwise(sorted(lane)))
