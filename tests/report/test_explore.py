"""What a person sees of an exploration."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from rich.console import Console

from underdog.core.exploration import WHY, Ended, Exploration, Running, Started
from underdog.core.racing import Look
from underdog.model import Estimate
from underdog.report.explore import line_of, plan_lines, report, unit_of

RATE = Estimate(value=120.0, low=117.0, high=123.0, n=40)
ENDED = Ended(
    number=2,
    trial="t",
    offer="aws/g5.xlarge",
    knobs={"batch": "32"},
    status="ok",
    reason=None,
    rate=RATE,
    utility=432_000.0,
    dollars=0.0335,
    saved=None,
    best="aws/g5.xlarge",
    best_utility=432_000.0,
    spent=0.05,
)
FOUND = Exploration(
    study="study-abc",
    workload="gpt",
    runner="local",
    utility="samples_per_dollar",
    better="higher",
    candidates=2_500,
    earlier=3,
    tests=[ENDED],
    spent=0.05,
    saved=0.01,
    best="aws/g5.xlarge",
    best_knobs={"batch": "32"},
    best_rate=RATE,
    best_utility=432_000.0,
    ended="enough",
    expected_loss=0.012,
    high_loss=0.05,
    stopping="",
    references={"bert": 0.7, "resnet": 0.001},
    beliefs=[
        {
            "offer": "aws/g6.xlarge",
            "utility": 400_000.0,
            "low": 300_000.0,
            "high": 500_000.0,
            "chance_of_failure": 0.1,
        }
    ],
)


def page(found: Exploration, width: int = 100) -> str:
    console = Console(width=width, color_system=None, highlight=False)
    with console.capture() as captured:
        console.print(report(found, width))
    return captured.get()


def test_what_was_measured_and_what_is_believed_stand_apart() -> None:
    said = page(FOUND)
    measured, believed = said.split("Not measured, only believed")
    assert "aws/g5.xlarge" in measured
    assert "aws/g6.xlarge" not in measured
    assert "aws/g6.xlarge" in believed
    assert "bert 70%" in believed
    assert "resnet" not in believed  # a weight that is next to nothing is no line
    assert "~400k" in believed


def test_the_headline_has_the_figures() -> None:
    said = " ".join(page(FOUND).split())
    for part in (
        "Best found: aws/g5.xlarge (batch=32), 432k samples/$ at 120 samples/s",
        "1 test of 2,500 candidates, $0.05 spent, 3 earlier trials used, $0.01 saved",
        f"Ended: {WHY['enough']}.",
        "Expected loss of stopping now: 1.2% of the best there may be",
        "(in one of ten cases over 5%)",
        "study-abc: the same command goes on from here.",
    ):
        assert part in said


def test_nothing_that_works_is_said_first() -> None:
    failed = dataclasses.replace(ENDED, rate=None, utility=None, status="failed", best=None)
    nothing: dict[str, Any] = {"best": None, "best_rate": None, "best_utility": None}
    said = page(dataclasses.replace(FOUND, tests=[failed], **nothing))
    assert said.startswith("No candidate works.")
    assert "Expected loss" not in said


@pytest.mark.parametrize("width", [80, 100, 200])
def test_names_are_never_cut(width: int) -> None:
    name = "azure/some-very-long-region/Standard_ND96isr_H100_v5/spot"
    tests = [dataclasses.replace(ENDED, offer=name)]
    lines = page(dataclasses.replace(FOUND, tests=tests), width).splitlines()
    heads = lines[lines.index("Measured") + 1]
    column = slice(heads.index("offer"), heads.index("knobs"))
    below = lines[lines.index("Measured") + 2 :]
    folded = [line[column].strip() for line in below[: below.index("")]]
    assert "".join(folded) == name


def test_a_narrow_terminal_gets_lines() -> None:
    name = "azure/some-very-long-region/Standard_ND96isr_H100_v5/spot"
    said = page(dataclasses.replace(FOUND, tests=[dataclasses.replace(ENDED, offer=name)]), 40)
    assert name in "".join(line.strip() for line in said.splitlines())
    assert "120 samples/s, 432k samples/$" in said


def test_lines_as_it_goes() -> None:
    started = Started(2, "aws/g5.xlarge", {"batch": "32"}, "It may be the best.", 0.0335, None)
    assert line_of(started, "samples_per_dollar") == (
        "test 2: aws/g5.xlarge (batch=32), $0.0335. It may be the best."
    )
    running = Running(2, "aws/g5.xlarge", Look(31.0, 20.0, RATE, 40.0, True))
    assert line_of(running, "samples_per_dollar") == (
        "test 2: aws/g5.xlarge, 31 s, 120 samples/s (117–123)"
    )
    assert "no rate yet" in line_of(Running(2, "a", Look(3.0)), "samples_per_dollar")
    assert line_of(ENDED, "samples_per_dollar") == (
        "  120 samples/s, 432k samples/$; best so far 432k samples/$ on aws/g5.xlarge; $0.05 spent"
    )
    lost = dataclasses.replace(ENDED, status="stopped", saved=0.02)
    assert "stopped early, which saved $0.02" in line_of(lost, "samples_per_dollar")


def test_what_a_terminal_would_obey_is_spelled_out() -> None:
    odd = "[bold]x[/bold]\x1b[31m"
    started = Started(1, odd, {odd: odd}, odd, None, None)
    failed = dataclasses.replace(
        ENDED, offer=odd, rate=None, status="failed", reason=odd, best=odd, knobs={"a": odd}
    )
    found = dataclasses.replace(FOUND, tests=[failed], best=odd, references={odd: 0.9})
    texts = [line_of(started, odd), line_of(failed, odd), page(found)]
    texts += plan_lines(
        [{"offer": odd, "knobs": {}, "reason": odd, "dollars": None, "seconds": 9.0,
          "would_run": [odd]}]
    )  # fmt: skip
    for text in texts:
        assert "\x1b" not in text
    assert "[bold]x[/bold]" in page(found)


def test_units() -> None:
    assert unit_of("samples_per_dollar") == "samples/$"
    assert unit_of("dollars_to_train, hours_to_train") == "$"
    assert unit_of("vcpus * 2") == "vcpus * 2"
    assert unit_of("samples_per_second / (price_per_hour + 1)") == "utility"
