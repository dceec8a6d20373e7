"""Views as text for a terminal, with bars where it can draw them and plain where it cannot."""

from __future__ import annotations

import os

from rich.console import Console, RenderableType

from underdog.core.views.records import DecisionView, HistoryView, StudyView, TrialView
from underdog.report.show_decision import decision_text
from underdog.report.show_history import history_text
from underdog.report.show_study import study_text
from underdog.report.show_trial import trial_text
from underdog.report.show_words import Style

NARROWEST = 40
View = DecisionView | StudyView | TrialView | HistoryView


def style_of(console: Console, terminal: str | None = None) -> Style:
    """What a console can show.

    Args:
        terminal: its kind, else ``$TERM``; a dumb one draws nothing.
    """
    kind = os.environ.get("TERM", "") if terminal is None else terminal
    plain = not console.encoding.lower().startswith("utf") or kind == "dumb"
    return Style(width=max(console.width, NARROWEST), plain=plain)


def show_text(view: View, style: Style) -> RenderableType:
    """The text of a view."""
    if isinstance(view, DecisionView):
        return decision_text(view, style)
    if isinstance(view, StudyView):
        return study_text(view, style)
    if isinstance(view, TrialView):
        return trial_text(view, style)
    return history_text(view, style)


def print_view(view: View, console: Console) -> None:
    """Print a view, as well as the console can."""
    style = style_of(console)
    console.width = style.width
    if not style.plain:
        console.print(show_text(view, style))
        return
    with console.capture() as captured:
        console.print(show_text(view, style))
    console.out(style.text(captured.get()), end="", highlight=False)
