"""CSV: one line for each trial; ``underdog trials import`` takes it back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from underdog.model import Trial
from underdog.report.trials import write_csv

ENDINGS = (".csv",)


def export(trials: Sequence[Trial], target: Path) -> None:
    """Write the trials as CSV; ``docs/reference/trials-format.md`` tells the columns."""
    with target.open("w", encoding="utf-8", newline="") as file:
        write_csv(trials, file)
