"""What a trial of an exploration says, and what becomes of one that was to end early."""

from __future__ import annotations

from typing import Any

import pytest

from underdog.core.tested import Cut, attempt_of, cut_short, rate_of, says_something, setting_of
from underdog.model import Estimate, Machine, Measurement, Price, Software, Trial

RATE = Estimate(value=5.0, low=4.0, high=6.0, n=9)
LOSER = Cut("stopped", "it cannot win", 0.02)
BY_HAND = Cut("interrupted", "Ctrl-C")


def trial(status: str, rate: Estimate | None = None, **more: Any) -> Trial:
    return Trial(
        id="t",
        workload="w",
        status=status,  # type: ignore[arg-type]
        reason="its own",
        price=Price(unknown_reason="?"),
        machine=Machine(),
        software=Software(),
        measurement=None if rate is None else Measurement(samples_per_second=rate),
        **more,
    )


@pytest.mark.parametrize(
    ("ended", "cut", "status", "reason"),
    [
        ("interrupted", LOSER, "stopped", "it cannot win"),
        ("ok", LOSER, "ok", "its own"),  # it was through before it was told
        ("failed", LOSER, "failed", "its own"),
        ("out_of_memory", LOSER, "out_of_memory", "its own"),
        ("out_of_memory", BY_HAND, "out_of_memory", "its own"),
        ("failed", BY_HAND, "interrupted", "Ctrl-C"),  # because it was ended
        ("interrupted", BY_HAND, "interrupted", "Ctrl-C"),
        ("interrupted", None, "interrupted", "its own"),
    ],
)
def test_how_a_test_counts_that_was_to_end_early(
    ended: str, cut: Cut | None, status: str, reason: str
) -> None:
    found = cut_short(trial(ended, usage={"cpu": 1.0}), cut)
    assert (found.status, found.reason) == (status, reason)
    saved = found.usage.get("saved_dollars")
    assert saved == (0.02 if status == "stopped" else None)
    assert found.usage["cpu"] == 1.0


def test_what_a_trial_says() -> None:
    knobs = {"batch": "8", "offer": "aws/x"}
    stopped = trial("stopped", RATE, knobs=knobs)
    assert rate_of(stopped) == RATE
    assert setting_of(stopped) == {"batch": "8"}
    assert attempt_of(3, stopped).setting == {"batch": "8"}
    assert says_something(stopped)
    assert says_something(trial("out_of_memory"))
    assert says_something(trial("failed"))
    assert not says_something(trial("failed"), mine=False)
    assert says_something(trial("out_of_memory"), mine=False)
    assert not says_something(trial("no_capacity"))
    assert not says_something(trial("interrupted"))
    assert says_something(trial("interrupted", RATE))
