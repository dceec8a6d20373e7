"""What a person sees of an exploration."""

from __future__ import annotations

import dataclasses
import shlex
from typing import Any

import pytest
from rich.console import Console

from underdog.core.exploration import WHY, Ended, Exploration, Running, Started
from underdog.core.metrics import METRICS
from underdog.core.racing import Look
from underdog.model import Caveat, Decision, Estimate
from underdog.report.explore import command_lines, line_of, plan_lines, report, unit_of

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
    settings=8,
    settings_left=3,
    references={"bert": 0.7, "resnet": 0.001},
    references_at_first=0.4,
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
    measured, rest = said.split("Other workloads")
    referred, believed = rest.split("Not measured, only believed")
    assert "aws/g5.xlarge" in measured
    assert "aws/g6.xlarge" not in measured
    assert "aws/g6.xlarge" in believed
    assert "bert 70%" in referred
    assert "resnet" not in said  # a weight that is next to nothing is no line
    assert "~400k" in believed
    assert "95 % interval" in believed


def test_the_headline_has_the_figures() -> None:
    said = " ".join(page(FOUND).split())
    for part in (
        "Best found: aws/g5.xlarge (batch=32), 120 samples/s, 432k samples/$",
        "1 test of 2,500 candidates, $0.05 spent, 3 earlier trials used, $0.01 saved",
        f"Ended: {WHY['enough']}.",
        "Expected loss of stopping now: 1.2% of the best there may be",
        "(in nine of ten cases at most 5.0%)",
        "other machines only: 3 of 8 settings of the knobs were not tried on aws/g5.xlarge",
        "study-abc: the same command goes on from here.",
    ):
        assert part in said


def test_nothing_that_works_is_said_first() -> None:
    failed = dataclasses.replace(ENDED, rate=None, utility=None, status="failed", best=None)
    nothing: dict[str, Any] = {"best": None, "best_rate": None, "best_utility": None}
    said = page(dataclasses.replace(FOUND, tests=[failed], **nothing))
    assert said.startswith("No candidate works.")
    assert "Expected loss" not in said
    assert "give another --seed" in " ".join(said.split())


@pytest.mark.parametrize("width", [100, 200])
def test_names_are_never_cut(width: int) -> None:
    name = "azure/some-very-long-region/Standard_ND96isr_H100_v5/spot"
    tests = [dataclasses.replace(ENDED, offer=name)]
    lines = page(dataclasses.replace(FOUND, tests=tests), width).splitlines()
    place = lines.index("Measured, the best first")
    heads = lines[place + 2]  # of two lines the second
    column = slice(heads.index("offer"), heads.index("knobs"))
    below = lines[place + 3 :]
    folded = [line[column].strip() for line in below[: below.index("")]]
    assert "".join(folded) == name


def ended(number: int, offer: str, utility: float | None, **more: Any) -> Ended:
    rate = None if utility is None else RATE
    return dataclasses.replace(
        ENDED, number=number, offer=offer, utility=utility, rate=rate, **more
    )


def offers_in(said: str) -> list[str]:
    table = said.split("Measured, the best first")[1].split("\n\n")[0]
    return [word for word in table.split() if word.startswith("m-")]


@pytest.mark.parametrize(("better", "order"), [("higher", "m-b m-a"), ("lower", "m-a m-b")])
def test_the_best_stands_first_and_what_failed_last(better: str, order: str) -> None:
    tests = [
        ended(1, "m-out", None, status="out_of_memory"),
        ended(2, "m-late", 9.0, missed=True),
        ended(3, "m-a", 1.0),
        ended(4, "m-b", 2.0),
    ]
    said = page(dataclasses.replace(FOUND, tests=tests, better=better))
    assert offers_in(said) == [*order.split(), "m-late", "m-out"]
    heads = said.split("Measured, the best first")[1].split("m-")[0]
    for name in ("test", "offer", "samples/$", "samples/s", "(95 % interval)", "cost $", "ended"):
        assert name in heads
    assert "misses" in said


def test_earlier_trials_stand_in_the_same_table() -> None:
    before = [ended(0, f"m-{i}", float(i)) for i in range(8)]
    said = page(dataclasses.replace(FOUND, tests=[ended(1, "m-new", 6.5)], before=before))
    assert offers_in(said) == ["m-7", "m-new", "m-6", "m-5", "m-4", "m-3"]
    assert "and 3 earlier trials" in said


def test_the_same_figure_is_not_said_twice() -> None:
    fastest = dataclasses.replace(FOUND, utility="samples_per_second", best_utility=120.0)
    said = page(dataclasses.replace(fastest, tests=[dataclasses.replace(ENDED, utility=120.0)]))
    assert "120 samples/s\n" in said
    assert said.count("samples/s") == 3  # the headline, and the heads of the two tables


def test_a_cost_that_is_unknown_is_not_zero() -> None:
    unknown = dataclasses.replace(ENDED, dollars=None, spent=0.0)
    assert "cost unknown" in line_of(unknown, "samples_per_second")
    free = dataclasses.replace(FOUND, tests=[unknown], spent=0.0, unpriced=1, saved=0.0)
    assert "1 test of 2,500 candidates, cost unknown" in page(free)
    assert "$0" not in page(free)
    mixed = page(dataclasses.replace(FOUND, unpriced=2))
    assert "$0.05 spent beside 2 of unknown cost" in mixed


def test_where_there_is_one_machine_only_its_knobs_count() -> None:
    alone = dataclasses.replace(FOUND, candidates=1, beliefs=[], references={})
    said = page(alone)
    assert "no other candidate; 3 of 8 settings of the knobs were not tried" in said
    assert "Expected loss" not in said
    assert "all 8 settings were tried" in page(dataclasses.replace(alone, settings_left=0))


def test_a_replay_says_that_nothing_is_stopped_early() -> None:
    said = " ".join(page(dataclasses.replace(FOUND, runner="replay", test_seconds=90.0)).split())
    assert "each test counts as 90 s of its offer; none is stopped early" in said
    assert "A replay" not in page(FOUND)


def test_references_that_mislead_are_said_to_be_set_aside() -> None:
    weights = (0.6, 0.03, 0.2, 0.04, 0.01)
    tests = [ended(n, "m", 1.0, references=w) for n, w in enumerate(weights, start=1)]
    found = dataclasses.replace(FOUND, tests=tests, references={"bert": 0.01})
    said = " ".join(page(found).split())
    assert "They explain 1% of what was measured (bert 1%)" in said
    assert "before any test they were trusted with 40%" in said
    assert "Set aside since test 4" in said
    assert "Set aside" not in page(FOUND)
    assert "other workloads explain 60%" in line_of(tests[0], "samples_per_dollar")


def test_of_what_is_predicted_only_one_story_is_told() -> None:
    entries = [entry("aws/g5.xlarge", "measured"), entry("aws/p4d.24xlarge", "predicted")]
    decision = Decision(
        id="d",
        workload="gpt",
        created_at="",
        utility="samples_per_dollar",
        better="higher",
        candidates=3,
        ranking=entries,
        test_next=[{"offer": "aws/p4d.24xlarge"}],
        best_measured="aws/g5.xlarge",
        funnel=[
            {"verdict": "untested", "cause": "predicted", "offers": 1},
            {"verdict": "untested", "cause": "not predicted", "offers": 1},
            {"verdict": "best", "cause": "measured", "offers": 1},
        ],
        caveats=[Caveat(code="trial_does_not_count", message="It failed.", remedy="Repeat it.")],
    )
    said = page(dataclasses.replace(FOUND, decision=decision))
    assert "Best measured" in said
    for word in ("p4d", "predicted", "Test next", "Repeat it"):
        assert word not in said
    assert "2    untested" in said
    alone = page(dataclasses.replace(FOUND, decision=decision, candidates=1))
    assert "Best measured" not in alone


def entry(name: str, source: str) -> dict[str, Any]:
    provider, _, kind = name.partition("/")
    columns = ("price_per_hour", "accelerator", "accelerator_count", "zone", "price_date")
    return {
        "rank": 1,
        "source": source,
        "nodes": 1,
        "other_regions": 0,
        "pareto": False,
        "tied_with": [],
        "utility": {"value": 5.0, "low": 4.0, "high": 6.0},
        "offer": dict.fromkeys(columns)
        | {"id": name, "provider": provider, "instance_type": kind}
        | {"region": "r", "purchase": "on-demand"},
    } | dict.fromkeys(METRICS)


def test_the_command_is_whole_and_can_be_pasted() -> None:
    words = ["python", "train it.py", "--batch-size", "32", "--name", "a'b" * 60]
    lines = command_lines(dataclasses.replace(FOUND, command=words))
    assert lines[1] == "Run it with the best knobs:"
    assert shlex.split(lines[-1]) == words
    assert command_lines(FOUND) == []


def test_a_plan_says_what_is_unknown() -> None:
    test = {"offer": "a", "knobs": {}, "reason": "R.", "seconds": 120.0, "would_run": ["x"]}
    assert plan_lines([{**test, "dollars": None}])[-1] == (
        "This test would cost an unknown amount; nothing was run."
    )
    both = plan_lines([{**test, "dollars": None}, {**test, "dollars": 0.5}])[-1]
    assert both == (
        "These 2 tests would cost about $0.5, and the start, and 1 of them an unknown amount; "
        "nothing was run."
    )
    assert plan_lines([], "budget") == [f"No test would be run: {WHY['budget']}."]


def test_a_long_reason_is_cut() -> None:
    failed = dataclasses.replace(
        ENDED, rate=None, status="failed", reason="one\ntwo " + "word " * 90 + "the cause"
    )
    line = line_of(failed, "samples_per_dollar")
    assert "failed: one two word" in line
    assert "… " in line
    assert "word the cause; " in line
    assert len(line) < 300


@pytest.mark.parametrize("width", [40, 80])
def test_a_narrow_terminal_gets_lines(width: int) -> None:
    name = "azure/some-very-long-region/Standard_ND96isr_H100_v5/spot"
    tests = [dataclasses.replace(ENDED, offer=name)]
    said = page(dataclasses.replace(FOUND, tests=tests), width)
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
