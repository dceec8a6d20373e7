"""What a person sees of a trial: one that was measured, or several that differ in their knobs."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from underdog.core.views.facts import (
    BOUND_NAMES,
    PHASE_NAMES,
    accelerator_words,
    gib,
    knob_text,
    machine_text,
    memory_words,
    price_words,
    processor_words,
    steps_text,
    traffic_words,
)
from underdog.core.views.words import shown
from underdog.model import Estimate, Measurement, Trial
from underdog.units import format_seconds

__all__ = [
    "BOUND_NAMES",
    "STATUS_NAMES",
    "best",
    "interval_text",
    "knob_text",
    "knobs_report",
    "next_command",
    "number",
    "shown",
    "ties",
    "trial_report",
]

BAR = 36  # characters of the longest bar
STATUS_NAMES = {
    "ok": ("measured", "green"),
    "interrupted": ("interrupted", "yellow"),
    "stopped": ("stopped", "yellow"),
    "running": ("running", "yellow"),
    "out_of_memory": ("out of memory", "red"),
    "no_capacity": ("no capacity", "red"),
    "failed": ("failed", "red"),
    "hung": ("hung", "red"),
    "no_steps": ("no steps seen", "red"),
}


def trial_report(trial: Trial) -> RenderableType:
    """Everything worth a look about one trial."""
    parts: list[RenderableType] = [headline(trial)]
    if trial.reason:
        reason = Text(shown(trial.reason, keep_lines=True))
        parts.append(Padding(reason, (0, 0, 0, 2), expand=False))
    if trial.measurement is not None and trial.measurement.steps:
        parts += [Padding(rate_lines(trial.measurement), (0, 0, 0, 2), expand=False)]
    if trial.phases and trial.measurement is not None and trial.measurement.step_seconds:
        parts += [Text(""), Padding(phase_bars(trial.phases), (0, 0, 0, 2), expand=False)]
    facts = fact_table(trial)
    if facts.row_count:
        parts += [Text(""), Padding(facts, (0, 0, 0, 2), expand=False)]
    if trial.caveats:
        parts += [Text(""), caveat_lines(trial)]
    if trial.files:
        parts += [Text("\nFetch what it wrote:"), Text(f"  {shown(trial.files)}")]
    return Group(*parts)


def headline(trial: Trial) -> Text:
    """Workload, machine and status in one line."""
    name, colour = STATUS_NAMES.get(trial.status, (trial.status, "yellow"))
    text = Text("\n")
    text.append(shown(trial.workload), "bold")
    if trial.knobs:
        text.append("  " + knob_text(trial.knobs), "cyan")
    text.append(f"  on {shown(machine_text(trial))}  ")
    text.append(name, f"bold {colour}")
    if trial.exit_code not in (None, 0):
        text.append(f" (exit code {trial.exit_code})", colour)
    return text


def rate_lines(measurement: Measurement) -> Text:
    """The rate, and what it rests on."""
    text = Text()
    m = measurement
    if m.samples_per_second:
        text.append(f"{number(m.samples_per_second.value)} samples/s", "bold green")
        text.append("   " + interval_text(m.samples_per_second) + "\n")
    elif m.step_seconds:
        rate = 1 / m.step_seconds.value
        text.append(f"{number(rate)} steps/s", "bold")
        text.append("   the samples of a step are not known\n")
    words = [f"{m.batch_size:g} samples a step"] if m.batch_size else []
    if m.ranks > 1:
        words.append(f"{m.ranks} ranks")
    if m.step_seconds:
        words.append(f"{format_seconds(m.step_seconds.value)} a step")
    words.append(steps_text(m.steps) + (f", {m.samples:,} samples" if m.samples else ""))
    if m.skipped_steps:
        words.append(f"{m.skipped_steps:,} skipped by the gradient scaler")
    if m.warmup_steps:
        words.append(
            f"warm-up of {steps_text(m.warmup_steps)} ({format_seconds(m.warmup_seconds)}) left out"
        )
    text.append(" · ".join(words))
    if m.pauses:
        told = ", ".join(f"{shown(k)} {format_seconds(v)}" for k, v in m.pauses.items())
        text.append(f"\npauses left out: {told}")
        if m.samples_per_second_with_pauses:
            text.append(f"; with them {number(m.samples_per_second_with_pauses)} samples/s")
    return text


def interval_text(estimate: Estimate) -> str:
    """The interval for people; what has none says so."""
    half = (estimate.high - estimate.low) / 2
    if not (math.isfinite(half) and estimate.value > 0):
        return f"no interval (n = {estimate.n})"
    share = 100 * half / estimate.value
    bounds = f"{number(estimate.low)} to {number(estimate.high)}"
    shown_share = f"{share:.2g}" if share < 10 else f"{share:,.0f}"
    return f"±{shown_share} %   95 % interval {bounds}, n = {estimate.n:,}"


def phase_bars(phases: dict[str, float]) -> Table:
    """Where the time of a step goes."""
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column()
    table.add_column(justify="right")
    longest = max(phases.values(), default=0)
    for name, share in phases.items():
        if share >= 0.0005:
            length = max(1, round(BAR * share / longest))
            colour = "yellow" if name in ("data", "communication") else "blue"
            bar = Text("█" * length, colour)
            table.add_row(PHASE_NAMES.get(name, shown(name)), bar, f"{100 * share:.1f} %")
    return table


def fact_table(trial: Trial) -> Table:
    """Bound, memory, use of the machine, price."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    if trial.bound_by != "unknown" or trial.bound_reason:
        bound = Text(BOUND_NAMES.get(trial.bound_by, "not clear"), "bold")
        if trial.bound_reason:
            bound.append(f": {shown(trial.bound_reason)}", "not bold")
        table.add_row("bound by", bound)
    for name, words in (
        ("memory", memory_words(trial)),
        ("processor", processor_words(trial)),
        ("accelerator", accelerator_words(trial)),
        ("disk, network", traffic_words(trial)),
        ("price", price_words(trial)),
    ):
        if words:
            table.add_row(name, " · ".join(shown(word) for word in words))
    return table


def caveat_lines(trial: Trial) -> Table:
    """Each doubt with its remedy."""
    table = Table.grid(padding=(0, 1))
    table.add_column(style="bold yellow")
    table.add_column(overflow="fold")
    for caveat in trial.caveats:
        text = Text(shown(caveat.message))
        if caveat.remedy:
            text.append(f"\n→ {shown(caveat.remedy)}", "cyan")
        loud = caveat.code == "accelerator_unused"
        table.add_row("!!" if loud else "! ", Text(text.plain, "bold red") if loud else text)
    return table


def knobs_report(trials: Sequence[Trial]) -> RenderableType:
    """All combinations in one table, the best first; failed ones with their reason."""
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    names = list(trials[0].knobs)
    for name in names:
        table.add_column(shown(name), style="cyan")
    table.add_column("samples/s", justify="right")
    table.add_column("interval")
    table.add_column("memory", justify="right")
    table.add_column("", overflow="fold")
    ranked = sorted(trials, key=lambda t: -(rate_of(t) or 0))
    tied = {t.id for t in ties(ranked)}
    for index, trial in enumerate(ranked):
        rate = trial.measurement.samples_per_second if trial.measurement else None
        note = STATUS_NAMES[trial.status][0] if trial.status != "ok" else ""
        if index == 0 and rate_of(trial):
            note = "best" if not tied else "best, not distinguishable from the next"
        elif trial.id in tied:
            note = "not distinguishable from the best"
        peak = trial.peak_memory_gib.get("accelerator") or trial.peak_memory_gib.get("host")
        table.add_row(
            *(shown(trial.knobs[name]) for name in names),
            number(rate.value) if rate else "",
            interval_text(rate).split("   ")[0] if rate else "",
            gib(peak) if peak else "",
            Text(note, "bold green" if note.startswith("best") else "dim"),
        )
    return Group(Text(""), table)


def best(trials: Sequence[Trial]) -> Trial:
    """The fastest trial; the first where none was measured. On one machine the price is one."""
    return max(trials, key=lambda t: rate_of(t) or 0)


def rate_of(trial: Trial) -> float | None:
    """Samples per second of a trial that can be compared; None for one that cannot."""
    if trial.status != "ok" or trial.measurement is None:
        return None
    rate = trial.measurement.samples_per_second
    return rate.value if rate else None


def ties(ranked: Sequence[Trial]) -> Iterable[Trial]:
    """Trials after the first whose interval overlaps that of the first."""
    rates = [t.measurement.samples_per_second if t.measurement else None for t in ranked]
    first = rates[0] if ranked and rate_of(ranked[0]) else None
    for trial, rate in list(zip(ranked, rates, strict=True))[1:]:
        if first and rate and rate_of(trial) and rate.high >= first.low:
            yield trial


def next_command(trial: Trial, offers: str | None = None) -> Text:
    """What to do with a measurement.

    Args:
        offers: the file of offers that its machine was named in.
    """
    command = f"underdog choose --workload {shlex.quote(shown(trial.workload))}"
    if offers is not None:
        command += f" --offers {shlex.quote(shown(offers))}"
    return Text.assemble("\nNext: ", (command, "bold"))


def number(value: float) -> str:
    """Four significant digits, with thousands set apart."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    digits = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{round(value, 3 - math.floor(math.log10(abs(value)))):,.{digits}f}"
