"""A report as one HTML file that is complete in itself."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
from collections.abc import Mapping
from typing import Any

from underdog.core.views.page import Page
from underdog.core.views.records import TrialView
from underdog.report.charts import theme
from underdog.report.html import assets
from underdog.report.html.environment import environment

Specs = Mapping[str, Mapping[str, Any] | None]
CHARTS = ("front", "ranking", "funnel", "search", "history")
TRIAL_CHARTS = ("throughput", "phases", "machine")
NOT_DRAWN: Specs = dict.fromkeys(TRIAL_CHARTS)
MOST_OF_TRIALS = 900_000  # characters of the charts of all trials together


def page(page: Page, specs: Specs) -> str:
    """A report as HTML: no network at view time, and less than 3 MB for any catalog there is.

    Args:
        page: what there is to show.
        specs: the charts by name, as ``report.charts.applicable`` gives them.

    Raises:
        MissingPackageError: Jinja or vl-convert-python is not installed.
    """
    made = environment()
    from markupsafe import Markup

    from underdog.report.html.packed import compressed

    style, script, vega = assets.style(), assets.script(), assets.vega()
    anchors = {trial.id: f"#trial-{place}" for place, trial in enumerate(page.trials, start=1)}
    html = made.get_template("report.html").render(
        page=page,
        decision=page.decision,
        study=page.study,
        trials=(trials := _with_charts(page.trials, specs)),
        undrawn=sum(charts is NOT_DRAWN for _, charts in trials),
        more_trials=page.more_trials,
        history=page.history,
        charts={name: specs.get(name) for name in CHARTS},
        contents=contents(page, specs),
        href=lambda kind, name: anchors.get(name) if kind == "trial" else None,
        themes=themes(),
        version=importlib.metadata.version("underdog"),
        policy=policy(style, [script, vega]),
        style=Markup(style),
        script=Markup(script),
        library=compressed(vega, "library"),
    )
    # a store may hold half of a surrogate pair, which no file can
    return html.encode("utf-8", "replace").decode()


def contents(page: Page, specs: Specs) -> list[tuple[str, str]]:
    """The sections of a page: anchor and title of each, in their order."""
    decision = page.decision
    there = {
        ("answer", "The answer"): decision,
        ("utility", "What matters to you"): decision,
        ("front", "Time against cost"): decision and specs.get("front"),
        ("ranking", "The ranking"): decision and (specs.get("ranking") or decision.groups),
        ("ledger", "The ledger"): decision,
        ("search", "The search"): page.study,
        ("trials", "The trials"): page.trials or page.more_trials,
        ("history", "History"): page.history,
        ("footing", "What this rests on"): decision,
    }
    return [section for section, shown in there.items() if shown]


def policy(style: str, scripts: list[str]) -> str:
    """The content security policy of a page: its own style and scripts, and nothing else."""
    trusted = " ".join(map(_digest, scripts))
    return (
        f"default-src 'none'; script-src {trusted}; style-src {_digest(style)}; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def themes() -> dict[str, Any]:
    """The configurations of charts: of a page, which follows its scheme, and of a saved picture."""
    light, dark = theme.config(dark=False), theme.config(dark=True)
    return {"page": _either(light, dark) | {"background": None}, "picture": light}


def _either(light: Any, dark: Any) -> Any:
    """A configuration whose colours are CSS for one or the other, as the page's scheme is."""
    if isinstance(light, dict):
        return {name: _either(value, dark[name]) for name, value in light.items()}
    if isinstance(light, list | tuple):
        return [_either(one, other) for one, other in zip(light, dark, strict=True)]
    return light if light == dark else f"light-dark({light}, {dark})"


def _with_charts(trials: list[TrialView], specs: Specs) -> list[tuple[TrialView, Specs]]:
    """Each trial with its charts; what would make the file too large is left out, last first."""
    from underdog.report.html.packed import data

    shown: list[tuple[TrialView, Specs]] = []
    left = MOST_OF_TRIALS
    for trial in trials:
        charts: Specs = {name: specs.get(f"{name}:{trial.id}") for name in TRIAL_CHARTS}
        if len(trials) == 1:
            charts = {name: spec or specs.get(name) for name, spec in charts.items()}
        left -= sum(len(data(spec, "spec")) for spec in charts.values() if spec)
        shown.append((trial, charts if left >= 0 else NOT_DRAWN))
    return shown


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
