"""The hardware of an instance type as the EC2 API tells it, its known faults mended."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

from underdog.catalog.facts import (
    accelerator_named,
    accelerators,
    part_of,
    table,
)
from underdog.catalog.hardware import Hardware
from underdog.catalog.providers.aws.shapes import Attributes, Device, InstanceType, Memory
from underdog.catalog.sources import number
from underdog.units import GIB, MIB

NAMELESS = "the API gives an accelerator without a known name"
UNSAID = "the API gives no accelerator for a family that has one"
UNCOUNTED = "the API gives an accelerator without a count"
# the families that are made around an accelerator: P, G, Inf, Trn, DL, VT and F
_ACCELERATED = re.compile(r"(p|g|gr|inf|trn|dl|vt|f)\d")


@dataclass(frozen=True, slots=True)
class Machine:
    """The hardware of a type, how it is sold, and why its accelerator is unknown if it is."""

    hardware: Hardware
    usage: frozenset[str] = frozenset()
    doubt: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """An accelerator: its model, how many, the memory of each as said, what is doubted."""

    key: str | None = None
    count: float | None = 0.0
    memory_source_gib: float | None = None
    doubt: str | None = None


def family_of(name: str) -> str:
    """``g5`` of ``g5.xlarge`` and of ``ml.g5.xlarge``."""
    return name.removeprefix("ml.").partition(".")[0]


def is_mac(item: InstanceType) -> bool:
    """Whether it is a Mac, which runs no Linux."""
    architectures = (item.processor_info and item.processor_info.supported_architectures) or []
    return any(name.endswith("_mac") for name in architectures)


def machine(item: InstanceType) -> Machine:
    """The machine of an item of DescribeInstanceTypes."""
    found = _accelerator(item)
    usage = frozenset(item.supported_usage_classes or ())
    processor = item.processor_info
    ghz = processor and processor.sustained_clock_speed_in_ghz
    architectures = (processor and processor.supported_architectures) or []
    hardware = Hardware(
        vcpus=number(item.vcpu_info and item.vcpu_info.vcpus),
        memory_gib=_gib(item.memory_info),
        arch=_architecture(architectures),
        cpu_ghz=number(ghz),
        whole_cores=_whole_cores(item),
        accelerator=found.key,
        accelerator_count=found.count,
        accelerator_usable_gib=_usable_of_part(found),
        accelerator_memory_source_gib=_rounded(found.memory_source_gib),
        **_network(item),
        **_disk(item),
    )
    return Machine(hardware, usage, found.doubt)


def retired() -> dict[str, Machine]:
    """The types that are still sold and that the API lists no more."""
    known: dict[str, list[float]] = table("aws.toml")["retired"]
    return {
        name: _listed(name, vcpus, memory, "x86_64", _unsaid(name))
        for name, (vcpus, memory) in known.items()
    }


def from_price_list(name: str, said: Attributes) -> Machine:
    """The machine of a type that only the price list knows."""
    memory = re.match(r"([\d,.]+) GiB", said.memory or "")
    gib = number(memory[1].replace(",", "")) if memory else None
    found, gpus = _unsaid(name), number(said.gpu)
    if gpus and found.count is None:
        key = table("aws.toml")["accelerator"].get(family_of(name))
        found = _Found(key, gpus) if key else _Found(None, None, None, NAMELESS)
    elif gpus and found.key is None:
        found = _Found(None, None, None, NAMELESS)
    arch = "arm64" if "Graviton" in (said.physical_processor or "") else None
    return _listed(name, number(said.vcpu), gib, arch, found)


def _listed(
    name: str, vcpus: float | None, memory: float | None, arch: str | None, found: _Found
) -> Machine:
    hardware = Hardware(
        vcpus=vcpus,
        memory_gib=memory,
        arch=arch,
        accelerator=found.key,
        accelerator_count=found.count,
    )
    return Machine(hardware, doubt=found.doubt)


def _accelerator(item: InstanceType) -> _Found:
    gpus = item.gpu_info and item.gpu_info.devices
    others = (
        item.neuron_info,
        item.inference_accelerator_info,
        item.fpga_info,
        item.media_accelerator_info,
    )
    devices = gpus or next((info.devices for info in others if info and info.devices), None)
    if not devices:
        return _unsaid(item.instance_type)
    if len({device.name for device in devices}) > 1:
        return _Found(None, None, None, "the API gives accelerators of several models")
    return _mended(item.instance_type, devices, gpu=bool(gpus))


def _unsaid(name: str) -> _Found:
    """The accelerator of a type of which the API says none."""
    family = family_of(name)
    key, count = table("aws.toml")["accelerator"].get(family), _count_of(name)
    if key is None:
        return _Found(None, None, None, UNSAID) if _ACCELERATED.match(family) else _Found()
    return _Found(None, None, None, UNCOUNTED) if count is None else _Found(key, count)


def _count_of(name: str) -> float | None:
    return number(table("aws.toml")["count"].get(name))


def _mended(name: str, devices: list[Device], *, gpu: bool) -> _Found:
    """The model and its count.

    The API gives the memory of one, or of all together, or of the part; a part has the count 0 or
    1; a board of two chips may count as one. Which of these it is follows from the nominal memory
    of the model.
    """
    count = sum(number(device.count) or 0.0 for device in devices)
    first = devices[0]
    each = _gib(first.memory_info)
    key = _model(name, first.name or "", each, max(count, 1.0))
    if key is None:
        return _Found(None, None, each, NAMELESS)
    part = _part(key, first, each, count) if gpu else None
    if part is not None and (number(first.logical_gpu_count) or 1.0) > 1:
        return _Found(None, None, each, "the API gives several parts of an accelerator")
    if part is not None:
        return _Found(key, part, each)
    count *= _chips(key, each)
    count = count or _count_of(name) or 0.0
    return _Found(key, count, each) if count else _Found(None, None, each, UNCOUNTED)


def _model(name: str, said: str, each: float | None, count: float) -> str | None:
    of_family: str | None = table("aws.toml")["accelerator"].get(family_of(name))
    if of_family is not None:
        hinted = accelerator_named(said, accelerators()[of_family].memory_gib)
        if hinted is not None and hinted.key == of_family:
            return of_family
    named = accelerator_named(said, each) or accelerator_named(said, each and each / count)
    return named.key if named else of_family


def _part(key: str, device: Device, each: float | None, count: float) -> float | None:
    said = number(device.gpu_partition_size)
    if said is not None and said < 1:
        return said
    if each is None or count > 1:
        return None
    return part_of(accelerators()[key], each)


def _chips(key: str, each: float | None) -> float:
    """Chips in what the API counts as one: by their memory, where the model has such boards."""
    chips = float(table("aws.toml")["chips"].get(key, 1))
    board = chips * accelerators()[key].memory_gib
    return chips if each is not None and math.isclose(each, board, rel_tol=0.1) else 1.0


def _usable_of_part(found: _Found) -> float | None:
    # the driver of a virtual GPU reports its share of the nominal memory
    if found.key is None or found.count is None or not 0 < found.count < 1:
        return None
    return accelerators()[found.key].memory_gib * found.count


def _gib(memory: Memory | None) -> float | None:
    found = number(memory.size_mib) if memory else None
    return found and found * MIB / GIB


def _rounded(gib: float | None) -> float | None:
    return None if gib is None else round(gib, 3)


def _architecture(said: list[str]) -> str | None:
    if not said:
        return None
    return "arm64" if any(name.startswith("arm64") for name in said) else "x86_64"


def _whole_cores(item: InstanceType) -> bool:
    said = item.vcpu_info
    # a machine of one vCPU says one thread of necessity
    return bool(said and said.threads_per_core == 1 and (said.vcpus or 0) > 1)


def _network(item: InstanceType) -> dict[str, Any]:
    said = item.network_info
    if said is None:
        return {}
    cards = said.network_cards or []
    bandwidths = [number(card.baseline_bandwidth_in_gbps) for card in cards]
    # a card of several is often said to have the bandwidth of all, so the text goes first
    gbps = network_gbps(said.network_performance or "")
    if gbps is None and bandwidths and None not in bandwidths:
        gbps = sum(one for one in bandwidths if one is not None)
    if not said.efa_supported:
        return {"network_gbps": gbps}
    able = sum(1 for card in cards if "efa" in (card.interface_types or ())) or len(cards) or 1
    most = number(said.efa_info and said.efa_info.maximum_efa_interfaces) or able
    share = min(most / able, 1.0)
    return {
        "network_gbps": gbps,
        "network_rdma": "efa",
        "network_rdma_gbps": None if gbps is None else gbps * share,
    }


def network_gbps(text: str) -> float | None:
    """Sustained Gbit/s of ``25 Gigabit`` or ``4x 100 Gigabit``; a burst ("Up to …") is none."""
    found = re.fullmatch(r"(?:(\d+)x )?(\d+(?:\.\d+)?) Gigabit", text)
    return number(float(found[1] or 1) * float(found[2])) if found else None


def _disk(item: InstanceType) -> dict[str, Any]:
    said = item.instance_storage_info
    size = number(said and said.total_size_gb)
    if said is None or size is None:
        return {"local_disk_gb": 0.0 if item.instance_storage_supported is False else None}
    kinds = {disk.type for disk in said.disks or ()}
    kind = kinds.pop() if len(kinds) == 1 else None
    if kind == "ssd" and said.nvme_support in ("required", "supported"):
        kind = "nvme"
    return {"local_disk_gb": size, "local_disk_kind": kind}
