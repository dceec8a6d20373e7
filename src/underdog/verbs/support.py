"""The support matrix: what reaches which accelerator, by whose word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from underdog.catalog import support as matrix
from underdog.catalog.facts import accelerator_named, accelerators
from underdog.core.support import KINDS, Need, Reach, chosen, extent, state_sql, why_sql
from underdog.core.table import Table, quoted
from underdog.errors import UsageError, did_you_mean


def needs(names: Sequence[str] = (), kind: str | None = None) -> list[dict[str, Any]]:
    """Rows of the matrix, as plain values.

    Args:
        names: needs, all without them.
        kind: format, attention, compiler, distributed, library or framework.

    Returns:
        One dict per need: ``name``, ``title``, ``kind``, ``aliases``, ``reaches`` in words,
        ``accelerators`` (names by state: yes, no, unknown), and ``on``, what each source says.

    Raises:
        UsageError: a name or a kind that there is not.
    """
    table = matrix.machines()
    return [_row(need, table) for need in _asked(names, kind)]


def of_accelerator(
    name: str, names: Sequence[str] = (), kind: str | None = None
) -> list[dict[str, Any]]:
    """What reaches one accelerator: ``name``, ``title``, ``kind``, ``state`` and ``why``.

    Raises:
        UsageError: an accelerator, a name or a kind that there is not.
    """
    named = accelerator_named(name)
    if named is None:
        hint = did_you_mean(name, accelerators())
        raise UsageError(f"There is no accelerator '{name}'.", hint)
    table, found = matrix.machines(), []
    for need in _asked(names, kind):
        sql = f"SELECT {state_sql(need)}, {why_sql(need)} FROM offers"
        row = table.run(f"{sql} WHERE accelerator = {quoted(named.key)}").fetchone()
        assert row is not None, "there is a machine with every accelerator"
        line = {"name": need.key, "title": need.title, "kind": need.kind}
        found.append({**line, "accelerator": named.key, "state": row[0], "why": row[1]})
    return found


def _asked(names: Sequence[str], kind: str | None) -> list[Need]:
    if kind is not None and kind not in KINDS:
        raise UsageError(f"There is no kind '{kind}'.", did_you_mean(kind, KINDS))
    known = matrix.needs()
    asked = chosen(names, known) if names else list(known.values())
    return [need for need in asked if kind is None or need.kind == kind]


def _row(need: Need, table: Table) -> dict[str, Any]:
    found = table.run(f"SELECT accelerator, {state_sql(need)} FROM offers").fetchall()
    return {
        "name": need.key,
        "title": need.title,
        "kind": need.kind,
        "aliases": list(need.aliases),
        "service": need.service,
        "reaches": extent(need),
        "accelerators": {
            state: [name for name, is_ in found if is_ == state]
            for state in ("yes", "no", "unknown")
        },
        "on": [_source(reach) for reach in need.on],
    }


def _source(reach: Reach) -> dict[str, Any]:
    """A row without what it leaves open."""
    told = {
        "stack": reach.stack,
        "reach": reach.reach,
        "since": reach.since,
        "until": reach.until,
        "targets": list(reach.named),
        "types": list(reach.types),
        "extensions": list(reach.extensions),
        "minimum": dict(reach.minimum),
        "note": reach.note,
        "source": reach.source,
    }
    return {name: value for name, value in told.items() if value not in (None, "", [], {})}
