"""A trial in a terminal: its rate, how it went over time, where the time goes, and doubts."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from underdog.core.views.facts import BOUND_NAMES, PHASE_NAMES, knob_text
from underdog.core.views.records import TrialView
from underdog.core.views.words import brief, finite, plain, shown
from underdog.report.show_words import Style, line_chart, minute, ranged, thinned

MOST_REASON = 12  # lines of a reason
# of each phase the fill, the same without anything but ASCII, and the colour
_FILLS = {
    "data": ("░", ".", "yellow"),
    "transfer": ("▒", "t", "magenta"),
    "forward": ("█", "F", "blue"),
    "backward": ("▓", "B", "cyan"),
    "optimizer": ("▚", "O", "green"),
    "communication": ("▞", "c", "red"),
    "other": ("·", "-", "white"),
}
_READINGS = {
    "cores": ("vCPUs busy", 1.0),
    "accelerator_utilization": ("accelerator busy, %", 100.0),
    "memory_gib": ("memory, GiB", 1.0),
    "accelerator_memory_gib": ("accelerator memory, GiB", 1.0),
}


def trial_text(view: TrialView, style: Style) -> RenderableType:
    """Everything worth a look about a trial."""
    colour = "bold" if view.status in ("ok", "running", "stopped") else "bold red"
    parts: list[RenderableType] = [Text(view.headline, style=colour)]
    parts.append(Text(_about(view), style="dim"))
    if view.samples_per_dollar is not None:
        parts.append(Text(f"{ranged(view.samples_per_dollar)} samples per dollar"))
    if view.reason and "\n" in view.reason.strip():
        lines = view.reason.strip().splitlines()[:MOST_REASON]
        parts += [Padding(Text(brief(line, 200)), (0, 0, 0, 2), expand=False) for line in lines]
    charts = list(_over_time(view, style))
    if charts:
        parts += [Text(""), *charts]
    if view.phases:
        parts += [Text(""), *phases_bar(view, style)]
    if view.facts or view.bound_reason:
        parts += [Text(""), _facts(view)]
    if view.caveats:
        parts += [Text(""), *_caveats(view)]
    return Group(*parts)


def _about(view: TrialView) -> str:
    words = [brief(view.workload)]
    if view.knobs:
        words.append(brief(knob_text(view.knobs), 200))
    words.append(f"trial {brief(view.id)}")
    if view.started_at:
        words.append(f"begun {minute(brief(view.started_at, 40))}")
    if view.study:
        words.append(f"of {brief(view.study)}")
    return " · ".join(words)


def _over_time(view: TrialView, style: Style) -> Iterable[RenderableType]:
    """Throughput and readings as lines of one character per stretch of time."""
    if view.timeline is None:
        return
    drawn = {"samples/s": view.timeline.steps.get("samples_per_second", [])}
    for key, (name, by) in _READINGS.items():
        values = view.timeline.usage.get(key, [])
        drawn[name] = [None if v is None else finite(v * by) for v in values]
    known = {name: values for name, values in drawn.items() if _known(values)}
    if not known:
        return
    told = {name: _between(_known(values)) for name, values in known.items()}
    wide, behind = max(map(len, known)), max(map(len, told.values()))
    room = max(style.width - wide - behind - 4, 8)
    for name, values in known.items():
        line = line_chart(thinned(values, room), style)
        yield Text(f"{name:<{wide}}  {line}  {told[name]}", no_wrap=True)
    if view.warmup_steps:
        warmup = f"The warm-up is the first {plain(view.warmup_seconds)} s; the rate leaves it out."
        yield Text(warmup, style="dim")


def _between(values: list[float]) -> str:
    low, high = plain(min(values)), plain(max(values))
    return low if low == high else f"{low} to {high}"


def _known(values: list[float | None]) -> list[float]:
    return [value for value in map(finite, values) if value is not None]


def phases_bar(view: TrialView, style: Style) -> list[RenderableType]:
    """Where the time of a step goes, as one bar with its legend."""
    total = sum(view.phases.values())
    width = min(72, style.width - 4)
    drawn, legend = Text(no_wrap=True), Text()
    done, used = 0.0, 0
    for name, share in view.phases.items():
        fill, letter, colour = _FILLS.get(name, ("·", "-", "white"))
        mark = letter if style.plain else fill
        done += share / total
        upto = round(done * width)
        drawn.append(mark * (upto - used), style=colour)
        used = upto
        if share >= 0.0005:
            words = PHASE_NAMES.get(name, brief(name, 40))
            legend.append(mark, style=colour).append(f" {words} {100 * share:.1f} %   ")
    legend.rstrip()
    return [Text("Where the time of a step goes", style="bold"), drawn, legend]


def _facts(view: TrialView) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    if view.bound_by != "unknown" or view.bound_reason:
        bound = Text(BOUND_NAMES.get(view.bound_by, "not clear"), style="bold")
        if view.bound_reason:
            bound.append(f": {brief(view.bound_reason, 300)}", style="not bold")
        table.add_row("bound by", bound)
    for name, words in view.facts:
        table.add_row(Text(name), Text(brief(words, 600)))
    return table


def _caveats(view: TrialView) -> Iterable[RenderableType]:
    for caveat in view.caveats:
        text = Text(f"! {shown(brief(caveat.message, 400))}", style="yellow")
        if caveat.remedy:
            text.append(f" {brief(caveat.remedy, 400)}", style="cyan")
        yield text
