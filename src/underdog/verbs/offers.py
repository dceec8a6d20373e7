"""Offers: list what the catalog, or a file of the user's, has to sell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from underdog.catalog import archive
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
    as_of: str | None = None,
) -> list[dict[str, Any]]:
    """The offers of the newest catalog, or of a file, as dicts of all documented columns.

    Args:
        where: a condition over the columns (``docs/reference/expressions.md``).
        sort: a column or several; ``-`` before a name sorts it downwards. Unknowns come last.
        limit: at most so many.
        file: CSV, JSON or Parquet with offers, instead of the catalog.
        as_of: the catalog of a day, of the first letters of a hash, or ``bundled``.

    Raises:
        ExpressionError: the condition cannot be read or computed.
        CatalogError: the file cannot be read, or there is no such catalog.
        UsageError: there is no such column to sort by, or the limit is negative.
    """
    return listing(where, sort, limit, file, as_of).rows


def listing(
    where: str | None = None,
    sort: str | Sequence[str] = "price_per_hour",
    limit: int | None = None,
    file: str | Path | None = None,
    as_of: str | None = None,
) -> Listing:
    """As ``offers``, with the number of all that match and where they come from."""
    if limit is not None and limit < 0:
        raise UsageError(f"'{limit}' is not a number of offers to list.")
    order = [_order(name) for name in ([sort] if isinstance(sort, str) else sort)]
    condition = parse(where, BY_NAME) if where is not None else None
    source = catalog(file, as_of)
    rows = source.table.select(condition, order, limit)
    total = len(rows) if limit is None else source.table.count(condition)
    return Listing(rows, total, source)


def catalog(file: str | Path | None = None, as_of: str | None = None) -> Snapshot:
    """The newest snapshot, that of a day or a hash, or the offers of a file.

    Raises:
        CatalogError: it cannot be read, or there is none.
        UsageError: both a file and a day are given.
    """
    if file is None:
        return archive.load(as_of)
    if as_of is not None:
        raise UsageError("A file of offers has no earlier days.", "Give --offers or --as-of.")
    from underdog.catalog import offers_file  # on use: most runs take the catalog

    return offers_file.load(file)


def _order(name: str) -> tuple[str, bool]:
    down = name.startswith("-")
    bare = name.removeprefix("-").strip().lower()
    if bare not in BY_NAME:
        raise UsageError(f"There is no column '{bare}' to sort by.", column_meant(bare))
    return bare, down
