"""The support matrix of ``data/support.toml``; ``underdog.core.support`` reads what it says."""

from __future__ import annotations

import functools

from underdog.catalog.facts import accelerators, table
from underdog.catalog.hardware import fact_columns
from underdog.core.builds import Build, builds_of
from underdog.core.support import Need, needs_of
from underdog.core.table import Table


@functools.cache
def needs() -> dict[str, Need]:
    """Everything that a workload may need, by name."""
    return needs_of(table("support.toml"))


@functools.cache
def builds() -> tuple[Build, ...]:
    """Which compute capabilities the published builds of frameworks have code for."""
    return builds_of(table("support.toml"))


def machines() -> Table:
    """One bare machine with one of each accelerator, as offers, to ask the matrix about."""
    rows = [{"accelerator": key, **fact_columns(facts)} for key, facts in accelerators().items()]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return Table.from_arrays({**columns, "accelerator_count": [1.0] * len(rows)})
