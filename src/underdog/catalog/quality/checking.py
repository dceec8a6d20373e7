"""Running the rules over offers, and what follows from what they find."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import duckdb

from underdog.catalog.quality import hardware_rules, price_rules, row_rules, source_rules
from underdog.catalog.quality.hardware_rules import HOST_MEMORY
from underdog.catalog.quality.price_rules import DUPLICATE, TWO_PRICES, WINDOWS
from underdog.catalog.quality.rules import Finding, Rule
from underdog.catalog.quality.table import Offers, database
from underdog.catalog.sources import LeftOut
from underdog.progress import say, track

_ALONE = (*row_rules.RULES, *hardware_rules.RULES)
RULES: dict[str, Rule] = {
    rule.name: rule for rule in (*_ALONE, HOST_MEMORY, *price_rules.RULES, *source_rules.RULES)
}


def check(
    rows: Offers, previous: Offers | None = None, *, today: str | None = None
) -> list[Finding]:
    """What the rules find among offers, by row and rule.

    An offer that is taken out counts no more when the others are judged, so that a check of what
    is left finds nothing to take out.

    Args:
        rows: dicts of offer columns, columns of one length by name, or a table; what is missing is
            unknown.
        previous: the snapshot before, best of all providers: its prices of other providers tell
            what an accelerator usually costs, and those of the same what has changed.
        today: ISO 8601; without it no price is called old or of a day to come.
    """
    connection = database(rows, previous, today)
    say("quality rules")
    try:
        found = _take_out(connection, [r for r in _ALONE if r.severity == "quarantine"])
        found += _settle(connection)
        found += (twice := _once_each(connection))
        if twice:
            found += _settle(connection)
        doubts = [rule for rule in _ALONE if rule.severity == "caveat"]
        rules = (*doubts, HOST_MEMORY, *price_rules.DOUBTS)
        for rule in track(rules, "quality rules", every=1):
            found += _run(connection, rule)
        if previous is not None:
            _refer(connection, source_rules.COMPARED)
            for rule in source_rules.CHANGES:
                found += _run(connection, rule)
        _note_faults(connection, found)
        found += _run(connection, source_rules.FAULTY)
    finally:
        connection.close()
    out = {finding.row for finding in found if finding.severity == "quarantine"}
    kept = [f for f in found if f.severity != "caveat" or f.row is None or f.row not in out]
    order = {name: place for place, name in enumerate(RULES)}
    return sorted(kept, key=lambda f: (f.row is None, f.row or 0, order[f.rule], f.offer))


def impossible(rows: Offers) -> list[Finding]:
    """What must not stand whatever others cost: of offers whose price is the user's own word.

    Args:
        rows: as of ``check``.
    """
    connection = database(rows)
    try:
        rules = [rule for rule in _ALONE if rule.severity == "quarantine"]
        return [finding for rule in rules for finding in _run(connection, rule)]
    finally:
        connection.close()


def _settle(connection: duckdb.DuckDBPyConnection) -> list[Finding]:
    """Take out what is out of bounds until nothing is: each that goes moves the bounds."""
    found: list[Finding] = []
    while True:
        _refer(connection, price_rules.REFERENCES)
        new = _take_out(connection, price_rules.BOUNDS) or _take_out(connection, [WINDOWS])
        if not new:
            return found
        found += new


def _refer(connection: duckdb.DuckDBPyConnection, references: Mapping[str, str]) -> None:
    """Make the tables that the rules compare with."""
    for name, query in references.items():
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")


def _once_each(connection: duckdb.DuckDBPyConnection) -> list[Finding]:
    """Of an offer that stands there several times one is left, with a caveat if prices differ."""
    connection.execute(f"CREATE TEMP TABLE doubles AS {price_rules.DOUBLES}")
    return [*_run(connection, TWO_PRICES), *_take_out(connection, [DUPLICATE])]


def _take_out(connection: duckdb.DuckDBPyConnection, rules: Iterable[Rule]) -> list[Finding]:
    """What the rules find, each looking at the same offers; then those offers are out."""
    found = [finding for rule in rules for finding in _run(connection, rule)]
    rows = sorted({finding.row for finding in found if finding.row is not None})
    if rows:
        connection.execute("DELETE FROM live WHERE row IN (SELECT unnest(?))", [rows])
    return found


def _run(connection: duckdb.DuckDBPyConnection, rule: Rule) -> list[Finding]:
    named = (
        f"SELECT f.row, coalesce(g.offer, ''), f.message FROM ({rule.query}) AS f "
        "JOIN given AS g USING (row)"
    )
    sql = named if rule.rows else f"SELECT NULL, offer, message FROM ({rule.query})"
    values = connection.execute(sql).fetchall()
    return [Finding(rule.name, rule.severity, *one) for one in values]


def _note_faults(connection: duckdb.DuckDBPyConnection, found: Iterable[Finding]) -> None:
    """The table ``faults``: rows that are out for a fault; a duplicate is none of the source."""
    rows = {
        f.row
        for f in found
        if f.severity == "quarantine" and f.rule != "duplicate_offer" and f.row is not None
    }
    sql = "CREATE TEMP TABLE faults AS SELECT unnest(CAST(? AS BIGINT[])) AS row"
    connection.execute(sql, [sorted(rows)])


def apply(
    rows: Sequence[Mapping[str, Any]], findings: Iterable[Finding]
) -> tuple[list[dict[str, Any]], list[LeftOut]]:
    """The offers that stay, with the rules that doubt them in ``caveats``, and those taken out.

    Args:
        rows: dicts of offer columns.
        findings: of ``check`` on the same rows.

    Returns:
        Copies of the rows that stay, in their order, and one entry for each of the others. A
        caveat that a row has already stays with it.
    """
    out: dict[int, str] = {}
    doubts: dict[int, set[str]] = {}
    for finding in findings:
        if finding.row is None:
            continue
        if finding.severity == "quarantine":
            out.setdefault(finding.row, finding.rule)
        else:
            doubts.setdefault(finding.row, set()).add(finding.rule)
    kept, left = [], []
    for number, row in enumerate(rows):
        if number in out:
            left.append(_left_out(row, RULES[out[number]]))
        else:
            kept.append({**row, "caveats": _listed(row.get("caveats"), doubts.get(number, set()))})
    return kept, left


def _left_out(row: Mapping[str, Any], rule: Rule) -> LeftOut:
    provider, region, kind = (
        str(row.get(name) or "") for name in ("provider", "region", "instance_type")
    )
    return LeftOut(provider, region, kind, f"{rule.name}: {rule.says}")


def _listed(given: Any, found: set[str]) -> str | None:
    names = {name for name in given.split(",") if name} if isinstance(given, str) else set()
    return ",".join(sorted(names | found)) or None


def rejected(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """The providers whose answer as a whole is not to be used, with why."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.severity == "reject_source":
            found.setdefault(finding.offer, []).append(finding)
    return found


_CONSEQUENCES = {
    "quarantine": "The offer was left out, for {says}.",
    "caveat": "The offer stays, with a caveat.",
    "reject_source": "None of it was taken, for {says}.",
}


def explain(finding: Finding) -> str:
    """What was found, what came of it, and what to do, in sentences."""
    rule = RULES[finding.rule]
    message = f"{finding.message[:1].upper()}{finding.message[1:]}."
    consequence = _CONSEQUENCES[finding.severity].format(says=rule.says)
    return f"{finding.offer}: {message} {consequence} {rule.remedy}"
