"""Many questions about one workload, answered over the same offers in one query.

Each answer is the one that ``underdog.core.choosing`` gives to the question alone: the tests hold
the two against each other. What a single choice costs is mostly the making of its queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underdog.core import rank
from underdog.core.choosing import FAMILY
from underdog.core.constraints import doubtful
from underdog.core.ledger import OFFER_ID
from underdog.core.metrics import METRICS
from underdog.core.scoring import ENDS, Question, with_metrics
from underdog.core.table import Table

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Offers at their numbers of machines, shape (n,) each; what all questions share.

    ``offer`` is the name, ``machine`` is a provider and an instance type, ``place`` the zone or the
    region, ``price`` in USD per hour of all machines, NaN where unknown.
    """

    row: NDArray[np.int64]
    offer: NDArray[Any]
    machine: list[tuple[str, str]]
    shape: NDArray[np.int64]
    machines: Floats
    place: NDArray[Any]
    bought: NDArray[Any]
    service: NDArray[Any]
    family: NDArray[Any]
    price: Floats
    measured: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scores:
    """The answer to one question, row by row.

    ``value``, ``low`` and ``high`` are the leading term of the utility with its 95 % interval;
    ``terms`` are all terms, more is better; ``excluded`` is the index of the constraint that rules
    the offer out, -1 for none; ``counts`` tells which offers may lead.
    """

    question: Question
    rows: Rows
    value: Floats
    low: Floats
    high: Floats
    terms: list[Floats]
    excluded: NDArray[np.int64]
    counts: NDArray[np.bool_]

    def leader(self) -> int | None:
        """The row that leads: of the measured ones, of all where none is; None where none may.

        Of machines of one kind, bought alike, the cheapest place counts where the utility does not
        tell them apart; of different machines with equal utility the first by name.
        """
        for half in (self.rows.measured, ~self.rows.measured):
            among = np.flatnonzero(half & self.counts)
            if len(among):
                return self._first(among)
        return None

    def _first(self, among: NDArray[np.int64]) -> int:
        lead = self.terms[0][among]
        top = float(lead.max())
        utility = self.question.utility
        if len(utility.terms) == 1:
            near = among[lead >= top - 1e-9 * abs(top)]
            return self._named_first(self._cheapest_places(near))
        near = among[lead >= top - (utility.tolerance + 1e-9) * abs(top)]
        near = near[np.lexsort((self.rows.row[near], self.rows.machines[near], self._names(near)))]
        everyone = np.ones(len(near), dtype=bool)
        goodness = [term[near] for term in self.terms]
        ordered = rank.order(goodness, tolerance=utility.tolerance, measured=everyone)
        return int(near[ordered[0]])

    def _cheapest_places(self, near: NDArray[np.int64]) -> list[int]:
        rows = self.rows
        best: dict[Any, Any] = {}
        for i in near.tolist():
            kind = (rows.shape[i], rows.bought[i], rows.machines[i])
            price = rows.price[i] if np.isfinite(rows.price[i]) else np.inf
            key = (-self.terms[0][i], price, rows.place[i] or "", rows.row[i])
            if kind not in best or key < best[kind][0]:
                best[kind] = (key, i)
        return [i for _, i in best.values()]

    def _named_first(self, found: Sequence[int]) -> int:
        rows = self.rows
        return min(found, key=lambda i: (str(rows.offer[i]), rows.machines[i], rows.row[i]))

    def _names(self, near: NDArray[np.int64]) -> NDArray[Any]:
        return np.array([str(self.rows.offer[i]) for i in near], dtype=object)


def rescore(
    table: Table, questions: Sequence[Question], kept: str, *, best: bool = False
) -> list[Scores]:
    """Answer questions that share the view ``joined``.

    Args:
        table: with the tables that choosing lays out, and that view over them.
        questions: with one number of samples and the same numbers of machines.
        kept: SQL for the rows that are told whatever their scores. Of the others those are that
            count and are measured, or are predicted to be as good as the best measured.
        best: of the others only those that are as good as the best of all.

    Raises:
        ExpressionError: the database could not compute it.
    """
    found = table.run(_query(questions, kept, best)).fetchnumpy()
    shared = _rows(found)
    return [_scores(question, k, found, shared) for k, question in enumerate(questions)]


def _query(questions: Sequence[Question], kept_rows: str, best: bool) -> str:
    limits = {}
    if any(q.deadline_hours is not None for q in questions):
        limits["hours"] = "hours_to_train"
    if any(q.budget is not None for q in questions):
        limits["dollars"] = "dollars_to_train"
    metrics = ", ".join(f'"{name}"' for name in METRICS)
    query = "joined"
    for end in ENDS:
        kept = [
            f"{sql} AS {name}_{end}"
            for name, sql in (
                *((f"u{k}", q.utility.first.expression.sql) for k, q in enumerate(questions)),
                *limits.items(),
            )
        ]
        if end == "rate":
            kept += [
                f"{term.expression.sql} AS t{k}_{j}"
                for k, q in enumerate(questions)
                for j, term in enumerate(q.utility.terms[1:], start=1)
            ]
        query = f"SELECT * EXCLUDE ({metrics}), {', '.join(kept)} FROM ({with_metrics(query, end)})"
    named = "".join(f", {n}_rate AS {n}, {n}_rate_high AS {n}_best" for n in limits)
    listed = [column for k, q in enumerate(questions) for column in _columns(k, q)]
    told = [_told(k, question, best) for k, question in enumerate(questions)]
    return (
        f"SELECT * FROM (SELECT row, {OFFER_ID} AS offer, provider, instance_type, shape, "
        "machines, "
        "coalesce(zone, region) AS place, concat_ws(':', purchase, term) AS bought, service, "
        f"{FAMILY} AS family, price, source, {', '.join(listed)} FROM (SELECT *{named} "
        f"FROM ({query}))) QUALIFY {kept_rows} OR {' OR '.join(told)}"
    )


def _told(k: int, question: Question, best: bool) -> str:
    """SQL for the rows that matter to a question: what may lead it, or beats what leads."""
    counts = f"(x{k} IS NULL AND NOT d{k} AND u{k}_rate IS NOT NULL)"
    goodness = f"{question.utility.first.sign} * u{k}_rate"
    among = counts if best else f"{counts} AND source = 'measured'"
    top = f"max(CASE WHEN {among} THEN {goodness} END) OVER ()"
    near = question.utility.tolerance + 1e-9
    enough = f"{goodness} >= {top} - {near!r} * abs({top})"
    enough = enough if best else f"(source = 'measured' OR {enough})"
    return f"({counts} AND {enough})"


def _columns(k: int, question: Question) -> list[str]:
    # tested in order: the first constraint that rules an offer out is its cause
    cases = " ".join(f"WHEN {c.out} THEN {i}" for i, c in enumerate(question.constraints))
    doubts = ["FALSE"]
    if question.deadline_hours is not None:
        doubts.append(doubtful("hours", question.deadline_hours))
    if question.budget is not None:
        doubts.append(doubtful("dollars", question.budget))
    return [
        *(f"u{k}_{end}" for end in ENDS),
        *(f"t{k}_{j}" for j in range(1, len(question.utility.terms))),
        f"CAST({f'CASE {cases} END' if cases else 'NULL'} AS INTEGER) AS x{k}",
        f"{' OR '.join(doubts)} AS d{k}",
    ]


def _rows(found: dict[str, Any]) -> Rows:
    kinds = zip(_texts(found["provider"]), _texts(found["instance_type"]), strict=True)
    return Rows(
        row=np.ma.getdata(found["row"]).astype(np.int64),
        offer=_texts(found["offer"]),
        machine=[(str(provider), str(kind)) for provider, kind in kinds],
        shape=np.ma.getdata(found["shape"]).astype(np.int64),
        machines=_numbers(found["machines"]),
        place=_texts(found["place"]),
        bought=_texts(found["bought"]),
        service=_texts(found["service"]),
        family=_texts(found["family"]),
        price=_numbers(found["price"]),
        measured=_texts(found["source"]) == "measured",
    )


def _scores(question: Question, k: int, found: dict[str, Any], rows: Rows) -> Scores:
    value, one, other = (_numbers(found[f"u{k}_{end}"]) for end in ENDS)
    terms = [term.sign * _numbers(_term(found, k, j)) for j, term in _terms(question)]
    excluded = np.where(np.isnan(out := _numbers(found[f"x{k}"])), -1, out).astype(np.int64)
    counts = (excluded < 0) & ~_flags(found[f"d{k}"]) & np.isfinite(value)
    # a price of nothing is no price, whoever wrote it
    counts &= ~(rows.price <= 0)
    return Scores(
        question, rows, value, np.fmin(one, other), np.fmax(one, other), terms, excluded, counts
    )


def _terms(question: Question) -> list[tuple[int, Any]]:
    return list(enumerate(question.utility.terms))


def _term(found: dict[str, Any], k: int, j: int) -> Any:
    return found[f"u{k}_rate"] if j == 0 else found[f"t{k}_{j}"]


def _numbers(values: Any) -> Floats:
    return np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)


def _flags(values: Any) -> NDArray[np.bool_]:
    return np.asarray(np.ma.filled(np.ma.asarray(values), False), dtype=bool)


def _texts(values: Any) -> NDArray[Any]:
    return np.array(np.ma.asarray(values, dtype=object).tolist(), dtype=object)
