"""What an exploration tells as it goes, and what it comes to. Records only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from underdog.core.racing import Look
from underdog.core.search import Suggestion
from underdog.model import Decision, Estimate

Why = Literal["enough", "trials", "budget", "deadline", "exhausted", "interrupted"]

WHY: dict[Why, str] = {
    "enough": "another test is not worth its cost",
    "trials": "the largest number of trials is reached",
    "budget": "no further test fits in the budget",
    "deadline": "no further test would end before the deadline",
    "exhausted": "there is nothing left to test",
    "interrupted": "it was interrupted",
}


@dataclass(frozen=True, slots=True)
class Started:
    """A test begins. ``number`` counts the tests of the study; ``dollars`` is None where unknown.

    ``expected`` is what the search expects of it, in its own values (None for other knobs).
    """

    number: int
    offer: str
    knobs: Mapping[str, str]
    reason: str
    dollars: float | None
    expected: Suggestion | None


@dataclass(frozen=True, slots=True)
class Running:
    """A test goes on: what it shows so far."""

    number: int
    offer: str
    look: Look


@dataclass(frozen=True, slots=True)
class Ended:
    """A test that ended.

    Attributes:
        number: of the tests of the study.
        trial: id of the trial.
        status, reason: as in the trial.
        rate: samples per second; None where it gave none.
        utility: of the rate at this price, as the user gave it; None where it has no value.
        dollars: what it cost; saved, what stopping it early saved.
        best: name of the best offer after this test, best_utility its utility, best_knobs its
            setting.
        spent: dollars of all tests so far, those of unknown price left out.
        missed: whether a limit of the whole job is missed at that rate.
        references: how much the other workloads explain of all that was measured up to this test,
            0 to 1; None where there are none.
    """

    number: int
    trial: str
    offer: str
    knobs: Mapping[str, str]
    status: str
    reason: str | None
    rate: Estimate | None
    utility: float | None
    dollars: float | None
    saved: float | None
    best: str | None
    best_utility: float | None
    spent: float
    best_knobs: Mapping[str, str] = field(default_factory=dict)
    missed: bool = False
    references: float | None = None


Event = Started | Running | Ended


@dataclass(frozen=True, kw_only=True, slots=True)
class Exploration:
    """What an exploration came to; what ``explore --json`` prints.

    What was measured and what only the references say are kept apart: ``tests`` and ``best`` are
    measured, ``beliefs`` are about candidates that were not.

    Attributes:
        earlier: trials of the workload from before this study that were used; ``before`` says
            what they showed, numbered 0.
        spent: dollars of all tests, but for those ``unpriced``, whose price is unknown.
        command: the command with the best knobs; empty where there is none.
        expected_loss, high_loss: of stopping now, as a share of the best value there may be: the
            mean and the ninetieth percentile. 1 where nothing was measured. They are of the
            candidates with the knobs that were tried: ``settings_left`` of ``settings`` were not
            tried on the best one.
        references: weights of the other workloads, as far as they explain what was measured;
            ``references_at_first`` is their sum before any test.
        beliefs: of the most promising candidates that were not tested.
        test_seconds: the longest time of one test.
        kept: whether the trials are in a store, so that the same command goes on from here.
    """

    study: str
    workload: str
    runner: str
    utility: str
    better: str
    candidates: int
    earlier: int
    tests: Sequence[Ended]
    spent: float
    saved: float
    best: str | None
    best_knobs: Mapping[str, str]
    best_rate: Estimate | None
    best_utility: float | None
    ended: Why
    expected_loss: float
    high_loss: float
    stopping: str
    command: Sequence[str] = ()
    before: Sequence[Ended] = ()
    unpriced: int = 0
    settings: int = 1
    settings_left: int = 0
    references: Mapping[str, float] = field(default_factory=dict)
    references_at_first: float | None = None
    beliefs: Sequence[Mapping[str, Any]] = ()
    test_seconds: float = 120.0
    decision: Decision | None = None
    kept: bool = True
