"""OpenMetrics text format 1.0."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from underdog.model import Trial
from underdog.report.exporters import _metrics

ENDINGS = (".om", ".openmetrics")


def export(trials: Sequence[Trial], target: Path) -> None:
    """Write the latest trial of each workload, offer and setting as gauges."""
    _metrics.needed("The OpenMetrics format")
    from prometheus_client.openmetrics.exposition import generate_latest

    _metrics.write(trials, target, generate_latest)
