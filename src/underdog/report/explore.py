"""What a person sees of an exploration: lines as it goes, and the page at its end."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from underdog.core.exploration import WHY, Ended, Event, Exploration, Running, Started, Why
from underdog.core.metrics import METRICS
from underdog.model import Decision
from underdog.report.decision import caveat_lines, decision_report, harmless, number
from underdog.report.measurement import STATUS_NAMES, knob_text, shown
from underdog.units import format_seconds

LEAST_WEIGHT = 0.01  # of another workload, to be worth a line
SHOWN_REFERENCES = 5
SET_ASIDE = 0.05  # what the other workloads explain together, to count as set aside below it
SHOWN_EARLIER = 5
LONGEST_REASON = 160  # characters
RATE = "samples/s"
WITH_INTERVAL = f"{RATE}\n(95 % interval)"
TABLE_FROM = 96  # columns of the terminal; on a narrower one a test has two lines


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
        words.append(f"best so far {best} on {_named(event.best, event.best_knobs)}")
    if event.references is not None:
        words.append(f"other workloads explain {event.references:.0%}")
    words.append(_spent(event.spent, unpriced=event.dollars is None))
    return f"  {'; '.join(words)}"


def _spent(dollars: float, unpriced: int) -> str:
    if not dollars and unpriced:
        return "cost unknown"
    return f"${number(dollars)} spent"


def _outcome(event: Ended, unit: str) -> str:
    if event.rate is None:
        status = STATUS_NAMES.get(event.status, (event.status, ""))[0]
        reason = f": {_in_short(event.reason)}" if event.reason else ""
        return f"{status}{reason}"
    return _at(event.rate.value, event.utility, unit)


def _in_short(reason: str) -> str:
    """A reason on one line, its begin and its end; the whole of it stands in the trial."""
    line = " ".join(reason.split())
    if len(line) > LONGEST_REASON:
        line = f"{line[: LONGEST_REASON // 3]} … {line[-LONGEST_REASON * 2 // 3 :]}"
    return shown(line)


def _at(rate: float, utility: float | None, unit: str) -> str:
    """A rate with the utility that it makes, where that is another figure."""
    value = "" if utility is None or unit == RATE else f", {number(utility)} {unit}"
    return f"{number(rate)} {RATE}{value}"


def report(found: Exploration, width: int = 120) -> RenderableType:
    """The page at the end: what was measured, what is only believed, and the decision."""
    parts: list[RenderableType] = [_headline(found)]
    if found.tests or found.before:
        parts += [Text(""), Text("Measured, the best first", style="bold")]
        parts += [_inset(_tests(found, width))]
    if found.references:
        parts += [Text(""), Text("Other workloads", style="bold"), _inset(_references(found))]
    if found.beliefs:
        parts += [Text(""), Text("Not measured, only believed by the search", style="bold")]
        parts += [_inset(_beliefs(found))]
    if found.decision is not None and found.best is not None:
        decision = _decision(found, found.decision, width)
        parts += [Text(""), *decision] if decision else []
    return Group(*parts)


def command_lines(found: Exploration) -> list[str]:
    """The command with the best knobs, to be pasted; nothing where there is none."""
    if not found.command:
        return []
    title = "Run it with the best knobs:" if found.best_knobs else "Run it:"
    return ["", title, f"  {shown(shlex.join(found.command))}"]


def _inset(part: RenderableType) -> Padding:
    return Padding(part, (0, 0, 0, 2), expand=False)


def _decision(found: Exploration, decision: Decision, width: int) -> list[RenderableType]:
    """What was measured, ranked: of the others only the search's beliefs are shown."""
    # the tests that failed stand in the table above
    caveats = [one for one in decision.caveats if one.code != "trial_does_not_count"]
    decision = dataclasses.replace(decision, caveats=caveats)
    if found.candidates == 1:
        return list(caveat_lines(harmless(decision)))
    measured = [entry for entry in decision.ranking if entry["source"] == "measured"]
    funnel = [line for line in decision.funnel if line["verdict"] != "untested"]
    if len(funnel) < len(decision.funnel):
        untested = decision.candidates - sum(line["offers"] for line in funnel)
        funnel.append({"verdict": "untested", "cause": "untested", "offers": untested})
        funnel.sort(key=lambda line: -line["offers"])
    told = dataclasses.replace(decision, ranking=measured, test_next=[], funnel=funnel)
    return [decision_report(told, width, explained=found.kept)]


def _headline(found: Exploration) -> Text:
    text, unit = Text(), unit_of(found.utility)
    if found.best is None and not found.tests and not found.earlier:
        text.append("Nothing was tested.", style="bold red")
    elif found.best is None:
        whole = found.ended in ("enough", "exhausted")
        text.append("No candidate works." if whole else "Nothing works so far.", style="bold red")
    else:
        text.append("Best found: ", style="bold green")
        text.append(_named(found.best, found.best_knobs), style="bold")
        if found.best_rate is not None:
            text.append(f", {_at(found.best_rate.value, found.best_utility, unit)}")
    text.append(f"\n{_effort(found)}. Ended: {WHY[found.ended]}.")
    if found.best is not None:
        text.append(f"\n{_loss(found)}")
    elif found.kept and found.tests:
        text.append(
            "\nWhat failed counts as tested in this study. Once the cause is mended, search anew: "
            "give another --seed."
        )
    if found.runner == "replay":
        text.append(
            f"\nA replay: each test counts as {format_seconds(found.test_seconds)} of its offer; "
            "none is stopped early, so nothing is saved by that.",
            style="dim",
        )
    if found.kept:
        text.append(f"\n{found.study}: the same command goes on from here.", style="dim")
    else:
        said = "\nNothing of it was kept: with --store, show, report and serve have it too."
        text.append(said, style="dim")
    return text


def _effort(found: Exploration) -> str:
    """How many tests there were, and what they cost."""
    tests = f"{len(found.tests)} test{'s' * (len(found.tests) != 1)}"
    among = f"{found.candidates:,} candidate{'s' * (found.candidates != 1)}"
    said = f"{tests} of {among}, {_spent(found.spent, found.unpriced)}"
    if found.spent and found.unpriced:
        said += f" beside {found.unpriced} of unknown cost"
    if found.earlier:
        said += f", {found.earlier:,} earlier trial{'s' * (found.earlier != 1)} used"
    if found.saved:
        said += f", ${number(found.saved)} saved by stopping tests that could not win"
    return said


def _loss(found: Exploration) -> str:
    """What stopping now may lose, and what that does not count."""
    left, best = found.settings_left, shown(found.best or "")
    if found.candidates == 1:
        said = "There is no other candidate"
        if found.settings > 1:
            tried = f"{left} of {found.settings:,} settings of the knobs were not tried"
            said += f"; {tried if left else f'all {found.settings} settings were tried'}"
        return f"{said}."
    said = (
        f"Expected loss of stopping now: {found.expected_loss:.1%} of the best there may be "
        f"(in nine of ten cases at most {found.high_loss:.1%})."
    )
    if left:
        said += (
            f" It is of other machines only: {left:,} of {found.settings:,} settings of the knobs "
            f"were not tried on {best}, and may be better."
        )
    return said


def _tests(found: Exploration, width: int) -> RenderableType:
    unit, sign = unit_of(found.utility), 1 if found.better == "higher" else -1
    ranked = sorted(found.tests, key=lambda test: _place(test, sign))
    before = sorted(found.before, key=lambda test: _place(test, sign))
    rows = sorted([*ranked, *before[:SHOWN_EARLIER]], key=lambda test: _place(test, sign))
    more = len(before) - SHOWN_EARLIER
    if width < TABLE_FROM:
        lines = [
            f"{test.number or 'earlier'}  {_named(test.offer, test.knobs)}\n"
            f"   {_outcome(test, unit)}"
            for test in rows
        ]
        table: RenderableType = Text("\n".join(lines), overflow="fold")
    else:
        table = _test_table(found, rows, unit)
    return Group(table, Text(f"and {more:,} earlier trials", style="dim")) if more > 0 else table


def _place(test: Ended, sign: int) -> tuple[int, float, int]:
    """The best first, then what misses a limit or has no value, then what failed."""
    if test.rate is None:
        return 2, 0.0, test.number
    if test.missed or test.utility is None:
        return 1, -test.rate.value, test.number
    return 0, -sign * test.utility, test.number


def _test_table(found: Exploration, rows: Sequence[Ended], unit: str) -> Table:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("test", justify="right")
    if found.candidates > 1:
        table.add_column("offer", overflow="fold", min_width=20)
    if any(test.knobs for test in rows):
        table.add_column("knobs", overflow="fold")
    names = [unit] * (unit != RATE) + [WITH_INTERVAL, "cost $"]
    for name in names:
        table.add_column(Text(name), justify="right", no_wrap=True)
    table.add_column("how it ended", overflow="fold")
    for test in rows:
        cells = {
            "test": Text(str(test.number) if test.number else "earlier"),
            "offer": Text(shown(test.offer)),
            "knobs": Text(knob_text(dict(test.knobs))),
            unit: Text("" if test.utility is None else number(test.utility)),
            WITH_INTERVAL: _rate(test),
            "cost $": Text("unknown" if test.dollars is None else number(test.dollars)),
            "how it ended": _end(test),
        }
        table.add_row(*(cells[str(column.header)] for column in table.columns))
    return table


def _rate(test: Ended) -> Text:
    if test.rate is None:
        return Text("")
    low, high = test.rate.low, test.rate.high
    ends = f" ({number(low)}–{number(high)})" if low < high else ""
    return Text(number(test.rate.value)).append(ends, style="dim")


def _end(test: Ended) -> Text:
    name, colour = STATUS_NAMES.get(test.status, (test.status, "yellow"))
    said = Text(name, style=colour)
    if test.missed:
        said.append(", misses a limit of the job", style="yellow")
    if test.reason:
        said.append(f": {_in_short(test.reason)}", style="")
    if test.saved:
        said.append(f" (saved ${number(test.saved)})", style="green")
    return said


def _references(found: Exploration) -> Text:
    """How much the other workloads got to say, and when they were set aside."""
    total = sum(found.references.values())
    at_first = found.references_at_first
    ranked = sorted(found.references.items(), key=lambda pair: -pair[1])
    ranked = [(name, weight) for name, weight in ranked if weight >= LEAST_WEIGHT]
    said = f"They explain {total:.0%} of what was measured"
    if ranked:
        listed = [f"{shown(n)} {w:.0%}" for n, w in ranked[:SHOWN_REFERENCES]]
        more = len(ranked) - SHOWN_REFERENCES
        said += f" ({', '.join([*listed, *([f'{more} more'] if more > 0 else [])])})"
    if at_first is not None:
        said += f"; before any test they were trusted with {at_first:.0%}"
    aside = _set_aside(found.tests)
    if aside is not None:
        said += f". Set aside since test {aside}: what was measured is unlike them"
    return Text(f"{said}.")


def _set_aside(tests: Sequence[Ended]) -> int | None:
    """The test since which other workloads explain next to nothing; None where they do."""
    since = None
    for test in tests:
        if test.references is None or test.references >= SET_ASIDE:
            since = None
        elif since is None:
            since = test.number
    return since


def _beliefs(found: Exploration) -> RenderableType:
    table = Table(box=None, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("offer", overflow="fold")
    for name in (unit_of(found.utility), "95 % interval", "may fail"):
        table.add_column(Text(name), justify="right", overflow="fold")
    for one in found.beliefs:
        table.add_row(*_belief(one))
    return table


def _belief(one: Mapping[str, Any]) -> list[Text]:
    ends = f"{number(one['low'], 2)}–{number(one['high'], 2)}"
    return [
        Text(shown(one["offer"])),
        Text(f"~{number(one['utility'], 2)}"),
        Text(ends),
        Text(f"{one['chance_of_failure']:.0%}"),
    ]


def plan_lines(plan: list[dict[str, Any]], ended: Why | None = None) -> list[str]:
    """What a dry run prints: the first tests, what they would cost, and what would be run."""
    if not plan:
        return [f"No test would be run: {WHY[ended or 'exhausted']}."]
    lines = []
    for number_, test in enumerate(plan, start=1):
        cost = "price unknown" if test["dollars"] is None else f"${number(test['dollars'])}"
        lines.append(
            f"test {number_}: {_named(test['offer'], test['knobs'])}, "
            f"{format_seconds(test['seconds'])} of measuring, {cost}. {shown(test['reason'])}"
        )
        lines += [f"  {shown(line)}" for line in test["would_run"]]
    known = [test["dollars"] for test in plan if test["dollars"] is not None]
    unknown = len(plan) - len(known)
    cost = f"about ${number(sum(known))}, and the start" if known else "an unknown amount"
    if known and unknown:
        cost += f", and {unknown} of them an unknown amount"
    what = "This test" if len(plan) == 1 else f"These {len(plan)} tests"
    lines.append(f"{what} would cost {cost}; nothing was run.")
    return lines
