"""A decision in a terminal: the answer first, the ranking as bars, and where the others went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from underdog.core.views.answer import machine
from underdog.core.views.records import DecisionView, Point
from underdog.core.views.words import brief, finite, gain_words, plain
from underdog.report.decision import cause_words
from underdog.report.ranking import MEASURED, PREDICTED
from underdog.report.show_words import Style, bar, ranged

SHOWN = 12  # of the ranking
SHOWN_NAMES = 4  # of a group
SHOWN_CAVEATS = 5
LEAST_BAR, MOST_BAR = 8, 40  # columns
LEAST_NAME = 18


def decision_text(view: DecisionView, style: Style) -> RenderableType:
    """Everything worth a look about a decision."""
    ranked = [point for point in view.points if point.rank is not None]
    parts: list[RenderableType] = [Text(view.answer, style="bold")]
    if view.runner_up:
        parts.append(Text(view.runner_up))
    if ranked:
        parts += [Text(""), *_ranking(view, ranked, style)]
    parts += _groups(view, ranked)
    if view.test_next:
        parts += [Text(""), Text("Test next", style="bold"), *_next(view)]
    if view.plan:
        parts += [Text(""), Text(brief(view.plan, 1000))]
    if view.funnel:
        parts += [Text(""), Text(f"{view.candidates:,} candidates", style="bold")]
        parts.append(_funnel(view, style))
    if view.caveats:
        parts += [Text(""), *_caveats(view)]
    parts += [Text(""), _footing(view)]
    return Group(*parts)


def _ranking(view: DecisionView, every: Sequence[Point], style: Style) -> list[RenderableType]:
    ranked = every[:SHOWN]
    figures = [ranged(point.utility, point.source != "measured") for point in ranked]
    places = max(len(str(point.rank)) for point in ranked)
    room = style.width - places - max(map(cell_len, figures)) - 2 * 3
    names = [_name(point) for point in ranked]
    if max(map(cell_len, names)) > room - LEAST_BAR:
        names = [_name(replace(point, region="")) for point in ranked]
    bars = min(MOST_BAR, max(room - max(map(cell_len, names)), LEAST_BAR))
    bars = bars if room - bars >= LEAST_NAME else 0
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=max(room - bars, LEAST_NAME))
    table.add_column(no_wrap=True, justify="right")
    if bars:
        table.add_column(no_wrap=True)
    largest = max((abs(p.utility.value) for p in ranked if p.utility is not None), default=0.0)
    for point, name, figure in zip(ranked, names, figures, strict=True):
        measured = point.source == "measured"
        cells = [Text(str(point.rank)), Text(name), Text(figure)]
        if bars:
            share = abs(point.utility.value) / largest if point.utility and largest else 0.0
            drawn = bar(share, bars, style, hollow=not measured)
            cells.append(Text(drawn, style="green" if measured else "blue"))
        table.add_row(*cells, style="" if measured else "dim")
    title = Text(view.unit or brief(view.utility, 40), style="bold")
    title.append("  (95 % interval)", style="dim")
    more = [Text(f"and {len(every) - SHOWN:,} more", style="dim")] if len(every) > SHOWN else []
    return [title, table, *more, _legend(ranked, view, bars)]


def _name(point: Point) -> str:
    mark = MEASURED if point.source == "measured" else PREDICTED
    return f"{mark} {machine(point)}{' ◆' if point.pareto else ''}"


def _legend(ranked: Sequence[Point], view: DecisionView, bars: int) -> Text:
    words = [f"{MEASURED} measured"]
    if any(point.source != "measured" for point in ranked):
        words.append(f"{PREDICTED} predicted (~)")
    if any(point.pareto for point in ranked):
        words.append("◆ nothing is both faster and cheaper")
    if bars and view.better == "lower":
        words.append("a shorter bar is better")
    return Text("   ".join(words), style="dim")


def _groups(view: DecisionView, ranked: Sequence[Point]) -> Iterable[RenderableType]:
    """The groups of what was measured; that guesses overlap is no news."""
    measured = {point.offer for point in ranked if point.source == "measured"}
    for group in view.groups:
        if not any(name in measured for name in group):
            continue
        listed = ", ".join(brief(name) for name in group[:SHOWN_NAMES])
        more = len(group) - SHOWN_NAMES
        said = f"{listed}{f' and {more:,} more' if more > 0 else ''}"
        line = Text("Not distinguishable: ", style="bold yellow")
        yield line.append(f"{said}: their intervals overlap.", style="not bold default")


def _next(view: DecisionView) -> Iterable[RenderableType]:
    for test in view.test_next:
        said = brief(str(test.get("offer", "unknown")))
        gain, dollars = finite(test.get("expected_gain")), finite(test.get("dollars"))
        if gain is not None:
            said += f", expected {gain_words(gain)}"
        said += ", price unknown" if dollars is None else f", ${plain(dollars)} a test"
        yield Padding(Text(said), (0, 0, 0, 2), expand=False)


def _funnel(view: DecisionView, style: Style) -> RenderableType:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    wide = min(MOST_BAR, style.width // 3)
    if style.width >= 70:
        table.add_column(no_wrap=True)
    largest = max((line.offers for line in view.funnel), default=0)
    for line in view.funnel:
        words = brief(cause_words(line.verdict, line.cause))
        cells = [Text(f"{line.offers:,}"), Text(words)]
        if style.width >= 70:
            share = line.offers / largest if largest else 0.0
            cells.append(Text(bar(share, wide, style), style="dim"))
        table.add_row(*cells)
    return Padding(table, (0, 0, 0, 2), expand=False)


def _caveats(view: DecisionView) -> Iterable[RenderableType]:
    for caveat in view.caveats[:SHOWN_CAVEATS]:
        said = f"{brief(caveat.message, 400)} {brief(caveat.remedy, 400)}".strip()
        yield Text(f"! {said}", style="yellow")
    more = len(view.caveats) - SHOWN_CAVEATS
    if more > 0:
        yield Text(f"! and {more:,} more caveats in --json", style="yellow")


def _footing(view: DecisionView) -> Text:
    said = f"By {brief(view.utility)} ({view.better} is better), "
    said += f"decided {brief(view.created_at[:10])}. "
    if view.snapshot_date:
        said += f"Offers of {brief(view.snapshot_date, 20)}. "
    if view.expires_at:
        said += f"Choose again after {brief(view.expires_at[:10])}."
    return Text(said.rstrip(), style="dim")
