"""What a person sees of the support matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

Rows = Sequence[Mapping[str, Any]]
_STYLES = {"yes": "green", "no": "red", "unknown": "yellow"}


def matrix(rows: Rows) -> Table:
    """The needs, one line each: what they reach, and how many accelerators."""
    made = _table("need", "kind", "reaches", "accelerators", "unknown")
    for row in rows:
        counts = {state: len(names) for state, names in row["accelerators"].items()}
        of = f"{counts['yes']} of {sum(counts.values())}"
        texts = (row["name"], row["kind"], row["reaches"], of, str(counts["unknown"]))
        made.add_row(*map(Text, texts))
    return made


def need(row: Mapping[str, Any]) -> list[str]:
    """One need in lines: what it is, which accelerators, and what each source says."""
    also = f"; also called {', '.join(row['aliases'])}" if row["aliases"] else ""
    lines = [f"{row['name']}: {row['title']} ({row['kind']}{also})"]
    if row["service"]:
        lines.append(f"  only under the managed service {row['service']}")
    for state, names in row["accelerators"].items():
        if names:
            lines.append(f"  {state}: {', '.join(names)}")
    lines.append("  by:")
    lines += [f"    {said(reach)}" for reach in row["on"]]
    return lines


def said(reach: Mapping[str, Any]) -> str:
    """One row in words, with its source."""
    parts = [reach["stack"]]
    if "since" in reach or "until" in reach:
        ends = (reach.get("since"), reach.get("until"))
        low, high = (None if end is None else f"{end:.1f}" for end in ends)
        span = low if low == high else f"{low} to {high}" if high else f"{low} and above"
        parts.append(f"compute capability {span}")
    parts += [", ".join(reach[k]) for k in ("targets", "types", "extensions") if k in reach]
    parts += [f"{name} {least} or newer" for name, least in reach.get("minimum", {}).items()]
    parts += [reach["note"]] if "note" in reach else []
    return f"{reach['reach']}: {'; '.join(parts)} [{reach['source']}]"


def accelerator(rows: Rows) -> Table:
    """What reaches one accelerator."""
    made = _table("need", "kind", "reached", "why")
    for row in rows:
        state = Text(row["state"], style=_STYLES[row["state"]])
        made.add_row(Text(row["name"]), Text(row["kind"]), state, Text(row["why"] or ""))
    return made


def _table(*headings: str) -> Table:
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in headings:
        made.add_column(heading, overflow="fold")
    return made
