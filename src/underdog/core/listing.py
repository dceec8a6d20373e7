"""The listed offers of a choice with their figures, and the machines to test next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from underdog.core import ledger, next_tests, pareto, rank, scoring
from underdog.core.attempts import Place
from underdog.core.columns import BY_NAME
from underdog.core.metrics import METRICS
from underdog.core.spot import checkpoint_interval
from underdog.model import Estimate

if TYPE_CHECKING:
    from underdog.core.choosing import Choice

FACTS = (
    "provider, region, zone, instance_type, purchase, term, service, price_per_hour, price_date, "
    "price_source, caveats, "
    "vcpus, memory_gib, arch, accelerator, accelerator_count, accelerator_memory_gib"
)


def ranking(choice: Choice) -> list[dict[str, Any]]:
    """The listed offers, the best first, as ``docs/reference/decision.md`` describes them."""
    groups, listed = choice.groups, listed_groups(choice)
    place_of = {index: place for place, index in enumerate(choice.ranked)}
    marks = front(choice)
    measures = _measures(choice, listed)
    value, low, high = ends = [groups[name][listed] for name in ("u", "u_low", "u_high")]
    same = [(groups["shape"][i], groups["machines"][i]) for i in listed]
    alike = np.array([same.index(key) for key in same], dtype=int)
    ties = rank.ties(value, low, high, alike)
    names = [groups["offer"][i] for i in listed]
    return [
        {
            "rank": place_of[i] + 1,
            **measures[place],
            "nodes": int(groups["machines"][i]),
            "other_regions": int(groups["others"][i]),
            "source": groups["source"][i],
            "utility": interval([float(end[place]) for end in ends]),
            "pareto": bool(marks[i]),
            "tied_with": list(dict.fromkeys(names[j] for j in ties[place])),
            **_supplied(choice, measures[place]["offer"], int(groups["machines"][i])),
        }
        for place, i in enumerate(listed)
    ]


def _supplied(choice: Choice, offer: Mapping[str, Any], machines: int) -> dict[str, Any]:
    """What is expected of getting so many machines, and of keeping them on spot."""
    names = ("provider", "region", "zone", "instance_type", "purchase")
    known = choice.supply
    found = known.at(Place(**{name: offer[name] or "" for name in names}), machines)
    told = None
    if found.known:
        told = {
            "chance": _told(found.chance),
            "wait_seconds": None if found.wait is None else _told(found.wait),
            "attempts": found.attempts,
        }
    if offer["purchase"] != "spot":
        return {"availability": told, "spot": None}
    often = _told(found.interruptions, machines)
    every = known.interval_seconds
    if every is None:
        hours = checkpoint_interval(known.checkpoint_seconds / 3600, often["value"])
        every = 3600 * hours
    spot = {
        "interruptions_per_hour": often,
        "from": found.origin,
        "checkpoint_every_seconds": every,
    }
    return {"availability": told, "spot": spot}


def _told(estimate: Estimate, scale: float = 1.0) -> dict[str, float]:
    values = (estimate.value, estimate.low, estimate.high)
    return {name: scale * end for name, end in zip(("value", "low", "high"), values, strict=True)}


def listed_groups(choice: Choice) -> list[int]:
    """The first of the measured and of the predicted offers; a quarter is kept for these."""
    limit, measured = choice.request.limit, choice.groups["source"] == "measured"
    known = [i for i in choice.ranked if measured[i]]
    guessed = [i for i in choice.ranked if not measured[i]]
    known = known[: max(limit - len(guessed), limit - limit // 4)]
    return known + guessed[: limit - len(known)]


def front(choice: Choice) -> Any:
    """Which of the groups of a choice no other offer beats on both time and cost, shape (n,).

    A guess beats no measurement: measured offers are judged among themselves.

    The rivals are those that rank, at the lowest price of each machine: another region than
    the one that ranks best may be the one that is cheaper.
    """
    groups, rivals = choice.groups, _rivals(choice)
    measured, known = groups["source"] == "measured", rivals["source"] == "measured"
    mine, theirs = ((p["rate"], p["rate"] * p["useful"] / p["price"]) for p in (groups, rivals))
    marks = np.zeros(len(measured), dtype=bool)
    for members, against in ((measured, known), (~measured, known | ~known)):
        points = mine[0][members], mine[1][members]
        beaten = pareto.dominated(points, (theirs[0][against], theirs[1][against]))
        marks[members] = ~(beaten | np.isnan(points[0] + points[1]))
    return marks


def _rivals(choice: Choice) -> dict[str, Any]:
    found = choice.table.run(
        "SELECT shape, machines, s.source, rate, arg_min(price, price / useful) AS price, "
        "arg_min(useful, price / useful) AS useful FROM scored AS s "
        "JOIN rates USING (shape, machines) WHERE excluded IS NULL AND NOT doubtful "
        "AND price IS NOT NULL AND rate IS NOT NULL GROUP BY ALL"
    )
    rivals = {name: plain(values) for name, values in found.fetchnumpy().items()}
    # a machine alone is no rival of two of its kind: the utility chose between the numbers
    pairs = {(choice.groups["shape"][i], choice.groups["machines"][i]) for i in choice.ranked}
    kinds = zip(rivals["shape"].tolist(), rivals["machines"].tolist(), strict=True)
    ranks = np.array([kind in pairs for kind in kinds], dtype=bool)
    return {name: values[ranks] for name, values in rivals.items()}


def _measures(choice: Choice, listed: Sequence[int]) -> list[dict[str, Any]]:
    """Facts and metrics of the listed offers, metrics as value and interval."""
    if not listed:
        return []
    wanted = ", ".join(
        f"({choice.groups['row'][i]}, {choice.groups['machines'][i]})" for i in listed
    )
    source = f"SELECT * FROM joined WHERE (row, machines) IN ({wanted})"
    names, facts = list(METRICS), FACTS.split(", ")
    ends = " UNION ALL ".join(
        f"SELECT {k} AS end_, row, machines, {FACTS}, {ledger.OFFER_ID}, {', '.join(names)} "
        f"FROM ({scoring.with_metrics('listed', end)})"
        for k, end in enumerate(scoring.ENDS)
    )
    found: dict[tuple[int, float], dict[str, Any]] = {}
    sql = f"WITH listed AS MATERIALIZED ({source}) {ends} ORDER BY end_"
    for _, row, machines, *values in choice.table.run(sql).fetchall():
        entry = found.setdefault((row, machines), {"ends": []})
        described = dict(zip(facts, values, strict=False))
        entry["offer"] = {"id": values[len(facts)], **described}
        entry["ends"].append(values[len(facts) + 1 :])
    keys = [(int(choice.groups["row"][i]), float(choice.groups["machines"][i])) for i in listed]
    return [
        {"offer": found[key]["offer"]}
        | {name: interval([end[k] for end in found[key]["ends"]]) for k, name in enumerate(names)}
        for key in keys
    ]


def to_test(choice: Choice, count: int) -> list[dict[str, Any]]:
    """The few machines whose test may gain the most.

    The gain is over the best measured offer; where none can be ranked, over what the safest
    of the predictions promises at least. ``against`` says which of the two, and its value.
    """
    groups, sign = choice.groups, choice.request.utility.first.sign
    found = [i for i in choice.ranked if groups["source"][i] == "predicted"]
    if not found:
        return []
    untested = np.array(found)
    value, low, high = ends = [groups[name][untested] for name in ("u", "u_low", "u_high")]
    against = _against(choice, untested, low if sign > 0 else high, sign)
    best = float(against["value"])
    gain = next_tests.expected_gain(value, low, high, best=best, sign=sign)
    cost = groups["price"][untested] * next_tests.TEST_MINUTES / 60
    family = [str(groups["family"][i]) for i in untested]
    return [
        {
            "offer": groups["offer"][untested[i]],
            "nodes": int(groups["machines"][untested[i]]),
            "expected_gain": float(gain[i]),
            "against": against,
            "minutes": next_tests.TEST_MINUTES,
            "dollars": None if np.isnan(cost[i]) else float(cost[i]),
            "predicted": interval([float(end[i]) for end in ends]),
        }
        for i in next_tests.diverse(gain, cost, family, count)
    ]


def _against(choice: Choice, untested: Any, worst: Any, sign: int) -> dict[str, Any]:
    """What a test must beat: the best measured offer, else the worst case of the surest."""
    if choice.winner is not None:
        won = choice.winner
        named = {"offer": won.name, "nodes": won.machines}
        return {**named, "source": "measured", "value": won.value}
    surest = int(np.argmax(sign * worst))
    i, value = untested[surest], float(worst[surest])
    name, nodes = choice.groups["offer"][i], int(choice.groups["machines"][i])
    return {"offer": name, "nodes": nodes, "source": "predicted", "value": value}


def interval(ends: Sequence[float | None]) -> dict[str, float] | None:
    """Value, low and high of (value, one end, other end); None where it is unknown."""
    value, one, other = ends
    if value is None or one is None or other is None or not np.isfinite([value, one, other]).all():
        return None
    return {"value": value, "low": min(one, other), "high": max(one, other)}


def plain(values: Any) -> Any:
    if values.dtype == object:
        return np.array(np.ma.asarray(values).tolist(), dtype=object)
    if np.issubdtype(values.dtype, np.floating):
        return np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    return np.ma.getdata(values)


# the columns of an extra offer are those of the table
assert set(FACTS.split(", ")) <= set(BY_NAME)
