"""One line for each trial, decision and study of a list; pure functions of stored records."""

from __future__ import annotations

from dataclasses import dataclass, field

from underdog.model import Decision, Estimate, Trial

# what a trial showed before it failed is no throughput of the workload
COUNTED = ("ok", "running", "stopped", "interrupted")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrialLine:
    """A trial in a list."""

    id: str
    workload: str
    machine: str
    status: str
    knobs: dict[str, str] = field(default_factory=dict)
    reason: str | None = None
    started_at: str = ""
    samples_per_second: Estimate | None = None
    price_per_hour: float | None = None
    samples_per_dollar: float | None = None
    dollars: float | None = None
    caveats: list[str] = field(default_factory=list)  # codes
    study: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DecisionLine:
    """A decision in a list; ``best`` is the offer that it put first."""

    id: str
    workload: str
    created_at: str
    expires_at: str
    utility: str
    candidates: int = 0
    best: str | None = None
    best_source: str | None = None
    best_price_per_hour: float | None = None
    trials: int = 0
    study: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StudyLine:
    """A study in a list: how many of its trials have which status."""

    id: str
    workload: str
    trials: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    last_at: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkloadLine:
    """A workload in a list: how many of its trials have which status."""

    workload: str
    trials: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    last_at: str = ""


def trial_line(trial: Trial) -> TrialLine:
    """A trial as a list shows it."""
    found = trial.measurement.samples_per_second if trial.measurement else None
    rate = found if trial.status in COUNTED else None
    price, machine = trial.price.per_hour, trial.machine
    known = trial.offer.id if trial.offer else machine.instance_type or machine.hostname
    return TrialLine(
        id=trial.id,
        workload=trial.workload,
        machine=known or "this machine",
        status=trial.status,
        knobs=trial.knobs,
        reason=trial.reason,
        started_at=trial.started_at,
        samples_per_second=rate,
        price_per_hour=price,
        samples_per_dollar=rate.value * 3600 / price if rate and price else None,
        dollars=trial.dollars,
        caveats=list(dict.fromkeys(caveat.code for caveat in trial.caveats)),
        study=trial.study,
    )


def decision_line(decision: Decision) -> DecisionLine:
    """A decision as a list shows it."""
    first = decision.ranking[0] if decision.ranking else {}
    offer = first.get("offer") or {}
    return DecisionLine(
        id=decision.id,
        workload=decision.workload,
        created_at=decision.created_at,
        expires_at=decision.expires_at,
        utility=decision.utility,
        candidates=decision.candidates,
        best=offer.get("id"),
        best_source=first.get("source"),
        best_price_per_hour=offer.get("price_per_hour"),
        trials=len(decision.trials),
        study=decision.study,
    )
