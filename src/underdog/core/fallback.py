"""What to ask for where an offer is not to be had: a list, the best first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from underdog.core import availability, ledger
from underdog.core.attempts import Place
from underdog.core.constraints import text

if TYPE_CHECKING:
    from underdog.core.choosing import Choice

STEPS = 5
PLACES = 2  # of one machine, bought alike: where it is short in one, it often is in the next
_PLACE = ("provider", "region", "zone", "instance_type", "purchase")


def fallback(choice: Choice, steps: int = STEPS) -> list[dict[str, Any]]:
    """The decision's first offer, and what to go on with, each asked for ``patience`` seconds.

    Measured offers among themselves where one leads, else predicted ones; by the leading term of
    the utility, at most ``PLACES`` places of one machine.
    """
    if not choice.ranked:
        return []
    first = choice.ranked[0]
    rows = _rows(
        choice, str(choice.groups["source"][first]), int(choice.groups["row"][first]), steps
    )
    known = choice.supply
    found = [known.at(Place(**{k: row[k] or "" for k in _PLACE}), row["nodes"]) for row in rows]
    on_record = [one if one.known else None for one in found]
    order = [float(place) for place in range(len(rows))]
    plan = availability.plan(order, on_record, known.patience, steps)
    return [
        {
            "offer": row["offer"],
            "nodes": row["nodes"],
            "patience_seconds": step.patience,
            "reached": step.reached,
        }
        for row, step in zip(rows, plan, strict=True)
    ]


def _rows(choice: Choice, source: str, first: int, steps: int) -> list[dict[str, Any]]:
    sign = choice.request.utility.first.sign
    names = ("offer", "nodes", *_PLACE)
    place = ", ".join(f"c.{name}" for name in _PLACE)
    sql = (
        f"SELECT {ledger.OFFER_ID}, CAST(machines AS INTEGER), {place} "
        "FROM (SELECT row AS row_, machines, u, price, shape, purchase AS bought FROM scored "
        "WHERE excluded IS NULL AND NOT doubtful AND u IS NOT NULL "
        f"AND source = {text(source)} QUALIFY row_number() OVER (PARTITION BY shape, "
        f"purchase ORDER BY row <> {first}, {-sign} * u, price, place, row, machines) <= {PLACES}) "
        "AS s JOIN candidates AS c ON c.row = s.row_ "
        f"ORDER BY c.row <> {first}, {-sign} * s.u, s.price, 1, 2 LIMIT {steps}"
    )
    found = choice.table.run(sql).fetchall()
    return [dict(zip(names, row, strict=True)) for row in found]
