"""The parts of an expression on their way to SQL: kinds, faults, and how they join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

LISTED = "docs/reference/expressions.md lists what an expression may use."
KIND_NAMES = {"number": "a number", "text": "text", "flag": "a condition", "null": "null"}


class RefusedError(Exception):
    """What an expression may not say; becomes an ``ExpressionError`` that quotes the text."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Fault:
    """A condition on a row, as SQL, under which an expression has no value; and how to avoid it."""

    sql: str
    what: str
    columns: tuple[str, ...]
    remedy: str


@dataclass(frozen=True, slots=True)
class Term:
    """A part of an expression: its SQL, its kind (number, text, flag, null) and its faults.

    ``copies`` is how often the database works out its innermost part: a guard such as ``nullif``
    or ``CASE`` repeats what it guards, so that nested ones multiply.
    """

    sql: str
    kind: str
    name: str = "the value"
    columns: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    computed: bool = False  # by arithmetic that may leave the range of a double
    constant: float | str | bool | None = None
    copies: int = 1

    @property
    def kind_name(self) -> str:
        return KIND_NAMES[self.kind]


def finite(term: Term) -> Term:
    """The term with the fault of a result that is no finite number."""
    if not term.computed:
        return term
    fault = Fault(
        f"NOT isfinite({term.sql})",
        "gives a number too large to hold, or none",
        term.columns,
        "Bring the operands into a smaller range.",
    )
    return replace(term, faults=(*term.faults, fault), computed=False)


def under(faults: Sequence[Fault], conditions: Sequence[str]) -> tuple[Fault, ...]:
    """The faults, counting only where all the conditions hold too."""
    extra = "".join(f" AND ({condition})" for condition in conditions)
    return tuple(replace(fault, sql=f"(({fault.sql}){extra})") for fault in faults)


def columns_of(terms: Sequence[Term]) -> tuple[str, ...]:
    """The columns of all the terms, each once."""
    return tuple(dict.fromkeys(name for term in terms for name in term.columns))


def copies_of(terms: Sequence[Term], times: int = 1) -> int:
    """The most copies among the terms, where all of them are repeated so many times."""
    return times * max((term.copies for term in terms), default=1)


def joined(sql: str, kind: str, terms: Sequence[Term], name: str = "the value") -> Term:
    """The term of that SQL, with the columns and faults of the terms that it is made of."""
    faults = tuple(fault for term in terms for fault in term.faults)
    computed = kind == "number" and any(term.computed for term in terms)
    return Term(sql, kind, name, columns_of(terms), faults, computed, copies=copies_of(terms))


def require(terms: Sequence[Term], kinds: Sequence[str] | str, what: str) -> None:
    """Raise ``RefusedError`` unless the terms are of those kinds; one kind stands for each."""
    wanted = [kinds] * len(terms) if isinstance(kinds, str) else list(kinds)
    if len(wanted) != len(terms):
        raise RefusedError(f"'{what}' takes {len(wanted)} values, not {len(terms)}.")
    for term, kind in zip(terms, wanted, strict=True):
        if term.kind not in (kind, "null"):
            raise RefusedError(
                f"'{what}' takes {KIND_NAMES[kind]}, and {term.name} is {term.kind_name}."
            )


def one_kind(terms: Sequence[Term], what: str) -> str:
    """The kind that all the terms share; a null goes with any."""
    kinds = list(dict.fromkeys(term.kind for term in terms if term.kind != "null"))
    if len(kinds) > 1:
        names = " and ".join(KIND_NAMES[kind] for kind in kinds)
        raise RefusedError(f"'{what}' has values of more than one kind: {names}.")
    return kinds[0] if kinds else "null"


def chosen(checks: Sequence[tuple[Term, Term]], otherwise: Term) -> Term:
    """``case``: the faults of a branch count only where the branch is taken."""
    require([condition for condition, _ in checks], "flag", "when")
    faults: list[Fault] = []
    passed: list[str] = []
    for condition, value in checks:
        faults += under(condition.faults, passed)
        faults += under(finite(value).faults, [*passed, condition.sql])
        passed.append(f"{condition.sql} IS DISTINCT FROM TRUE")
    faults += under(finite(otherwise).faults, passed)
    parts = " ".join(f"WHEN {condition.sql} THEN {value.sql}" for condition, value in checks)
    values = [*(value for _, value in checks), otherwise]
    columns = columns_of([*(condition for condition, _ in checks), *values])
    sql = f"(CASE {parts} ELSE {otherwise.sql} END)"
    tested = copies_of([condition for condition, _ in checks], 2)
    copies = max(tested, copies_of(values))
    return Term(sql, one_kind(values, "case"), "the case", columns, tuple(faults), copies=copies)
