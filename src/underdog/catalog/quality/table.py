"""The offers as the rules see them: tables in a database of their own.

``live`` has the offers that no rule has taken out so far, ``before`` those of the snapshot before,
``facts`` the accelerators that are known, ``given`` the names of all offers that were given (row,
offer, provider, region, instance_type). Columns of ``live``, an unknown being NULL, and of
``before``, where what is not compared is NULL too:

row, offer (its name), provider, region, place (zone or region), instance_type, purchase, term,
service, nodes, price, reason (why it is unknown), date, currency, vcpus, memory, arch, ghz,
accelerator, count, each, usable, total (memory of accelerators), network, disk; names (all texts
that are shown), broken (columns with a value that is no number); family, per_accelerator (price
over nodes and accelerators), nominal (memory of a whole accelerator of that name), market (``spot``
or ``on-demand``: whose prices it is compared with).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from types import NoneType
from typing import Any

import duckdb
import numpy as np

from underdog.catalog.facts import accelerators
from underdog.core.table import Table, connect, quoted

Offers = Sequence[Mapping[str, Any]] | Mapping[str, Sequence[Any]] | Table

_TEXTS = {
    "provider": "provider",
    "region": "region",
    "zone": "zone",
    "instance_type": "instance_type",
    "purchase": "purchase",
    "term": "term",
    "service": "service",
    "reason": "price_unknown_reason",
    "date": "price_date",
    "currency": "currency",
    "arch": "arch",
    "cpu": "cpu_model",
    "accelerator": "accelerator",
}
_NUMBERS = {
    "nodes": "nodes",
    "price": "price_per_hour",
    "vcpus": "vcpus",
    "memory": "memory_gib",
    "ghz": "cpu_ghz",
    "count": "accelerator_count",
    "each": "accelerator_memory_gib",
    "usable": "accelerator_usable_gib",
    "total": "accelerator_memory_gib_total",
    "network": "network_gbps",
    "disk": "local_disk_gb",
}
# what is read of the snapshot before
_COMPARED = (
    *("provider", "region", "zone", "instance_type", "purchase", "term", "service", "nodes"),
    *("price_per_hour", "price_date", "accelerator", "accelerator_count"),
)
# g5 of g5.xlarge, n2-standard-# of n2-standard-8, Standard_E#s_v5 of Standard_E16-4s_v5
_FAMILY = r"""
    CASE provider
    WHEN 'aws' THEN regexp_replace(instance_type, '\.[^.]*$', '')
    WHEN 'gcp' THEN regexp_replace(instance_type, '-[0-9]+', '-#')
    WHEN 'azure' THEN regexp_replace(instance_type, '[0-9]+(-[0-9]+)?', '#')
    ELSE regexp_replace(instance_type, '[0-9]+', '#', 'g') END
"""
_SHAPED = f"""
    SELECT g.row,
        concat_ws('/', g.provider, coalesce(zone, region),
            CASE WHEN nodes = 1 THEN '' ELSE printf('%gx', nodes) END || g.instance_type,
            concat_ws(':', purchase, term)) AS offer,
        coalesce(zone, region) AS place,
        concat_ws(' ', g.provider, region, zone, g.instance_type, term, service, cpu, accelerator)
            AS names,
        price / nullif(nodes * count, 0) AS per_accelerator,
        f.memory AS nominal,
        CASE WHEN purchase = 'spot' THEN 'spot' ELSE 'on-demand' END AS market,
        t.family, g.* EXCLUDE (row)
    FROM bare AS g
    LEFT JOIN facts AS f ON f.name = g.accelerator
    LEFT JOIN (
        SELECT provider, instance_type, {_FAMILY} AS family
        FROM (SELECT DISTINCT provider, instance_type FROM bare)
    ) AS t ON t.provider IS NOT DISTINCT FROM g.provider
        AND t.instance_type IS NOT DISTINCT FROM g.instance_type
"""


def size(offers: Offers) -> int:
    """How many offers there are."""
    if isinstance(offers, Table):
        return offers.count()
    if isinstance(offers, Mapping):
        return max((len(values) for values in offers.values()), default=0)
    return len(offers)


def database(
    offers: Offers, previous: Offers | None = None, today: str | None = None
) -> duckdb.DuckDBPyConnection:
    """The tables of the rules, and ``clock`` with the day ``today`` (NULL where none is given).

    All are temporary; where a table is given, they stand in its database, which spares a copy.
    """
    home = next((one for one in (previous, offers) if isinstance(one, Table)), None)
    connection = connect() if home is None else home.connection.cursor()
    connection.execute("CREATE TEMP MACRO shown(number) AS printf('%.4g', number)")
    known = accelerators()
    facts = {
        "name": np.array(list(known), dtype=object),
        "memory": np.array([one.memory_gib for one in known.values()], dtype=float),
    }
    connection.register("known", facts)
    connection.execute("CREATE TEMP TABLE facts AS SELECT * FROM known")
    connection.unregister("known")
    day = "NULL" if today is None else f"TRY_CAST({quoted(today)} AS DATE)"
    connection.execute(f"CREATE TEMP TABLE clock AS SELECT CAST({day} AS DATE) AS today")
    for name, given, wanted in (
        ("live", offers, (*_TEXTS.values(), *_NUMBERS.values())),
        ("before", previous if previous is not None else [], _COMPARED),
    ):
        if given is home:
            _shape(connection, name, "offers", {"row": "rowid"} | _quoted(wanted))
        else:
            arrays = _arrays(given, wanted)
            connection.register("raw", arrays)
            _shape(connection, name, "raw", {column: column for column in arrays})
            connection.unregister("raw")
    connection.execute(
        "CREATE TEMP TABLE given AS SELECT row, offer, provider, region, instance_type FROM live"
    )
    return connection


def _quoted(names: Sequence[str]) -> dict[str, str]:
    return {new: f'"{old}"' for new, old in (_TEXTS | _NUMBERS).items() if old in names}


def _shape(
    connection: duckdb.DuckDBPyConnection, name: str, source: str, there: Mapping[str, str]
) -> None:
    """Create a table of the rules from a source that has some of the columns, as SQL says them."""
    taken = [
        f"CAST({there['row']} AS BIGINT) AS row",
        *(
            f"nullif(CAST({there.get(new, 'NULL')} AS VARCHAR), '') AS {new}"
            for new in (*_TEXTS, "broken")
        ),
    ]
    for new in _NUMBERS:
        value = there.get(new, "NULL::DOUBLE")
        known = f"CASE WHEN NOT isnan({value}) THEN {value} END"
        taken.append(f"{f'coalesce({known}, 1)' if new == 'nodes' else known} AS {new}")
    connection.execute(
        f"CREATE TEMP TABLE {name} AS WITH bare AS MATERIALIZED "
        f"(SELECT {', '.join(taken)} FROM {source}) {_SHAPED}"
    )


def _arrays(offers: Offers, names: Sequence[str]) -> dict[str, Any]:
    """The columns of these names, under the names of the rules, of those that there are."""
    columns = _columns(offers, names)
    broken: dict[int, list[str]] = {}
    arrays: dict[str, Any] = {"row": np.arange(size(offers))}
    for new, old in _TEXTS.items():
        if old in columns:
            arrays[new] = _texts(columns[old])
    for new, old in _NUMBERS.items():
        if old in columns:
            arrays[new] = _numbers(columns[old], old, broken)
    if broken:
        arrays["broken"] = np.full(size(offers), None, dtype=object)
    for row, faulty in broken.items():
        arrays["broken"][row] = ", ".join(faulty)
    return arrays


def _columns(offers: Offers, names: Sequence[str]) -> Mapping[str, Any]:
    if isinstance(offers, Table):
        listed = ", ".join(f'"{name}"' for name in names)
        return offers.run(f"SELECT {listed} FROM offers ORDER BY rowid").fetchnumpy()
    if isinstance(offers, Mapping):
        return {name: values for name, values in offers.items() if name in names}
    try:
        rows = list(map(itemgetter(*names), offers))
    except KeyError:  # a row without some of them
        rows = [tuple(row.get(name) for name in names) for row in offers]
    return dict(zip(names, zip(*rows, strict=True), strict=True)) if rows else {}


def _texts(values: Any) -> Any:
    plain = values.tolist() if isinstance(values, np.ndarray) else list(values)
    if not set(map(type, plain)) <= {str, NoneType}:
        plain = [None if v is None or v != v else str(v) for v in plain]
    try:
        "".join({v for v in plain if v is not None}).encode()
    except UnicodeEncodeError:  # a lone surrogate, as JSON may hold one
        plain = [v and v.encode("utf-8", "replace").decode("utf-8") for v in plain]
    return np.array(plain, dtype=object)


def _numbers(values: Any, name: str, broken: dict[int, list[str]]) -> Any:
    """Numbers with NaN for unknown; which rows hold something else goes to ``broken``."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(float), np.nan)
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiu":
        return values.astype(float)
    if set(map(type, values)) <= {float, int, NoneType}:
        with suppress(OverflowError):  # an integer beyond any float
            return np.array(values, dtype=float)
    found = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        number = _number(value)
        if number is None:
            broken.setdefault(row, []).append(name)
        else:
            found[row] = number
    return found


def _number(value: Any) -> float | None:
    """The number; NaN for None, None for what is no number."""
    if value is None:
        return math.nan
    if isinstance(value, bool | str | bytes):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None
