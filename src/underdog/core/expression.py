"""Expressions over the columns of an offer: what ``--where`` and ``--by`` take.

The text is read by DuckDB's own parser and written anew from a closed list: columns, constants,
arithmetic, comparisons, conditions and pure functions (``docs/reference/expressions.md``). What is
not on the list cannot be said, so an expression can compute and do nothing else.

An unknown stays unknown: it satisfies no condition and makes no number. A row on which the
expression has no finite value (a division by zero, the logarithm of 0, an overflow) is a fault: it
is found and told with the row, never turned into a number or dropped.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import duckdb

from underdog.core.columns import Column
from underdog.core.terms import Fault, RefusedError, Term, finite
from underdog.core.translate import Translator
from underdog.errors import ExpressionError

__all__ = ["Expression", "Fault", "parse"]

MAX_LENGTH = 4000
_PREFIX = "SELECT "


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression.

    ``sql`` is safe to embed in a query whose source has the ``columns`` by name; it never raises
    and is NULL where a value is unknown. ``faults`` are the conditions under which it has no
    value: ``underdog.core.table.check`` looks for rows that meet one.
    """

    text: str
    sql: str
    kind: Literal["number", "flag"]
    columns: tuple[str, ...]
    faults: tuple[Fault, ...] = ()


def parse(
    text: str,
    columns: Mapping[str, Column],
    kind: Literal["predicate", "number"] = "predicate",
) -> Expression:
    """Read an expression over ``columns``.

    Args:
        text: the expression, at most 4,000 characters.
        columns: the closed list of names that it may use.
        kind: ``predicate`` for a condition, ``number`` for something to rank by.

    Raises:
        ExpressionError: it cannot be read, uses what is not on the list, mixes text and numbers,
            or is not of the kind asked for.
    """
    try:
        node = _tree(text)
        translator = Translator(columns)
        term = _rooted(translator.term(node), kind)
    except RefusedError as refusal:
        raise ExpressionError(
            f"In the expression {_quoted(text)}: {refusal}", refusal.hint
        ) from None
    except RecursionError:
        raise ExpressionError(f"The expression {_quoted(text)} is nested too deeply.") from None
    return Expression(
        text=text,
        sql=term.sql,
        kind="flag" if kind == "predicate" else "number",
        columns=tuple(sorted(translator.used)),
        faults=term.faults,
    )


def _rooted(term: Term, kind: Literal["predicate", "number"]) -> Term:
    if kind == "predicate":
        if term.kind != "flag":
            raise RefusedError(
                f"{term.name} is {term.kind_name}, not a condition.",
                "Compare it with something, as in: price_per_hour < 2",
            )
        return term
    if term.kind != "number":
        raise RefusedError(
            f"{term.name} is {term.kind_name}, not a number.",
            "Give a number to rank by, as in: memory_gib / price_per_hour",
        )
    return finite(term)


def _tree(text: str) -> dict[str, Any]:
    """The syntax tree of the one expression in the text."""
    if not text.strip():
        raise RefusedError("there is nothing in it.", "Write it like: price_per_hour < 2")
    if len(text) > MAX_LENGTH:
        raise RefusedError(f"it has {len(text):,} characters, at most {MAX_LENGTH:,} are read.")
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text):
        raise RefusedError("it holds a NUL character or a byte that is no UTF-8.")
    row = _parser().execute("SELECT json_serialize_sql(?::VARCHAR)", [_PREFIX + text]).fetchone()
    assert row is not None
    answer = json.loads(row[0])
    if answer["error"]:
        raise _syntax(text, answer)
    statements = answer["statements"]
    node = statements[0]["node"]
    plain = (
        len(statements) == 1
        and node["type"] == "SELECT_NODE"
        and len(node["select_list"]) == 1
        and node["from_table"]["type"] == "EMPTY"
        and not any(
            node.get(part) for part in ("where_clause", "having", "qualify", "modifiers", "sample")
        )
        and not node.get("group_expressions")
    )
    if not plain:
        raise RefusedError("it is a query, not one expression.")
    tree: dict[str, Any] = node["select_list"][0]
    return tree


def _syntax(text: str, answer: dict[str, Any]) -> RefusedError:
    message = str(answer.get("error_message", "it cannot be read")).strip()
    if "depth" in message or "exhausted" in message:
        return RefusedError("it is nested too deeply.")
    message = message.splitlines()[0].rstrip(".")
    position = int(answer.get("position") or len(_PREFIX)) - len(_PREFIX)
    if message.startswith("Only SELECT"):  # a second statement
        return RefusedError("it is a query, not one expression.")
    rest = text[max(position, 0) :].split()
    if len(rest) <= 1 and rest not in ([")"], [";"]):
        return RefusedError("it ends too early.", "Something is missing at its end.")
    near = f" at character {position + 1}, near '{rest[0][:20]}'" if rest else ""
    return RefusedError(f"{message.split(' at or near')[0]}{near}.")


def _quoted(text: str) -> str:
    shown = " ".join(text.split())
    return f"'{shown}'" if len(shown) <= 120 else f"'{shown[:117]}…'"


@functools.cache
def _parser() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(":memory:", config={"threads": 1})
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection
