"""A workload over time in a terminal: one line of bars for each machine, and what changed."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from underdog.core.views.records import HistoryPoint, HistoryView
from underdog.core.views.words import brief, plural
from underdog.report.decision import number
from underdog.report.show_words import Style, line_chart, minute, ranged, thinned

SHOWN_MACHINES, SHOWN_MARKERS = 12, 20
WIDEST = 60


def history_text(view: HistoryView, style: Style) -> RenderableType:
    """Everything worth a look about a workload's history."""
    name = brief(view.workload)
    if not view.points:
        return Text(f"{name}: nothing that was measured of it can be compared.", style="bold")
    said = f"{name}: {plural(len(view.points), 'measurement')} on "
    said += f"{plural(len(view.machines), 'kind')} of machine."
    parts: list[RenderableType] = [Text(said, style="bold")]
    # those that were measured last come first
    latest = {point.machine: point.at for point in view.points}
    machines = sorted(view.machines, key=lambda machine: latest.get(machine, ""), reverse=True)
    for machine in machines[:SHOWN_MACHINES]:
        parts += [Text(""), *_machine(view, machine, style)]
    if len(machines) > SHOWN_MACHINES:
        parts += [Text(""), Text(f"and {len(machines) - SHOWN_MACHINES:,} more kinds of machine")]
    return Group(*parts)


def _machine(view: HistoryView, machine: str, style: Style) -> Iterable[RenderableType]:
    points = [point for point in view.points if point.machine == machine]
    first, last = points[0], points[-1]
    yield Text(brief(machine, 120), style="cyan")
    values = [point.samples_per_second.value if point.samples_per_second else None
              for point in points]  # fmt: skip
    if len(points) > 1:
        line = line_chart(thinned(values, min(WIDEST, style.width - 30)), style)
        known = [value for value in values if value is not None]
        yield _inset(f"{line}  {number(min(known))} to {number(max(known))} samples/s")
        yield _inset(f"first {_told(first)}")
    yield _inset(f"last  {_told(last)}")
    marks = [mark for mark in view.markers if mark.machine == machine]
    for mark in marks[-SHOWN_MARKERS:]:
        text = Text(f"{minute(brief(mark.at, 40))}  {brief(mark.text, 300)}")
        text.stylize("yellow" if mark.kind == "change" else "dim")
        yield Padding(text, (0, 0, 0, 2), expand=False)


def _told(point: HistoryPoint) -> str:
    said = f"{minute(brief(point.at, 40))}  {ranged(point.samples_per_second)} samples/s"
    if point.samples_per_dollar is not None:
        said += f", {ranged(point.samples_per_dollar)} samples/$"
    return said + (f", version {brief(point.version, 30)}" if point.version else "")


def _inset(words: str) -> RenderableType:
    return Padding(Text(words), (0, 0, 0, 2), expand=False)
