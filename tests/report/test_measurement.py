"""What a person sees of a trial."""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from underdog.model import (
    Accelerator,
    Caveat,
    Estimate,
    Machine,
    Measurement,
    Price,
    Software,
    Trial,
)
from underdog.report.measurement import (
    best,
    knobs_report,
    next_command,
    number,
    shown,
    ties,
    trial_report,
)


def text_of(renderable: Any, width: int = 100, **options: Any) -> str:
    console = Console(file=io.StringIO(), width=width, **options)
    console.print(renderable)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def trial(rate: float | None = 812.0, half: float = 11, **changes: Any) -> Trial:
    estimate = None
    if rate is not None:
        estimate = Estimate(value=rate, low=rate - half, high=rate + half, n=245)
    base = Trial(
        id=f"t{rate}",
        workload="train_gpt",
        status="ok",
        price=Price(per_hour=0.5, source="catalog", date="2026-01-01"),
        measurement=Measurement(
            samples_per_second=estimate,
            samples_per_second_with_pauses=795.0,
            step_seconds=Estimate(value=0.0197, low=0.019, high=0.021, n=245),
            steps=312,
            samples=4992,
            batch_size=16,
            warmup_steps=22,
            warmup_seconds=1.3,
            pauses={"evaluation": 1.2},
        ),
        phases={"data": 0.25, "forward": 0.75, "transfer": 0.0},
        bound_by="data",
        bound_reason="25% of the step time goes into waiting for data.",
        peak_memory_gib={"host": 1.25, "accelerator": None},
        usage={"cores": 1.94},
        machine=Machine(cpu_model="Xeon", vcpus=2, memory_gib=23.5),
        software=Software(),
    )
    return dataclasses.replace(base, **changes)


def test_everything_worth_a_look() -> None:
    text = text_of(trial_report(trial()), width=140)
    for words in (
        "train_gpt",
        "measured",
        "812.0 samples/s",
        "±1.4 %",
        "801.0 to 823.0",
        "n = 245",
        "16 samples a step",
        "312 steps, 4,992 samples",
        "warm-up of 22 steps (1.3 s) left out",
        "evaluation 1.2 s",
        "with them 795.0 samples/s",
        "waiting for data",
        "75.0 %",
        "1.25 GiB host",
        "1.94 of 2 vCPUs busy",
        "$0.5 per hour",
        "5,846,000 samples per dollar",
    ):
        assert words in text, text
    assert "host to device" not in text, "a phase that takes no time is not shown"
    assert "accelerator" not in text.replace("train_gpt", "")


def test_an_unused_accelerator_is_said_loudly() -> None:
    machine = Machine(vcpus=2, accelerators=[Accelerator(name="L4")])
    loud = Caveat(code="accelerator_unused", message="THE ACCELERATOR WAS NOT USED", remedy="do")
    text = text_of(
        trial_report(trial(machine=machine, caveats=[loud], usage={"accelerators_busy": 0.0}))
    )
    assert "!!" in text
    assert "0 of 1 used" in text


@pytest.mark.parametrize("status", ["failed", "out_of_memory", "hung", "no_steps", "interrupted"])
def test_a_trial_without_measurement_tells_why(status: str) -> None:
    one = trial(status=status, reason="because\nof [this]", exit_code=3, measurement=None)
    text = text_of(trial_report(one))
    assert "because" in text
    assert "of [this]" in text
    assert "exit code 3" in text


def test_an_unknown_price_says_why() -> None:
    assert "unknown: nobody told" in text_of(
        trial_report(trial(price=Price(unknown_reason="nobody told")))
    )


def test_samples_that_are_not_known_leave_steps() -> None:
    assert "50.76 steps/s" in text_of(trial_report(trial(rate=None)))


@given(st.text(max_size=40))
def test_no_text_from_outside_is_obeyed(text: str) -> None:
    one = trial(
        workload=text,
        reason=text,
        status="failed",
        knobs={"k": text},
        caveats=[Caveat(code="x", message=text, remedy=text)],
        machine=Machine(cpu_model=text),
    )
    for drawn in (trial_report(one), knobs_report([one, one]), next_command(one)):
        assert "\x1b" not in text_of(drawn, force_terminal=False)


def test_markup_is_text() -> None:
    assert "[bold]x[/]" in text_of(trial_report(trial(workload="[bold]x[/]")))


def test_the_best_is_the_fastest_that_was_measured() -> None:
    slow, fast = trial(100.0), trial(200.0)
    broken = trial(900.0, status="out_of_memory")
    assert best([slow, broken, fast]) is fast
    assert best([broken]) is broken
    text = text_of(
        knobs_report([dataclasses.replace(t, knobs={"b": "1"}) for t in (slow, broken, fast)])
    )
    lines = [line for line in text.splitlines() if line.strip()]
    assert "best" in lines[1]
    assert "200.0" in lines[1]
    assert "out of memory" in lines[3]


def test_overlapping_intervals_are_told() -> None:
    first, second, third = trial(100.0, 5), trial(96.0, 5), trial(50.0, 5)
    assert list(ties([first, second, third])) == [second]
    text = text_of(knobs_report([first, second, third]))
    assert "not distinguishable" in text


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_numbers_keep_four_digits(value: float) -> None:
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=1e-3)


def test_control_characters_are_spelled_out() -> None:
    assert shown("a\x1b[31m\nb\udcff é") == "a\\x1b[31m\\nb\\udcff é"
    assert shown("a\nb", keep_lines=True) == "a\nb"
