"""Prometheus' text format, for its node exporter's textfile collector or a push gateway."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from underdog.model import Trial
from underdog.report.exporters import _metrics

ENDINGS = (".prom",)


def export(trials: Sequence[Trial], target: Path) -> None:
    """Write the latest trial of each workload, offer and setting as gauges."""
    _metrics.needed("The Prometheus format")
    from prometheus_client import generate_latest

    _metrics.write(trials, target, generate_latest)
