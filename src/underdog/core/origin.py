"""A measured machine in the columns of an offer, where the catalog does not list it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from underdog.core.evidence import shape_of
from underdog.model import Machine, Trial

Facts = Callable[[str, float | None], Mapping[str, Any]]

# float32 operations per cycle of a core by its widest vector: two multiply-add units
_PER_CYCLE = {512: 64, 256: 32, 128: 16}


def price_of(trial: Trial) -> float | None:
    """USD per hour at the time of the trial; None where it is unknown."""
    offered = trial.offer.price.per_hour if trial.offer else None
    return trial.price.per_hour if offered is None else offered


def row_of(trial: Trial, facts: Facts) -> dict[str, Any]:
    """The machine of a trial as a dict of offer columns; what is not known is left out.

    Args:
        facts: gives the columns of an accelerator by the name that its driver tells and its
            memory in GiB; empty where it is unknown.
    """
    shape, offer, machine = shape_of(trial), trial.offer, trial.machine
    row: dict[str, Any] = {
        "provider": shape.provider,
        "instance_type": shape.instance_type,
        "nodes": shape.nodes,
        "region": offer.region if offer else machine.region or "here",
        "zone": offer.zone if offer else machine.zone,
        "purchase": offer.purchase if offer else machine.purchase or "on-demand",
        "term": offer.term if offer else None,
        "price_per_hour": trial.price.per_hour,
        "price_unknown_reason": trial.price.unknown_reason,
        "price_source": trial.price.source or None,
        "price_date": trial.price.date or None,
        "currency": trial.price.currency,
    }
    row |= _processor(machine)
    if machine.accelerators:
        first = machine.accelerators[0]
        row |= {
            "accelerator": first.name,
            "accelerator_count": len(machine.accelerators),
            "accelerator_usable_gib": first.memory_gib,
            **facts(first.name, first.memory_gib),
        }
    if offer is not None:
        row |= _of_offer(trial, facts)
    row.setdefault("accelerator_count", 0)
    return row


def _processor(machine: Machine) -> dict[str, Any]:
    cores, ghz = machine.cpu_cores, machine.cpu_ghz
    row: dict[str, Any] = {
        "vcpus": machine.vcpus,
        "memory_gib": machine.memory_gib,
        "arch": machine.arch,
        "cpu_model": machine.cpu_model,
        "cpu_ghz": ghz,
        "vector_bits": machine.vector_bits,
    }
    per_cycle = _PER_CYCLE.get(machine.vector_bits or 0)
    if cores and ghz and per_cycle:
        usable = min(cores, machine.vcpus or cores)
        row["cpu_fp32_tflops"] = usable * ghz * per_cycle / 1000
    return row


def _of_offer(trial: Trial, facts: Facts) -> dict[str, Any]:
    offer = trial.offer
    assert offer is not None
    known = {
        "vcpus": offer.vcpus,
        "memory_gib": offer.memory_gib,
        "arch": offer.arch,
        "accelerator": offer.accelerator,
        "accelerator_memory_gib": offer.accelerator_memory_gib,
        "accelerator_usable_gib": offer.accelerator_usable_gib,
    }
    row: dict[str, Any] = {name: value for name, value in known.items() if value is not None}
    if offer.accelerator:
        row |= facts(offer.accelerator, offer.accelerator_memory_gib)
        row["accelerator_count"] = offer.accelerator_count
    if offer.price.per_hour is not None:
        row.update(price_per_hour=offer.price.per_hour, price_unknown_reason=None)
    return row
