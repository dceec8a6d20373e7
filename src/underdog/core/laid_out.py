"""The tables that choosing reads: the candidates, and the throughput of each kind of machine."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from underdog.core import attainable, shapes, supply
from underdog.core.columns import OFFER_COLUMNS
from underdog.core.evidence import Evidence, Shape
from underdog.core.shapes import Shapes
from underdog.core.supply import Supply
from underdog.core.table import Table, schema
from underdog.core.transfer_evidence import Carried


def lay_out(
    table: Table,
    evidence: Sequence[Evidence],
    machines: Sequence[int],
    extra: Sequence[Mapping[str, Any]] = (),
    unlisted: Mapping[Shape, Mapping[str, Any]] | None = None,
    carried: Mapping[Shape, Carried] | None = None,
    *,
    known: Supply | None = None,
) -> tuple[Table, Shapes]:
    """The tables ``candidates``, ``rates``, ``notes`` and ``dear`` beside the offers; the shapes.

    Args:
        table: the offers; it is only read.
        evidence: what the trials of the workload say.
        machines: numbers of machines that may share the job.
        extra: offers besides the table, as dicts of offer columns.
        unlisted: hardware of measured machines that are no offer, as dicts of offer columns.
        carried: what other workloads say of machines that this one was not measured on.
        known: of getting machines and keeping them, which makes tables of its own.
    """
    table = copy.copy(table)
    # what is made on the way is temporary, and temporary tables belong to one connection
    table.connection = table.connection.cursor()
    _candidates(table, extra)
    distinct = Shapes.of(table.run(shapes.query()).fetchnumpy())
    found = shapes.rates(distinct, evidence, unlisted or {}, carried)
    fill(table, "rates", shapes.columns_of_rates(distinct, found, machines))
    notes = np.array(found.notes, dtype=object)
    fill(table, "notes", {"shape": np.arange(len(notes)), "note": notes})
    attainable.find_dear(table)
    supply.lay_out(table, known or Supply(), distinct, machines)
    return table, distinct


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


def fill(table: Table, name: str, columns: Mapping[str, Any]) -> None:
    """A temporary table of arrays of one length; NaN becomes unknown."""
    taken = ", ".join(
        f'nullif("{c}", \'NaN\'::DOUBLE) AS "{c}"' if values.dtype == float else f'"{c}"'
        for c, values in columns.items()
    )
    table.connection.register("given", dict(columns))
    table.run(f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT {taken} FROM given")
    table.connection.unregister("given")
