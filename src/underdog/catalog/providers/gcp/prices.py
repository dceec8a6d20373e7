"""The price of a Google Cloud machine: the sum of what its parts cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from underdog.catalog.facts import table
from underdog.catalog.hardware import price_of
from underdog.catalog.providers.gcp.machines import Machine
from underdog.catalog.providers.gcp.skus import (
    COMMITTED,
    ON_DEMAND,
    SPOT,
    USAGES,
    Rate,
    Resource,
    plain,
)
from underdog.catalog.sources import Raw
from underdog.model import Price

Rates = dict[tuple[Resource, str, str], float]
_WORDS = {
    "core": "vCPUs",
    "ram": "memory",
    "gpu": "accelerators",
    "slice": "accelerators",
    "ssd": "local SSD",
    "tpu": "TPU chips",
    "machine": "machine",
}


class Part(NamedTuple):
    """A part of a machine and how much of it is billed; None where that is unknown."""

    resource: Resource
    amount: float | None


def keep_lower(rates: Rates, rate: Rate) -> bool:
    """Add a rate; of two for one resource the lower stays. False where two stand that differ."""
    key = (rate.resource, rate.usage, rate.region)
    other = rates.get(key)
    rates[key] = rate.per_hour if other is None else min(rate.per_hour, other)
    return other is None or other == rate.per_hour


def prices(
    machine: Machine, region: str, rates: Rates, raw: Raw
) -> Iterator[tuple[str, str | None, Price]]:
    """Purchase, term and price on demand, as spot, and for each commitment that is sold."""
    for purchase, usage in (("on-demand", ON_DEMAND), ("spot", SPOT)):
        yield (
            purchase,
            None,
            _sum(parts_of(machine, region, rates, usage), usage, region, rates, raw),
        )
    for usage, term in COMMITTED.items():
        parts = parts_of(machine, region, rates, usage)
        if any((part.resource, usage, region) in rates for part in parts):
            yield "reserved", term, _sum(parts, usage, region, rates, raw)


def parts_of(machine: Machine, region: str, rates: Rates, usage: str) -> list[Part]:
    """What a machine is billed for.

    An accelerator that is sold in slices of a machine, and a TPU chip, come with their share of
    the vCPUs, the memory and the disk.
    """
    name, hardware = machine.name, machine.hardware
    if name in ("f1-micro", "g1-small"):
        return [Part(Resource("machine", name), 1.0)]
    kind, count = machine.accelerator_type, hardware.accelerator_count
    if kind is not None and kind.startswith("TPU-"):
        return [Part(Resource("tpu", kind.removeprefix("TPU-")), count)]
    accelerator = plain(table("gcp.toml")["accelerator"].get(kind, ("", ""))[1]) if kind else ""
    sliced = Resource("slice", accelerator)
    if (sliced, usage, region) in rates:
        return [Part(sliced, count)]
    cores = table("gcp.toml")["billed_vcpus"].get(name, hardware.vcpus)
    parts = []
    for series in _billed_series(name):
        parts.append(Part(Resource("core", series), cores))
        parts.append(Part(Resource("ram", series), hardware.memory_gib))
    if kind is not None or count is None:
        parts.append(Part(Resource("gpu", accelerator), count))
    if machine.local_ssd_gib != 0:
        parts.append(Part(Resource("ssd", _ssd_family(name)), machine.local_ssd_gib))
    return parts


def _billed_series(name: str) -> tuple[str, ...]:
    """The series whose rates are added up; those of M2 are those of M1 and a surcharge."""
    if name.startswith(("n1-megamem", "n1-ultramem")):
        return ("m1",)
    if name.startswith("m4-ultramem-224"):
        return ("m4ultramem224",)
    series = name.partition("-")[0]
    return ("m1", "m2-upgrade") if series == "m2" else (series,)


def _ssd_family(name: str) -> str:
    series = name.partition("-")[0]
    return series if series in ("c4", "c4a", "c4d") else ""


def _sum(
    parts: list[Part],
    usage: str,
    region: str,
    rates: Mapping[tuple[Resource, str, str], float],
    raw: Raw,
) -> Price:
    """The price of all parts; unknown where one is missing, for less than all is not the price."""
    total, missing = 0.0, []
    for resource, amount in parts:
        rate = rates.get((resource, usage, region))
        if rate is None or amount is None:
            missing.append(_WORDS[resource.kind])
        else:
            total += rate * amount
    if missing:
        names = " and ".join(dict.fromkeys(missing))
        reason = f"the billing catalog has no {USAGES[usage]} rate of its {names}"
        return Price(unknown_reason=reason, source=raw.source, date=raw.date)
    return price_of(repr(round(total, 10)), raw.source, raw.date, "")
