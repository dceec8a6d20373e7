"""The layers of service for a stated volume: bare machines, managed ones, and APIs, compared.

Of the machines that a choice leaves in, each layer stands with its cheapest: kept for the month,
and given back when the work is done. What was measured comes before what is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from underdog.core import services
from underdog.core.choosing import Choice
from underdog.core.constraints import text
from underdog.core.ledger import OFFER_ID
from underdog.core.scoring import ENDS
from underdog.core.services import Api, Rented, Tokens

BARE = "bare machine"
MOST_MACHINES = 1e6  # nobody keeps more
# a guess about a machine is no match for a measurement of another
_GUESS = "'guess': source <> 'measured'"
# of two at the same cost the choice is always the same, whatever the order of the offers
_TIES = "'place': place, 'type': instance_type, 'nodes': nodes"


@dataclass(frozen=True, kw_only=True, slots=True)
class Volume:
    """How much work there is: once, or every so many ``hours`` in which machines may be kept."""

    samples: float
    hours: float | None = None
    utilisation: float = 1.0
    idle_hours: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """A managed service that sells the machines of a provider at a known factor of their price."""

    name: str
    provider: str
    factor: float
    source: str
    date: str


def compare(
    choice: Choice,
    volume: Volume,
    apis: Sequence[Api] = (),
    tokens: Tokens | None = None,
    managed: Sequence[Service] = (),
) -> dict[str, Any]:
    """What the work costs on each layer, the cheapest first, and where they break even.

    Returns:
        ``samples``, ``hours`` (of which machines are kept, None for one job), ``utilisation``,
        ``idle_hours``, ``layers`` and ``break_even``; ``docs/reference/decision.md`` has their
        fields.
    """
    _priced(choice, managed)
    found = [_layer(row, volume) for row in _cheapest(choice, volume)]
    metered = [
        _of_api(api, cost, volume) for api in apis if (cost := services.per_sample(api, tokens))
    ]
    layers = sorted([*found, *metered], key=lambda layer: (layer["cost"]["value"], layer["name"]))
    return {
        "samples": volume.samples,
        "hours": volume.hours,
        "utilisation": volume.utilisation,
        "idle_hours": volume.idle_hours,
        "layers": layers,
        "break_even": _meetings(choice, layers, volume),
    }


def _priced(choice: Choice, managed: Sequence[Service]) -> None:
    """The table ``priced``: every machine that is left in, at the price of each of its layers.

    A service that calls its machines ``ml.*`` has the throughput measured on the bare ones.
    """
    # of one kind of machine in one layer only the cheapest place matters, and the catalog is large
    cheapest = (
        "SELECT s.shape, s.machines, s.useful, s.purchase <> 'spot' AS stays, m.service, "
        "arg_min({'price': s.price, 'place': s.place, 'row': s.row}, "
        "{'price': s.price, 'place': s.place, 'row': s.row}) AS best FROM scored AS s "
        "LEFT JOIN (SELECT row, service FROM candidates WHERE service IS NOT NULL) AS m "
        "USING (row) WHERE s.excluded IS NULL AND NOT s.doubtful AND s.price IS NOT NULL "
        "AND s.useful > 0 GROUP BY ALL"
    )
    # of spot only the share of paid time that is progress counts
    rates = ", ".join(f"coalesce(b.{end}, r.{end}) * c.useful AS {end}" for end in ENDS)
    source = (
        f"SELECT coalesce(b.source, r.source) AS source, c.best.price AS price, {rates}, "
        "c.best.row AS row, c.best.place AS place, c.stays, CAST(c.machines AS INTEGER) AS nodes, "
        f"r.provider, r.instance_type, c.service FROM ({cheapest}) AS c "
        "JOIN rates AS r USING (shape, machines) "
        "LEFT JOIN rates AS b ON b.source = 'measured' AND b.provider = r.provider "
        "AND b.base_nodes = r.base_nodes AND b.machines = c.machines AND b.instance_type = "
        "CASE WHEN c.service IS NOT NULL THEN regexp_replace(r.instance_type, '^ml[.]', '') END "
        "WHERE coalesce(b.rate, r.rate) IS NOT NULL"
    )
    parts = ["SELECT * EXCLUDE (provider), NULL AS said FROM left_in"]
    parts += [
        f"SELECT * EXCLUDE (provider) REPLACE (price * {one.factor!r} AS price, "
        f"{text(one.name)} AS service), {text(f'{one.source}, {one.date}')} AS said "
        f"FROM left_in WHERE provider = {text(one.provider)} AND service IS NULL"
        for one in managed
    ]
    choice.table.run(
        f"CREATE OR REPLACE TEMP TABLE priced AS WITH left_in AS MATERIALIZED ({source}) "
        f"{' UNION ALL '.join(parts)}"
    )


def _cheapest(choice: Choice, volume: Volume) -> list[dict[str, Any]]:
    """Of each service the cheapest machine in each way to pay for it, as rows of ``priced``."""
    ways = {
        "given_back": f"price / rate * {volume.samples / 3600!r} + price * {volume.idle_hours!r}"
    }
    if volume.hours is not None:
        room = 3600.0 * volume.utilisation * volume.hours
        ways["kept"] = f"greatest(ceil({volume.samples!r} / (rate * {room!r})), 1) * price"
    fields = ("source", "price", *ENDS, "row", "nodes", "service", "said")
    record = ", ".join(f"'{name}': {name}" for name in fields)
    rows = []
    for way, cost in ways.items():
        key = f"{{{_GUESS}, 'cost': {cost}, 'price': price, {_TIES}}}"
        can = f"stays AND {cost} <= price * {MOST_MACHINES}" if way == "kept" else "TRUE"
        sql = f"SELECT arg_min({{{record}}}, {key}) FROM priced WHERE {can} GROUP BY service"
        rows += [
            {**row, "way": way, "offer": _name(choice, row["row"])}
            for (row,) in choice.table.run(f"{sql} ORDER BY service").fetchall()
        ]
    # a service without a price of its own tells nothing new of a machine that nobody measured
    measured = any(row["source"] == "measured" for row in rows)
    return [row for row in rows if not (measured and row["said"] and row["source"] != "measured")]


def _name(choice: Choice, row: int) -> str:
    found = choice.table.run(f"SELECT {OFFER_ID} FROM candidates WHERE row = {row}").fetchone()
    assert found is not None, "a machine that is left in is a candidate"
    return str(found[0])


def _rented(row: Mapping[str, Any], volume: Volume, rate: str = "rate") -> Rented:
    return Rented(
        price_per_hour=row["price"],
        samples_per_second=row[rate],
        utilisation=volume.utilisation,
        idle_hours=volume.idle_hours,
    )


def _cost(row: Mapping[str, Any], volume: Volume, rate: str) -> float:
    """The cost at one end of the throughput."""
    rented = _rented(row, volume, rate)
    if row["way"] == "kept" and volume.hours is not None:
        return services.kept(rented, volume.samples, volume.hours)
    return services.given_back(rented, volume.samples)


def _layer(row: Mapping[str, Any], volume: Volume) -> dict[str, Any]:
    rented, kept = _rented(row, volume), row["way"] == "kept"
    value, low, high = (_cost(row, volume, rate) for rate in ("rate", "rate_high", "rate_low"))
    count = services.machines(rented, volume.samples, volume.hours or 1.0) if kept else 1
    work = volume.samples / (3600.0 * rented.samples_per_second)
    return {
        "name": row["service"] or BARE,
        "way": row["way"],
        "offer": row["offer"],
        "nodes": row["nodes"],
        "source": row["source"],
        "price_per_hour": row["price"],
        "price_from": row["said"],
        "machines": count,
        "busy": work / (count * volume.hours) if kept and volume.hours else None,
        "cost": {"value": value, "low": low, "high": high},
        "per_million_samples": value / volume.samples * 1e6,
        "marginal": rented.working,
    }


def _of_api(api: Api, cost: float, volume: Volume) -> dict[str, Any]:
    total = cost * volume.samples
    return {
        "name": api.name,
        "way": "per_unit",
        "offer": None,
        "nodes": None,
        "source": "listed",
        "price_per_hour": None,
        "price_from": ", ".join(filter(None, (api.source, api.date))) or None,
        "machines": None,
        "busy": None,
        "cost": {"value": total, "low": total, "high": total},
        "per_million_samples": cost * 1e6,
        "marginal": cost,
    }


def _meetings(
    choice: Choice, layers: Sequence[Mapping[str, Any]], volume: Volume
) -> list[dict[str, Any]]:
    """Where machines meet each API, and kept bare ones each service that bills only the work."""
    found = []
    for layer in layers:
        billed = layer["way"] == "given_back" and layer["name"] != BARE
        if layer["way"] == "per_unit":
            meeting = _meeting(choice, layer["marginal"], volume)
        elif volume.hours is not None and billed:
            meeting = _meeting(choice, layer["marginal"], volume, "service IS NULL")
        else:
            continue
        found.append({"name": layer["name"], "by": layer["way"], **meeting})
    return found


def _meeting(choice: Choice, cost: float, volume: Volume, where: str = "TRUE") -> dict[str, Any]:
    """Where a price per sample and the machine that first beats it cost the same.

    ``below`` is None where no machine beats it at any volume.
    """
    kept = volume.hours is not None
    told: dict[str, Any] = {"way": "kept" if kept else "given_back"}
    told |= dict.fromkeys(("offer", "nodes", "against", "source", "below", "always"))
    unit = f"price / (rate * {3600.0 * (volume.utilisation if kept else 1.0)!r})"
    # kept: the lowest price per hour of those that can beat it; given back: the lowest volume
    key = "price" if kept else f"price * {volume.idle_hours!r} / ({cost!r} - {unit}), {unit}"
    order = f"source = 'measured' DESC, {key}, place, instance_type, nodes"
    found = choice.table.run(
        f"SELECT source, price, rate, row, nodes, service FROM priced WHERE {unit} < {cost!r} "
        f"AND {where} AND {'stays' if kept else 'TRUE'} ORDER BY {order} LIMIT 1"
    ).fetchone()
    if found is None:
        return told
    row = dict(zip(("source", "price", "rate", "row", "nodes", "service"), found, strict=True))
    rented = _rented(row, volume)
    if volume.hours is not None:
        meeting = services.meets_kept(rented, cost, volume.hours)
    else:
        meeting = services.meets_given_back(rented, cost)
    if meeting is None:
        return told
    return {
        **told,
        "offer": _name(choice, row["row"]),
        "nodes": row["nodes"],
        "against": row["service"] or BARE,
        "source": row["source"],
        "below": meeting.first,
        "always": meeting.always,
    }
