"""The quality rules over 100,000 offers: seconds, against those of just putting them into a table.

The offers are those of the bundled catalog, some of them a second time under another region; the
snapshot before is the bundled catalog. The two are run in turns, so that a busy machine slows both;
each figure is the median. The bar is 1.5 s for the check of rows.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from underdog.catalog import quality, snapshot
from underdog.core.columns import OFFER_COLUMNS
from underdog.core.table import Table

ROWS = 100_000


def offers(count: int) -> list[dict[str, Any]]:
    """So many offers: the bundled ones, and again at places of other names."""
    rows = snapshot.load().table.select()
    again = ({**row, "region": f"{row['region']}-{n}"} for n in itertools.count(1) for row in rows)
    return list(itertools.islice(itertools.chain(rows, again), count))


def in_turns(
    repeats: int, works: dict[str, Callable[[], object]]
) -> dict[str, tuple[float, float]]:
    """The median seconds of each, and of processor time."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            began, spent = time.perf_counter(), time.process_time()
            work()
            taken[name].append((time.perf_counter() - began, time.process_time() - spent))
    return {
        name: (statistics.median(w for w, _ in pairs), statistics.median(c for _, c in pairs))
        for name, pairs in taken.items()
    }


def main(repeats: int) -> None:
    rows, before = offers(ROWS), snapshot.load().table
    columns = {c.name: [row[c.name] for row in rows] for c in OFFER_COLUMNS}
    found = quality.check(rows)
    works: dict[str, Callable[[], object]] = {
        "put them into a table": lambda: Table.from_arrays(columns),
        "check rows (bar 1.5 s)": lambda: quality.check(rows),
        "check columns": lambda: quality.check(columns),
        "check rows against the snapshot before": lambda: quality.check(rows, before),
        "apply": lambda: quality.apply(rows, found),
    }
    seconds = in_turns(repeats, works)
    base = seconds["put them into a table"][0]
    print(f"{len(rows):,} offers, {len(quality.RULES)} rules")
    print(f"{'':<42} {'wall':>9} {'processors':>11} {'ratio':>8}")
    for name, (wall, spent) in seconds.items():
        print(f"{name:<42} {wall:>7.2f} s {spent:>9.2f} s {wall / base:>6.2f} ×")
    for (rule, severity), count in Counter((f.rule, f.severity) for f in found).most_common():
        print(f"{count:>8,}  {rule} ({severity})")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--data", help="not used: the bundled snapshot is checked")
    main(parser.parse_args().repeats)
