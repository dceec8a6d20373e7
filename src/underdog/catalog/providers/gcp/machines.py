"""Google Cloud's machine types: hardware by the API's own figures, the name, and ``gcp.toml``."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from underdog.catalog.facts import (
    accelerator_named,
    processor_of_family,
    table,
    whole_core_families,
)
from underdog.catalog.hardware import Hardware
from underdog.catalog.providers._reading import optional_list, optional_text
from underdog.catalog.sources import LeftOut, mapping, number, text
from underdog.units import GB, GIB

# The accelerator of a series; its number is the one before "g" (GPU) or "t" (TPU chip) in the name.
_BY_NAME = (
    (r"a2-(?:highgpu|megagpu)-(\d+)g", "nvidia-tesla-a100"),
    (r"a2-ultragpu-(\d+)g", "nvidia-a100-80gb"),
    (r"a3-(?:highgpu|edgegpu)-(\d+)g", "nvidia-h100-80gb"),
    (r"a3-megagpu-(\d+)g", "nvidia-h100-mega-80gb"),
    (r"a3-ultragpu-(\d+)g", "nvidia-h200-141gb"),
    (r"a4-highgpu-(\d+)g", "nvidia-b200"),
    (r"a4x-highgpu-(\d+)g", "nvidia-gb200"),
    (r"a4x-maxgpu-(\d+)g", "nvidia-gb300"),
)
_TPU = (
    (r"ct2-hightpu-(\d+)t", "TPU-v2"),
    (r"ct3p?-hightpu-(\d+)t", "TPU-v3"),
    (r"ct4p-hightpu-(\d+)t", "TPU-v4"),
    (r"ct5lp?-hightpu-(\d+)t", "TPU-v5e"),
    (r"ct5p-hightpu-(\d+)t", "TPU-v5p"),
    (r"ct6e-standard-(\d+)t", "TPU-v6e"),
    (r"tpu7x-standard-(\d+)t", "TPU-v7"),
)
# In these series the number in the name is of vCPUs (Compute Engine, GPU machine types).
_BY_VCPUS: dict[str, tuple[str, dict[int, float]]] = {
    "g2-standard": ("nvidia-l4", {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8}),
    "g4-standard": (
        "nvidia-rtx-pro-6000",
        {6: 1 / 8, 12: 1 / 4, 24: 1 / 2, 48: 1, 96: 2, 192: 4, 384: 8},
    ),
}
_ACCELERATED_SERIES = frozenset({"a2", "a3", "a4", "a4x", "g2", "g4", "tpu7x"})
# With a disk by their name, or of series whose disks are not documented.
_SSD_UNKNOWN = re.compile(r".*(?<!no)lssd.*|a4x?-.*|ct\d.*|tpu.*")


class Machine(NamedTuple):
    """A machine type, and what of it is billed: the accelerator's own name and the GiB of SSD."""

    name: str
    hardware: Hardware
    accelerator_type: str | None = None  # nvidia-l4, or TPU-v5e
    local_ssd_gib: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Fitted:
    """The accelerator of a machine type; the number is None where it is not known."""

    type: str | None
    model: str | None
    count: float | None


def machine_of(item: Any, where: str) -> Machine | LeftOut:
    """The machine type of an item of ``machineTypes`` of the Compute Engine API.

    Raises:
        CatalogError: a field has the wrong shape.
    """
    row = mapping(item, where)
    name = text(row.get("name"), f"{where}.name")
    state = mapping(row.get("deprecated") or {}, f"{where}.deprecated").get("state")
    if state in ("OBSOLETE", "DELETED"):
        return LeftOut("gcp", "", name, "a machine type that is gone")
    fitted = _fitted(row, where, name)
    if fitted.type is not None and fitted.model is None:
        return LeftOut("gcp", "", name, f"an accelerator of unknown name, '{fitted.type}'")
    memory = number(row.get("memoryMb"))
    gib = _local_ssd_gib(name, row, where)
    series = name.partition("-")[0]
    processor = processor_of_family("gcp").get(series)
    hardware = Hardware(
        vcpus=number(row.get("guestCpus")),
        memory_gib=None if memory is None else round(memory / 1024, 3),
        arch=_arch(optional_text(row.get("architecture"), f"{where}.architecture"), series),
        processor=processor,
        whole_cores=series in whole_core_families("gcp"),
        accelerator=fitted.model,
        accelerator_count=fitted.count,
        **_disk(gib),
        network_gbps=_first(table("gcp.toml")["network_gbps"], name),
    )
    return Machine(name, hardware, fitted.type, gib)


def with_accelerators(machine: Machine, accelerator_type: str, count: int) -> Machine:
    """An N1 machine with accelerators attached: ``n1-standard-8+1xT4``."""
    model = table("gcp.toml")["accelerator"][accelerator_type][0]
    hardware = Hardware(
        vcpus=machine.hardware.vcpus,
        memory_gib=machine.hardware.memory_gib,
        arch=machine.hardware.arch,
        processor=machine.hardware.processor,
        accelerator=model,
        accelerator_count=float(count),
        local_disk_gb=0.0,
    )
    short = model.partition("-")[0]
    return Machine(f"{machine.name}+{count}x{short}", hardware, accelerator_type)


def takes(machine: Machine, accelerator_type: str, count: int) -> bool:
    """Whether the provider sells a machine with so many accelerators attached."""
    limits = table("gcp.toml")["attached"].get(accelerator_type, {}).get(str(count))
    hardware = machine.hardware
    if limits is None or hardware.vcpus is None or hardware.memory_gib is None:
        return False
    general = re.fullmatch(r"n1-(standard|highmem|highcpu)-\d+", machine.name) is not None
    fits: bool = hardware.vcpus <= limits[0] and hardware.memory_gib <= limits[1]
    return general and fits


def accelerator_of(name: str) -> tuple[str | None, float | None]:
    """The accelerator in a machine type's name and its number; the number is None if unknown."""
    found = _by_name(name)
    return found.model, found.count


@functools.cache
def _by_name(name: str) -> Fitted:
    for pattern, kind in _BY_NAME:
        if found := re.match(pattern, name):
            return Fitted(kind, _model(kind), float(found[1]))
    for pattern, model in _TPU:
        if found := re.match(pattern, name):
            return Fitted(model, model, float(found[1]))
    shape, _, vcpus = name.rpartition("-")
    if shape in _BY_VCPUS and vcpus.isdecimal():
        kind, counts = _BY_VCPUS[shape]
        if int(vcpus) in counts:
            return Fitted(kind, _model(kind), counts[int(vcpus)])
    series = name.partition("-")[0]
    unknown = series in _ACCELERATED_SERIES or series.startswith("ct")
    return Fitted(None, None, None if unknown else 0.0)


def _fitted(row: Mapping[str, Any], where: str, name: str) -> Fitted:
    """What the API says is fitted; a part of one, which it counts as one, by the name."""
    by_name = _by_name(name)
    given = optional_list(row.get("accelerators"), f"{where}.accelerators")
    part = by_name.count is not None and 0 < by_name.count < 1
    if not given or part:
        return by_name
    first = mapping(given[0], f"{where}.accelerators[0]")
    kind = text(first.get("guestAcceleratorType"), f"{where}.guestAcceleratorType")
    count = number(first.get("guestAcceleratorCount"))
    model = _model(kind) or by_name.model
    return Fitted(by_name.type or kind, model, count if count is not None else by_name.count)


def _model(kind: str) -> str | None:
    known = table("gcp.toml")["accelerator"].get(kind)
    if known is not None:
        return str(known[0])
    named = accelerator_named(kind)
    return None if named is None else named.key


def _arch(given: str, series: str) -> str:
    if given:
        return "arm64" if given.upper() == "ARM64" else "x86_64"
    return "arm64" if series in ("a4x", "c4a", "n4a", "t2a") else "x86_64"


def _local_ssd_gib(name: str, row: Mapping[str, Any], where: str) -> float | None:
    """The local SSD that is part of the machine, GiB; None where there is one of unknown size."""
    known = _first(table("gcp.toml")["local_ssd"], name)
    if known is not None:
        return float(known)
    bundled = mapping(row.get("bundledLocalSsds") or {}, f"{where}.bundledLocalSsds")
    partitions = number(bundled.get("partitionCount"))
    if partitions is not None:
        return 375 * partitions
    return None if _SSD_UNKNOWN.fullmatch(name) else 0.0


def _disk(gib: float | None) -> dict[str, Any]:
    if not gib:
        return {"local_disk_gb": gib}
    return {"local_disk_gb": round(gib * GIB / GB, 1), "local_disk_kind": "nvme"}


def _first(rules: Mapping[str, Any], name: str) -> Any:
    return next((found for pattern, found in rules.items() if re.fullmatch(pattern, name)), None)
