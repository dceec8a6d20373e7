"""The query that scores every offer: one pass over all of them, whatever their number.

The offers stand in ``candidates`` (with ``row``), the throughput of each shape at each number of
nodes in ``rates``. The result is the table ``scored``: per offer and number of nodes the utility
at the middle and at both ends of the throughput's interval, which constraint rules it out, and
whether it is ``doubtful``: predicted to miss a limit, though not in its best case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from underdog.core import supply
from underdog.core.constraints import Constraint, doubtful
from underdog.core.metrics import METRICS, metrics_sql
from underdog.core.supply import Supply
from underdog.core.utility import Utility

ENDS = ("rate", "rate_low", "rate_high")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every offer of the view ``joined``."""

    utility: Utility
    constraints: Sequence[Constraint]
    deadline_hours: float | None = None
    budget: float | None = None


def joined(samples: float | None, known: Supply | None = None, offers: str = "candidates") -> str:
    """Offers with the throughput of their shape, and what waiting and interruptions make of it.

    ``price`` is of all nodes together; ``core.supply`` names the other columns. ``offers`` is the
    table or view that they stand in.
    """
    known = known or Supply()
    job = "CAST(NULL AS DOUBLE)" if samples is None else f"CAST({samples!r} AS DOUBLE)"
    return supply.expected(
        "SELECT o.*, r.shape, r.machines, r.rate, r.rate_low, r.rate_high, r.source, "
        "o.price_per_hour * r.machines AS price, "
        "nullif(coalesce(r.measured_power_w, o.accelerator_power_w * o.accelerator_count) "
        "* r.machines, 0) AS power_w, "
        f"{job} AS samples_to_train, {supply.columns(known)} "
        f"FROM {offers} AS o JOIN rates AS r "
        "ON o.provider = r.provider AND o.instance_type = r.instance_type "
        f"AND o.nodes = r.base_nodes{supply.joins(known)}",
        known,
    )


def with_metrics(source: str, end: str) -> str:
    """``source``, a table or a query, and every metric at one end of the throughput's interval."""
    table = source if source.isidentifier() else f"({source})"
    suffix = end.removeprefix("rate")
    # the slow end is the dear one
    price = {"": "price", "_low": "price_high", "_high": "price_low"}[suffix]
    expected = {
        "samples_per_paid_second": f"paid_rate{suffix}",
        "waiting_hours": f"waiting{suffix}",
    }
    return f"SELECT *, {metrics_sql(end, price, expected=expected)} FROM {table}"


def scored(question: Question) -> str:
    """The query for the table ``scored``."""
    limits, doubts = {}, ["FALSE"]
    if question.deadline_hours is not None:
        limits["hours"] = "hours_to_train"
        doubts.append(doubtful("hours", question.deadline_hours))
    if question.budget is not None:
        limits["dollars"] = "dollars_to_train"
        doubts.append(doubtful("dollars", question.budget))
    query, metrics = "joined", ", ".join(f'"{name}"' for name in METRICS)
    for end in ENDS:
        kept = ", ".join(
            f"{sql} AS {name}_{end}"
            for name, sql in {"u": question.utility.first.expression.sql, **limits}.items()
        )
        query = f"SELECT * EXCLUDE ({metrics}), {kept} FROM ({with_metrics(query, end)})"
    named = "".join(f", {n}_rate AS {n}, {n}_rate_high AS {n}_best" for n in limits)
    listed = "".join(f", {n}, {n}_best" for n in limits)
    # tested in order: the first constraint that rules an offer out gives the reason
    cases = " ".join(f"WHEN {c.out} THEN {i}" for i, c in enumerate(question.constraints))
    out = f"CASE {cases} END" if cases else "NULL"
    return (
        "SELECT row, shape, machines, concat_ws(':', purchase, term) AS purchase, source, price, "
        "coalesce(zone, region) AS place, useful, "
        "u_rate AS u, least(u_rate_low, u_rate_high) AS u_low, "
        "greatest(u_rate_low, u_rate_high) AS u_high, u_rate_high AS u_fastest, "
        f"{' OR '.join(doubts)} AS doubtful, "
        f"CAST({out} AS INTEGER) AS excluded{listed} FROM (SELECT *{named} FROM ({query}))"
    )


def best_regions(sign: int, all_regions: bool, tolerance: float | None = None) -> str:
    """Of each shape, purchase option and number of nodes the best region, with their count.

    Offers of one shape are the same hardware: the best utility decides, then the price, then the
    name, so that the order of the offers never matters. With a ``tolerance`` the regions among
    which a later term decides stand beside it: those of a utility within it of the best of all.
    """
    key = f"{{'u': {-sign} * u, 'price': price, 'place': place, 'row': row}}"
    group = "shape, purchase, machines"
    ranked = "FROM scored WHERE excluded IS NULL AND NOT doubtful AND u IS NOT NULL"
    by = group + (", row" if all_regions else "")
    best = (
        f"SELECT arg_min(row, {key}) AS row, {group}, count(*) - 1 AS others {ranked} GROUP BY {by}"
    )
    if tolerance is None or all_regions:
        return best
    lead = f"max({sign} * u) OVER (PARTITION BY source)"
    return (
        f"{best} UNION SELECT row, {group}, count(*) OVER (PARTITION BY {group}) - 1 AS others "
        f"{ranked} QUALIFY {sign} * u >= {lead} - {tolerance + 1e-9!r} * abs({lead})"
    )
