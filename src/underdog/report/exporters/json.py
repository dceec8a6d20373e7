"""JSON: all that is known of each trial; ``underdog trials import`` takes it back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from underdog.model import Trial
from underdog.progress import track
from underdog.report.exporters import WRITTEN

ENDINGS = (".json",)
WHOLE = True


def export(trials: Sequence[Trial], target: Path) -> None:
    """Write the trials as one JSON list."""
    with target.open("w", encoding="utf-8") as file:
        file.write("[")
        for number, trial in enumerate(track(trials, WRITTEN)):
            file.write(",\n" if number else "\n")
            json.dump(msgspec.to_builtins(trial), file, indent=1)
        file.write("\n]\n")
