"""The catalog: seconds to load and filter it, size on disk, and a million offers.

Every figure is the median of several runs of this process after its imports; the bar is 60 ms to
load and filter 100,000 offers, and 3 MB on disk.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np

from underdog.catalog import snapshot
from underdog.core.columns import BY_NAME, OFFER_COLUMNS
from underdog.core.expression import parse
from underdog.core.table import Table, connect, schema

WHERE = "accelerator_memory_gib >= 24 and region like 'us-%' and price_per_hour < 2"
BUNDLED = Path(snapshot.__file__).parent.parent / "data" / snapshot.FILE_NAME


def median_ms(work: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken) * 1e3


def once(path: Path) -> None:
    table = snapshot.load(path).table
    assert table.select(parse(WHERE, BY_NAME), [("price_per_hour", False)])


def many(count: int) -> duckdb.DuckDBPyConnection:
    """So many offers: the catalog several times over, with other prices."""
    times = -(-count // snapshot.load().rows)
    connection = connect()
    connection.execute(f"CREATE TABLE offers ({schema()})")
    names = ", ".join(
        "price_per_hour * (1 + i / 100.0)" if c.name == "price_per_hour" else f'"{c.name}"'
        for c in OFFER_COLUMNS
    )
    connection.execute(
        f"INSERT INTO offers SELECT {names} FROM read_parquet(?), range({times}) AS t(i) "
        f"LIMIT {count}",
        [str(BUNDLED)],
    )
    return connection


def loading(path: Path, repeats: int) -> tuple[float, float]:
    """Milliseconds of the clock and of the processor to load a snapshot and filter it."""
    once(path)
    began = time.process_time()
    load = median_ms(lambda: once(path), repeats)
    return load, (time.process_time() - began) / repeats * 1e3


def main(repeats: int) -> None:
    load, spent = loading(BUNDLED, repeats)
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / snapshot.FILE_NAME
        snapshot.save(many(100_000), full, date="2026-01-01", sources=[], left_out=[])
        full_load, full_spent = loading(full, repeats)
        full_size = full.stat().st_size / 1e6
    loaded = snapshot.load(BUNDLED)
    rows = loaded.table.select()
    columns = {c.name: [row[c.name] for row in rows] for c in OFFER_COLUMNS}
    arrays = {
        name: np.asarray(values, dtype=float if BY_NAME[name].kind == "number" else object)
        for name, values in columns.items()
    }
    from_arrays = median_ms(lambda: Table.from_arrays(arrays), 3)
    condition = parse(WHERE, BY_NAME)
    divided = parse("price_per_hour / nullif(accelerator_count, 0) < 1", BY_NAME)
    large = Table(many(1_000_000))
    lines = [
        ("offers in the catalog", f"{loaded.rows:,}"),
        ("size on disk (bar 3 MB)", f"{BUNDLED.stat().st_size / 1e6:.2f} MB"),
        ("load and filter (bar 60 ms)", f"{load:.0f} ms"),
        ("load and filter, processor time", f"{spent:.0f} ms"),
        ("100,000 offers: size (bar 3 MB)", f"{full_size:.2f} MB"),
        ("100,000 offers: load and filter (bar 60)", f"{full_load:.0f} ms"),
        ("100,000 offers: processor time", f"{full_spent:.0f} ms"),
        ("the catalog from arrays", f"{from_arrays:.0f} ms"),
        (
            "1,000,000 offers: filter",
            f"{median_ms(lambda: large.select(condition), repeats):.0f} ms",
        ),
        (
            "1,000,000 offers: a division",
            f"{median_ms(lambda: large.count(divided), repeats):.0f} ms",
        ),
        (
            "1,000,000 offers: the 100 cheapest",
            f"{median_ms(lambda: large.select(None, [('price_per_hour', False)], 100), 3):.0f} ms",
        ),
    ]
    for name, value in lines:
        print(f"{name:<42} {value:>12}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--data", help="not used: the bundled snapshot is measured")
    main(parser.parse_args().repeats)
