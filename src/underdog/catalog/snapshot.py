"""A snapshot: all offers of one day as a Parquet file, with a manifest that holds its hash.

``snapshot.parquet`` has the columns of ``underdog.core.columns``; ``snapshot.json`` beside it says
the schema's version, the date, the hash of the Parquet file, the sources, and what was left out.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import importlib.resources
import json
import os
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from underdog.core.columns import OFFER_COLUMNS
from underdog.core.table import SQL_TYPES, Table, connect, fill, quoted
from underdog.errors import CatalogError
from underdog.model import Price

SCHEMA = 1
FILE_NAME = "snapshot.parquet"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A loaded snapshot.

    ``sources`` are dicts of ``provider, prices, date, licence``; ``left_out`` of ``provider,
    reason, rows, names``. ``path`` is the Parquet file, None where the offers came from another.
    """

    table: Table
    hash: str
    date: str
    sources: tuple[dict[str, Any], ...]
    left_out: tuple[dict[str, Any], ...]
    rows: int
    path: Path | None = None


def load(path: str | Path | None = None) -> Snapshot:
    """Load the bundled snapshot, or the one at ``path`` (its manifest beside it).

    Raises:
        CatalogError: there is none, it is cut off or damaged, its hash is not the manifest's, or it
            is of a newer schema.
    """
    if path is None:
        return _bundled()
    return _load(Path(path))


@functools.cache
def _bundled() -> Snapshot:
    return _load(bundled_path())


def bundled_path() -> Path:
    """Where the bundled snapshot is; an installation has its files as files."""
    return Path(str(importlib.resources.files("underdog.data").joinpath(FILE_NAME)))


def _load(path: Path) -> Snapshot:
    said = manifest(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CatalogError(f"Cannot read the snapshot '{path}': {error.strerror}.") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != said["hash"]:
        raise CatalogError(
            f"The snapshot '{path}' is damaged: its hash is {digest[:12]}…, and the manifest says "
            f"{str(said['hash'])[:12]}….",
            "Restore both files: pip install --force-reinstall underdog",
        )
    return Snapshot(
        table=_table(path, int(said["rows"])),
        hash=digest,
        date=str(said["date"]),
        sources=tuple(said["sources"]),
        left_out=tuple(said["left_out"]),
        rows=int(said["rows"]),
        path=path,
    )


def manifest(path: Path) -> dict[str, Any]:
    """What the manifest beside a snapshot says; see ``save``.

    Raises:
        CatalogError: there is none, it is damaged, or of a newer schema.
    """
    file = path.with_suffix(".json")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise CatalogError(f"Cannot read the manifest '{file}': {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"The manifest '{file}' is damaged: {error}.") from error
    kinds = {"hash": str, "date": str, "rows": int, "sources": list, "left_out": list}
    if not isinstance(found, dict) or "schema" not in found:
        raise CatalogError(f"'{file}' is no manifest of a snapshot.")
    if found["schema"] != SCHEMA:
        raise CatalogError(
            f"The snapshot '{path}' has the schema {found['schema']}, and this version of "
            f"underdog reads {SCHEMA}.",
            "pip install --upgrade underdog",
        )
    if not all(isinstance(found.get(name), kind) for name, kind in kinds.items()):
        raise CatalogError(f"'{file}' is no manifest of a snapshot.")
    return found


def _table(path: Path, rows: int) -> Table:
    # a view: reading all of the file into memory costs more than a whole command needs
    connection = connect()
    try:
        # a table has rowid of its own, a view needs one: joins refer to offers by it
        connection.execute(
            f"CREATE VIEW offers AS SELECT {columns(connection, path)}, file_row_number AS rowid "
            f"FROM read_parquet({quoted(str(path.resolve()))}, file_row_number = true)"
        )
        table = Table(connection, files=[str(path.resolve())])
        found = table.count()
    except duckdb.Error as error:
        reason = " ".join(str(error).split())[:200]
        raise CatalogError(f"The snapshot '{path}' cannot be read: {reason}") from error
    if found != rows:
        raise CatalogError(f"The snapshot '{path}' has {found:,} offers, not {rows:,}.")
    return table


def columns(connection: duckdb.DuckDBPyConnection, path: Path) -> str:
    """The columns of an offer as SQL selects them from a snapshot's file.

    A snapshot of an older version lacks the columns that came since: they are unknown.
    """
    file = quoted(str(path.resolve()))
    found = connection.execute(f"SELECT name FROM parquet_schema({file})").fetchall()
    there = {name for (name,) in found}
    return ", ".join(
        f'CAST({quoted_name(c.name, there)} AS {SQL_TYPES[c.kind]}) AS "{c.name}"'
        for c in OFFER_COLUMNS
    )


def quoted_name(name: str, there: Container[str]) -> str:
    """A column as SQL names it, NULL where the file has none."""
    return f'"{name}"' if name in there else "NULL"


def write(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    date: str,
    sources: Sequence[Mapping[str, Any]],
    left_out: Sequence[Mapping[str, Any]],
) -> str:
    """Write a snapshot and its manifest; the same offers give the same bytes. Returns the hash."""
    connection = connect()
    fill(connection, {c.name: [row[c.name] for row in rows] for c in OFFER_COLUMNS})
    return save(connection, path, date=date, sources=sources, left_out=left_out)


def save(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    *,
    date: str,
    sources: Sequence[Mapping[str, Any]],
    left_out: Sequence[Mapping[str, Any]],
) -> str:
    """Write the table ``offers`` of an unlocked connection as ``write`` does.

    Raises:
        OSError: the disk is full, or the folder cannot be written.
    """
    connection.execute("SET threads = 1")
    order = "provider, instance_type, region, zone, purchase, term"
    try:
        counted = connection.execute(
            f"COPY (SELECT * FROM offers ORDER BY {order}) TO {quoted(str(path))} "
            "(FORMAT parquet, COMPRESSION zstd)"
        ).fetchone()
    except duckdb.IOException as error:
        reason = " ".join(str(error).split())
        full = os.strerror(errno.ENOSPC)  # DuckDB says so at the end, after names and numbers
        if full in reason:
            raise OSError(errno.ENOSPC, full, str(path)) from error
        raise OSError(errno.EIO, reason[:200], str(path)) from error
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    said = {
        "schema": SCHEMA,
        "date": date,
        "hash": digest,
        "rows": counted[0] if counted else 0,
        "sources": list(sources),
        "left_out": list(left_out),
    }
    text = json.dumps(said, indent=1, ensure_ascii=False) + "\n"
    path.with_suffix(".json").write_text(text, encoding="utf-8")
    return digest


def machine_price(
    provider: str,
    region: str,
    instance_type: str,
    purchase: str = "on-demand",
    snapshot: Snapshot | None = None,
) -> Price:
    """What a machine costs, with the source and the date; unknown with a reason where it is not in.

    Args:
        region: the region, or a zone of it (``us-east-1a``, ``us-central1-b``).
        snapshot: by default the bundled one.
    """
    known = snapshot or load()
    query = (
        "SELECT price_per_hour, price_unknown_reason, price_source, price_date FROM offers "
        "WHERE provider = ? AND instance_type = ? AND purchase = ? AND region IN (?, ?) "
        "ORDER BY price_per_hour NULLS LAST LIMIT 1"
    )
    without_zone = re.sub(r"(?<=\d)-?[a-z]$", "", region)
    values = [provider, instance_type, purchase, region, without_zone]
    row = known.table.connection.execute(query, values).fetchone()
    if row is None:
        return Price(
            unknown_reason=f"the catalog of {known.date} has no {purchase} price of "
            f"{instance_type} in {region}"
        )
    amount, reason, source, date = row
    return Price(per_hour=amount, unknown_reason=reason, source=source or "", date=date or "")
