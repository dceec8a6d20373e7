"""Charts of views as Vega-Lite specifications: plain data, drawn by a page or as a picture.

Each has a file with ``spec(view)``: the specification, or None where the view has nothing to draw.
Data are in it, colours are not: ``theme.config`` has those, light and dark. ``description`` is what
the chart says, for people who do not see it. ``width`` is that of what holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from underdog.core.views.page import Page
from underdog.report.charts import (
    front,
    funnel,
    history,
    machine,
    phases,
    ranking,
    search,
    throughput,
)

Spec = dict[str, Any]

DECISION = ("front", "ranking", "funnel")
STUDY = ("search",)
TRIAL = ("throughput", "phases", "machine")
HISTORY = ("history",)

CHARTS: Mapping[str, Callable[[Any], Spec | None]] = MappingProxyType(
    {
        "front": front.spec,
        "ranking": ranking.spec,
        "funnel": funnel.spec,
        "search": search.spec,
        "throughput": throughput.spec,
        "phases": phases.spec,
        "machine": machine.spec,
        "history": history.spec,
    }
)


def applicable(page: Page) -> dict[str, Spec]:
    """All charts of a page that have something to draw, by name, in the order of the page.

    Those of trials are named ``throughput:TRIAL`` and the like, where a page has several.
    """
    found: dict[str, Spec] = {}
    parts = ((DECISION, page.decision), (STUDY, page.study), (HISTORY, page.history))
    for names, view in parts[:2]:
        found |= _drawn(names, view)
    for trial in page.trials:
        end = f":{trial.id}" if len(page.trials) > 1 else ""
        found |= {f"{name}{end}": spec for name, spec in _drawn(TRIAL, trial).items()}
    return found | _drawn(*parts[2])


def _drawn(names: tuple[str, ...], view: Any) -> dict[str, Spec]:
    specs = {name: CHARTS[name](view) for name in names} if view is not None else {}
    return {name: spec for name, spec in specs.items() if spec is not None}
