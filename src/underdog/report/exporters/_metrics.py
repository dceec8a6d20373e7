"""The latest trial of each workload on each offer as gauges, for scrapers of metrics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from underdog.errors import MissingPackageError
from underdog.model import Trial
from underdog.report.exporters._flat import plain, row_of

# what a metric is called there, where it stands in a row, and what it is
GAUGES = (
    ("underdog_samples_per_second", "samples_per_second", "Throughput of the workload."),
    ("underdog_samples_per_second_low", "samples_per_second_low", "Low end of its 95 % interval."),
    ("underdog_samples_per_second_high", "samples_per_second_high", "High end of that interval."),
    ("underdog_samples_per_dollar", "samples_per_dollar", "Samples for one US dollar."),
    ("underdog_step_seconds", "step_seconds", "Time of one step."),
    ("underdog_price_per_hour_dollars", "price_per_hour", "Price of the machine, US dollars."),
    ("underdog_trial_dollars", "dollars", "What the trial cost, US dollars."),
)
LABELS = ("workload", "offer", "knobs", "framework", "framework_version")
COUNTED = ("ok", "stopped")


def write(trials: Sequence[Trial], target: Path, text_of: Callable[[Any], bytes]) -> None:
    """Write the gauges as ``text_of`` formats a registry of them."""
    target.write_bytes(text_of(_registry(trials)))


def _registry(trials: Sequence[Trial]) -> Any:
    from prometheus_client import CollectorRegistry, Gauge

    registry = CollectorRegistry()
    gauges = [(Gauge(n, said, LABELS, registry=registry), column) for n, column, said in GAUGES]
    names = "When the trial began, seconds since 1970."
    started = Gauge("underdog_trial_start_time_seconds", names, LABELS, registry=registry)
    for labels, trial in _latest(trials).items():
        row = row_of(trial)
        for gauge, column in gauges:
            value = row[column]
            if isinstance(value, int | float):
                gauge.labels(*labels).set(value)
        moment = _seconds(trial.started_at)
        if moment is not None:
            started.labels(*labels).set(moment)
    return registry


def _latest(trials: Sequence[Trial]) -> dict[tuple[str, ...], Trial]:
    """Of trials that were measured the last one of each set of labels: a scraper knows no two."""
    found: dict[tuple[str, ...], Trial] = {}
    for trial in sorted(trials, key=lambda t: t.started_at):
        if trial.status not in COUNTED or trial.measurement is None:
            continue
        row = row_of(trial)
        knobs = ",".join(f"{k}={v}" for k, v in sorted(trial.knobs.items()))
        labels = {**row, "knobs": plain(knobs)}
        found[tuple(str(labels[name] or "") for name in LABELS)] = trial
    return found


def _seconds(moment: str) -> float | None:
    from datetime import datetime

    try:
        return datetime.fromisoformat(moment).timestamp()
    except ValueError:
        return None


def needed(what: str) -> None:
    """Say how to get the package where it is missing.

    Raises:
        MissingPackageError: it is not installed.
    """
    try:
        import prometheus_client  # noqa: F401
    except ImportError:
        raise MissingPackageError(what, "prometheus-client", "prometheus") from None
