"""The result of ``underdog check`` on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from underdog.core.regression import Change, Reading
from underdog.report.measurement import knob_text, number, shown

if TYPE_CHECKING:
    Pair = tuple[Reading, Reading, Change]

WORDS = {
    "fell": ("FELL", "bold red"),
    "held": ("held", "green"),
    "gained": ("gained", "bold green"),
    "unclear": ("cannot tell", "yellow"),
}


def check_report(checked: Sequence[Pair], drop: float) -> Text:
    """One paragraph for each workload."""
    text = Text()
    for before, after, change in checked:
        _paragraph(text, before, after, change, drop)
    return text


def _paragraph(text: Text, before: Reading, after: Reading, change: Change, drop: float) -> None:
    word, style = WORDS[change.verdict]
    text.append(shown(before.workload), "bold")
    if before.knobs:
        text.append("  " + knob_text(before.knobs), "cyan")
    what = "samples per dollar" if change.price is not None else "samples/s (a price is unknown)"
    ratio = change.ratio
    text.append(f"  {word}: ", style)
    text.append(f"{ratio.value - 1:+.1%} {what}")
    text.append(f", 95 % interval {ratio.low - 1:+.1%} to {ratio.high - 1:+.1%}")
    text.append(f"; a fall of {100 * drop:.3g} % is allowed\n")
    a, b = before.samples_per_second, after.samples_per_second
    text.append(
        f"  {number(a.value)} samples/s on {before.measured_at[:10]} ({_runs(before)}), now "
        f"{number(b.value)} ({_runs(after)}) on {shown(after.machine)}\n"
    )
    if change.price is not None and abs(change.price - 1) > 1e-9:
        text.append(
            f"  price {before.price_per_hour:.4g} to {after.price_per_hour:.4g} USD/h "
            f"({change.price - 1:+.1%})\n"
        )
    for name, (old, new) in change.software.items():
        text.append(f"  {shown(name)} {shown(old)[:20]} to {shown(new)[:20]}\n")
    if change.verdict == "unclear":
        text.append("  Noise hides it: measure longer, or several times and check with --runs.\n")


def _runs(one: Reading) -> str:
    return f"{one.runs} run{'s' * (one.runs != 1)}"
