"""From DuckDB's syntax tree to SQL of our own: a closed list of what an expression may say.

Nothing of the user's text reaches the SQL but column names of the list, numbers, and quoted text.
Each part carries its kind, so that text and numbers are not mixed, and its faults: the conditions,
themselves SQL, under which it has no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NoReturn

from underdog.core.columns import Column, column_meant
from underdog.core.functions import OPERATORS, call, operate
from underdog.core.terms import (
    LISTED,
    Fault,
    RefusedError,
    Term,
    chosen,
    finite,
    joined,
    require,
    under,
)

MAX_DEPTH = 100
MAX_COPIES = 300  # five divisions in each other's denominators: each more triples the time
MAX_FAULT_TEXT = 100_000

Node = dict[str, Any]

_COMPARISONS = {
    "COMPARE_EQUAL": "=",
    "COMPARE_NOTEQUAL": "<>",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_LESSTHANOREQUALTO": "<=",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_DISTINCT_FROM": "IS DISTINCT FROM",
    "COMPARE_NOT_DISTINCT_FROM": "IS NOT DISTINCT FROM",
}
_REFUSED_NAMES = {
    "SUBQUERY": "a query inside it",
    "WINDOW": "a window function",
    "STAR": "a star",
    "LAMBDA": "a lambda",
    "PARAMETER": "a parameter",
    "CAST": "a cast",
    "COLLATE": "a collation",
}


def _refuse(node: Node) -> NoReturn:
    kind = str(node["class"])
    name = _REFUSED_NAMES.get(kind, kind.lower().replace("_", " "))
    raise RefusedError(f"{name} is not allowed.", LISTED)


class Translator:
    """Translates one tree over one list of columns; ``used`` names the columns it met."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.columns = {name.lower(): column for name, column in columns.items()}
        self.used: set[str] = set()
        self.depth = 0

    def term(self, node: Node) -> Term:
        """The term of a node.

        Raises:
            RefusedError: the node is not on the closed list.
        """
        if self.depth >= MAX_DEPTH:
            raise RefusedError("it is nested too deeply.")
        translate = self._by_class.get(node["class"])
        if translate is None or node.get("alias"):
            _refuse(node)
        self.depth += 1
        try:
            found = translate(self, node)
        finally:
            self.depth -= 1
        # a fault carries the conditions under which it counts: their text grows with the square
        if sum(len(fault.sql) for fault in found.faults) > MAX_FAULT_TEXT:
            raise RefusedError("it has too many divisions under conditions.")
        if found.copies > MAX_COPIES:
            raise RefusedError("its divisions or conditions are nested too deeply.")
        return found

    def terms(self, nodes: Sequence[Node]) -> list[Term]:
        """The terms of several nodes."""
        return [self.term(node) for node in nodes]

    def _column(self, node: Node) -> Term:
        path = node["column_names"]
        column = self.columns.get(path[-1].lower()) if len(path) == 1 else None
        if column is None:
            name = ".".join(path)
            meant = column_meant(name, [column.name for column in self.columns.values()])
            raise RefusedError(
                f"there is no column '{name}'.",
                f"{meant} Text stands in single quotes: '{name}'.",
            )
        self.used.add(column.name)
        kind = "text" if column.kind == "list" else column.kind
        return Term(f'"{column.name}"', kind, column.name, (column.name,))

    def _constant(self, node: Node) -> Term:
        value = constant(node)
        if value is None:
            return Term("NULL", "null", "null")
        if isinstance(value, bool):
            return Term(str(value).upper(), "flag", str(value).lower(), constant=value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise RefusedError("it holds a number that is too large.")
            return Term(f"CAST({value!r} AS DOUBLE)", "number", f"{value:g}", constant=value)
        quoted = value.replace("'", "''")
        return Term(f"'{quoted}'", "text", f"'{value}'", constant=value)

    def _cast(self, node: Node) -> Term:
        # true, false and `is true` come as casts to a flag; others are not needed
        target = node.get("cast_type", {}).get("id") or node.get("type_expr", {}).get("type_name")
        child = node["child"]
        if target != "BOOLEAN" or node.get("try_cast"):
            _refuse(node)
        if child["class"] == "CONSTANT" and constant(child) in ("t", "f"):
            truth = constant(child) == "t"
            return Term(str(truth).upper(), "flag", str(truth).lower(), constant=truth)
        term = self.term(child)
        if term.kind != "flag":
            _refuse(node)
        return term

    def _conjunction(self, node: Node) -> Term:
        word, decided = ("AND", "FALSE") if node["type"] == "CONJUNCTION_AND" else ("OR", "TRUE")
        terms = self.terms(node["children"])
        require(terms, "flag", word.lower())
        # a side that decides the whole makes the other sides' faults harmless, in either order
        faults: list[Fault] = []
        for i, term in enumerate(terms):
            if term.faults:
                others = [other.sql for j, other in enumerate(terms) if j != i]
                open_ = [f"{sql} IS DISTINCT FROM {decided}" for sql in others]
                faults += under(term.faults, open_)
        whole = joined("(" + f" {word} ".join(term.sql for term in terms) + ")", "flag", terms)
        return replace(whole, name="the condition", faults=tuple(faults), computed=False)

    def _comparison(self, node: Node) -> Term:
        left, right = self._alike([node["left"], node["right"]])
        sql = f"({left.sql} {_COMPARISONS[node['type']]} {right.sql})"
        return joined(sql, "flag", [left, right], "the comparison")

    def _between(self, node: Node) -> Term:
        parts = self._alike([node["input"], node["lower"], node["upper"]])
        value, low, high = (part.sql for part in parts)
        return joined(f"({value} BETWEEN {low} AND {high})", "flag", parts, "the comparison")

    def _alike(self, nodes: Sequence[Node]) -> list[Term]:
        """Terms that are compared with each other: all text, all numbers, or all flags."""
        terms = self.terms(nodes)
        first = terms[0]
        for term in terms:
            if term.kind == "null":
                raise RefusedError(
                    "nothing equals null, which stands for the unknown.",
                    f"Write: {first.name} is null",
                )
            if term.kind != first.kind:
                raise RefusedError(
                    f"{first.name} is {first.kind_name} and {term.name} is {term.kind_name}: "
                    "they cannot be compared."
                )
        return [finite(term) for term in terms]

    def _operator(self, node: Node) -> Term:
        kind, children = node["type"], node["children"]
        if kind == "OPERATOR_NOT":
            terms = self.terms(children)
            require(terms, "flag", "not")
            return joined(f"(NOT {terms[0].sql})", "flag", terms, "the condition")
        if kind in ("OPERATOR_IS_NULL", "OPERATOR_IS_NOT_NULL"):
            word = "IS NULL" if kind == "OPERATOR_IS_NULL" else "IS NOT NULL"
            terms = self.terms(children)
            return joined(f"({terms[0].sql} {word})", "flag", terms, "the condition")
        if kind in ("COMPARE_IN", "COMPARE_NOT_IN"):
            terms = self._alike(children)
            word = "IN" if kind == "COMPARE_IN" else "NOT IN"
            listed = ", ".join(term.sql for term in terms[1:])
            return joined(f"({terms[0].sql} {word} ({listed}))", "flag", terms, "the comparison")
        if kind == "OPERATOR_COALESCE":
            return call("coalesce", self.terms(children))
        return _refuse(node)

    def _case(self, node: Node) -> Term:
        checks = [
            (self.term(check["when_expr"]), self.term(check["then_expr"]))
            for check in node["case_checks"]
        ]
        return chosen(checks, self.term(node["else_expr"]))

    def _function(self, node: Node) -> Term:
        name = node["function_name"].lower()
        arguments = node.get("arguments")  # DuckDB before 2.0: children
        nodes = node["children"] if arguments is None else [a["expression"] for a in arguments]
        if any(argument["name"] for argument in arguments or []):
            raise RefusedError(f"the values of '{name}' have no names.")
        if node.get("distinct") or node.get("filter") or node["order_bys"]["orders"]:
            raise RefusedError(f"'{name}' is given as an aggregate.")
        if node.get("is_operator") and name in OPERATORS:
            return operate(name, self.terms(nodes))
        return call(name, self.terms(nodes))

    _by_class: ClassVar[dict[str, Callable[[Translator, Node], Term]]] = {
        "COLUMN_REF": _column,
        "CONSTANT": _constant,
        "CAST": _cast,
        "CONJUNCTION": _conjunction,
        "COMPARISON": _comparison,
        "BETWEEN": _between,
        "OPERATOR": _operator,
        "CASE": _case,
        "FUNCTION": _function,
    }


def constant(node: Node) -> float | bool | str | None:
    """A constant; DuckDB before 2.0 gives it as a typed value, from 2.0 on as it was written."""
    literal = node.get("literal")
    if literal is not None:
        kind, text = literal["kind"], literal["text"]
        if kind == "NULL_LITERAL":
            return None
        if kind == "BOOLEAN":
            return bool(text == "true")
        if kind in ("INTEGER", "NUMERIC"):
            return float(text)
        if kind == "STRING":
            return str(text)
        raise RefusedError(f"a constant of the kind {kind.lower()} is not allowed.")
    value, kind = node["value"].get("value"), node["value"]["type"]["id"]
    if node["value"]["is_null"]:
        return None
    if kind == "DECIMAL" and isinstance(value, int):
        scale = node["value"]["type"]["type_info"]["scale"]
        return float(value / 10**scale)
    if kind == "BOOLEAN":
        return bool(value)
    if isinstance(value, int | float):
        return float(value)
    if kind == "VARCHAR":
        return str(value)
    raise RefusedError(f"a constant of the type {kind.lower()} is not allowed.")
