"""A search in a terminal: what it came to, the best so far against dollars, and every test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from underdog.core.views.facts import STATUS_WORDS, knob_text
from underdog.core.views.outcome import outcome
from underdog.core.views.records import StudyView, TestLine
from underdog.core.views.words import brief, plain, shown
from underdog.report.decision import number
from underdog.report.show_words import Style

HEIGHT = 5  # lines of the chart
WIDEST = 72
SHOWN = 40  # tests, the latest
COLOURS = {"ok": "green", "running": "yellow", "stopped": "yellow", "interrupted": "yellow"}


def study_text(view: StudyView, style: Style) -> RenderableType:
    """Everything worth a look about a search."""
    said = outcome(view)
    parts: list[RenderableType] = [Text(said[0], style="bold"), Text(" ".join(said[1:]))]
    if len([test for test in view.tests if test.best_utility is not None]) > 1:
        parts += [Text(""), *best_so_far(view, style)]
    if view.tests:
        parts += [Text(""), Text("The tests, in their order", style="bold"), *_tests(view)]
    if view.beliefs:
        parts += [Text(""), Text("Not tested, only believed", style="bold"), *_beliefs(view)]
    if view.command:
        parts += [Text(""), Text("Run the best:"), Text(f"  {' '.join(map(shown, view.command))}")]
    if view.decision and view.best is not None:
        told = f"The decision among the measured: underdog show {brief(view.decision)}"
        parts += [Text(""), Text(told, style="dim")]
    return Group(*parts)


def best_so_far(view: StudyView, style: Style) -> list[RenderableType]:
    """The best value against the dollars spent, as columns; by tests where nothing was paid."""
    tests = [test for test in view.tests if test.number]
    paid = max((test.spent for test in tests), default=0.0)
    ends = [test.spent if paid else float(test.number) for test in tests]
    top = max((abs(t.best_utility) for t in tests if t.best_utility is not None), default=0.0)
    if not ends or not top:
        return []
    label = number(top)
    width = min(WIDEST, style.width - len(label) - 4)
    columns = [_at(tests, ends, ends[-1] * (i + 1) / width) for i in range(width)]
    levels = [0 if v is None else max(1, round(8 * HEIGHT * abs(v) / top)) for v in columns]
    lines = []
    for row in range(HEIGHT - 1, -1, -1):
        cells = "".join(_cell(level - 8 * row, style) for level in levels)
        mark = label if row == HEIGHT - 1 else "0" if row == 0 else ""
        lines.append(f"{mark:>{len(label)}} {cells}".rstrip())
    end = f"${plain(paid)} spent" if paid else f"{len(tests)} tests"
    start = "$0" if paid else "0"
    lines.append(f"{'':>{len(label)}} {start}{end:>{max(width - len(start), 0)}}")
    title = Text(f"Best so far, {brief(view.unit or view.utility, 40)}", style="bold")
    return [title, Text("\n".join(lines), no_wrap=True)]


def _at(tests: Sequence[TestLine], ends: Sequence[float], spent: float) -> float | None:
    """The best value when so much was spent."""
    done = [test for test, end in zip(tests, ends, strict=True) if end <= spent * (1 + 1e-9)]
    return done[-1].best_utility if done else None


def _cell(level: int, style: Style) -> str:
    if level <= 0:
        return " "
    if style.plain:
        return "#" if level >= 4 else "."
    return " ▁▂▃▄▅▆▇█"[min(level, 8)]


def _tests(view: StudyView) -> Iterable[RenderableType]:
    if len(view.tests) > SHOWN:
        yield Text(f"  the latest {SHOWN} of {len(view.tests):,}", style="dim")
    for test in view.tests[-SHOWN:]:
        line = Text(f"{test.number or 'earlier':>4}  ")
        line.append(brief(test.offer), style="bold")
        if test.knobs:
            line.append(f" {brief(knob_text(test.knobs), 120)}", style="cyan")
        line.append("  ").append_text(_outcome(view, test))
        yield line
        why = [test.why] if test.why else []
        why += [test.reason] if test.reason else []
        for words in why:
            yield Padding(Text(brief(words, 240), style="dim"), (0, 0, 0, 6), expand=False)


def _outcome(view: StudyView, test: TestLine) -> Text:
    name = STATUS_WORDS.get(test.status, brief(test.status, 20) or "unknown")
    text = Text()
    if test.utility is not None:
        text.append(f"{number(test.utility)} {view.unit}".rstrip() + ", ")
    elif test.rate is not None:
        text.append(f"{number(test.rate.value)} samples/s, ")
    text.append(name, style=COLOURS.get(test.status, "red"))
    text.append(", cost unknown" if test.dollars is None else f", ${plain(test.dollars)}")
    if test.saved:
        text.append(f", ${plain(test.saved)} saved", style="green")
    return text


def _beliefs(view: StudyView) -> Iterable[RenderableType]:
    for one in view.beliefs:
        figures = [one.get(name) for name in ("utility", "low", "high")]
        if all(isinstance(figure, int | float) for figure in figures):
            value, low, high = (number(float(figure or 0.0), 2) for figure in figures)
            yield Text(f"  {brief(str(one.get('offer')))}  ~{value} ({low}–{high})", style="dim")
