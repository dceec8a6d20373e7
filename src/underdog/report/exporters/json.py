"""JSON: all that is known of each trial; ``underdog trials import`` takes it back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import msgspec

from underdog.model import Trial

ENDINGS = (".json",)


def export(trials: Sequence[Trial], target: Path) -> None:
    """Write the trials as one JSON list."""
    with target.open("w", encoding="utf-8") as file:
        json.dump(msgspec.to_builtins(list(trials)), file, indent=1)
