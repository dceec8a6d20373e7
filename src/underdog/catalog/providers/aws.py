"""AWS: prices of one region and the EC2 API's instance types, whose faults are mended here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from underdog.catalog.facts import (
    accelerator_named,
    accelerators,
    part_of,
    processor_of_family,
    whole_core_families,
)
from underdog.catalog.hardware import Hardware, offer_row, price_of
from underdog.catalog.sources import LeftOut, Raw, Row, cheapest, number
from underdog.model import Price
from underdog.units import GIB, MIB

# Types that the API's table lacks or gives no accelerator for (AWS instance pages).
# name: vCPUs, GiB, accelerator, count; None where the API gives it
_ACCELERATED: dict[str, tuple[float | None, float | None, str | None, float]] = {
    "p2.xlarge": (4, 61, "K80", 1),
    "p2.8xlarge": (32, 488, "K80", 8),
    "p2.16xlarge": (64, 732, "K80", 16),
    "p3.2xlarge": (8, 61, "V100-16GB", 1),
    "p3.8xlarge": (32, 244, "V100-16GB", 4),
    "p3.16xlarge": (64, 488, "V100-16GB", 8),
    "g2.2xlarge": (8, 15, "K520", 1),
    "g2.8xlarge": (32, 60, "K520", 4),
    "g3s.xlarge": (4, 30.5, "M60", 1),
    "g3.4xlarge": (16, 122, "M60", 1),
    "g3.8xlarge": (32, 244, "M60", 2),
    "g3.16xlarge": (64, 488, "M60", 4),
    "g4ad.xlarge": (4, 16, "V520", 1),
    "g4ad.2xlarge": (8, 32, "V520", 1),
    "g4ad.4xlarge": (16, 64, "V520", 1),
    "g4ad.8xlarge": (32, 128, "V520", 2),
    "g4ad.16xlarge": (64, 256, "V520", 4),
    "dl1.24xlarge": (96, 768, "Gaudi", 8),
    "f1.2xlarge": (8, 122, "FPGA-VU9P", 1),
    "f1.4xlarge": (16, 244, "FPGA-VU9P", 2),
    "f1.16xlarge": (64, 976, "FPGA-VU9P", 8),
    "f2.6xlarge": (None, None, "FPGA-VU47P", 1),
    "f2.12xlarge": (None, None, "FPGA-VU47P", 2),
    "f2.48xlarge": (None, None, "FPGA-VU47P", 8),
    "vt1.3xlarge": (None, None, "Alveo-U30", 1),
    "vt1.6xlarge": (None, None, "Alveo-U30", 2),
    "vt1.24xlarge": (None, None, "Alveo-U30", 8),
    "trn2u.48xlarge": (None, None, "Trainium2", 16),
    "cr1.8xlarge": (32, 244, None, 0),
    "i3.metal": (72, 512, None, 0),
    "u-9tb1.112xlarge": (448, 9216, None, 0),
    "u-12tb1.112xlarge": (448, 12288, None, 0),
    "u-18tb1.112xlarge": (448, 18432, None, 0),
    "u-24tb1.112xlarge": (448, 24576, None, 0),
}
# The API calls some accelerators by their maker's name only.
_BY_FAMILY = {"p5e": "H200", "p5en": "H200", "p6-b200": "B200", "p6-b300": "B300"}
_CAPACITY_BLOCKS_ONLY = frozenset({"p5e", "p5en", "trn2", "trn2u"})


def parse(raw: Raw) -> Iterator[dict[str, Any] | LeftOut]:
    """Offers of a price table and a table of instance types; types without a price too."""
    hardware: dict[str, Hardware] = {}
    for row in raw.types:
        found = machine(row)
        if isinstance(found, LeftOut):
            yield found
        hardware[row["instance_type"]] = (
            Hardware(accelerator_count=None) if isinstance(found, LeftOut) else found
        )
    for name, (vcpus, memory, accelerator, count) in _ACCELERATED.items():
        if vcpus is not None:
            hardware.setdefault(name, _listed(name, vcpus, memory, accelerator, count))
    priced: set[str] = set()
    for price_row in cheapest(raw.prices, "aws"):
        if isinstance(price_row, LeftOut):
            yield price_row
            continue
        name = price_row["instance"].strip()
        priced.add(name)
        text = price_row["usd_per_hour_ondemand"]
        price = price_of(text, raw.source, raw.date, "the price table has no price for it")
        known = hardware.get(name, Hardware(accelerator_count=None))
        yield offer_row("aws", price_row["region"], name, "on-demand", known, price=price)
    for name in sorted(hardware.keys() - priced):
        yield _unpriced(name, hardware[name], raw)


def _unpriced(name: str, hardware: Hardware, raw: Raw) -> dict[str, Any]:
    blocks = family_of(name) in _CAPACITY_BLOCKS_ONLY
    reason = (
        "sold as capacity blocks, reserved in advance, without a list price"
        if blocks
        else "the price table has no price for it"
    )
    price = Price(unknown_reason=reason, source=raw.source, date=raw.date)
    purchase = "reserved" if blocks else "on-demand"
    return offer_row("aws", "unknown", name, purchase, hardware, price=price)


def family_of(name: str) -> str:
    """``g5`` of ``g5.xlarge``."""
    return name.partition(".")[0]


def machine(row: Row) -> Hardware | LeftOut:
    """The hardware of a row of the EC2 API's table, its known faults mended."""
    name = row["instance_type"]
    family = family_of(name)
    accelerator, part = _accelerator(row)
    count = number(row["api_accelerator_count"]) or 0.0
    memory_mib = number(row["api_accelerator_memory_mib"])
    if name in _ACCELERATED:
        _, _, accelerator, count = _ACCELERATED[name]
    elif accelerator is None and (count or memory_mib):
        return LeftOut("aws", "", name, "the API gives an accelerator without a known name")
    elif part is not None:
        count = part
    usable = None
    if part is not None and accelerator is not None:
        # the driver of a virtual GPU reports its share of the nominal memory
        usable = accelerators()[accelerator].memory_gib * part
    ghz = number(row["cpu_ghz"])
    return Hardware(
        vcpus=number(row["vcpus"]),
        memory_gib=number(row["memory_gib"]),
        arch="arm64" if row["arch"].startswith("arm64") else "x86_64",
        processor=processor_of_family("aws").get(family),
        cpu_ghz=ghz,
        whole_cores=family in whole_core_families("aws"),
        accelerator=accelerator,
        accelerator_count=count,
        accelerator_usable_gib=usable,
        network_gbps=network_gbps(row["network"]),
        local_disk_gb=float(row["local_disk_gb"]) if row["local_disk_gb"] else None,
    )


def _listed(
    name: str, vcpus: float, memory: float | None, accelerator: str | None, count: float
) -> Hardware:
    return Hardware(
        vcpus=vcpus,
        memory_gib=memory,
        arch="x86_64",
        processor=processor_of_family("aws").get(family_of(name)),
        accelerator=accelerator,
        accelerator_count=count,
    )


def _accelerator(row: Row) -> tuple[str | None, float | None]:
    """The model, and the part of one where it is less than one.

    The API gives the memory of one, or of all together, or of the part; and a part has the count
    0 or 1. Which of these it is follows from the nominal memory of the model.
    """
    name, mib = row["api_accelerator"], number(row["api_accelerator_memory_mib"])
    count = number(row["api_accelerator_count"]) or 0.0
    family = family_of(row["instance_type"])
    if name in ("NVIDIA", "") and mib:
        name = _BY_FAMILY.get(family, "")
    each = mib and mib * MIB / GIB
    named = accelerator_named(name, each) or accelerator_named(name, each and each / max(count, 1))
    if named is None:
        return None, None
    if each is None or count > 1:
        return named.key, None
    return named.key, part_of(accelerators()[named.key], each)


def network_gbps(text: str) -> float | None:
    """Sustained Gbit/s of ``25 Gigabit`` or ``4x 100 Gigabit``; a burst ("Up to …") is none."""
    found = re.fullmatch(r"(?:(\d+)x )?([\d.]+) Gigabit", text)
    return float(found[1] or 1) * float(found[2]) if found else None
