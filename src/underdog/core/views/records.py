"""The records of what people look at; None is unknown, never 0. Dollars are USD, times seconds
where a name does not say otherwise."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from underdog.model import Caveat, Estimate, Timeline

Source = Literal["measured", "predicted", "reference", "unknown"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Range:
    """A value with its 95 % interval; both ends are None where none is known."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One candidate of a decision, at the region that is best for it.

    Attributes:
        rank: its place, 1 is the best; None where it is not ranked.
        verdict: ``best``, ``tied``, ``beaten``, ``excluded`` or ``untested``.
        reason: why, in words.
        hours, dollars: of the whole job where its samples are known, else of a million samples.
        price_per_hour: of all its nodes.
        pareto: whether no other ranked offer is both faster and cheaper.
        tied_with: names of offers that cannot be told apart from it.
    """

    offer: str
    provider: str = ""
    region: str = ""
    instance_type: str = ""
    purchase: str = "on-demand"
    nodes: int = 1
    accelerator: str | None = None
    accelerator_count: float = 0
    vcpus: float | None = None
    memory_gib: float | None = None
    price_per_hour: float | None = None
    rank: int | None = None
    verdict: str = "untested"
    reason: str = ""
    source: Source = "unknown"
    samples_per_second: Range | None = None
    samples_per_dollar: Range | None = None
    hours: Range | None = None
    dollars: Range | None = None
    utility: Range | None = None
    pareto: bool = False
    tied_with: list[str] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class FunnelLine:
    """So many offers have one verdict for one cause."""

    verdict: str
    cause: str
    offers: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerLine:
    """Why one candidate is where it is."""

    offer: str
    verdict: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TestLine:
    """One test of a search, in the order in which they began.

    Attributes:
        number: 1, 2, …; 0 for a trial from before the study.
        why: why the search asked for it.
        spent: dollars of all tests up to and with this one; unknown prices left out.
        best_utility: of the best offer after this test.
        saved: dollars that stopping it early saved.
    """

    __test__ = False  # no class of tests for pytest

    number: int
    trial: str
    offer: str
    knobs: dict[str, str] = field(default_factory=dict)
    status: str = "ok"
    reason: str | None = None
    why: str | None = None
    rate: Estimate | None = None
    utility: float | None = None
    dollars: float | None = None
    saved: float | None = None
    spent: float = 0.0
    best: str | None = None
    best_utility: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyView:
    """A search: what was tested in which order and why, and what it came to.

    Attributes:
        ended: why it ended, in words; None while it runs or where nobody wrote it down.
        expected_loss, high_loss: of stopping now, shares of the best value there may be.
        beliefs: of the most promising offers that were not tested.
    """

    id: str
    workload: str
    utility: str
    unit: str
    better: Literal["higher", "lower"]
    running: bool = False
    candidates: int | None = None
    tests: list[TestLine] = field(default_factory=list)
    spent: float = 0.0
    saved: float = 0.0
    ended: str | None = None
    expected_loss: float | None = None
    high_loss: float | None = None
    best: str | None = None
    best_knobs: dict[str, str] = field(default_factory=dict)
    best_utility: float | None = None
    command: list[str] = field(default_factory=list)
    beliefs: list[dict[str, Any]] = field(default_factory=list)
    references: dict[str, float] = field(default_factory=dict)
    decision: str | None = None  # id of its last decision


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionView:
    """A decision: the answer first, then what carries it.

    Attributes:
        answer: one sentence with its uncertainty.
        runner_up: one sentence; None where there is no second.
        unit: of the utility.
        samples: of the whole job; where it is None, hours and dollars are of a million samples.
        points: ranked ones first, then excluded and untested ones as far as they are drawn.
        groups: names of offers that cannot be told apart, the best group first.
        whole: whether the ledger holds every candidate; else only the funnel's counts are known.
    """

    id: str
    workload: str
    created_at: str
    expires_at: str
    utility: str
    unit: str
    better: Literal["higher", "lower"]
    answer: str
    runner_up: str | None = None
    samples: float | None = None
    deadline_hours: float | None = None
    budget: float | None = None
    candidates: int = 0
    snapshot: str = ""
    snapshot_date: str = ""
    constraints: list[str] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    caveats: list[Caveat] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    groups: list[list[str]] = field(default_factory=list)
    funnel: list[FunnelLine] = field(default_factory=list)
    ledger: list[LedgerLine] = field(default_factory=list)
    whole: bool = False
    test_next: list[dict[str, Any]] = field(default_factory=list)
    fallback: list[dict[str, Any]] = field(default_factory=list)
    plan: str | None = None  # spot and on demand by the deadline, in words
    services: dict[str, Any] = field(default_factory=dict)
    trials: list[str] = field(default_factory=list)
    study: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialView:
    """One trial, as measured or while it runs.

    Attributes:
        headline: one sentence: the rate with its interval, or what went wrong.
        phases: shares of the step time by name, in the order in which they are drawn.
        facts: name and text of what else is known, in the order in which it is told.
    """

    id: str
    workload: str
    offer: str
    status: str
    headline: str
    running: bool = False
    started_at: str = ""
    ended_at: str | None = None
    updated_at: str | None = None
    runner: str = "local"
    command: list[str] = field(default_factory=list)
    knobs: dict[str, str] = field(default_factory=dict)
    reason: str | None = None
    rate: Estimate | None = None
    price_per_hour: float | None = None
    samples_per_dollar: Range | None = None
    dollars: float | None = None
    steps: int = 0
    samples: int | None = None
    warmup_seconds: float = 0.0
    warmup_steps: int = 0
    phases: dict[str, float] = field(default_factory=dict)
    bound_by: str = "unknown"
    bound_reason: str | None = None
    peak_memory_gib: dict[str, float | None] = field(default_factory=dict)
    usage: dict[str, float | None] = field(default_factory=dict)
    caveats: list[Caveat] = field(default_factory=list)
    facts: list[tuple[str, str]] = field(default_factory=list)
    timeline: Timeline | None = None
    study: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryPoint:
    """One measurement of a workload on one kind of machine."""

    trial: str
    at: str  # ISO 8601, UTC
    machine: str
    samples_per_second: Range | None = None
    price_per_hour: float | None = None
    samples_per_dollar: Range | None = None
    version: str | None = None  # of the framework


@dataclass(frozen=True, kw_only=True, slots=True)
class Marker:
    """Something that happened: a change point, a move of a price, another version of software."""

    at: str
    machine: str
    kind: Literal["change", "price", "version"]
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryView:
    """A workload over time: throughput and samples per dollar by machine, with what happened.

    Attributes:
        left_out: how many measurements between the points are not there, where there are many.
    """

    workload: str
    points: list[HistoryPoint] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    machines: list[str] = field(default_factory=list)
    left_out: int = 0
