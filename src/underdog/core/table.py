"""Offers as a table in memory: filtered, sorted and joined by DuckDB, which can do nothing else.

A locked connection reaches no file and no network, loads no extension, and its settings stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from underdog.core.columns import BY_NAME, OFFER_COLUMNS, column_meant
from underdog.core.expression import Expression
from underdog.errors import CatalogError, ExpressionError

SQL_TYPES = {"text": "VARCHAR", "number": "DOUBLE", "flag": "BOOLEAN", "list": "VARCHAR"}


def connect() -> duckdb.DuckDBPyConnection:
    """A database in memory of its own, still open to files: fill it, then give it to ``Table``."""
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": "4GB",
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    return duckdb.connect(":memory:", config=settings)


def quoted(text: str) -> str:
    """Text as a SQL constant."""
    return "'" + text.replace("'", "''") + "'"


def schema() -> str:
    """The columns of ``offers`` as SQL, in the order of ``OFFER_COLUMNS``."""
    return ", ".join(f'"{c.name}" {SQL_TYPES[c.kind]}' for c in OFFER_COLUMNS)


def fill(
    connection: duckdb.DuckDBPyConnection,
    columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]],
) -> None:
    """Create the table ``offers`` and fill it; see ``Table.from_arrays``."""
    for name in columns:
        if name not in BY_NAME:
            raise CatalogError(f"Offers have no column '{name}'.", column_meant(name))
    if len({len(values) for values in columns.values()}) > 1:
        raise CatalogError("The columns of the offers differ in length.")
    arrays = {name: _array(name, values) for name, values in columns.items()}
    chosen = ", ".join(_taken(name, arrays) for name in BY_NAME)
    connection.execute(f"CREATE TABLE offers ({schema()})")
    if arrays and len(next(iter(arrays.values()))):
        connection.register("given", arrays)
        connection.execute(f"INSERT INTO offers SELECT {chosen} FROM given")
        connection.unregister("given")


class Table:
    """The table ``offers`` with ``OFFER_COLUMNS`` and ``rowid``; an unknown is NULL.

    ``connection`` is for joins: its other tables are the caller's. Taking a connection locks it;
    ``files`` are what a view ``offers`` still reads from.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, files: Sequence[str] = ()) -> None:
        listed = ", ".join(quoted(file) for file in files)
        connection.execute(f"SET allowed_paths = [{listed}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        self.connection = connection

    @classmethod
    def from_arrays(cls, columns: Mapping[str, Sequence[Any] | np.ndarray[Any, Any]]) -> Table:
        """A table of columns of one length; a column that is not given is unknown everywhere.

        Numbers may be None or NaN for unknown.

        Raises:
            CatalogError: a name that is no column, lengths that differ, an infinite number.
        """
        connection = connect()
        fill(connection, columns)
        return cls(connection)

    def select(
        self,
        where: Expression | None = None,
        order_by: Sequence[tuple[str, bool]] = (),
        limit: int | None = None,
        offset: int = 0,
    ) -> list[dict[str, Any]]:
        """The offers that satisfy ``where``, as dicts of all columns in their order.

        Args:
            where: a predicate over offer columns.
            order_by: (column, descending); an unknown comes last either way. Ties keep the order
                of provider, region, instance type and purchase.
            limit: at most so many.
            offset: leave out so many of the first.

        Raises:
            ExpressionError: on some row the expression has no value, or a column is unknown.
        """
        names = [column.name for column in OFFER_COLUMNS]
        listed = ", ".join(f'"{name}"' for name in names)
        order, wanted = _order(order_by), self._where(where)
        part = "" if limit is None else f" LIMIT {int(limit)}"
        if offset:
            # only the rows of the part are read whole
            part += f" OFFSET {int(offset)}"
            wanted = f" WHERE rowid IN (SELECT rowid FROM offers{wanted} ORDER BY {order}{part})"
            part = ""
        rows = self.run(f"SELECT {listed} FROM offers{wanted} ORDER BY {order}{part}").fetchall()
        return [dict(zip(names, row, strict=True)) for row in rows]

    def count(self, where: Expression | None = None) -> int:
        """How many offers satisfy ``where``."""
        row = self.run(f"SELECT count(*) FROM offers{self._where(where)}").fetchone()
        assert row is not None
        return int(row[0])

    def check(
        self, expression: Expression, source: str = "offers", where: str | None = None
    ) -> None:
        """Raise if a row of ``source`` leaves the expression without a value.

        Args:
            expression: what is to be computed.
            source: a table or a bracketed query with the columns of the expression and of a name
                (provider, region, zone, instance_type, purchase).
            where: SQL; only the rows that satisfy it count.

        Raises:
            ExpressionError: names the first such row, the values at fault, and the remedy.
        """
        if not expression.faults:
            return
        cases = " ".join(f"WHEN {f.sql} THEN {i}" for i, f in enumerate(expression.faults))
        limited = f" WHERE {where}" if where else ""
        found = self.run(
            f"SELECT * FROM (SELECT *, CASE {cases} END AS fault_ FROM {source} AS s{limited})"
            " WHERE fault_ IS NOT NULL LIMIT 1"
        )
        row = found.fetchone()
        if row is None:
            return
        values = dict(zip((d[0] for d in found.description or ()), row, strict=True))
        fault = expression.faults[values["fault_"]]
        place = values.get("zone") or values.get("region")
        term = values.get("term")
        purchase = f"{values.get('purchase')}:{term}" if term else values.get("purchase")
        parts = (values.get("provider"), place, values.get("instance_type"), purchase)
        name = "/".join(str(part) for part in parts if part is not None)
        because = ", ".join(f"{c} is {_shown(values[c])}" for c in fault.columns)
        raise ExpressionError(
            f"The expression '{expression.text}' {fault.what} for {name}"
            + (f": {because}." if because else "."),
            fault.remedy,
        )

    def run(self, sql: str) -> duckdb.DuckDBPyConnection:
        """Run SQL that was made from checked expressions.

        Raises:
            ExpressionError: the database could not compute it.
        """
        try:
            return self.connection.execute(sql)
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise ExpressionError(f"An expression could not be computed: {reason}") from error

    def _where(self, where: Expression | None) -> str:
        if where is None:
            return ""
        if where.kind != "flag":
            raise ExpressionError(f"'{where.text}' is a number, not a condition.")
        self.check(where)
        return f" WHERE {where.sql}"


def _order(order_by: Sequence[tuple[str, bool]]) -> str:
    for name, _ in order_by:
        if name not in BY_NAME:
            raise ExpressionError(f"There is no column '{name}'.", column_meant(name))
    parts = [f'"{name}" {"DESC" if down else "ASC"} NULLS LAST' for name, down in order_by]
    ties = ("provider", "region", "zone", "instance_type", "purchase", "term", "nodes")
    return ", ".join([*parts, *(f"{name} NULLS LAST" for name in ties)])


def _array(name: str, values: Sequence[Any] | np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    kind = BY_NAME[name].kind
    if kind != "number":
        return np.asarray(values, dtype=object)
    numbers = np.asarray(values, dtype=float)  # None becomes NaN
    if np.isinf(numbers).any():
        raise CatalogError(f"The column '{name}' holds an infinite number.")
    return numbers


def _taken(name: str, arrays: Mapping[str, Any]) -> str:
    if name not in arrays:
        return "1" if name == "nodes" else "NULL"
    if BY_NAME[name].kind == "number":
        return f'CASE WHEN NOT isnan("{name}") THEN "{name}" END'
    return f'"{name}"'


def _shown(value: Any) -> str:
    return "unknown" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
