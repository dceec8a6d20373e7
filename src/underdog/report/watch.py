"""What ``underdog watch`` prints, and the text of its notices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from underdog.core.watched import Judged, Settled, Test, Verdict
from underdog.report.measurement import number, shown

WORDS = {  # of one, of several, and the style
    "stands": ("stands", "stand", "green"),
    "open": ("is open", "are open", "yellow"),
    "falls": ("does not stand", "do not stand", "bold red"),
    "unknown": ("cannot be judged", "cannot be judged", "yellow"),
}
_BEFORE = {
    "stands": "stood",
    "open": "was open",
    "falls": "did not stand",
    "unknown": "could not be judged",
}
_MARKS = {"falls": "✗", "open": "?", "note": "·"}
_ORDER: tuple[Verdict, ...] = ("falls", "open", "unknown", "stands")


def watch_report(judged: Sequence[Judged], tests: Sequence[Test], everything: bool) -> Text:
    """One paragraph for each decision of which something is to be told, then the tests.

    Args:
        everything: tell of those that stand, too.
    """
    text = Text()
    for verdict in _ORDER:
        for one in judged:
            if one.verdict == verdict and (everything or verdict != "stands"):
                _paragraph(text, one)
    text.append(summary(judged), "bold")
    text.append("\n")
    _tests(text, tests)
    return text


def summary(judged: Sequence[Judged]) -> str:
    """How many decisions there are of each verdict."""
    if not judged:
        return "No decision is stored."
    counts = Counter(one.verdict for one in judged)
    listed = ", ".join(f"{counts[v]} {WORDS[v][counts[v] != 1]}" for v in _ORDER if counts[v])
    return f"{len(judged)} decision{'s' * (len(judged) != 1)}: {listed}"


def _paragraph(text: Text, one: Judged) -> None:
    word, _, style = WORDS[one.verdict]
    text.append(shown(one.workload), "bold")
    text.append(f"  {_asked(one)}", "cyan")
    text.append(f"  {word}", style)
    text.append(f"  {_leader(one)}\n")
    for finding in one.findings:
        text.append(f"  {_MARKS[finding.weight]} {shown(finding.message)}\n")


def _asked(one: Judged) -> str:
    parts = [f"by {shown(one.utility)}"]
    parts += [
        f"{name} {shown(_value(value))}"
        for name, value in one.asked.items()
        if name not in ("by", "better")
    ]
    return ", ".join(parts)


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _leader(one: Judged) -> str:
    offer = shown(one.before.offer) if one.before else "no offer"
    many = f"{one.before.machine.nodes} × " if one.before and one.before.machine.nodes > 1 else ""
    return f"{many}{offer}, chosen on {shown(one.created_at[:10])}{_rests_on(one.rests_on)}"


def _rests_on(kept: Mapping[str, Any]) -> str:
    """The tests, the prices and the software that it rests on, as far as they were kept."""
    words = []
    if tests := kept.get("tests"):
        words.append(f"{tests} test{'s' * (tests != 1)}")
    if days := kept.get("prices"):
        words.append(f"prices of {' to '.join(dict.fromkeys(map(str, days)))}")
    software = kept.get("software") or {}
    named = [name for name in (kept.get("framework"), "driver") if name in software]
    words += [f"{name} {software[name]}" for name in named]
    return f" on {shown(', '.join(words))}" if words else ""


def _tests(text: Text, tests: Sequence[Test]) -> None:
    if not tests:
        return
    known = [test.dollars for test in tests if test.dollars is not None]
    unpriced = len(tests) - len(known)
    more = f" and {unpriced} of unknown price" if unpriced else ""
    count = f"{len(tests)} test{'s' * (len(tests) != 1)}"
    text.append(f"{count} would settle what is open, for ${number(sum(known))}{more}:\n")
    for test in tests:
        text.append(f"  {test_line(test)}\n")


def test_line(test: Test) -> str:
    """One test: of which workload, where, how long, for how much."""
    many = f"{test.machine.nodes} × " if test.machine.nodes > 1 else ""
    cost = "price unknown" if test.dollars is None else f"${number(test.dollars)}"
    how = f", by {shown(test.runner)}" if test.runner else ", this machine" if test.here else ""
    return f"{shown(test.workload)} on {many}{shown(test.offer)}: {test.minutes:g} min, {cost}{how}"


def settled_lines(found: Sequence[Settled]) -> Text:
    """What the tests did to each decision that asked for them, a line each."""
    text = Text()
    for one in found:
        word, _, style = WORDS[one.verdict]
        text.append(f"{shown(one.workload)} by {shown(one.utility)}", "bold")
        text.append(f"  {word}", style)
        before = "as before" if one.was == one.verdict else f"it {_BEFORE[one.was]} before"
        text.append(f" after the tests; {before}\n")
    return text


def notice(judged: Sequence[Judged], changed: Sequence[Judged]) -> tuple[str, str]:
    """The title and the text of a notice about the decisions of which something changed."""
    fallen = sum(one.verdict == "falls" for one in judged)
    title = f"underdog: {fallen} of {len(judged)} decisions do not stand"
    title = title if fallen else f"underdog: {summary(judged)}"
    lines = []
    for one in changed:
        lines.append(f"{shown(one.workload)}, {_asked(one)}: {WORDS[one.verdict][0]}")
        lines += [f"- {shown(f.message)}" for f in one.findings if f.weight != "note"]
        if one.verdict == "unknown":
            lines += [f"- {shown(f.message)}" for f in one.findings]
    return title, "\n".join(lines)
