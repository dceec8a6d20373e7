"""Spot while it is to be had, on demand where it must be: what that costs by the deadline.

For each listed machine that is sold both ways in one region, the policy of ``core.spot_policy`` is
tried on markets drawn by chance (``core.spot_markets``): what it costs and whether it is in time,
against on demand alone and spot alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from underdog.core import ledger
from underdog.core.attempts import Place
from underdog.core.availability import Availability
from underdog.core.constraints import text
from underdog.core.listing import interval, listed_groups
from underdog.core.spot import checkpoint_interval
from underdog.core.spot_markets import Outcome, Outcomes, Way, simulate
from underdog.model import Caveat, Estimate

if TYPE_CHECKING:
    from underdog.core.choosing import Choice

MOST = 8  # machines that are looked at: those that would cost the least on spot all the time
SEED = 0
LIKELY = 0.9  # chance to be in time, below which a spot offer that leads is doubted
TOLERATED = 0.05  # of the chance to be in time, by which another way may stand behind on demand
# Hours that spot is away after an interruption, where nobody saw a wait: the mean of the 3,241
# gaps in the public records that ``availability.FIRST_RATE`` comes from.
FIRST_GAP = 1.8
_PLACE = ("provider", "region", "zone", "instance_type", "purchase")
_LATER = ("deadline", "budget")  # what rules spot out, but not a plan with it


def plans(choice: Choice) -> list[dict[str, Any]]:
    """The plans, those of measured machines first, the cheapest first; see ``Decision.plans``.

    None without a deadline. A plan has to be in time as surely as on demand alone, to cost less
    than that, and to keep the budget. ``cheapest`` is the one that costs less than every other way
    that keeps the deadline: on demand or reserved, and spot alone of the machines looked at.
    """
    request = choice.request
    if request.deadline_hours is None or request.samples is None:
        return []
    rows = _pairs(choice)
    known = [_Known(choice, row) for row in rows]
    ways = [one.way for one in known]
    found = simulate(ways, request.deadline_hours, SEED)
    made = [
        _plan(one, outcomes)
        for one, outcomes in zip(known, found, strict=True)
        if _worth(outcomes, request.budget)
    ]
    made.sort(key=lambda plan: (plan["source"] != "measured", plan["dollars"]["value"]))
    if made:
        source = made[0]["source"]
        made[0]["cheapest"] = made[0]["dollars"]["value"] < _others(choice, source, known, found)
    return made


def caveats(
    made: Sequence[Mapping[str, Any]], ranking: Sequence[Mapping[str, Any]]
) -> list[Caveat]:
    """That the first of the ranking would be late on spot alone; its hours count no absence."""
    first = ranking[0]["offer"]["id"] if ranking else None
    plan = next((plan for plan in made if plan["spot"] == first), None)
    if plan is None or plan["alone"]["spot"]["in_time"] >= LIKELY:
        return []
    chance, away = plan["alone"]["spot"]["in_time"], plan["away_hours"]
    return [
        Caveat(
            code="spot_may_be_late",
            message=f"On spot alone {first} is in time with a chance of {chance:.0%} only: after "
            f"an interruption it is away for {away:.2g} h, which the hours here leave out.",
            remedy="Take the plan that mixes it with on demand, or --purchase on-demand.",
        )
    ]


def _worth(found: Outcomes, budget: float | None) -> bool:
    mixed, sure = found.mixed, found.on_demand
    within = budget is None or mixed.dollars.value <= budget
    return (
        mixed.in_time > 0
        and mixed.in_time >= sure.in_time
        and mixed.dollars.value < sure.dollars.value
        and within
    )


def _others(choice: Choice, source: str, known: list[_Known], found: list[Outcomes]) -> float:
    """The least dollars of what keeps the deadline without such a plan."""
    alone = [
        outcomes.spot.dollars.value
        for one, outcomes in zip(known, found, strict=True)
        if one.row["source"] == source
        and outcomes.spot.in_time >= outcomes.on_demand.in_time - TOLERATED
    ]
    samples = choice.request.samples
    least = choice.table.run(
        f"SELECT min(s.price * {samples!r} / (r.rate * 3600)) FROM scored AS s "
        f"JOIN rates AS r USING (shape, machines) WHERE s.source = {text(source)} "
        "AND s.purchase <> 'spot' AND s.excluded IS NULL AND NOT s.doubtful"
    ).fetchone()
    return min([math.inf if least is None or least[0] is None else least[0], *alone])


class _Known:
    """What is known of a machine that is sold both ways."""

    def __init__(self, choice: Choice, row: dict[str, Any]) -> None:
        self.row, nodes = row, row["nodes"]
        supply, hours = choice.supply, (choice.request.samples or 0.0) / 3600
        self.spot = self._at(choice, "spot")
        events = self.spot.interruptions
        rate = events.value * nodes
        every = supply.interval_seconds
        checkpoint = supply.checkpoint_seconds / 3600
        work = Estimate(
            value=hours / row["rate"],
            low=hours / row["rate_high"],
            high=hours / row["rate_low"],
            n=1,
        )
        interval = checkpoint_interval(checkpoint, rate) if every is None else every / 3600
        interval = min(interval, work.value)
        wait = self._at(choice, "on_demand").wait
        self.gap = FIRST_GAP if self.spot.wait is None else self.spot.wait.value / 3600
        self.way = Way(
            work=work,
            pace=interval / (interval + checkpoint) if interval > 0 else 1.0,
            redo=interval / 2,  # of what is done between two checkpoints, on average
            changeover=supply.restart_seconds / 3600,
            wait=0.0 if wait is None else wait.value / 3600,
            gap=self.gap,
            interruptions=Estimate(
                value=rate, low=events.low * nodes, high=events.high * nodes, n=events.n
            ),
            spot_price=row["spot_price"],
            on_demand_price=row["on_demand_price"],
        )

    def _at(self, choice: Choice, kind: str) -> Availability:
        names = {name: self.row[f"{kind}_{name}"] or "" for name in _PLACE}
        return choice.supply.at(Place(**names), self.row["nodes"])


def _plan(known: _Known, found: Outcomes) -> dict[str, Any]:
    way = known.way
    return {
        "spot": known.row["spot"],
        "on_demand": known.row["on_demand"],
        "nodes": known.row["nodes"],
        "source": known.row["source"],
        **_told(found.mixed),
        "spot_hours": found.mixed.spot_hours,
        "on_demand_hours": found.mixed.on_demand_hours,
        "alone": {"on_demand": _told(found.on_demand), "spot": _told(found.spot)},
        "interruptions_per_hour": _ends(way.interruptions),
        "from": known.spot.origin,
        "away_hours": known.gap,
        "away_from": "prior" if known.spot.wait is None else "attempts",
        "changeover_seconds": 3600 * (way.changeover + way.wait),
        "cheapest": False,
    }


def _told(found: Outcome) -> dict[str, Any]:
    return {"dollars": _ends(found.dollars), "in_time": found.in_time}


def _ends(estimate: Estimate) -> dict[str, float] | None:
    return interval([estimate.value, estimate.low, estimate.high])


def _pairs(choice: Choice) -> list[dict[str, Any]]:
    """Of each listed machine the region where it is cheapest bought both ways.

    On demand it must keep all that is asked, the deadline as well; on spot all but that.
    """
    groups = choice.groups
    kinds = {(int(groups["shape"][i]), int(groups["machines"][i])) for i in listed_groups(choice)}
    if not kinds:
        return []
    later = ", ".join(str(i) for i, c in enumerate(choice.constraints) if c.name in _LATER)
    wanted = ", ".join(f"({shape}, {machines})" for shape, machines in sorted(kinds))
    sides = {"p": "spot", "o": "on_demand"}
    ends = ", ".join(f"{t}.{name} AS {kind}_{name}" for t, kind in sides.items() for name in _PLACE)
    sql = (
        "WITH sold AS MATERIALIZED (SELECT s.shape, s.machines, s.source, s.price, s.excluded, "
        f"s.doubtful, service, {', '.join(_PLACE)}, {ledger.OFFER_ID} AS id FROM "
        "(SELECT row AS row_, shape, machines, source, price, excluded, doubtful FROM scored "
        f"WHERE (shape, machines) IN ({wanted}) AND price > 0) AS s "
        "JOIN candidates AS c ON c.row = s.row_) "
        "SELECT CAST(o.machines AS INTEGER) AS nodes, o.source, r.rate, r.rate_low, r.rate_high, "
        "p.id AS spot, o.id AS on_demand, p.price AS spot_price, o.price AS on_demand_price, "
        f"{ends} FROM sold AS o JOIN sold AS p USING (shape, machines, provider, region) "
        "JOIN rates AS r USING (shape, machines) "
        "WHERE o.purchase = 'on-demand' AND o.excluded IS NULL AND NOT o.doubtful "
        f"AND p.purchase = 'spot' AND (p.excluded IS NULL OR p.excluded IN ({later})) "
        "AND p.service IS NOT DISTINCT FROM o.service AND p.price < o.price AND r.rate_low > 0 "
        "QUALIFY row_number() OVER (PARTITION BY shape, machines "
        "ORDER BY o.price + p.price, p.id, o.id) = 1 "
        f"ORDER BY o.source <> 'measured', p.price / r.rate, p.id LIMIT {MOST}"
    )
    found = choice.table.run(sql)
    names = [part[0] for part in found.description or ()]
    return [dict(zip(names, values, strict=True)) for values in found.fetchall()]
