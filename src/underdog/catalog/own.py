"""The user's own prices over list prices: put on, and taken off again.

An offer whose price is the user's says so in ``price_source``, with the list price, its source and
its date; from there the list price comes back when a later refresh starts from the list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from underdog.catalog.providers.static import OWN, Discount, identity
from underdog.catalog.snapshot import Snapshot, columns
from underdog.core.columns import OFFER_COLUMNS
from underdog.core.table import Table, connect, quoted

_NAMES = [column.name for column in OFFER_COLUMNS]
# what says who sells what at which price; all else is hardware
_OFFER = frozenset(_NAMES[: _NAMES.index("vcpus")])
_LIST = r"(?s)^.*; list price (unknown|[0-9.e+-]+ USD/h) of (.*), ([0-9-]*)(?: \((.*)\))?$"
_AS_LISTED = """
    '; list price ' || coalesce(price_per_hour || ' USD/h', 'unknown') || ' of '
    || coalesce(price_source, '') || ', ' || coalesce(price_date, '')
    || coalesce(' (' || price_unknown_reason || ')', '')
"""


def take_off(connection: duckdb.DuckDBPyConnection) -> None:
    """Give the table ``offers`` its list prices back; what was only the user's own goes."""
    own = f"starts_with(price_source, {quoted(OWN)})"
    listed = f"regexp_extract(price_source, {quoted(_LIST)}"
    connection.execute(
        f"DELETE FROM offers WHERE {own} AND NOT regexp_matches(price_source, {quoted(_LIST)})"
    )
    connection.execute(
        f"""
        UPDATE offers SET
            price_per_hour = TRY_CAST(split_part({listed}, 1), ' ', 1) AS DOUBLE),
            price_source = nullif({listed}, 2), ''),
            price_date = nullif({listed}, 3), ''),
            price_unknown_reason = nullif({listed}, 4), '')
        WHERE {own}
        """
    )


def listed(of: Snapshot, where: str = "") -> Table:
    """The offers of a snapshot at list prices, without those that were only the user's own.

    Args:
        where: a clause of SQL that says which of them, all by default.
    """
    assert of.path is not None, "the archive gives snapshots that are files"
    connection = connect()
    connection.execute(
        f"CREATE TABLE offers AS SELECT {columns(connection, of.path)} "
        f"FROM read_parquet({quoted(str(of.path.resolve()))}) {where}"
    )
    take_off(connection)
    return Table(connection)


def idle(connection: duckdb.DuckDBPyConnection, discounts: Sequence[Discount]) -> list[Discount]:
    """The discounts that fit no price of the table ``offers``: mostly a name that is misspelt."""

    def fits(one: Discount) -> bool:
        query = f"SELECT 1 FROM offers WHERE price_per_hour IS NOT NULL AND ({one.sql}) LIMIT 1"
        return connection.execute(query).fetchone() is not None

    return [one for one in discounts if not fits(one)]


def put_on(
    connection: duckdb.DuckDBPyConnection,
    rows: Sequence[Mapping[str, Any]],
    discounts: Sequence[Discount],
    file: str,
) -> int:
    """Give the table ``offers`` the user's prices. Returns how many offers got one.

    An offer of the user's takes the place of the listed one, or stands beside it; what it does not
    say of its hardware is that of the listed type. Of several discounts that fit an offer, the
    first counts; none is for an offer of the user's own.
    """
    _discount(connection, discounts, file)
    for row in rows:
        _place(connection, row)
    said = f"SELECT count(*) FROM offers WHERE starts_with(price_source, {quoted(OWN)})"
    counted = connection.execute(said).fetchone()
    return int(counted[0]) if counted else 0


def _discount(
    connection: duckdb.DuckDBPyConnection, discounts: Sequence[Discount], file: str
) -> None:
    if not discounts:
        return
    factor = " ".join(f"WHEN ({one.sql}) THEN {one.factor!r}" for one in discounts)
    texts = " ".join(
        f"WHEN ({one.sql}) THEN "
        + quoted(f"{OWN} of '{file}': {one.factor:.4g} of the list price ({one.name})")
        for one in discounts
    )
    connection.execute(
        f"""
        UPDATE offers SET
            price_source = (CASE {texts} END) || {_AS_LISTED},
            price_per_hour = price_per_hour * (CASE {factor} END)
        WHERE price_per_hour IS NOT NULL AND (CASE {factor} END) IS NOT NULL
        """
    )


def _place(connection: duckdb.DuckDBPyConnection, row: Mapping[str, Any]) -> None:
    same = " AND ".join(
        f'"{name}" IS NOT DISTINCT FROM ?'
        for name in ("provider", "region", "zone", "instance_type", "purchase", "term", "service")
    )
    mine = [row["price_per_hour"], row["price_source"], row["price_date"], *identity(row)]
    taken = connection.execute(
        f"UPDATE offers SET price_per_hour = ?, price_unknown_reason = NULL, "
        f"price_source = ? || {_listed_before()}, price_date = ? WHERE {same}",
        mine,
    ).fetchone()
    if taken and taken[0]:
        return
    found = connection.execute(
        "SELECT * FROM offers WHERE provider = ? AND instance_type = ? "
        "ORDER BY region = ? DESC, purchase = 'on-demand' DESC LIMIT 1",
        [row["provider"], row["instance_type"], row["region"]],
    ).fetchone()
    known = dict(zip(_NAMES, found, strict=True)) if found else {}
    values = [
        known.get(name) if name not in _OFFER and _unsaid(row, name) else row[name]
        for name in _NAMES
    ]
    marks = ", ".join("?" for _ in _NAMES)
    connection.execute(f"INSERT INTO offers VALUES ({marks})", values)


def _unsaid(row: Mapping[str, Any], name: str) -> bool:
    """Whether the user's offer leaves a column open; without an accelerator it names none."""
    if name.startswith("accelerator"):
        return row["accelerator"] is None
    return row[name] is None


def _listed_before() -> str:
    """The list price of an offer, also where a discount took its place before."""
    before = "regexp_extract(price_source, '(?s); list price .*$')"
    own = f"starts_with(price_source, {quoted(OWN)})"
    return f"CASE WHEN {own} THEN {before} ELSE {_AS_LISTED} END"
