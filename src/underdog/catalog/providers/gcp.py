"""Google Cloud: prices by region with spot, machine types, accelerators by the name of the type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from underdog.catalog.facts import processor_of_family, whole_core_families
from underdog.catalog.hardware import Hardware, offer_row, price_of
from underdog.catalog.sources import LeftOut, Raw, Row, cheapest, number
from underdog.model import Price

# The accelerator of a series; its number is the one before "g" (GPU) or "t" (TPU chip) in the name.
_BY_NAME = (
    (r"a2-(?:highgpu|megagpu)-(\d+)g", "A100-40GB"),
    (r"a2-ultragpu-(\d+)g", "A100-80GB"),
    (r"a3-(?:highgpu|megagpu|edgegpu)-(\d+)g", "H100"),
    (r"a3-ultragpu-(\d+)g", "H200"),
    (r"a4-highgpu-(\d+)g", "B200"),
    (r"a4x-highgpu-(\d+)g", "GB200"),
    (r"a4x-maxgpu-(\d+)g", "GB300"),
    (r"ct3p?-hightpu-(\d+)t", "TPU-v3"),
    (r"ct5lp?-hightpu-(\d+)t", "TPU-v5e"),
    (r"ct5p-hightpu-(\d+)t", "TPU-v5p"),
    (r"ct6e-standard-(\d+)t", "TPU-v6e"),
    (r"tpu7x-standard-(\d+)t", "TPU-v7"),
)
# In these series the number in the name is of vCPUs (Compute Engine, GPU machine types).
_BY_VCPUS: dict[str, tuple[str, dict[int, float]]] = {
    "g2-standard": ("L4", {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8}),
    "g4-standard": (
        "RTX-PRO-6000",
        {6: 1 / 8, 12: 1 / 4, 24: 1 / 2, 48: 1, 96: 2, 192: 4, 384: 8},
    ),
}
_ACCELERATED_SERIES = frozenset({"a2", "a3", "a4", "a4x", "g2", "g4", "tpu7x"})


def parse(raw: Raw) -> Iterator[dict[str, Any] | LeftOut]:
    """Offers on demand and spot, and the types without a price."""
    hardware = {row["instance_type"]: machine(row) for row in raw.types}
    priced: set[str] = set()
    for row in cheapest(raw.prices, "gcp"):
        if isinstance(row, LeftOut):
            yield row
            continue
        name, region = row["instance"].strip(), row["region"]
        priced.add(name)
        known = hardware.get(name, Hardware(accelerator_count=None))
        for purchase, text in (
            ("on-demand", row["usd_per_hour_ondemand"]),
            ("spot", row["usd_per_hour_spot"]),
        ):
            missing = f"the price table has no {purchase} price for it"
            price = price_of(text, raw.source, raw.date, missing)
            yield offer_row("gcp", region, name, purchase, known, price=price)
    for name in sorted(hardware.keys() - priced):
        reason = "the price table has no price for it"
        price = Price(unknown_reason=reason, source=raw.source, date=raw.date)
        yield offer_row("gcp", "unknown", name, "on-demand", hardware[name], price=price)


def machine(row: Row) -> Hardware:
    """The hardware of a machine type."""
    name = row["instance_type"]
    series = name.partition("-")[0]
    accelerator, count = accelerator_of(name)
    processor = processor_of_family("gcp").get(series)
    arm = processor in ("altra", "axion", "grace") or series in ("n4a", "c4a", "t2a", "a4x")
    return Hardware(
        vcpus=number(row["vcpus"]),
        memory_gib=number(row["memory_gib"]),
        arch="arm64" if arm else "x86_64",
        processor=processor,
        whole_cores=series in whole_core_families("gcp"),
        accelerator=accelerator,
        accelerator_count=count,
    )


def accelerator_of(name: str) -> tuple[str | None, float | None]:
    """The accelerator in a machine type's name and its number; the number is None if unknown."""
    for pattern, accelerator in _BY_NAME:
        found = re.match(pattern, name)
        if found:
            return accelerator, float(found[1])
    shape, _, vcpus = name.rpartition("-")
    if shape in _BY_VCPUS and vcpus.isdigit():
        accelerator, counts = _BY_VCPUS[shape]
        if int(vcpus) in counts:
            return accelerator, counts[int(vcpus)]
    series = name.partition("-")[0]
    unknown = series in _ACCELERATED_SERIES or series.startswith("ct")
    return None, None if unknown else 0.0
