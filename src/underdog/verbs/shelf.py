"""The newest offers, kept in memory for many who look at them at once."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from underdog.catalog import archive, snapshot
from underdog.core.columns import BY_NAME, column_meant
from underdog.core.expression import parse
from underdog.core.table import Table, connect, quoted
from underdog.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """Some offers as dicts of all columns, how many match, and the catalog that they are of.

    ``sources`` are as in ``underdog.catalog.snapshot.Snapshot``.
    """

    rows: list[dict[str, Any]]
    total: int
    offers: int
    date: str
    hash: str
    sources: list[dict[str, Any]]


class Shelf:
    """The newest catalog, taken anew when there is a newer one. Any thread may ask."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state: object = None
        self._source: snapshot.Snapshot | None = None
        self._table: Table | None = None

    def show(self, where: str | None, sort: str, *, limit: int = 50, offset: int = 0) -> Shown:
        """The offers that satisfy a condition, in an order.

        Args:
            where: a condition over the columns (``docs/reference/expressions.md``); None for all.
            sort: a column, ``-`` before it for downwards. Unknowns come last.

        Raises:
            ExpressionError: the condition cannot be read or computed.
            UsageError: there is no such column to sort by.
            CatalogError: the catalog cannot be read.
        """
        name, down = sort.removeprefix("-").strip().lower(), sort.startswith("-")
        if name not in BY_NAME:
            raise UsageError(f"There is no column '{name}' to sort by.", column_meant(name))
        with self._lock:  # one connection: a question takes some ms
            condition = parse(where, BY_NAME) if where is not None else None
            source, table = self._newest()
            total = table.count(condition)
            rows = table.select(condition, [(name, down)], limit, offset) if offset < total else []
        return Shown(
            rows=rows,
            total=total,
            offers=source.rows,
            date=source.date,
            hash=source.hash,
            sources=list(source.sources),
        )

    def _newest(self) -> tuple[snapshot.Snapshot, Table]:
        state = _state_of(archive.folder())
        if self._source is None or self._table is None or state != self._state:
            found = archive.load()
            if self._source is None or found.hash != self._source.hash:
                self._source, self._table = found, _in_memory(found)
            self._state = state
            assert self._table is not None
        return self._source, self._table


def _state_of(folder: Path) -> object:
    """Changes whenever a snapshot is added."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return None


def _in_memory(found: snapshot.Snapshot) -> Table:
    if found.path is None:
        return found.table
    connection = connect()
    file = quoted(str(found.path.resolve()))
    listed = snapshot.columns(connection, found.path)
    connection.execute(f"CREATE TABLE offers AS SELECT {listed} FROM read_parquet({file})")
    return Table(connection)
