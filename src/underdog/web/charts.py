"""The charts of a page, from the specifications that the report is made with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from underdog.report.charts import CHARTS, DECISION, HISTORY, STUDY, TRIAL

__all__ = ["DECISION", "HISTORY", "STUDY", "TRIAL", "specs"]


def specs(names: Iterable[str], view: Any) -> dict[str, Any]:
    """The specification of each chart of a view by name, None where there is nothing to draw."""
    return {name: CHARTS[name](view) for name in names}
