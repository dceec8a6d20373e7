"""Which offers of a catalog are new or cheaper than in the catalog of before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from underdog.catalog.snapshot import Snapshot, columns
from underdog.core.ledger import OFFER_ID
from underdog.core.table import connect, quoted
from underdog.errors import CatalogError

LEAST = 0.01  # a smaller move of a price changes no mind


@dataclass(frozen=True, slots=True)
class Moves:
    """The offers that may be worth more than they were.

    Attributes:
        row: of the offers that are new or cheaper, in the table of now, shape (n,).
        was: their price before, USD per hour, NaN where it was not known, shape (n,).
        new_type: whether the catalog of before had no machine of that type, shape (n,).
    """

    row: NDArray[np.int64]
    was: NDArray[np.float64]
    new_type: NDArray[np.bool_]


def moves(before: Snapshot, now: Snapshot) -> Moves:
    """Compare two snapshots, both of files.

    An offer of a known type in a place where it was not sold counts where it is cheaper than that
    machine was anywhere.

    Args:
        before, now: the catalogs.

    Raises:
        CatalogError: one of them cannot be read.
    """
    assert before.path is not None
    assert now.path is not None
    connection = connect()
    try:
        for name, path in (("was", before.path), ("o", now.path)):
            connection.execute(
                f"CREATE TEMP VIEW {name} AS SELECT *, {OFFER_ID} || coalesce(service, '') AS id_ "
                f"FROM (SELECT {columns(connection, path)}, file_row_number AS row "
                f"FROM read_parquet({quoted(str(path.resolve()))}, file_row_number = true))"
            )
        found = connection.execute(_query()).fetchnumpy()
    except duckdb.Error as error:
        reason = " ".join(str(error).split())[:200]
        raise CatalogError(f"The snapshots cannot be compared: {reason}") from error
    return Moves(
        row=_plain(found["row"]).astype(np.int64),
        was=_plain(found["was"]).astype(float),
        new_type=_plain(found["new_type"]).astype(bool),
    )


def _query() -> str:
    machine = "provider, instance_type, nodes, purchase"
    return (
        "WITH same AS (SELECT id_, min(price_per_hour) AS price FROM was GROUP BY id_), "
        f"kind AS (SELECT {machine}, min(price_per_hour) AS price FROM was GROUP BY ALL), "
        "type AS (SELECT DISTINCT provider, instance_type FROM was) "
        "SELECT o.row, coalesce(same.price, kind.price) AS was, "
        "type.provider IS NULL AS new_type FROM o "
        "LEFT JOIN same ON same.id_ = o.id_ "
        "LEFT JOIN kind ON (kind.provider, kind.instance_type, kind.nodes, kind.purchase) "
        "= (o.provider, o.instance_type, o.nodes, o.purchase) "
        "LEFT JOIN type ON (type.provider, type.instance_type) = (o.provider, o.instance_type) "
        "WHERE type.provider IS NULL "
        f"OR o.price_per_hour < coalesce(same.price, kind.price) * {1 - LEAST!r} "
        "OR (o.price_per_hour IS NOT NULL AND coalesce(same.price, kind.price) IS NULL) "
        "ORDER BY o.row"
    )


def _plain(values: Any) -> Any:
    return np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
