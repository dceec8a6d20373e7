"""What it takes to get machines and to keep them, as columns of every offer.

Waiting: from what is on record of an offer or of its like; where nothing is, it is unknown and
counts as nothing. Spot: the share of paid time that is progress, by Daly's complete model of
checkpoint and restart (``core.spot``) in SQL, so that it is one pass over a million offers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from underdog.core.attempts import Attempt, Place, family_of
from underdog.core.availability import (
    FIRST_RATE,
    INHERITED_EVENTS,
    LEVELS,
    Availability,
    Records,
    Told,
    gamma_ends,
)
from underdog.core.shapes import Shapes
from underdog.core.table import Table
from underdog.model import Estimate

CHECKPOINT_SECONDS = 60.0
RESTART_SECONDS = 300.0
# below it a job is as good as never done; and no rate is so low that its inverse overflows
NEVER, SMALLEST_RATE = 1e-9, 1e-9
ENDS = ("", "_low", "_high")
_KEYS = ("provider", "purchase", "family", "region", "instance_type", "zone")
_LEVEL_KEYS = (
    ("provider", "purchase"),
    ("provider", "purchase", "family"),
    ("provider", "purchase", "family", "region"),
    ("provider", "purchase", "instance_type", "region"),
    ("provider", "purchase", "instance_type", "region", "zone"),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Supply:
    """What is known of getting machines and keeping them.

    Attributes:
        attempts: on record; ``told`` by providers, or by a table of the user's.
        now: seconds since 1970.
        checkpoint_seconds: of one checkpoint; ``restart_seconds`` from getting a machine to
            training on; ``interval_seconds`` between checkpoints, the best one where it is None.
        interruptions: per hour of one spot machine, where the user says so for all.
        patience: seconds to ask for an offer before going on with the next.
        habits: where the times of checkpoint and restart come from, in words.
    """

    attempts: Sequence[Attempt] = ()
    told: Sequence[Told] = ()
    now: float = 0.0
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    restart_seconds: float = RESTART_SECONDS
    interval_seconds: float | None = None
    interruptions: float | None = None
    patience: float = 1200.0
    habits: str = ""
    _records: dict[int, Records] = field(default_factory=dict, init=False)

    @property
    def known(self) -> bool:
        """Whether anything at all is on record or told."""
        return bool(self.attempts or self.told)

    def records(self, count: int) -> Records:
        """What is known of that many machines together."""
        if count not in self._records:
            self._records[count] = Records(self.attempts, self.now, self.told, count)
        return self._records[count]

    def at(self, place: Place, count: int) -> Availability:
        """What is expected at a place, for so many machines together."""
        found = self.records(count).at(place)
        if self.interruptions is None:
            return found
        given = Estimate(
            value=self.interruptions, low=self.interruptions, high=self.interruptions, n=0
        )
        return replace(found, interruptions=given, origin="given")


def lay_out(table: Table, supply: Supply, shapes: Shapes, machines: Sequence[int]) -> None:
    """The tables ``supply`` and ``families``, where anything is known."""
    if not supply.known:
        return
    texts: list[tuple[str | None, ...]] = []
    figures: list[tuple[float, ...]] = []
    for count in machines:
        for level, place, found in supply.records(count).groups():
            keys = _LEVEL_KEYS[level]
            texts.append(tuple(getattr(place, k) if k in keys else None for k in _KEYS))
            sold = math.nan if found.offered is None else float(found.offered)
            ends = (*_ends(found.wait, 3600), *_ends(found.interruptions))
            prices = found.prices or (math.nan,) * 2
            figures.append((level, count, sold, found.chance.value, *ends, *prices))
    named = [name + end for name in ("wait_hours", "interruptions") for end in ENDS]
    named = ["level", "count", "offered", "chance", *named, "price_low", "price_high"]
    columns = dict(zip(named, np.array(figures).T, strict=True))
    _make(table, "supply", columns, dict(zip(_KEYS, zip(*texts, strict=True), strict=True)))
    kinds = dict.fromkeys((name.provider, name.instance_type) for name in shapes.names)
    owners, types = zip(*kinds, strict=True) if kinds else ((), ())
    families = [family_of(kind) for kind in types]
    _make(
        table,
        "families",
        {},
        {"provider": owners, "instance_type": types, "family": families},
    )


def _ends(estimate: Estimate | None, per: float = 1.0) -> tuple[float, float, float]:
    if estimate is None:
        return (math.nan,) * 3
    return estimate.value / per, estimate.low / per, estimate.high / per


def _make(
    table: Table, name: str, figures: Mapping[str, Any], texts: Mapping[str, Sequence[str | None]]
) -> None:
    """A temporary table of figures, NaN for unknown, and of texts."""
    columns = {key: np.array(values, dtype=object) for key, values in texts.items()}
    taken = [f'nullif("{key}", \'NaN\'::DOUBLE) AS "{key}"' for key in figures]
    taken += [f'CAST("{key}" AS VARCHAR) AS "{key}"' for key in columns]
    table.connection.register("given", {**figures, **columns})
    table.run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {', '.join(taken)} FROM given")
    table.connection.unregister("given")


def joins(supply: Supply) -> str:
    """What is joined to ``candidates AS o JOIN rates AS r``; empty where nothing is known."""
    if not supply.known:
        return ""
    sql = (
        " LEFT JOIN families AS f ON f.provider = o.provider AND f.instance_type = o.instance_type"
    )
    for level, keys in enumerate(_LEVEL_KEYS):
        owner = {"family": "f.family", "zone": "coalesce(o.zone, '')"}
        on = " AND ".join(f"s{level}.{key} = {owner.get(key, 'o.' + key)}" for key in keys)
        sql += (
            f" LEFT JOIN (SELECT * FROM supply WHERE level = {level}) AS s{level} "
            f"ON {on} AND s{level}.count = r.machines"
        )
    return sql


def columns(supply: Supply) -> str:
    """Of each offer ``wait_hours`` and ``interruptions`` of all its machines, with both ends.

    And the ``chance`` that an attempt succeeds at once; ``price_low`` and ``price_high`` of all of
    them, the price itself where nothing is told of other days; and whether it is ``offered``.
    """
    found = []
    few, many = gamma_ends(INHERITED_EVENTS)
    for end, first in zip(ENDS, (1.0, few, many), strict=True):
        wait, rate = "CAST(NULL AS DOUBLE)", repr(FIRST_RATE * first)
        if supply.known:
            levels = range(LEVELS - 1, -1, -1)
            wait = f"coalesce({', '.join(f's{k}.wait_hours{end}' for k in levels)})"
            rate = f"coalesce({', '.join(f's{k}.interruptions{end}' for k in levels)}, {rate})"
        if supply.interruptions is not None:
            rate = repr(float(supply.interruptions))
        rate = f"greatest({rate}, {SMALLEST_RATE}) * r.machines * o.nodes"
        found.append(f"{wait} AS wait_hours{end}")
        found.append(f"CASE WHEN o.purchase = 'spot' THEN {rate} ELSE 0 END AS interruptions{end}")
    chance, offered = "CAST(NULL AS DOUBLE)", "CAST(NULL AS BOOLEAN)"
    if supply.known:
        chance = f"coalesce({', '.join(f's{k}.chance' for k in range(LEVELS - 1, -1, -1))})"
        offered = "coalesce(s4.offered, s3.offered) <> 0"
    for end, choose in (("_low", "least"), ("_high", "greatest")):
        told = f"coalesce(s4.price{end}, s3.price{end}) / o.price_per_hour"
        share = f" * {choose}(1, {told})" if supply.known else ""
        found.append(f"o.price_per_hour * r.machines{share} AS price{end}")
    return ", ".join([*found, f"{chance} AS chance", f"{offered} AS offered"])


def expected(source: str, supply: Supply) -> str:
    """``source`` with the share of paid time that is progress, and what follows from it.

    ``useful`` with both ends, the lower one at the most interruptions; it is unknown where the job
    would never be done. ``paid_rate``: samples per second of paid time, at each end of the
    throughput. ``waiting``: hours without a machine in the whole job, at each end of it.
    """
    cost = supply.checkpoint_seconds / 3600
    work, segment, exponent, useful, paid, waiting = ([] for _ in range(6))
    for end, other in (("", ""), ("_low", "_high"), ("_high", "_low")):
        rate = f"interruptions{other}"
        work.append(f"samples_to_train / (rate{end} * 3600) AS work{end}")
        segment.append(f"least({interval_sql(supply, rate)}, work{end}) AS segment{end}")
        exponent.append(f"(segment{end} + {cost!r}) * {rate} AS exponent{end}")
        share = _useful(supply, rate, end)
        useful.append(f"CASE WHEN purchase = 'spot' THEN {share} ELSE 1 END AS useful{end}")
        paid.append(f"rate{end} * useful{end} AS paid_rate{end}")
        again = f"coalesce({rate} * work{end} / useful{end}, 0)"
        waiting.append(f"coalesce(wait_hours{other}, 0) * (1 + {again}) AS waiting{end}")
    kept = (
        f"nullif(greatest(useful, {NEVER}), {NEVER}) AS useful, "
        f"greatest(useful_low, {NEVER}) AS useful_low"
    )
    query = source
    for columns_ in (work, segment, exponent, useful):
        query = f"SELECT *, {', '.join(columns_)} FROM ({query})"
    query = f"SELECT * REPLACE ({kept}) FROM ({query})"
    return f"SELECT *, {', '.join(paid)}, {', '.join(waiting)} FROM ({query})"


def interval_sql(supply: Supply, rate: str) -> str:
    """Hours of work between two checkpoints: Daly's (2006, equation 37), or the job's own."""
    if supply.interval_seconds is not None:
        return repr(supply.interval_seconds / 3600)
    cost = supply.checkpoint_seconds / 3600
    best = (
        f"sqrt(2 * {cost!r} / {rate}) * (1 + sqrt({cost!r} * {rate} / 2) / 3 "
        f"+ {cost!r} * {rate} / 18) - {cost!r}"
    )
    return f"CASE WHEN {cost!r} * {rate} >= 2 THEN 1 / {rate} ELSE {best} END"


def _useful(supply: Supply, rate: str, end: str) -> str:
    """Work over paid hours (Daly 2006, equation 20); the first start counts nowhere."""
    started = f"exp({supply.restart_seconds / 3600!r} * {rate})"
    if supply.checkpoint_seconds == 0 and supply.interval_seconds is None:
        return f"1 / {started}"
    # an exponential less one has no digits where its exponent is small
    grown = (
        f"CASE WHEN exponent{end} < 1e-5 THEN exponent{end} * (1 + exponent{end} / 2) "
        f"ELSE exp(exponent{end}) - 1 END"
    )
    return f"{rate} * segment{end} / ({started} * ({grown}))"
