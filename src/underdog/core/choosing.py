"""Choosing: from a table of offers and the trials of a workload to ranked offers with reasons."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from underdog.core import constraints as limits
from underdog.core import ledger, next_tests, pareto, rank, scoring, shapes
from underdog.core.columns import BY_NAME, OFFER_COLUMNS
from underdog.core.constraints import Constraint
from underdog.core.evidence import Evidence, Shape
from underdog.core.expression import Expression
from underdog.core.ledger import Winner
from underdog.core.metrics import METRICS
from underdog.core.table import Table, schema
from underdog.core.transfer_evidence import Carried
from underdog.core.utility import Utility

COST_COLUMNS = (
    "price_per_hour",
    "samples_per_dollar",
    "dollars_per_million_samples",
    "dollars_to_train",
)
FACTS = (
    "provider, region, zone, instance_type, purchase, term, service, price_per_hour, price_date, "
    "price_source, caveats, "
    "vcpus, memory_gib, arch, accelerator, accelerator_count, accelerator_memory_gib"
)

# machines that a test of one tells the most about
FAMILY = "coalesce(accelerator, cpu_model, regexp_extract(instance_type, '^[A-Za-z]+[0-9]*'))"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked; ``docs/reference/decision.md`` says what each part does.

    ``machines`` are the numbers of machines that may share the job; ``stacks`` the software
    stacks that the workload can run on, None for what its framework reaches unchanged.
    """

    utility: Utility
    where: Expression | None = None
    purchase: Sequence[str] = ()
    samples: float | None = None
    deadline_hours: float | None = None
    budget: float | None = None
    machines: Sequence[int] = (1,)
    stacks: Sequence[str] | None = None
    all_regions: bool = False
    limit: int = 20


@dataclass(slots=True)
class Choice:
    """The ranked offers, and the tables from which the rest is read when it is asked for."""

    request: Request
    table: Table
    constraints: list[Constraint]
    shapes: shapes.Shapes
    evidence: Sequence[Evidence]
    groups: dict[str, Any] = field(default_factory=dict)
    ranked: list[int] = field(default_factory=list)  # indices of groups, the best first
    winner: Winner | None = None

    def ledger(self, rows: str = "") -> list[dict[str, str]]:
        """Every candidate with verdict, cause and reason, in the order of the offers' names."""
        names = ("offer", "verdict", "cause", "reason")
        several = len(self.request.machines) > 1
        asked = (self.constraints, self.request.utility, self.winner)
        sql = ledger.query(*asked, several=several, rows=rows)
        found = self.table.run(sql).fetchall()
        return [dict(zip(names, row, strict=True)) for row in found]

    def funnel(self) -> list[dict[str, Any]]:
        """How many candidates there are of each verdict and cause, the most first."""
        several = len(self.request.machines) > 1
        asked = (self.constraints, self.request.utility, self.winner)
        sql = ledger.funnel(*asked, several=several)
        found = self.table.run(sql).fetchall()
        return [dict(zip(("verdict", "cause", "offers"), row, strict=True)) for row in found]

    def faster_is_worse(self) -> bool:
        """Whether the leading machine would score worse if it were faster: a wrong direction."""
        if not self.ranked:
            return False
        row, sign = int(self.groups["row"][self.ranked[0]]), self.request.utility.first.sign
        found = self.table.run(
            f"SELECT bool_or({sign} * u_fastest < {sign} * u) FROM scored WHERE row = {row}"
        ).fetchone()
        return bool(found and found[0])

    def near_misses(self) -> list[str]:
        """Of each limit that rules offers out, the one that comes closest to keeping it."""
        found = []
        for i, constraint in enumerate(self.constraints):
            column = {"deadline": "hours", "budget": "dollars"}.get(constraint.name)
            if column is None:
                continue
            row = self.table.run(
                f"SELECT row FROM scored WHERE excluded = {i} ORDER BY {column}_best, row LIMIT 1"
            ).fetchone()
            if row is not None:
                line = self.ledger(f"row = {row[0]}")[0]
                found.append(f"nearest miss: {line['offer']}, {line['reason']}")
        return found

    def ranking(self) -> list[dict[str, Any]]:
        """The listed offers, the best first, as ``docs/reference/decision.md`` describes them."""
        groups, listed = self.groups, self._listed()
        place_of = {index: place for place, index in enumerate(self.ranked)}
        marks = self._pareto()
        measures = self._measures(listed)
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
                "utility": _interval([float(end[place]) for end in ends]),
                "pareto": bool(marks[i]),
                "tied_with": list(dict.fromkeys(names[j] for j in ties[place])),
            }
            for place, i in enumerate(listed)
        ]

    def _listed(self) -> list[int]:
        """The first of the measured and of the predicted offers; a quarter is kept for these."""
        limit, measured = self.request.limit, self.groups["source"] == "measured"
        known = [i for i in self.ranked if measured[i]]
        guessed = [i for i in self.ranked if not measured[i]]
        known = known[: max(limit - len(guessed), limit - limit // 4)]
        return known + guessed[: limit - len(known)]

    def _pareto(self) -> Any:
        """A guess beats no measurement: measured offers are judged among themselves.

        The rivals are those that rank, at the lowest price of each machine: another region than
        the one that ranks best may be the one that is cheaper.
        """
        groups, rivals = self.groups, self._rivals()
        measured, known = groups["source"] == "measured", rivals["source"] == "measured"
        mine, theirs = ((p["rate"], p["rate"] / p["price"]) for p in (groups, rivals))
        marks = np.zeros(len(measured), dtype=bool)
        for members, against in ((measured, known), (~measured, known | ~known)):
            points = mine[0][members], mine[1][members]
            beaten = pareto.dominated(points, (theirs[0][against], theirs[1][against]))
            marks[members] = ~(beaten | np.isnan(points[0] + points[1]))
        return marks

    def _rivals(self) -> dict[str, Any]:
        found = self.table.run(
            "SELECT shape, machines, s.source, rate, min(price) AS price FROM scored AS s "
            "JOIN rates USING (shape, machines) WHERE excluded IS NULL AND NOT doubtful "
            "AND price IS NOT NULL AND rate IS NOT NULL GROUP BY ALL"
        )
        rivals = {name: _plain(values) for name, values in found.fetchnumpy().items()}
        # a machine alone is no rival of two of its kind: the utility chose between the numbers
        pairs = {(self.groups["shape"][i], self.groups["machines"][i]) for i in self.ranked}
        kinds = zip(rivals["shape"].tolist(), rivals["machines"].tolist(), strict=True)
        ranks = np.array([kind in pairs for kind in kinds], dtype=bool)
        return {name: values[ranks] for name, values in rivals.items()}

    def _measures(self, listed: Sequence[int]) -> list[dict[str, Any]]:
        """Facts and metrics of the listed offers, metrics as value and interval."""
        if not listed:
            return []
        wanted = ", ".join(
            f"({self.groups['row'][i]}, {self.groups['machines'][i]})" for i in listed
        )
        source = (
            f"SELECT * FROM ({scoring.joined(self.request.samples)}) "
            f"WHERE (row, machines) IN ({wanted})"
        )
        names, facts = list(METRICS), FACTS.split(", ")
        ends = " UNION ALL ".join(
            f"SELECT {k} AS end_, row, machines, {FACTS}, {ledger.OFFER_ID}, {', '.join(names)} "
            f"FROM ({scoring.with_metrics('listed', end)})"
            for k, end in enumerate(scoring.ENDS)
        )
        found: dict[tuple[int, float], dict[str, Any]] = {}
        sql = f"WITH listed AS MATERIALIZED ({source}) {ends} ORDER BY end_"
        for _, row, machines, *values in self.table.run(sql).fetchall():
            entry = found.setdefault((row, machines), {"ends": []})
            described = dict(zip(facts, values, strict=False))
            entry["offer"] = {"id": values[len(facts)], **described}
            entry["ends"].append(values[len(facts) + 1 :])
        keys = [(int(self.groups["row"][i]), float(self.groups["machines"][i])) for i in listed]
        return [
            {"offer": found[key]["offer"]}
            | {
                name: _interval([end[k] for end in found[key]["ends"]])
                for k, name in enumerate(names)
            }
            for key in keys
        ]

    def test_next(self, count: int = 3) -> list[dict[str, Any]]:
        """The few machines whose test may gain the most.

        The gain is over the best measured offer; where none can be ranked, over what the safest
        of the predictions promises at least. ``against`` says which of the two, and its value.
        """
        groups, sign = self.groups, self.request.utility.first.sign
        found = [i for i in self.ranked if groups["source"][i] == "predicted"]
        if not found:
            return []
        untested = np.array(found)
        value, low, high = ends = [groups[name][untested] for name in ("u", "u_low", "u_high")]
        against = self._against(untested, low if sign > 0 else high, sign)
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
                "predicted": _interval([float(end[i]) for end in ends]),
            }
            for i in next_tests.diverse(gain, cost, family, count)
        ]

    def _against(self, untested: Any, worst: Any, sign: int) -> dict[str, Any]:
        """What a test must beat: the best measured offer, else the worst case of the surest."""
        if self.winner is not None:
            won = self.winner
            named = {"offer": won.name, "nodes": won.machines}
            return {**named, "source": "measured", "value": won.value}
        surest = int(np.argmax(sign * worst))
        i, value = untested[surest], float(worst[surest])
        name, nodes = self.groups["offer"][i], int(self.groups["machines"][i])
        return {"offer": name, "nodes": nodes, "source": "predicted", "value": value}


def _interval(ends: Sequence[float | None]) -> dict[str, float] | None:
    """Value, low and high of (value, one end, other end); None where it is unknown."""
    value, one, other = ends
    if value is None or one is None or other is None or not np.isfinite([value, one, other]).all():
        return None
    return {"value": value, "low": min(one, other), "high": max(one, other)}


def choose(
    table: Table,
    evidence: Sequence[Evidence],
    request: Request,
    extra: Sequence[Mapping[str, Any]] = (),
    unlisted: Mapping[Shape, Mapping[str, Any]] | None = None,
    carried: Mapping[Shape, Carried] | None = None,
) -> Choice:
    """Score, rule out and rank every offer of the table.

    Args:
        table: the offers; it is only read.
        evidence: what the trials of the workload say.
        extra: offers besides the table, as dicts of offer columns.
        unlisted: hardware of measured machines that are no offer, as dicts of offer columns.
        carried: what other workloads say of machines that this one was not measured on.

    Raises:
        ExpressionError: the utility or the condition has no value for some candidate.
    """
    table = copy.copy(table)
    # what is made on the way is temporary, and temporary tables belong to one connection
    table.connection = table.connection.cursor()
    _candidates(table, extra)
    distinct = shapes.Shapes.of(table.run(shapes.query()).fetchnumpy())
    found = shapes.rates(distinct, evidence, unlisted or {}, carried)
    _fill(table, "rates", shapes.columns_of_rates(distinct, found, request.machines))
    notes = np.array(found.notes, dtype=object)
    _fill(table, "notes", {"shape": np.arange(len(notes)), "note": notes})
    constraints = _constraints(request, evidence)
    choice = Choice(request, table, constraints, distinct, evidence)
    _check(choice)
    question = scoring.Question(
        request.utility, constraints, request.samples, request.deadline_hours, request.budget
    )
    table.run(f"CREATE OR REPLACE TEMP TABLE scored AS {scoring.scored(question)}")
    _rank(choice)
    return choice


def _candidates(table: Table, extra: Sequence[Mapping[str, Any]]) -> None:
    names = ", ".join(f'"{column.name}"' for column in OFFER_COLUMNS)
    connection = table.connection
    connection.execute(f"CREATE OR REPLACE TEMP TABLE extra_offers ({schema()})")
    marks = ", ".join("?" for _ in OFFER_COLUMNS)
    for offer in extra:
        values = [offer.get(column.name) for column in OFFER_COLUMNS]
        connection.execute(f"INSERT INTO extra_offers VALUES ({marks})", values)
    connection.execute(
        f"CREATE OR REPLACE TEMP VIEW candidates AS SELECT rowid AS row, {names} FROM offers "
        f"UNION ALL SELECT -1 - rowid AS row, {names} FROM extra_offers"
    )


def _fill(table: Table, name: str, columns: Mapping[str, Any]) -> None:
    """A temporary table of arrays of one length; NaN becomes unknown."""
    taken = ", ".join(
        f'nullif("{c}", \'NaN\'::DOUBLE) AS "{c}"' if values.dtype == float else f'"{c}"'
        for c, values in columns.items()
    )
    table.connection.register("given", dict(columns))
    table.run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {taken} FROM given")
    table.connection.unregister("given")


def _constraints(request: Request, evidence: Sequence[Evidence]) -> list[Constraint]:
    made = [limits.where(request.where)] if request.where else []
    # a commitment of a year is not what somebody means who asks for a machine
    made.append(limits.purchase(request.purchase or ("on-demand", "spot")))
    made += limits.from_trials(evidence, request.stacks)
    if request.utility.uses(*COST_COLUMNS) or request.budget is not None:
        made.append(limits.price_known(request.utility.text))
    if request.deadline_hours is not None:
        made.append(limits.limit("deadline", "hours", request.deadline_hours, "h"))
    if request.budget is not None:
        made.append(limits.limit("budget", "dollars", request.budget, "$"))
    return made


def _check(choice: Choice) -> None:
    """Raise where the condition or the utility has no value for a candidate that counts."""
    request = choice.request
    if request.where:
        choice.table.check(request.where, "candidates")
    kept = [c.out for c in choice.constraints if c.name not in ("deadline", "budget")]
    where = " AND ".join(["rate IS NOT NULL", *(f"({out}) IS DISTINCT FROM TRUE" for out in kept)])
    source = f"({scoring.with_metrics(scoring.joined(request.samples), 'rate')})"
    for term in request.utility.terms:
        choice.table.check(term.expression, source, where)


def _rank(choice: Choice) -> None:
    """Order the best region of every shape and purchase option."""
    request, utility = choice.request, choice.request.utility
    tolerance = utility.tolerance if len(utility.terms) > 1 else None
    best = scoring.best_regions(utility.first.sign, request.all_regions, tolerance)
    source = scoring.with_metrics(scoring.joined(request.samples), "rate")
    terms = ", ".join(f"({t.expression.sql}) AS term_{k}" for k, t in enumerate(utility.terms))
    metrics = ", ".join(f'"{name}"' for name in METRICS)
    listed = ", ".join(f"m.term_{k}" for k in range(len(utility.terms)))
    sql = (
        "SELECT m.row, m.machines, m.shape, s.purchase, b.others, s.u, s.u_low, s.u_high, "
        f"m.source, m.rate, m.price, m.offer, m.family, {listed} "
        f"FROM ({best}) AS b JOIN scored AS s ON s.row = b.row AND s.machines = b.machines "
        f"JOIN (SELECT * EXCLUDE ({metrics}), {terms}, {ledger.OFFER_ID} AS offer, "
        f"{FAMILY} AS family FROM ({source})) AS m "
        "ON m.row = b.row AND m.machines = b.machines ORDER BY m.offer, m.machines, m.row"
    )
    groups = {name: _plain(values) for name, values in choice.table.run(sql).fetchnumpy().items()}
    choice.groups = groups
    goodness = [t.sign * groups[f"term_{k}"] for k, t in enumerate(utility.terms)]
    ordered = rank.order(
        goodness,
        tolerance=request.utility.tolerance,
        measured=groups["source"] == "measured",
    )
    choice.ranked = rank.first_of_each(groups, ordered, request.all_regions)
    choice.winner = _winner(choice)


def _plain(values: Any) -> Any:
    if values.dtype == object:
        return np.array(np.ma.asarray(values).tolist(), dtype=object)
    if np.issubdtype(values.dtype, np.floating):
        return np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    return np.ma.getdata(values)


def _winner(choice: Choice) -> Winner | None:
    groups = choice.groups
    for i in choice.ranked:
        if groups["source"][i] == "measured":
            row, shape, machines = (int(groups[n][i]) for n in ("row", "shape", "machines"))
            ends = (float(groups[n][i]) for n in ("u", "u_low", "u_high"))
            return Winner(row, shape, machines, groups["offer"][i], *ends)
    return None


# the columns of an extra offer are those of the table
assert set(FACTS.split(", ")) <= set(BY_NAME)
