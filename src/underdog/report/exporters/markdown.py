"""Markdown: the trials as a table for a page or an issue."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from underdog.model import Trial
from underdog.report.trials import trials_markdown

ENDINGS = (".md",)


def export(trials: Sequence[Trial], target: Path) -> None:
    """Write the trials as a Markdown table."""
    target.write_text(trials_markdown(trials) + "\n", encoding="utf-8", errors="backslashreplace")
