"""The ranking of a decision as a table that fits a terminal without cutting a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rich import box
from rich.cells import cell_len, set_cell_size
from rich.table import Table
from rich.text import Text

MEASURED, PREDICTED = "●", "○"
NARROWEST = 40  # a terminal below it is written beyond its edge
# how far a text may shrink, and how far it needs no more; figures are never cut
_SHORTEST = {"machine": 18, "accelerator": 8, "where": 12}
_LAST = 6  # of the machine's name, where nothing else is left to give way
# what goes where there is no room for all, the first first
_OPTIONAL = ("second", "accelerator", "where", "$/h")


class Cell(NamedTuple):
    """A text that may be cut, and what stands after it in any case."""

    body: str
    tail: str = ""

    def fitted(self, width: int) -> str:
        """The cell in so many columns of a terminal."""
        room = width - cell_len(self.tail)
        if cell_len(self.body) <= room:
            return self.body + self.tail
        return set_cell_size(self.body, max(room - 1, 0)).rstrip() + "…" + self.tail


class Metric(NamedTuple):
    """A column of figures: its field in an entry, its heading, and how a value is written."""

    field: str
    title: str


Row = Mapping[str, Cell]


def table(
    entries: Sequence[Mapping[str, Any]],
    metrics: Sequence[Metric],
    write: Callable[[Any, bool], str],
    price: Callable[[float], str],
    width: int,
) -> Table:
    """The entries of ``Decision.ranking``, one line each; predicted ones are dim.

    Args:
        metrics: one or two columns of figures, the one that matters most first.
        write: an interval as text, and whether it is a prediction.
        price: USD per hour as text.
        width: columns of the terminal; less is shown where it is narrow.
    """
    titles = dict(zip(("first", "second"), (metric.title for metric in metrics), strict=False))
    rows = [_row(entry, metrics, write, price) for entry in entries]
    names = [name for name in rows[0] if name not in titles] + list(titles)
    widths = _widths(names, titles, rows, width)
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for name, wide in widths.items():
        right = name not in _SHORTEST
        made.add_column(
            titles.get(name, name), justify="right" if right else "left", width=wide, no_wrap=True
        )
    for entry, row in zip(entries, rows, strict=True):
        cells = [Text(row[name].fitted(wide)) for name, wide in widths.items()]
        made.add_row(*cells, style="" if entry["source"] == "measured" else "dim")
    return made


def machine_name(entry: Mapping[str, Any]) -> str:
    """The number of machines where it is not one, the provider and the instance type."""
    offer = entry["offer"]
    many = f"{entry['nodes']} × " if entry["nodes"] > 1 else ""
    return f"{many}{offer['provider']} {offer['instance_type']}"


def _row(
    entry: Mapping[str, Any],
    metrics: Sequence[Metric],
    write: Callable[[Any, bool], str],
    price: Callable[[float], str],
) -> dict[str, Cell]:
    offer, predicted = entry["offer"], entry["source"] != "measured"
    mark = PREDICTED if predicted else MEASURED
    count, hourly = offer["accelerator_count"] or 0, offer["price_per_hour"]
    spot = "" if offer["purchase"] == "on-demand" else f"{offer['purchase']} "
    more = f" +{entry['other_regions']}" if entry["other_regions"] else ""
    front, doubt = " ◆" if entry["pareto"] else "", " !" if offer.get("caveats") else ""
    row = {
        "#": Cell(str(entry["rank"])),
        "machine": Cell(f"{mark} {machine_name(entry)}", front + doubt),
        "accelerator": Cell(f"{count:g}× {offer['accelerator']}" if count else "–"),
        "where": Cell(f"{spot}{offer['zone'] or offer['region']}", more),
        "$/h": Cell(price(hourly * entry["nodes"]) if hourly else "unknown"),
    }
    for name, metric in zip(("first", "second"), metrics, strict=False):
        row[name] = Cell(write(entry[metric.field], predicted))
    return row


def _widths(
    names: Sequence[str], titles: Mapping[str, str], rows: Sequence[Row], width: int
) -> dict[str, int]:
    """The columns that there is room for, with the width of each."""
    widths = {
        name: max(
            cell_len(titles.get(name, name)),
            *(cell_len(row[name].body + row[name].tail) for row in rows),
        )
        for name in names
    }
    least = {name: min(_SHORTEST.get(name, wide), wide) for name, wide in widths.items()}
    for name in _OPTIONAL:
        if _taken(least) <= width:
            break
        widths.pop(name, None)
        least.pop(name, None)
    least["machine"] = min(least["machine"], _LAST) if _taken(least) > width else least["machine"]
    while _taken(widths) > width:
        widest = max(least, key=lambda name: widths[name] - least[name])
        if widths[widest] == least[widest]:
            break
        widths[widest] -= 1
    return widths


def _taken(widths: Mapping[str, int]) -> int:
    # two blanks between columns, one at each end
    return sum(widths.values()) + 2 * len(widths)
