"""Trials as a table for people, as Markdown, and as CSV that ``trials import`` takes back."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Protocol

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from underdog.core.csv_cell import guarded
from underdog.model import Trial
from underdog.report.measurement import (
    BOUND_NAMES,
    STATUS_NAMES,
    interval_text,
    knob_text,
    number,
    shown,
    trial_report,
)

_COLUMNS = ("id", "workload", "machine", "status", "samples/s", "$/h", "samples/$", "started", "!")
_FROM_WIDTH = {"$/h": 100, "samples/$": 100, "started": 120}  # shown from so many columns on
_RIGHT = {"samples/s", "$/h", "samples/$"}
_OFFER_FIELDS = (
    "provider", "region", "zone", "instance_type", "purchase", "nodes", "vcpus", "memory_gib",
    "arch", "accelerator", "accelerator_count", "accelerator_memory_gib", "accelerator_usable_gib",
)  # fmt: skip
_PRICE_FIELDS = {
    "price_per_hour": "per_hour",
    "price_unknown_reason": "unknown_reason",
    "price_source": "source",
    "price_date": "date",
}


class _Target(Protocol):
    def write(self, text: str, /) -> Any: ...


def trials_table(trials: Sequence[Trial], width: int = 120) -> Table:
    """One line for each trial, for a terminal of that width; the last column counts caveats.

    Only names of workloads and machines give way; a column that does not fit is left out whole.
    """
    kept = [name for name in _COLUMNS if width >= _FROM_WIDTH.get(name, 0)]
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0))
    for name in kept:
        justify: Literal["left", "right"] = "right" if name in _RIGHT else "left"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")
    for trial in trials:
        cells = dict(zip(_COLUMNS, (Text(shown(cell)) for cell in _cells(trial)), strict=True))
        cells["status"].stylize(STATUS_NAMES.get(trial.status, ("", "yellow"))[1])
        doubts = len({caveat.code for caveat in trial.caveats})
        cells["!"] = Text(str(doubts) if doubts else "")
        table.add_row(*(cells[name] for name in kept))
    names = [column for column in table.columns if column.header in ("workload", "machine")]
    used = {id(c): max(len(str(cell)) for cell in (c.header, *c.cells)) for c in table.columns}
    rest = width - 2 * len(kept) - sum(used[id(c)] for c in table.columns if c not in names)
    for column in names:
        other = sum(used[id(one)] for one in names if one is not column)
        # half of what is left, or all that the other name does not need
        column.max_width = max(8, rest // 2, rest - other)
    return table


def trials_markdown(trials: Sequence[Trial]) -> str:
    """The same as a Markdown table."""
    lines = [" | ".join(_COLUMNS), "|".join("--:" if c in _RIGHT else "---" for c in _COLUMNS)]
    lines += [" | ".join(_markdown(cell) for cell in _cells(trial)) for trial in trials]
    return "\n".join(f"| {line} |" for line in lines)


def trial_page(trial: Trial) -> RenderableType:
    """All about one trial: what was measured, where, and where the record comes from."""
    parts: list[RenderableType] = [trial_report(trial)]
    rate = trial.measurement.samples_per_second if trial.measurement else None
    if rate is not None and trial.measurement is not None and not trial.measurement.steps:
        parts.insert(1, Text(f"  {number(rate.value)} samples/s   {interval_text(rate)}"))
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    rows = {
        "id": trial.id,
        "offer": trial.offer.id if trial.offer else "",
        "started": trial.started_at,
        "ended": trial.ended_at or "",
        "command": " ".join(trial.command),
        "software": _software(trial),
        "source": trial.source,
    }
    for name, text in rows.items():
        if text:
            facts.add_row(f"  {name}", Text(shown(text)))
    return Group(*parts, Text(""), facts)


def write_csv(trials: Iterable[Trial], target: _Target) -> None:
    """Write trials as CSV; ``docs/reference/trials-format.md`` tells the columns."""
    trials = list(trials)
    knobs = sorted({name for trial in trials for name in trial.knobs})
    names = [*_csv_row(trials[0]), *(f"knob.{k}" for k in knobs)] if trials else ["workload"]
    # \n alone: what other tools of the command line expect
    writer = csv.writer(_Escaping(target), lineterminator="\n")
    writer.writerow([guarded(name) for name in names])
    for trial in trials:
        own = [trial.knobs.get(name, "") for name in knobs]
        writer.writerow([guarded(cell) for cell in (*_csv_row(trial).values(), *own)])


def machine_name(trial: Trial) -> str:
    """The offer's id, else the instance type or the host."""
    if trial.offer is not None:
        return trial.offer.id
    return trial.machine.instance_type or trial.machine.hostname or "this machine"


class _Escaping:
    """Passes text on with halves of surrogate pairs spelled out, which no file takes."""

    def __init__(self, target: _Target) -> None:
        self._target = target

    def write(self, text: str) -> None:
        self._target.write(text.encode("utf-8", "backslashreplace").decode())


def _cells(trial: Trial) -> list[str]:
    rate = trial.measurement.samples_per_second if trial.measurement else None
    price = trial.price.per_hour
    workload = " ".join(filter(None, [trial.workload, knob_text(trial.knobs)]))
    return [
        trial.id,
        workload,
        machine_name(trial),
        STATUS_NAMES.get(trial.status, (trial.status,))[0],
        number(rate.value) if rate else "",
        f"{price:,.4g}" if price else "unknown",
        number(rate.value * 3600 / price) if rate and price else "",
        trial.started_at[:16].replace("T", " "),
        ", ".join(dict.fromkeys(caveat.code for caveat in trial.caveats)),
    ]


def _csv_row(trial: Trial) -> dict[str, Any]:
    # what a trial showed before it failed is no throughput of the workload
    counted = trial.measurement if trial.status in ("ok", "stopped", "interrupted") else None
    rate = counted.samples_per_second if counted else None
    offer = trial.offer
    row: dict[str, Any] = {
        "workload": trial.workload,
        "offer": machine_name(trial),
        "throughput": rate.value if rate else None,
        "low": rate.low if rate else None,
        "high": rate.high if rate else None,
        "n": rate.n if rate else None,
        "status": trial.status,
        "reason": trial.reason,
        "started_at": trial.started_at,
    }
    row |= {name: getattr(offer, name) if offer else None for name in _OFFER_FIELDS}
    row |= {name: getattr(trial.price, field) for name, field in _PRICE_FIELDS.items()}
    row["bound_by"] = BOUND_NAMES.get(trial.bound_by) and trial.bound_by
    row["caveats"] = " ".join(caveat.code for caveat in trial.caveats)
    row["id"] = trial.id
    return row


def _software(trial: Trial) -> str:
    software = trial.software
    words = [f"{software.framework or ''} {software.framework_version or ''}".strip()]
    words += [f"Python {software.python}" if software.python else ""]
    words += [f"driver {software.driver}" if software.driver else ""]
    words += [f"commit {software.commit[:12]}" if software.commit else ""]
    return " · ".join(filter(None, words))


def _markdown(text: str) -> str:
    return shown(text).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
