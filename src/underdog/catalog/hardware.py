"""The hardware of one instance type, and the offer that it makes with a price."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from underdog.catalog.facts import (
    FORMATS,
    AcceleratorFacts,
    Network,
    Processor,
    accelerators,
    carbon,
    machine_disk_gb_per_s,
    machine_ghz,
    machine_link,
    machine_network,
    processor_of,
    processors,
    sustained_share,
    whole_cores,
)
from underdog.core.columns import OFFER_COLUMNS
from underdog.model import Price


@dataclass(frozen=True, kw_only=True, slots=True)
class Hardware:
    """What a machine has; None is unknown. ``accelerator_count`` 0 means that it has none.

    A part of an accelerator has a count below 1; the memory and usable memory are then those of
    the part. Where they are None, they follow from the model.
    """

    vcpus: float | None = None
    memory_gib: float | None = None
    arch: str | None = None
    processor: str | None = None
    cpu_ghz: float | None = None
    whole_cores: bool = False
    accelerator: str | None = None
    accelerator_count: float | None = 0
    accelerator_memory_gib: float | None = None
    accelerator_usable_gib: float | None = None
    accelerator_memory_source_gib: float | None = None
    accelerator_link: str | None = None
    accelerator_link_gb_per_s: float | None = None
    cpu_extensions: str | None = None
    network_gbps: float | None = None
    network_rdma: str | None = None
    network_rdma_gbps: float | None = None
    local_disk_gb: float | None = None
    local_disk_kind: str | None = None
    local_disk_gb_per_s: float | None = None


RATES = (*(f"{name}_tflops" for name in FORMATS if name != "int8"), "int8_tops")
# what the source says of the machine stands, whatever is known of its parts
_AS_GIVEN = (
    "accelerator_memory_source_gib",
    "accelerator_link",
    "accelerator_link_gb_per_s",
    "cpu_extensions",
    "network_gbps",
    "network_rdma",
    "network_rdma_gbps",
    "local_disk_gb",
    "local_disk_kind",
    "local_disk_gb_per_s",
)


def price_of(text: str | None, source: str, date: str, missing: str) -> Price:
    """The price that a table gives as text; 0, nothing, or no number is unknown with a reason."""
    if text is None or not text.strip():
        return Price(unknown_reason=missing, source=source, date=date)
    try:
        amount = float(text)
    except ValueError:
        amount = math.nan
    if amount == 0:
        reason = "the source gives 0, which stands for no price"
        return Price(unknown_reason=reason, source=source, date=date)
    if not (math.isfinite(amount) and amount > 0):
        return Price(unknown_reason=f"the source gives '{text}'", source=source, date=date)
    return Price(per_hour=amount, source=source, date=date)


def offer_row(
    provider: str,
    region: str,
    instance_type: str,
    purchase: str,
    hardware: Hardware,
    *,
    price: Price,
    zone: str | None = None,
    zones: str | None = None,
    term: str | None = None,
    service: str | None = None,
) -> dict[str, Any]:
    """An offer as a dict of all ``OFFER_COLUMNS``.

    What ``hardware`` leaves open is filled from the tables of facts where they have the type.
    """
    row = machine_columns(provider, instance_type, hardware).copy()
    row.update(
        provider=provider,
        region=region,
        zone=zone,
        zones=zones,
        instance_type=instance_type,
        purchase=purchase,
        term=term,
        service=service,
        nodes=1,
        price_per_hour=price.per_hour,
        price_unknown_reason=price.unknown_reason,
        price_source=price.source or None,
        price_date=price.date or None,
        currency=price.currency,
        kg_co2e_per_kwh=carbon(provider).get(region),
    )
    return row


# a machine stands in many regions at many prices; its columns are the same in all
@functools.lru_cache(maxsize=20_000)
def machine_columns(provider: str, instance_type: str, hardware: Hardware) -> dict[str, Any]:
    """All columns of an offer, those that follow from the hardware filled; not to be changed."""
    hardware = known_machine(provider, instance_type, hardware)
    row: dict[str, Any] = dict.fromkeys(column.name for column in OFFER_COLUMNS)
    row.update(
        vcpus=hardware.vcpus,
        vcpus_sustained=sustained_vcpus(provider, instance_type, hardware.vcpus),
        memory_gib=hardware.memory_gib,
        **processor_columns(hardware),
        **accelerator_columns(hardware),
    )
    row.update({n: v for n in _AS_GIVEN if (v := getattr(hardware, n)) is not None})
    row["cpu_accelerator_ratio"] = cpu_accelerator_ratio(row)
    return row


@functools.cache
def known_machine(provider: str, instance_type: str, hardware: Hardware) -> Hardware:
    """The hardware with what the tables of facts know of its type; what is given stands."""
    count = hardware.accelerator_count
    link = machine_link(provider, instance_type, hardware.accelerator, count)
    network = machine_network(provider, instance_type) or Network()
    known: dict[str, Any] = {
        "processor": processor_of(provider, instance_type),
        "cpu_ghz": machine_ghz(provider, instance_type),
        "accelerator_link": link and link[0],
        "network_gbps": network.gbps,
        "network_rdma": network.rdma,
        "local_disk_gb_per_s": machine_disk_gb_per_s(provider, instance_type),
    }
    if link and hardware.accelerator_link in (None, link[0]):
        known["accelerator_link_gb_per_s"] = link[1]
    if hardware.network_rdma in (None, network.rdma):
        known["network_rdma_gbps"] = network.rdma_gbps
    missing = {name: known[name] for name in known if getattr(hardware, name) is None}
    whole = hardware.whole_cores or whole_cores(provider, instance_type)
    return replace(hardware, whole_cores=whole, **missing)


def cpu_accelerator_ratio(row: Mapping[str, Any]) -> float | None:
    """The fp32 rate of the vCPUs over the fp16 rate of all accelerators, or their best without it.

    None without an accelerator, and where either rate is unknown.
    """
    count, cpu = row["accelerator_count"], row["cpu_fp32_tflops"]
    rates = [row[name] for name in RATES if row[name] is not None]
    rate = row["fp16_tflops"] or max(rates, default=None)
    if not count or not cpu or rate is None:
        return None
    return float(f"{cpu / (rate * count):.3g}")


def sustained_vcpus(provider: str, instance_type: str, vcpus: float | None) -> float | None:
    """What of its vCPUs a machine may use without end."""
    share = sustained_share(provider, instance_type)
    return None if vcpus is None else round(vcpus * share, 3)


def processor_columns(hardware: Hardware) -> dict[str, Any]:
    """The columns that follow from the processor.

    The rate is cores x clock x operations per cycle; the bandwidth is the socket's, shared evenly
    by its cores.
    """
    processor = processors().get(hardware.processor or "")
    if processor is None:
        return {"arch": hardware.arch, "cpu_ghz": hardware.cpu_ghz}
    ghz = hardware.cpu_ghz or processor.ghz
    row: dict[str, Any] = {
        "arch": hardware.arch or processor.arch,
        "cpu_model": processor.model,
        "cpu_ghz": ghz,
        "cpu_extensions": ",".join(processor.extensions),
        "vector_bits": processor.vector_bits,
    }
    if hardware.vcpus is None:
        return row
    cores = hardware.vcpus / _threads(processor, hardware)
    if ghz is not None and processor.flops_per_cycle is not None:
        row["cpu_fp32_tflops"] = round(cores * ghz * processor.flops_per_cycle / 1000, 4)
    if processor.socket_cores is not None and processor.socket_gb_per_s is not None:
        share = cores * processor.socket_gb_per_s / processor.socket_cores
        row["cpu_memory_gb_per_s"] = round(share, 2)
    return row


def _threads(processor: Processor, hardware: Hardware) -> int:
    return 1 if hardware.whole_cores else processor.threads_per_core


def accelerator_columns(hardware: Hardware) -> dict[str, Any]:
    """The columns that follow from the accelerator; rates are of a whole one."""
    count = hardware.accelerator_count
    facts = accelerators().get(hardware.accelerator or "")
    row: dict[str, Any] = {"accelerator": hardware.accelerator, "accelerator_count": count}
    memory, usable = hardware.accelerator_memory_gib, hardware.accelerator_usable_gib
    if facts is not None and count:
        part = min(count, 1.0)
        memory = facts.memory_gib * part if memory is None else memory
        if usable is None and facts.usable_gib is not None:
            usable = facts.usable_gib * part
        row.update(fact_columns(facts))
    row["accelerator_memory_gib"] = _rounded(memory)
    row["accelerator_usable_gib"] = _rounded(usable)
    if memory is not None and count:
        row["accelerator_memory_gib_total"] = _rounded(memory * max(count, 1.0))
    return row


def fact_columns(facts: AcceleratorFacts) -> dict[str, Any]:
    """What a model's facts say in the columns of an offer; the link is the machine's, not here."""
    rates = {f"{name}_tflops": facts.tflops.get(name) for name in FORMATS if name != "int8"}
    return {
        **rates,
        "int8_tops": facts.tflops.get("int8"),
        "accelerator_gb_per_s": facts.gb_per_s,
        "accelerator_power_w": facts.power_w,
        "compute_capability": facts.compute_capability,
        "software": ",".join(facts.software),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
