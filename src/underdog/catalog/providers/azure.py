"""Azure: prices by region, hardware by the grammar of the size names and a table of the rest.

``Standard_E32-8ads_v5`` is family E, size 32, 8 of its vCPUs, a (AMD) d (disk) s (premium storage),
version 5.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from underdog.catalog.facts import table
from underdog.catalog.hardware import Hardware, offer_row, price_of
from underdog.catalog.sources import LeftOut, Raw, cheapest, number

_NAME = re.compile(
    r"(?:Standard|Basic)_([A-Z]+)(\d+)(?:-(\d+))?([a-z]*)(?:-(\d+))?((?:_[A-Za-z0-9]+)*)"
)
# Without simultaneous multithreading (Azure VM size pages).
_WHOLE_CORES = re.compile(r"HB.*|HC.*|HX.*|Fa[a-z]*_v[67]|[A-Z]+p[a-z]*_v\d")


class Size(NamedTuple):
    """A size name taken apart; ``whole`` is the size that a constrained one is cut from."""

    family: str  # the name without its number: Eads_v5
    number: int
    vcpus_given: int | None  # of a constrained size
    whole: str  # E32ads_v5


def parse(raw: Raw) -> Iterator[dict[str, Any] | LeftOut]:
    """Offers on demand; what is not a virtual machine's size is left out with the reason."""
    types = {row["instance_type"]: row for row in raw.types}
    for row in cheapest(raw.prices, "azure"):
        if isinstance(row, LeftOut):
            yield row
            continue
        name, region = row["instance"].strip(), row["region"]
        reason = not_a_size(row["instance"])
        if reason is not None:
            yield LeftOut("azure", region, name, reason)
            continue
        missing = "the price table has no price for it"
        price = price_of(row["usd_per_hour_ondemand"], raw.source, raw.date, missing)
        hardware = machine(name, number(types.get(name, {}).get("local_disk_gb")))
        yield offer_row("azure", region, name, "on-demand", hardware, price=price)


def not_a_size(name: str) -> str | None:
    """Why a name of the price table is not a virtual machine's, or None where it is one."""
    if "PLACEHOLDER" in name:
        return "a placeholder in the price table"
    if re.search(r"[ _-](ADH)?Type ?\d$", name):
        return "a dedicated host, not a virtual machine"
    if name.rstrip().endswith(" Win"):
        return "a Windows price"
    if _NAME.fullmatch(name.strip()) is None:
        return "not the name of a virtual machine size"
    return None


def size_of(name: str) -> Size | None:
    """The parts of a size name, or None where it is none."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    letters, digits, before, suffix, after, rest = found.groups()
    rest = rest.removesuffix("_Promo")
    given = before or after
    return Size(
        family=f"{letters}{suffix}{rest}",
        number=int(digits),
        vcpus_given=int(given) if given else None,
        whole=f"{letters}{digits}{suffix}{rest}",
    )


@functools.cache
def machine(name: str, local_disk_gb: float | None = None) -> Hardware:
    """The hardware of a size; what its name does not tell with certainty is unknown."""
    size = size_of(name)
    if size is None:
        return Hardware(accelerator_count=None)
    accelerated = table("azure.toml")["accelerated"].get(size.whole)
    if accelerated is not None:
        memory, accelerator, count, processor = accelerated
        return Hardware(
            vcpus=float(size.number),
            memory_gib=memory,
            arch="arm64" if processor == "grace" else "x86_64",
            processor=processor,
            accelerator=accelerator,
            accelerator_count=count,
            local_disk_gb=local_disk_gb,
        )
    vcpus, memory = _shape(size)
    arm = re.match(r"[A-Z]+p", size.family) is not None
    special = not re.match(r"(A|B|D|DC|DS|E|EC|F|FX|G|GS|H|HB|HC|HX|L|M)(?![A-Z])", size.family)
    return Hardware(
        vcpus=vcpus,
        memory_gib=memory,
        arch=None if special else "arm64" if arm else "x86_64",
        processor=_processor(size.family),
        whole_cores=_WHOLE_CORES.fullmatch(size.family) is not None,
        accelerator_count=None if special else 0,
        local_disk_gb=local_disk_gb,
    )


def _shape(size: Size) -> tuple[float | None, float | None]:
    """vCPUs and GiB, each None where the name does not tell."""
    tables = table("azure.toml")
    plain = re.sub(r"^([DG])S(\d)", r"\1\2", size.whole)
    if plain in tables["numbered"]:
        vcpus, memory = tables["numbered"][plain]
        return float(size.vcpus_given or vcpus), float(memory)
    if not re.match(r"(B|D|DC|E|EC|F|FX|H|HB|HC|HX|L|M|N[A-Z]+)(?![A-Z])", size.family):
        return None, None
    vcpus = float(size.vcpus_given or size.number)
    memory = tables["memory_gib"].get(size.whole)
    if memory is None:
        for rule in tables["per_vcpu"]:
            if re.fullmatch(rule["pattern"], size.family) and size.number <= rule["most"]:
                return vcpus, float(rule["gib"] * size.number)
        return vcpus, None
    return vcpus, float(memory)


def _processor(family: str) -> str | None:
    for rule in table("azure.toml")["processor"]:
        if re.fullmatch(rule["pattern"], family):
            return str(rule["name"])
    return None
