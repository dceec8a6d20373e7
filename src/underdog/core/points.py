"""The candidates of a choice that are worth drawing: a few of thousands, the shape of all kept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from underdog.core import ledger, listing
from underdog.core.choosing import Choice
from underdog.core.laid_out import fill
from underdog.core.scoring import ENDS
from underdog.core.views.ranking import MILLION
from underdog.core.views.records import Point
from underdog.core.views.words import range_of

MOST = 1500
FIRST_OF_RANKED = 0.4  # of them are the first that rank; what was measured comes besides
CELLS = 6  # of the picture, per factor of ten
_FACTS = (
    "offer",
    "provider",
    "region",
    "instance_type",
    "purchase",
    "accelerator",
    "accelerator_count",
    "vcpus",
    "memory_gib",
    "caveats",
)
_FIGURES = ("samples_per_second", "samples_per_dollar", "hours", "dollars", "utility")


def points(choice: Choice, most: int = MOST) -> list[Point]:
    """One candidate per machine, purchase option, term and number of machines: the best region.

    All that rank first, that were measured and that are on the Pareto front are there, and of the
    others those that time and cost can be told of, thinned so that none of the picture is empty
    which was not: each cell of a grid keeps some before any keeps more.

    Args:
        choice: after it was made; its tables are read.
        most: the largest number of points.
    """
    _ranked(choice)
    sql = _query(choice, most)
    found = choice.table.run(sql)
    names = [column[0] for column in found.description or ()]
    told = (dict(zip(names, row, strict=True)) for row in found.fetchall())
    return [_point(choice, row) for row in told]


def _ranked(choice: Choice) -> None:
    """The table ``placed``: of each offer that ranks its row, its place and the front."""
    groups, ranked = choice.groups, choice.ranked
    front = listing.front(choice)
    placed = {
        "row": np.array([groups["row"][i] for i in ranked], dtype=np.int64),
        "machines": np.array([groups["machines"][i] for i in ranked], dtype=float),
        "place": np.arange(1, len(ranked) + 1),
        "front": np.array([bool(front[i]) for i in ranked], dtype=bool),
    }
    fill(choice.table, "placed", placed)


def _query(choice: Choice, most: int) -> str:
    request = choice.request
    sign = request.utility.first.sign
    # of each machine the best region, as it ranks; of one that does not, the best of what it has
    key = (
        "{'out': excluded IS NOT NULL, 'doubt': doubtful, "
        f"'u': {-sign} * u, 'price': price, 'place': s.place, 'row': s.row}}"
    )
    best = (
        f"SELECT arg_min(s.row, {key}) AS row, s.machines FROM scored AS s "
        "WHERE price IS NOT NULL AND u IS NOT NULL AND NOT EXISTS (SELECT 1 FROM placed AS p "
        "JOIN scored AS t ON t.row = p.row AND t.machines = p.machines WHERE t.shape = s.shape "
        "AND t.purchase = s.purchase AND t.machines = s.machines) "
        "GROUP BY s.shape, s.purchase, s.machines"
    )
    keys = (
        "SELECT row, machines, place, front FROM placed UNION ALL "
        f"SELECT row, machines, NULL, FALSE FROM ({best})"
    )
    return f"SELECT * FROM ({_thinned(choice, keys, most)}) ORDER BY place NULLS LAST, offer"


def _thinned(choice: Choice, keys: str, most: int) -> str:
    """The figures of the keys, and of these the few that are drawn."""
    cell = ", ".join(f"floor({CELLS} * log10({name}_rate))" for name in ("hours", "dollars"))
    first = "(source = 'measured' AND verdict <> 'excluded') OR front"
    first += f" OR place <= {int(FIRST_OF_RANKED * most)}"
    return (
        f"SELECT * EXCLUDE (first, turn) FROM (SELECT *, coalesce({first}, FALSE) AS first, "
        f"row_number() OVER (PARTITION BY verdict, cause, {cell} ORDER BY place, offer) AS turn "
        f"FROM ({_figured(choice, keys)})) WHERE first OR dollars_rate IS NOT NULL "
        f"QUALIFY row_number() OVER (ORDER BY first DESC, front DESC, "
        f"CASE WHEN first THEN place END, turn, offer) <= {int(most)}"
    )


def _figured(choice: Choice, keys: str) -> str:
    samples = choice.request.samples
    job = repr(MILLION if samples is None else float(samples))
    columns = []
    for end in ENDS:
        tail = end.removeprefix("rate")
        # the slow end is the dear one
        price = {"": "price", "_low": "price_high", "_high": "price_low"}[tail]
        hours = f"{job} / (j.paid_rate{tail} * 3600)"
        # of a part of a job nobody waits for a machine
        wait = "" if samples is None else f" + j.waiting{tail}"
        columns += [
            f"j.rate{tail} AS samples_per_second_{end}",
            f"j.paid_rate{tail} * 3600 / j.{price} AS samples_per_dollar_{end}",
            f"{hours}{wait} AS hours_{end}",
            f"{hours} * j.{price} AS dollars_{end}",
        ]
    told = ledger.query(
        choice.constraints,
        choice.request.utility,
        choice.winner,
        several=False,
        rows="(row, machines) IN (SELECT row, machines FROM keys)",
        also=("s.row_ AS row", "s.machines", "s.u", "s.u_low", "s.u_high"),
    )
    facts = ", ".join(f"j.{name}" for name in _FACTS if name not in ("offer", "region"))
    return (
        f"WITH keys AS MATERIALIZED ({keys}) SELECT l.*, k.place, k.front, "
        f"coalesce(j.zone, j.region) AS region, {facts}, j.source, j.price, "
        f"{', '.join(columns)} FROM ({told}) AS l "
        "JOIN keys AS k ON k.row = l.row AND k.machines = l.machines "
        "JOIN joined AS j ON j.row = l.row AND j.machines = l.machines"
    )


def _point(choice: Choice, row: Mapping[str, Any]) -> Point:
    ends = {name: [row[f"{name}_{end}"] for end in ENDS] for name in _FIGURES[:-1]}
    ends["utility"] = [row["u"], row["u_low"], row["u_high"]]
    known = {name: range_of(listing.interval(values)) for name, values in ends.items()}
    doubts = row["caveats"]
    return Point(
        offer=row["offer"],
        provider=row["provider"],
        region=row["region"] or "",
        instance_type=row["instance_type"],
        purchase=row["purchase"],
        nodes=int(row["machines"]),
        accelerator=row["accelerator"],
        accelerator_count=row["accelerator_count"] or 0,
        vcpus=row["vcpus"],
        memory_gib=row["memory_gib"],
        price_per_hour=row["price"],
        rank=row["place"],
        verdict=row["verdict"],
        reason=row["reason"],
        source=row["source"] or "unknown",
        pareto=bool(row["front"]),
        caveats=doubts.split(",") if doubts else [],
        samples_per_second=known["samples_per_second"],
        samples_per_dollar=known["samples_per_dollar"],
        hours=known["hours"],
        dollars=known["dollars"],
        utility=known["utility"],
    )
