"""This machine as the one candidate of a study."""

from __future__ import annotations

from typing import Any

from underdog.catalog import offers_file
from underdog.catalog.snapshot import Snapshot
from underdog.core import origin
from underdog.core.choosing import COST_COLUMNS, Request
from underdog.core.columns import OFFER_COLUMNS
from underdog.core.evidence import Shape, shape_of
from underdog.core.study import Study
from underdog.core.table import Table
from underdog.errors import UsageError
from underdog.measuring.machine import describe
from underdog.measuring.nvml import Nvml
from underdog.model import Software, Trial
from underdog.verbs.choose import accelerator_columns
from underdog.verbs.measure import offer_of


def this_machine(study: Study, request: Request) -> Snapshot:
    """The offer that this machine is, by the user's file, else by what it tells of itself.

    Raises:
        UsageError: it is none of the user's offers, or its price is unknown and needed.
        CatalogError: the user's file cannot be read.
    """
    nvml = Nvml()
    machine = describe(nvml)
    nvml.close()
    offer, price = offer_of(machine, study.price)
    begun = Trial(
        id="",
        workload="",
        status="running",
        offer=offer,
        price=price,
        machine=machine,
        software=Software(),
    )
    row: dict[str, Any] = origin.row_of(begun, accelerator_columns)
    if study.offers is not None:
        row = _listed(study.offers, shape_of(begun))
        if study.price is not None:
            row |= {"price_per_hour": study.price, "price_unknown_reason": None}
    if row.get("price_per_hour") is None and request.utility.uses(*COST_COLUMNS):
        raise UsageError(
            f"The price of this machine is unknown, and '{study.by}' needs it.",
            "Give it as [runner] price, or search --by samples_per_second.",
        )
    table = Table.from_arrays({c.name: [row.get(c.name)] for c in OFFER_COLUMNS})
    date = row.get("price_date") or ""
    return Snapshot(table=table, hash="", date=date, sources=(), left_out=(), rows=1)


def _listed(offers: str, shape: Shape) -> dict[str, Any]:
    """The user's offer that is this machine: the only one of the file, or that of its type."""
    rows = offers_file.load(offers).table.select()
    mine = [
        row
        for row in rows
        if (row["provider"], row["instance_type"], int(row["nodes"])) == tuple(shape)
    ]
    if not mine and len(rows) > 1:
        raise UsageError(
            f"None of the {len(rows):,} offers of '{offers}' is this machine, "
            f"{shape.provider}/{shape.instance_type}.",
            "Name it there by that provider and instance type, or let it stand there alone.",
        )
    return (mine or rows)[0]
