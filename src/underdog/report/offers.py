"""Offers as text: a table for the terminal, CSV, Markdown."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from underdog.core.columns import BY_NAME

if TYPE_CHECKING:
    from rich.table import Table

COLUMNS = (
    "provider",
    "region",
    "instance_type",
    "purchase",
    "price_per_hour",
    "vcpus",
    "memory_gib",
    "accelerator",
    "accelerator_count",
    "accelerator_memory_gib",
)
UNKNOWN = "?"
DOUBTED = " !"  # after a price, where a quality rule doubts the offer
NARROWEST = 6

_HEADINGS = {
    "instance_type": "instance type",
    "price_per_hour": "$/h",
    "memory_gib": "GiB",
    "vcpus": "vCPUs",
    "accelerator_count": "count",
    "accelerator_memory_gib": "GiB each",
}
# what a spreadsheet takes for the start of a formula
_FORMULA = ("=", "+", "-", "@", "\t", "\r")

Offers = Sequence[Mapping[str, Any]]


def table(offers: Offers, columns: Sequence[str] = COLUMNS, width: int = 120) -> Table:
    """A table for the terminal; an unknown is ``?``, no accelerator is empty.

    An accelerator and its count, where they stand side by side, share a column. Texts fold where
    the table is wider than ``width``; where that is not enough it stays wider: nothing is cut off.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    shown, rows = _cells(offers, columns)
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name, wide in zip(shown, _widths(shown, rows, width), strict=True):
        number = BY_NAME[name].kind == "number"
        made.add_column(
            _HEADINGS.get(name, name),
            justify="right" if number else "left",
            overflow="fold",
            width=wide,
        )
    for row in rows:
        made.add_row(*map(Text, row))
    return made


def _cells(offers: Offers, columns: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    shared = ("accelerator", "accelerator_count") in pairwise(columns)
    shown = [name for name in columns if not (shared and name == "accelerator_count")]
    rows = []
    for offer in offers:
        cells = {name: cell(offer, name) for name in columns}
        if shared and cells["accelerator"]:
            cells["accelerator"] = f"{cells['accelerator_count']}× {cells['accelerator']}"
        elif shared:
            cells["accelerator"] = cells["accelerator_count"]
        rows.append([cells[name] for name in shown])
    return shown, rows


def _widths(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int]:
    headings = [_HEADINGS.get(name, name) for name in columns]
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    texts = [i for i, name in enumerate(columns) if BY_NAME[name].kind != "number"]
    # two blanks between columns, one at each end
    while sum(widths) + 2 * len(widths) > width and texts:
        widest = max(texts, key=widths.__getitem__)
        if widths[widest] <= NARROWEST:
            break
        widths[widest] -= 1
    return widths


def markdown(offers: Offers, columns: Sequence[str] = COLUMNS) -> str:
    """A Markdown table."""
    rule = ["---:" if BY_NAME[name].kind == "number" else "---" for name in columns]
    lines = [[_HEADINGS.get(name, name) for name in columns], rule]
    lines += [[_escaped(cell(offer, name)) for name in columns] for offer in offers]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def csv_text(offers: Offers, columns: Sequence[str]) -> str:
    """CSV with the columns' own names; an unknown is empty.

    A text that a spreadsheet would run as a formula is led by an apostrophe.
    """
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_harmless(offer[name]) for name in columns] for offer in offers)
    return file.getvalue()


def cell(offer: Mapping[str, Any], name: str) -> str:
    """One value for people."""
    value = offer[name]
    if value is None:
        without = name.startswith("accelerator") and offer.get("accelerator_count") == 0
        return "" if without or BY_NAME[name].kind != "number" else UNKNOWN
    if isinstance(value, str):
        return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in value)
    if name == "accelerator_count" and not offer.get("accelerator"):
        return ""
    if name == "accelerator_count" and value < 1:
        return str(Fraction(value).limit_denominator(24))
    if name == "price_per_hour":
        shown = f"{value:,.4f}" if value >= 0.01 else f"{value:.3g}"
        return shown + DOUBTED if offer.get("caveats") else shown
    return f"{value:,.4g}" if value < 1000 else f"{value:,.0f}"


def _harmless(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return value


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|")
