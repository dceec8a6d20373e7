"""The operators and pure functions that an expression may use, each total: it never raises.

Where DuckDB would raise or give infinity, the value is NULL and a fault says when that is so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from underdog.core.terms import (
    LISTED,
    Fault,
    RefusedError,
    Term,
    chosen,
    columns_of,
    copies_of,
    finite,
    joined,
    one_kind,
    require,
    under,
)
from underdog.errors import nearest

_MATCHES = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE"}
OPERATORS = frozenset({"+", "-", "*", "/", "%", "**", "^", *_MATCHES})
_MEANT = {"max": "greatest", "min": "least", "log": "log10 or ln", "ceiling": "ceil"}


def operate(name: str, terms: Sequence[Term]) -> Term:
    """The term of an operator: arithmetic, ``like`` or ``ilike``."""
    if name in _MATCHES:
        require(terms, ("text", "text"), _MATCHES[name].lower())
        return joined(f"({terms[0].sql} {_MATCHES[name]} {terms[1].sql})", "flag", terms)
    if name in ("**", "^"):
        return _overflowing("pow", terms)
    require(terms, "number", name)
    if len(terms) == 1:
        return joined(f"({name} {terms[0].sql})", "number", terms)
    if name in ("/", "%"):
        return _divided(name, *terms)
    result = joined(f"({terms[0].sql} {name} {terms[1].sql})", "number", terms)
    return replace(result, computed=True)


def call(name: str, terms: Sequence[Term]) -> Term:
    """The term of a function call.

    Raises:
        RefusedError: there is no such function, or its values do not fit.
    """
    if name not in FUNCTIONS:
        meant = _MEANT.get(name) or nearest(name, FUNCTIONS)
        hint = f"Did you mean '{meant}'?" if meant else LISTED
        raise RefusedError(f"there is no function '{name}'.", hint)
    if not terms:
        raise RefusedError(f"'{name}' takes at least one value.")
    return FUNCTIONS[name](name, terms)


def _divided(name: str, value: Term, by: Term) -> Term:
    by = finite(by)
    divisor = by.name if by.sql == f'"{by.name}"' else "…"
    fault = Fault(f"{by.sql} = 0", "divides by zero", by.columns, f"Write nullif({divisor}, 0).")
    result = joined(f"({value.sql} {name} nullif({by.sql}, 0))", "number", [value, by])
    copies = max(value.copies, 3 * by.copies)
    return replace(result, faults=(*result.faults, fault), computed=True, copies=copies)


def _plain(kinds: tuple[str, ...], kind: str) -> Callable[[str, Sequence[Term]], Term]:
    def made(name: str, terms: Sequence[Term]) -> Term:
        require(terms, kinds, name)
        return joined(f"{name}({', '.join(term.sql for term in terms)})", kind, terms)

    return made


def _length(name: str, terms: Sequence[Term]) -> Term:
    require(terms, ("text",), name)
    return joined(f"length({terms[0].sql})::DOUBLE", "number", terms)


def _regexp(name: str, terms: Sequence[Term]) -> Term:
    require(terms, ("text", "text"), name)
    if not isinstance(terms[1].constant, str):
        raise RefusedError(f"the pattern of '{name}' must be text in quotes.")
    return joined(f"{name}({terms[0].sql}, {terms[1].sql})", "flag", terms)


def _bounded(allowed: str, wrong: str, what: str) -> Callable[[str, Sequence[Term]], Term]:
    def made(name: str, terms: Sequence[Term]) -> Term:
        require(terms, ("number",), name)
        term = finite(terms[0])
        fault = Fault(f"{term.sql} {wrong}", what, term.columns, f"Rule out what is {wrong}.")
        sql = f"{name}(CASE WHEN {term.sql} {allowed} THEN {term.sql} END)"
        found = joined(sql, "number", [term])
        return replace(found, faults=(*term.faults, fault), copies=3 * term.copies)

    return made


def _overflowing(name: str, terms: Sequence[Term]) -> Term:
    require(terms, ("number",) if name == "exp" else ("number", "number"), name)
    terms = [finite(term) for term in terms]
    result = joined(f"{name}({', '.join(term.sql for term in terms)})", "number", terms)
    return finite(replace(result, computed=True))


def _extreme(name: str, terms: Sequence[Term]) -> Term:
    # DuckDB leaves an unknown out, but of unknown values there is no least
    kind = one_kind(terms, name)
    terms = [finite(term) for term in terms]
    unknown = " OR ".join(f"{term.sql} IS NULL" for term in terms)
    inner = f"{name}({', '.join(term.sql for term in terms)})"
    made = joined(f"(CASE WHEN {unknown} THEN NULL ELSE {inner} END)", kind, terms)
    return replace(made, copies=copies_of(terms, 2))


def _nullif(name: str, terms: Sequence[Term]) -> Term:
    if len(terms) != 2:
        raise RefusedError(f"'{name}' takes 2 values, not {len(terms)}.")
    kind = one_kind(terms, name)
    made = joined(f"nullif({terms[0].sql}, {terms[1].sql})", kind, terms)
    return replace(made, copies=copies_of(terms, 2))


def _coalesce(name: str, terms: Sequence[Term]) -> Term:
    faults: list[Fault] = []
    for i, term in enumerate(terms):
        faults += under(term.faults, [f"{earlier.sql} IS NULL" for earlier in terms[:i]])
    sql = f"coalesce({', '.join(term.sql for term in terms)})"
    computed = any(term.computed for term in terms)
    kind = one_kind(terms, name)
    columns, copies = columns_of(terms), copies_of(terms, 2)
    return Term(sql, kind, "the value", columns, tuple(faults), computed, copies=copies)


def _if(name: str, terms: Sequence[Term]) -> Term:
    if len(terms) != 3:
        raise RefusedError(f"'{name}' takes a condition and two values.")
    return chosen([(terms[0], terms[1])], terms[2])


def _round(name: str, terms: Sequence[Term]) -> Term:
    digits = terms[1].constant if len(terms) == 2 else 0.0
    whole = isinstance(digits, float) and digits.is_integer() and abs(digits) <= 15
    if len(terms) > 2 or not isinstance(digits, float) or not whole:
        raise RefusedError(f"'{name}' takes a number and, if wanted, a whole number of digits.")
    require(terms[:1], "number", name)
    return joined(f"round({terms[0].sql}, {int(digits)})", "number", terms)


_LOGARITHM = _bounded("> 0", "<= 0", "takes the logarithm of a number that is not positive")
_TEXT_TEST = _plain(("text", "text"), "flag")

FUNCTIONS: dict[str, Callable[[str, Sequence[Term]], Term]] = {
    "abs": _plain(("number",), "number"),
    "ceil": _plain(("number",), "number"),
    "coalesce": _coalesce,
    "contains": _TEXT_TEST,
    "ends_with": _TEXT_TEST,
    "exp": _overflowing,
    "floor": _plain(("number",), "number"),
    "greatest": _extreme,
    "if": _if,
    "least": _extreme,
    "length": _length,
    "ln": _LOGARITHM,
    "log10": _LOGARITHM,
    "log2": _LOGARITHM,
    "lower": _plain(("text",), "text"),
    "nullif": _nullif,
    "pow": _overflowing,
    "power": _overflowing,
    "regexp_matches": _regexp,
    "round": _round,
    "sqrt": _bounded(">= 0", "< 0", "takes the root of a negative number"),
    "starts_with": _TEXT_TEST,
    "upper": _plain(("text",), "text"),
}
