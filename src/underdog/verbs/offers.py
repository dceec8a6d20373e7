"""Offers: list what the catalog, or a file of the user's, has to sell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from underdog.catalog import snapshot
from underdog.catalog.snapshot import Snapshot
from underdog.core.columns import BY_NAME, column_meant
from underdog.core.expression import parse
from underdog.errors import UsageError


@dataclass(frozen=True, slots=True)
class Listing:
    """Offers as dicts of all columns, how many there are without the limit, and their source."""

    rows: list[dict[str, Any]]
    total: int
    source: Snapshot


def offers(
    where: str | None = None,
    sort: str | Sequence[str] = "price_per_hour",
    limit: int | None = None,
    file: str | Path | None = None,
) -> list[dict[str, Any]]:
    """The offers of the bundled catalog, or of a file, as dicts of all documented columns.

    Args:
        where: a condition over the columns (``docs/reference/expressions.md``).
        sort: a column or several; ``-`` before a name sorts it downwards. Unknowns come last.
        limit: at most so many.
        file: CSV, JSON or Parquet with offers, instead of the catalog.

    Raises:
        ExpressionError: the condition cannot be read or computed.
        CatalogError: the file cannot be read.
        UsageError: there is no such column to sort by, or the limit is negative.
    """
    return listing(where, sort, limit, file).rows


def listing(
    where: str | None = None,
    sort: str | Sequence[str] = "price_per_hour",
    limit: int | None = None,
    file: str | Path | None = None,
) -> Listing:
    """As ``offers``, with the number of all that match and where they come from."""
    if limit is not None and limit < 0:
        raise UsageError(f"'{limit}' is not a number of offers to list.")
    order = [_order(name) for name in ([sort] if isinstance(sort, str) else sort)]
    condition = parse(where, BY_NAME) if where is not None else None
    source = catalog(file)
    rows = source.table.select(condition, order, limit)
    total = len(rows) if limit is None else source.table.count(condition)
    return Listing(rows, total, source)


def catalog(file: str | Path | None = None) -> Snapshot:
    """The bundled snapshot, or the offers of a file."""
    if file is None:
        return snapshot.load()
    from underdog.catalog import offers_file  # on use: most runs take the catalog

    return offers_file.load(file)


def _order(name: str) -> tuple[str, bool]:
    down = name.startswith("-")
    bare = name.removeprefix("-").strip().lower()
    if bare not in BY_NAME:
        raise UsageError(f"There is no column '{bare}' to sort by.", column_meant(bare))
    return bare, down
