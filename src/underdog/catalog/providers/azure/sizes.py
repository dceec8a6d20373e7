"""Azure's sizes: hardware by the grammar of the names and a table of what they do not tell.

``Standard_E32-8ads_v5`` is family E, size 32, 8 of its vCPUs, a (AMD) d (disk) s (premium storage),
version 5.
"""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

from underdog.catalog.facts import table
from underdog.catalog.hardware import Hardware
from underdog.units import GB, GIB

_NAME = re.compile(
    r"(?:Standard|Basic)_([A-Z]+)(\d+)(?:-(\d+))?([a-z]*(?:G\d)?)(?:-(\d+))?((?:_[A-Za-z0-9]+)*)"
)
# Without simultaneous multithreading (Azure VM size pages).
_WHOLE_CORES = re.compile(r"HB.*|HC.*|HX.*|Fa[a-z]*_v[67]|[A-Z]+p[a-z]*_v\d")
_PLAIN = re.compile(r"(A|B|D|DC|DS|E|EC|F|FX|G|GS|H|HB|HC|HX|L|M)(?![A-Z])")
_NUMBER_IS_VCPUS = re.compile(r"(B|D|DC|E|EC|F|FX|H|HB|HC|HX|L|M|N[A-Z]+)(?![A-Z])")


class Size(NamedTuple):
    """A size name taken apart; ``whole`` is the size that a constrained one is cut from."""

    family: str  # the name without its number: Eads_v5
    number: int
    vcpus_given: int | None  # of a constrained size
    whole: str  # E32ads_v5


@functools.cache
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
def machine(name: str) -> Hardware:
    """The hardware of a size; what its name does not tell with certainty is unknown."""
    size = size_of(name)
    if size is None:
        return Hardware(accelerator_count=None)
    accelerated = table("azure.toml")["accelerated"].get(size.whole)
    if accelerated is not None:
        return _accelerated(size, accelerated)
    vcpus, memory = _shape(size)
    arm = re.match(r"[A-Z]+p", size.family) is not None
    plain = _PLAIN.match(size.family) is not None
    infiniband = _first(table("azure.toml")["infiniband_gbps"].items(), size.family)
    return Hardware(
        vcpus=vcpus,
        memory_gib=memory,
        arch=None if not plain else "arm64" if arm else "x86_64",
        processor=_processor(size.family),
        whole_cores=_WHOLE_CORES.fullmatch(size.family) is not None,
        accelerator_count=0 if plain else None,
        network_gbps=_network_gbps(size),
        network_rdma=None if infiniband is None else "infiniband",
        network_rdma_gbps=infiniband,
        **_disk(size),
    )


def _accelerated(size: Size, row: dict[str, Any]) -> Hardware:
    """The hardware of a row of the table; a size without an "r" has no InfiniBand."""
    disk_gb = row.get("disk_gb")
    if disk_gb is None and "disk_gib" in row:
        disk_gb = _gb(row["disk_gib"])
    return Hardware(
        vcpus=float(size.vcpus_given or size.number),
        memory_gib=float(row["gib"]),
        arch="arm64" if row["cpu"] == "grace" else "x86_64",
        processor=row["cpu"],
        accelerator=row["chip"],
        accelerator_count=float(row["count"]),
        network_gbps=row.get("gbps"),
        network_rdma="infiniband" if "infiniband_gbps" in row else None,
        network_rdma_gbps=row.get("infiniband_gbps"),
        local_disk_gb=disk_gb,
        local_disk_kind=row.get("disk"),
    )


def _shape(size: Size) -> tuple[float | None, float | None]:
    """vCPUs and GiB, each None where the name does not tell."""
    tables = table("azure.toml")
    plain = re.sub(r"^([DG])S(\d)", r"\1\2", size.whole)
    if plain in tables["numbered"]:
        vcpus, memory = tables["numbered"][plain]
        return float(size.vcpus_given or vcpus), float(memory)
    if not _NUMBER_IS_VCPUS.match(size.family):
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
    rules = ((rule["pattern"], rule["name"]) for rule in table("azure.toml")["processor"])
    found: str | None = _first(rules, family)
    return found


def _network_gbps(size: Size) -> float | None:
    for rule in table("azure.toml")["network"]:
        gbps = rule["gbps"].get(str(size.number))
        if gbps is not None and re.fullmatch(rule["pattern"], size.family):
            return float(gbps)
    return None


def _disk(size: Size) -> dict[str, Any]:
    """The columns of the local disk; none where neither the name nor the table tells."""
    older = table("azure.toml")["disk_gib"].get(size.whole)
    if older is not None:
        return {"local_disk_gb": _gb(older)}
    known = _first(table("azure.toml")["disk_gb"].items(), size.family)
    if known is not None:
        return {"local_disk_gb": float(known[0]), "local_disk_kind": known[1]}
    for rule in table("azure.toml")["disk"]:
        if size.number <= rule["most"] and re.fullmatch(rule["pattern"], size.family):
            if not rule["gib"]:
                return {"local_disk_gb": 0.0}
            read = rule.get("read")
            return {
                "local_disk_gb": _gb(rule["gib"] * size.number),
                "local_disk_kind": rule["kind"],
                "local_disk_gb_per_s": read
                and round(min(read * size.number, rule.get("most_read", float("inf"))), 3),
            }
    return {}


def _gb(gib: float) -> float:
    return round(gib * GIB / GB, 1)


def _first(rules: Any, family: str) -> Any:
    """What the first rule says whose pattern is all of a family's name; None without one."""
    return next((found for pattern, found in rules if re.fullmatch(pattern, family)), None)
