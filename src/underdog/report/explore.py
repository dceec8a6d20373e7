"""What a person sees of an exploration: lines as it goes, and the page at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from underdog.core.exploration import WHY, Ended, Event, Exploration, Running, Started
from underdog.core.metrics import METRICS
from underdog.report.decision import decision_report, number
from underdog.report.measurement import STATUS_NAMES, knob_text, shown
from underdog.units import format_seconds

LEAST_WEIGHT = 0.01  # of another workload, to be worth a line
SHOWN_REFERENCES = 5
TABLE_FROM = 80  # columns of the terminal; on a narrower one a test has two lines


def line_of(event: Event, utility: str) -> str:
    """One line for an event; that of a running test is for a terminal only."""
    if isinstance(event, Started):
        return _started(event)
    if isinstance(event, Running):
        return _running(event)
    return _tested(event, unit_of(utility))


def unit_of(utility: str) -> str:
    """The unit of a utility: a metric's own, else what was asked for, where it is short."""
    first = utility.split(",")[0].strip()
    if first.lower() in METRICS:
        return METRICS[first.lower()].unit
    return shown(utility) if len(utility) <= 24 else "utility"


def _named(offer: str, knobs: Mapping[str, str]) -> str:
    return shown(offer) + (f" ({knob_text(dict(knobs))})" if knobs else "")


def _started(event: Started) -> str:
    cost = "price unknown" if event.dollars is None else f"${number(event.dollars)}"
    return f"test {event.number}: {_named(event.offer, event.knobs)}, {cost}. {shown(event.reason)}"


def _running(event: Running) -> str:
    elapsed = format_seconds(max(event.look.elapsed, 1.0))
    rate = event.look.rate
    so_far = "no rate yet" if rate is None else f"{number(rate.value)} samples/s "
    if rate is not None:
        so_far += f"({number(rate.low)}–{number(rate.high)})"
    return f"test {event.number}: {shown(event.offer)}, {elapsed}, {so_far}"


def _tested(event: Ended, unit: str) -> str:
    words = [_outcome(event, unit)]
    if event.saved:
        words.append(f"stopped early, which saved ${number(event.saved)}")
    if event.best is None:
        words.append("nothing works so far")
    else:
        best = "unknown" if event.best_utility is None else f"{number(event.best_utility)} {unit}"
        words.append(f"best so far {best} on {shown(event.best)}")
    words.append(f"${number(event.spent)} spent")
    return f"  {'; '.join(words)}"


def _outcome(event: Ended, unit: str) -> str:
    if event.rate is None:
        status = STATUS_NAMES.get(event.status, (event.status, ""))[0]
        reason = f": {shown(event.reason)}" if event.reason else ""
        return f"{status}{reason}"
    value = "" if event.utility is None else f", {number(event.utility)} {unit}"
    return f"{number(event.rate.value)} samples/s{value}"


def report(found: Exploration, width: int = 120) -> RenderableType:
    """The page at the end: what was measured, what is only believed, and the decision."""
    parts: list[RenderableType] = [_headline(found)]
    if found.tests:
        parts += [Text(""), Text("Measured", style="bold"), _inset(_tests(found, width))]
    if found.beliefs or _weights(found):
        parts += [Text(""), Text("Not measured, only believed", style="bold")]
        parts += [_inset(part) for part in _believed(found)]
    if found.decision is not None and found.best is not None:
        parts += [Text(""), decision_report(found.decision, width, explained=found.kept)]
    return Group(*parts)


def _inset(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2), expand=False)


def _headline(found: Exploration) -> Text:
    text, unit = Text(), unit_of(found.utility)
    if found.best is None and not found.tests and not found.earlier:
        text.append("Nothing was tested.", style="bold red")
    elif found.best is None:
        text.append("No candidate works.", style="bold red")
    else:
        text.append("Best found: ", style="bold green")
        text.append(_named(found.best, found.best_knobs), style="bold")
        if found.best_utility is not None:
            text.append(f", {number(found.best_utility)} {unit}")
        if found.best_rate is not None:
            text.append(f" at {number(found.best_rate.value)} samples/s")
    tests = f"{len(found.tests)} test{'s' * (len(found.tests) != 1)}"
    text.append(f"\n{tests} of {found.candidates:,} candidates, ${number(found.spent)} spent")
    if found.earlier:
        text.append(f", {found.earlier:,} earlier trials used")
    if found.saved:
        text.append(f", ${number(found.saved)} saved by stopping tests that could not win")
    text.append(f". Ended: {WHY[found.ended]}.")
    if found.best is not None:
        text.append(
            f"\nExpected loss of stopping now: {found.expected_loss:.1%} of the best there may be "
            f"(in one of ten cases over {found.high_loss:.0%})."
        )
    if found.kept:
        text.append(f"\n{found.study}: the same command goes on from here.", style="dim")
    return text


def _tests(found: Exploration, width: int) -> RenderableType:
    unit = unit_of(found.utility)
    if width < TABLE_FROM:
        lines = [
            f"{test.number}  {_named(test.offer, test.knobs)}\n   {_outcome(test, unit)}"
            for test in found.tests
        ]
        return Text("\n".join(lines), overflow="fold")
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("", justify="right")
    table.add_column("offer", overflow="fold", min_width=20)
    if any(test.knobs for test in found.tests):
        table.add_column("knobs", overflow="fold")
    for name in ("samples/s", unit, "$"):
        table.add_column(Text(name), justify="right", no_wrap=True)
    table.add_column("", overflow="fold")
    for test in found.tests:
        table.add_row(*_cells(test, knobs=len(table.columns) == 7))
    return table


def _cells(test: Ended, *, knobs: bool) -> list[Text]:
    name, colour = STATUS_NAMES.get(test.status, (test.status, "yellow"))
    rate = "" if test.rate is None else number(test.rate.value)
    value = "" if test.utility is None else number(test.utility)
    said = Text("" if test.status == "ok" else name, style=colour)
    if test.rate is not None and test.rate.low < test.rate.high:
        low, high = number(test.rate.low), number(test.rate.high)
        said.append(f"{' ' * bool(said)}({low}–{high})", style="dim")
    if test.reason:
        said.append(f" {shown(test.reason)}")
    cells = [Text(str(test.number)), Text(shown(test.offer))]
    cells += [Text(knob_text(dict(test.knobs)))] if knobs else []
    cost = "" if test.dollars is None else number(test.dollars)
    return [*cells, Text(rate), Text(value), Text(cost), said]


def _weights(found: Exploration) -> list[tuple[str, float]]:
    ranked = sorted(found.references.items(), key=lambda pair: -pair[1])
    return [(name, weight) for name, weight in ranked if weight >= LEAST_WEIGHT]


def _believed(found: Exploration) -> list[RenderableType]:
    parts: list[RenderableType] = []
    weights = _weights(found)
    if weights:
        listed = ", ".join(f"{shown(n)} {w:.0%}" for n, w in weights[:SHOWN_REFERENCES])
        more = len(weights) - SHOWN_REFERENCES
        parts.append(
            Text(
                f"drawn from other workloads: {listed}" + (f", and {more} more" if more > 0 else "")
            )
        )
    if found.beliefs:
        table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
        table.add_column("offer", overflow="fold")
        for name in (unit_of(found.utility), "90 % interval", "may fail"):
            table.add_column(Text(name), justify="right", overflow="fold")
        for one in found.beliefs:
            table.add_row(*_belief(one))
        parts.append(table)
    return parts


def _belief(one: Mapping[str, Any]) -> list[Text]:
    ends = f"{number(one['low'], 2)}–{number(one['high'], 2)}"
    return [
        Text(shown(one["offer"])),
        Text(f"~{number(one['utility'], 2)}"),
        Text(ends),
        Text(f"{one['chance_of_failure']:.0%}"),
    ]


def plan_lines(plan: list[dict[str, Any]]) -> list[str]:
    """What a dry run prints: the first tests, what they would cost, and what would be run."""
    lines = []
    for number_, test in enumerate(plan, start=1):
        cost = "price unknown" if test["dollars"] is None else f"${number(test['dollars'])}"
        lines.append(
            f"test {number_}: {_named(test['offer'], test['knobs'])}, "
            f"{format_seconds(test['seconds'])} at the longest, {cost}. {shown(test['reason'])}"
        )
        lines += [f"  {shown(line)}" for line in test["would_run"]]
    known = [test["dollars"] for test in plan if test["dollars"] is not None]
    lines.append(
        f"These {len(plan)} would cost ${number(sum(known))} at the most; nothing was run."
    )
    return lines
