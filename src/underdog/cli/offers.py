"""``underdog offers``: list the offers of the catalog."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from underdog.cli.common import as_of_option, console, json_option, one_format, print_json

if TYPE_CHECKING:
    from underdog.verbs.offers import Listing

TABLE_LIMIT = 20


@click.command("offers")
@click.option(
    "--where",
    metavar="CONDITION",
    help="Which offers: a condition over the columns, such as "
    "\"accelerator_memory_gib >= 24 and region like 'us-%' and price_per_hour < 2\".",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    multiple=True,
    default=("price_per_hour",),
    help="Sort by this column, -COLUMN downwards; may be given several times. Unknowns come last. "
    "[default: price_per_hour]",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"At most so many. [default: {TABLE_LIMIT} in a table, all as data]",
)
@click.option(
    "--columns",
    metavar="A,B,…",
    help="Which columns, in which order; 'all' for all. [default: the main ones in a table, all as "
    "data]",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv", "markdown"]),
    default="table",
    help="How to print them. [default: table]",
)
@json_option
@click.option(
    "--offers",
    "file",
    metavar="FILE",
    help="List the offers of this CSV, JSON or Parquet file, not the catalog's.",
)
@as_of_option
@click.option(
    "--left-out",
    is_flag=True,
    help="List what the catalog's sources hold that is no offer, and why.",
)
def command(
    where: str | None,
    sort: tuple[str, ...],
    limit: int | None,
    columns: str | None,
    style: str,
    as_json: bool,
    file: str | None,
    as_of: str | None,
    left_out: bool,
) -> None:
    """List the offers of the catalog: machines to rent, with price and hardware.

    An offer is an instance type in a region, on demand, spot or reserved. Every column is described
    in docs/reference/columns.md, conditions in docs/reference/expressions.md.
    """
    from underdog.verbs.offers import listing

    style = one_format(style, as_json)
    if left_out:
        _print_left_out(file, as_of, style == "json")
        return
    people = style in ("table", "markdown")
    shown = _columns(columns, people)
    found = listing(where, sort, limit or (TABLE_LIMIT if people else None), file, as_of)
    _print(found.rows, shown, style)
    if people:
        click.echo(_talk(found), err=True)


def _talk(found: Listing) -> str:
    dates = sorted({str(s["date"]) for s in found.source.sources if s.get("date")})
    when = f", prices of {' to '.join(dict.fromkeys((dates[0], dates[-1])))}" if dates else ""
    more = "; more with --limit" if len(found.rows) < found.total else ""
    doubted = any(row["caveats"] for row in found.rows)
    doubts = "; ! is doubted: --columns instance_type,caveats says why" if doubted else ""
    if not found.total:
        return f"none of {found.source.rows:,} offers satisfies it{when}"
    return f"{len(found.rows):,} of {found.total:,} offers{when}{more}{doubts}"


def _columns(given: str | None, people: bool) -> list[str]:
    from underdog.core.columns import BY_NAME, column_meant
    from underdog.errors import UsageError
    from underdog.report.offers import COLUMNS

    if given is None:
        return list(COLUMNS if people else BY_NAME)
    names = [name.strip().lower() for name in given.split(",") if name.strip()]
    if names == ["all"]:
        return list(BY_NAME)
    for name in names:
        if name not in BY_NAME:
            raise UsageError(f"There is no column '{name}'.", column_meant(name))
    if not names:
        raise UsageError(f"'{given}' names no column.", "Write it like --columns region,vcpus")
    return names


def _print(rows: list[dict[str, object]], columns: list[str], style: str) -> None:
    from underdog.report import offers as report

    if style == "json":
        print_json([{name: row[name] for name in columns} for row in rows])
    elif style == "csv":
        sys.stdout.write(report.csv_text(rows, columns))
    elif style == "markdown":
        sys.stdout.write(report.markdown(rows, columns))
    elif rows:
        terminal = console()
        made = report.table(rows, columns, terminal.width)
        terminal.width = max(terminal.width, sum((c.width or 0) + 2 for c in made.columns))
        terminal.print(made)


def _print_left_out(file: str | None, as_of: str | None, as_json: bool) -> None:
    from underdog.verbs.offers import catalog

    found = catalog(file, as_of).left_out
    if as_json:
        print_json(found)
        return
    for one in found:
        names = list(one["names"])
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        click.echo(f"{one['rows']:>6,}  {one['provider']}: {one['reason']}")
        click.echo(f"        {', '.join(names[:3])}{more}")
