"""Choosing: from a table of offers and the trials of a workload to ranked offers with reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from underdog.core import attainable, builds, ledger, listing, rank, scoring, shapes
from underdog.core import constraints as limits
from underdog.core.builds import Build
from underdog.core.constraints import Constraint
from underdog.core.evidence import Evidence, Shape
from underdog.core.expression import Expression
from underdog.core.laid_out import lay_out
from underdog.core.ledger import Winner
from underdog.core.metrics import METRICS
from underdog.core.supply import Supply
from underdog.core.support import Need
from underdog.core.table import Table
from underdog.core.transfer_evidence import Carried
from underdog.core.utility import Utility

COST_COLUMNS = (
    "price_per_hour",
    "samples_per_dollar",
    "dollars_per_million_samples",
    "dollars_to_train",
)
# machines that a test of one tells the most about
FAMILY = "coalesce(accelerator, cpu_model, regexp_extract(instance_type, '^[A-Za-z]+[0-9]*'))"


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What is asked; ``docs/reference/decision.md`` says what each part does.

    ``machines`` are the numbers of machines that may share the job; ``stacks`` the software
    stacks that the workload can run on, None for what its framework reaches unchanged. ``needs``
    rule out what they do not reach, and ``pinned`` builds what the recorded ones have no code for.
    """

    utility: Utility
    where: Expression | None = None
    purchase: Sequence[str] = ()
    samples: float | None = None
    deadline_hours: float | None = None
    budget: float | None = None
    machines: Sequence[int] = (1,)
    stacks: Sequence[str] | None = None
    needs: Sequence[Need] = ()
    pinned: Sequence[Build] = ()
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
    supply: Supply
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

    def ranking(self) -> list[dict[str, Any]]:
        """The listed offers, the best first, as ``docs/reference/decision.md`` describes them."""
        return listing.ranking(self)

    def test_next(self, count: int = 3) -> list[dict[str, Any]]:
        """The few machines whose test may gain the most; ``listing.to_test`` says how."""
        return listing.to_test(self, count)

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


def choose(
    table: Table,
    evidence: Sequence[Evidence],
    request: Request,
    extra: Sequence[Mapping[str, Any]] = (),
    unlisted: Mapping[Shape, Mapping[str, Any]] | None = None,
    carried: Mapping[Shape, Carried] | None = None,
    *,
    known: Supply | None = None,
) -> Choice:
    """Score, rule out and rank every offer of the table.

    Args:
        table: the offers; it is only read.
        evidence: what the trials of the workload say.
        extra: offers besides the table, as dicts of offer columns.
        unlisted: hardware of measured machines that are no offer, as dicts of offer columns.
        carried: what other workloads say of machines that this one was not measured on.
        known: of getting machines and keeping them.

    Raises:
        ExpressionError: the utility or the condition has no value for some candidate.
    """
    known = known or Supply()
    table, distinct = lay_out(
        table, evidence, request.machines, extra, unlisted, carried, known=known
    )
    table.run(f"CREATE OR REPLACE TEMP VIEW joined AS {scoring.joined(request.samples, known)}")
    constraints = constraints_of(request, evidence)
    choice = Choice(request, table, constraints, distinct, evidence, known)
    _check(choice)
    question = scoring.Question(
        request.utility, constraints, request.deadline_hours, request.budget
    )
    table.run(f"CREATE OR REPLACE TEMP TABLE scored AS {scoring.scored(question)}")
    _rank(choice)
    return choice


def constraints_of(request: Request, evidence: Sequence[Evidence]) -> list[Constraint]:
    """What rules offers out, in the order in which it is tested."""
    made = [limits.where(request.where)] if request.where else []
    # a commitment of a year is not what somebody means who asks for a machine
    made.append(limits.purchase(request.purchase or ("on-demand", "spot")))
    made += limits.from_trials(evidence, request.stacks)
    made += builds.needed(request.needs, request.pinned, evidence)
    if request.utility.uses(*COST_COLUMNS) or request.budget is not None:
        made.append(limits.price_known(request.utility.text))
    made += [attainable.offered(), *attainable.of_spot()]
    made += attainable.co_location(request.machines)
    made += attainable.interconnect(request.machines, [t for e in evidence for t in e.trials])
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
    later = ("deadline", "budget", *attainable.NAMES)
    kept = [c.out for c in choice.constraints if c.name not in later]
    where = " AND ".join(["rate IS NOT NULL", *(f"({out}) IS DISTINCT FROM TRUE" for out in kept)])
    source = scoring.with_metrics("joined", "rate")
    for term in request.utility.terms:
        named = ("provider", "region", "zone", "instance_type", "purchase", "term")
        listed = ", ".join(f'"{name}"' for name in {*term.expression.columns, *named})
        asked = f"(SELECT {listed} FROM ({source}) AS s WHERE {where})"
        choice.table.check(term.expression, asked)


def _rank(choice: Choice) -> None:
    """Order the best region of every shape and purchase option."""
    request, utility = choice.request, choice.request.utility
    tolerance = utility.tolerance if len(utility.terms) > 1 else None
    best = scoring.best_regions(utility.first.sign, request.all_regions, tolerance)
    source = scoring.with_metrics("joined", "rate")
    terms = ", ".join(f"({t.expression.sql}) AS term_{k}" for k, t in enumerate(utility.terms))
    metrics = ", ".join(f'"{name}"' for name in METRICS)
    listed = ", ".join(f"m.term_{k}" for k in range(len(utility.terms)))
    sql = (
        "SELECT m.row, m.machines, m.shape, s.purchase, b.others, s.u, s.u_low, s.u_high, "
        f"s.useful, m.source, m.rate, m.price, m.offer, m.family, {listed} "
        f"FROM ({best}) AS b JOIN scored AS s ON s.row = b.row AND s.machines = b.machines "
        f"JOIN (SELECT * EXCLUDE ({metrics}), {terms}, {ledger.OFFER_ID} AS offer, "
        f"{FAMILY} AS family FROM ({source})) AS m "
        "ON m.row = b.row AND m.machines = b.machines ORDER BY m.offer, m.machines, m.row"
    )
    groups = {
        name: listing.plain(values) for name, values in choice.table.run(sql).fetchnumpy().items()
    }
    choice.groups = groups
    goodness = [t.sign * groups[f"term_{k}"] for k, t in enumerate(utility.terms)]
    ordered = rank.order(
        goodness,
        tolerance=request.utility.tolerance,
        measured=groups["source"] == "measured",
    )
    choice.ranked = rank.first_of_each(groups, ordered, request.all_regions)
    choice.winner = _winner(choice)


def _winner(choice: Choice) -> Winner | None:
    groups = choice.groups
    for i in choice.ranked:
        if groups["source"][i] == "measured":
            row, shape, machines = (int(groups[n][i]) for n in ("row", "shape", "machines"))
            ends = (float(groups[n][i]) for n in ("u", "u_low", "u_high"))
            return Winner(row, shape, machines, groups["offer"][i], *ends)
    return None
