"""A page as Markdown, for an issue, a wiki or a repository."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from underdog.core.views.facts import STATUS_WORDS, knob_text
from underdog.core.views.outcome import outcome
from underdog.core.views.page import Page
from underdog.core.views.records import (
    DecisionView,
    HistoryView,
    Point,
    StudyView,
    TrialView,
)
from underdog.core.views.words import brief, gain_words, plain, shown
from underdog.report.decision import cause_words, number
from underdog.report.show_words import minute, named, ranged

MOST_ROWS = 50  # of a table; all of them are in the JSON
_MARKS = re.compile(r"([\\`*\[\]|~]|(?<![^\W_])_|_(?![^\W_]))")


def to_markdown(page: Page) -> str:
    """The page, its sections in the order of the HTML, without charts and the whole ledger."""
    parts = [f"# {escaped(page.title)}"]
    if page.decision is not None:
        parts += _decision(page.decision)
    if page.study is not None:
        parts += _study(page.study)
    if page.trials:
        parts += _trials(page.trials, page.more_trials)
    if page.history is not None:
        parts += _history(page.history)
    if page.decision is not None:
        parts += _footing(page.decision)
    parts.append(f"Gathered {minute(page.created_at)} UTC by underdog.")
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Text from outside on one line, in which nothing is markup."""
    line = shown(" ".join(text.split()))
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", line)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    lines += [f"| {' | '.join(map(escaped, row))} |" for row in rows]
    return "\n".join(lines)


def _items(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _decision(view: DecisionView) -> list[str]:
    parts = [f"**{escaped(view.answer)}**"]
    if view.runner_up:
        parts.append(escaped(view.runner_up))
    ranked = [point for point in view.points if point.rank is not None][:MOST_ROWS]
    if ranked:
        parts += ["## The ranking", _ranking(view, ranked)]
    if view.groups:
        listed = (", ".join(map(escaped, group)) for group in view.groups)
        parts += ["Not distinguishable, since their intervals overlap:", _items(listed)]
    if view.test_next:
        parts += ["## Test next", _items(_tests_next(view))]
    if view.plan:
        parts.append(escaped(view.plan))
    if view.funnel:
        rows = [(f"{line.offers:,}", cause_words(line.verdict, line.cause)) for line in view.funnel]
        parts += [f"## The {view.candidates:,} candidates", _table(("offers", "why"), rows)]
    if view.caveats:
        lines = (f"{escaped(c.message)} {escaped(c.remedy)}".strip() for c in view.caveats)
        parts += ["## Caveats", _items(lines)]
    return parts


def _ranking(view: DecisionView, ranked: Sequence[Point]) -> str:
    what = "the job" if view.samples is not None else "1M samples"
    titles = ("#", "offer", "source", view.unit or "utility", "$/h", f"hours of {what}",
              f"dollars of {what}", "front")  # fmt: skip
    rows = [
        (
            str(point.rank),
            named(point),
            point.source,
            ranged(point.utility, point.source != "measured"),
            "unknown" if point.price_per_hour is None else number(point.price_per_hour),
            ranged(point.hours, point.source != "measured"),
            ranged(point.dollars, point.source != "measured"),
            "yes" if point.pareto else "",
        )
        for point in ranked
    ]
    return _table([escaped(title) for title in titles], rows)


def _tests_next(view: DecisionView) -> Iterable[str]:
    for test in view.test_next:
        offer, gain, dollars = (test.get(n) for n in ("offer", "expected_gain", "dollars"))
        said = escaped(str(offer))
        if isinstance(gain, int | float):
            said += f": expected {gain_words(gain)}"
        if isinstance(dollars, int | float):
            said += f", ${plain(dollars)} a test"
        yield said


def _study(view: StudyView) -> list[str]:
    parts = ["## The search", escaped(" ".join(outcome(view)))]
    if view.tests:
        rows = [
            (
                str(test.number) if test.number else "earlier",
                f"{test.offer} {knob_text(test.knobs)}".strip(),
                STATUS_WORDS.get(test.status, test.status),
                "" if test.utility is None else number(test.utility),
                "unknown" if test.dollars is None else f"{plain(test.dollars)}",
                plain(test.spent),
                brief(test.why or "", 120),
            )
            for test in view.tests[:MOST_ROWS]
        ]
        titles = ("test", "offer", "ended", escaped(view.unit or "utility"), "cost $", "spent $")
        parts.append(_table((*titles, "why"), rows))
    return parts


def _trials(trials: Sequence[TrialView], more: int) -> list[str]:
    parts = ["## The trials" if len(trials) > 1 else "## The trial"]
    for view in trials:
        lines = [f"{escaped(name)}: {escaped(text)}" for name, text in view.facts]
        shares = (f"{escaped(name)} {100 * share:.1f} %" for name, share in view.phases.items())
        if view.phases:
            lines.append(f"time of a step: {', '.join(shares)}")
        lines += [f"caveat: {escaped(caveat.message)}" for caveat in view.caveats]
        knobs = f" ({escaped(knob_text(view.knobs))})" if view.knobs else ""
        parts += [f"**{escaped(view.headline)}**{knobs}", _items(lines)]
    if more > 0:
        parts.append(f"{more:,} more trials are not shown.")
    return parts


def _history(view: HistoryView) -> list[str]:
    rows = [
        (
            minute(point.at),
            point.machine,
            ranged(point.samples_per_second),
            ranged(point.samples_per_dollar),
            point.version or "",
        )
        for point in view.points[-MOST_ROWS:]
    ]
    parts = ["## History"]
    parts.append(_table(("when", "machine", "samples/s", "samples/$", "version"), rows))
    more = len(view.points) - MOST_ROWS + view.left_out
    if more > 0:
        parts.append(f"{more:,} more measurements are not listed.")
    if view.markers:
        lines = (
            f"{minute(mark.at)}, {escaped(mark.machine)}: {escaped(mark.text)}"
            for mark in view.markers[-MOST_ROWS:]
        )
        parts.append(_items(lines))
    return parts


def _footing(view: DecisionView) -> list[str]:
    lines = (*view.constraints, *view.assumptions)
    about = f"By {view.utility} ({view.better} is better)."
    about += f" Offers of {view.snapshot_date}." if view.snapshot_date else ""
    about += f" Choose again after {view.expires_at[:10]}." if view.expires_at else ""
    return ["## What this rests on", escaped(about), _items(map(escaped, lines))]
