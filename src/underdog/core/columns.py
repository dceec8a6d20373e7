"""The columns of an offer: the closed list that ``--where`` and ``--by`` may use.

The bundled snapshot, an offers file and ``offers --json`` have these names. An unknown is NULL:
it satisfies no condition and never wins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from underdog.errors import nearest

Kind = Literal["text", "number", "flag", "list"]


class Column(NamedTuple):
    """One column: its name, kind, unit and meaning."""

    name: str
    kind: Kind
    unit: str
    doc: str


OFFER_COLUMNS: tuple[Column, ...] = (
    Column("provider", "text", "", "who sells it: aws, azure, gcp, lambda, …"),
    Column("region", "text", "", "the provider's own name of the region"),
    Column("zone", "text", "", "availability zone, where the offer is bound to one"),
    Column("zones", "text", "", "zones that have it, comma-separated, where the source tells"),
    Column("instance_type", "text", "", "the provider's own name of the machine shape"),
    Column("purchase", "text", "", "on-demand, spot or reserved"),
    Column("term", "text", "", "what is committed to when reserved: 1y, savings-plan-3y, …"),
    Column("service", "text", "", "managed service that sells it, such as sagemaker"),
    Column("nodes", "number", "", "machines in the offer; 1 unless it is a cluster"),
    Column("price_per_hour", "number", "USD/h", "of all nodes; unknown has a reason"),
    Column("price_unknown_reason", "text", "", "why the price is unknown"),
    Column("price_source", "text", "", "where the price comes from"),
    Column("price_date", "text", "", "the day the price was valid, ISO 8601"),
    Column("currency", "text", "", "of the price as the source gave it"),
    Column("vcpus", "number", "", "hardware threads sold"),
    Column("vcpus_sustained", "number", "", "what a bursting type may use without end; else vcpus"),
    Column("memory_gib", "number", "GiB", "host memory of a node"),
    Column("arch", "text", "", "x86_64 or arm64"),
    Column("cpu_model", "text", "", "processor, where the provider tells it"),
    Column("cpu_ghz", "number", "GHz", "sustained all-core clock"),
    Column("vector_bits", "number", "bit", "widest vector unit of the processor"),
    Column("cpu_extensions", "text", "", "vector extensions, comma-separated: avx2, avx512, amx"),
    Column("cpu_fp32_tflops", "number", "TFLOP/s", "peak dense rate of all the vCPUs together"),
    Column("cpu_memory_gb_per_s", "number", "GB/s", "estimated memory bandwidth of the vCPUs"),
    Column("accelerator", "text", "", "accelerator model: L4, A100-80GB, Trainium2"),
    Column("accelerator_count", "number", "", "0 for none; a fraction for a part of one"),
    Column("accelerator_memory_gib", "number", "GiB", "of each, nominal: a 24 GB card is 24"),
    Column("accelerator_usable_gib", "number", "GiB", "of each, what a program can use"),
    Column("accelerator_memory_source_gib", "number", "GiB", "of each, as the source gave it"),
    Column("accelerator_memory_gib_total", "number", "GiB", "nominal, of all in a node"),
    Column("accelerator_gb_per_s", "number", "GB/s", "memory bandwidth of each"),
    Column("fp64_tflops", "number", "TFLOP/s", "peak dense rate of each accelerator"),
    Column("fp32_tflops", "number", "TFLOP/s", "peak dense rate of each accelerator"),
    Column("tf32_tflops", "number", "TFLOP/s", "peak dense rate of each accelerator"),
    Column("fp16_tflops", "number", "TFLOP/s", "peak dense rate of each accelerator"),
    Column("bf16_tflops", "number", "TFLOP/s", "peak dense rate of each accelerator"),
    Column("fp8_tflops", "number", "TFLOP/s", "peak dense rate of each accelerator"),
    Column("fp4_tflops", "number", "TFLOP/s", "peak dense rate of each accelerator"),
    Column("int8_tops", "number", "TOP/s", "peak dense rate of each accelerator"),
    Column("accelerator_power_w", "number", "W", "power limit of each accelerator"),
    Column("accelerator_link", "text", "", "between them: pcie-4, nvlink-2, nvswitch-4, …"),
    Column("accelerator_link_gb_per_s", "number", "GB/s", "of each accelerator, both ways"),
    Column("compute_capability", "number", "", "of CUDA, where there is one"),
    Column("software", "text", "", "stacks that reach it, comma-separated: cuda, rocm, …"),
    Column("cpu_accelerator_ratio", "number", "", "rate of the vCPUs over the accelerators"),
    Column("network_gbps", "number", "Gbit/s", "network bandwidth of a node"),
    Column("network_rdma", "text", "", "how nodes reach each other's memory: efa, infiniband, …"),
    Column("network_rdma_gbps", "number", "Gbit/s", "bandwidth of that"),
    Column("local_disk_gb", "number", "GB", "disk that comes with the machine"),
    Column("local_disk_kind", "text", "", "nvme, ssd or hdd"),
    Column("local_disk_gb_per_s", "number", "GB/s", "sequential read from all of it"),
    Column("kg_co2e_per_kwh", "number", "kg/kWh", "carbon intensity of the region's grid"),
    Column("caveats", "text", "", "quality rules that doubt the row, comma-separated"),
)

BY_NAME: dict[str, Column] = {c.name: c for c in OFFER_COLUMNS}

# what people call a column, where that is not a part of its name
_SYNONYMS = {
    "cloud": "provider",
    "clock": "cpu_ghz",
    "core": "vcpus",
    "cores": "vcpus",
    "cost": "price_per_hour",
    "gpu": "accelerator",
    "gpu_count": "accelerator_count",
    "gpu_memory": "accelerator_memory_gib",
    "gpus": "accelerator_count",
    "ram": "memory_gib",
    "spot": "purchase",
    "vram": "accelerator_memory_gib",
}


def column_meant(name: str, known: Iterable[str] = tuple(BY_NAME)) -> str:
    """The sentence for an error message about a name that is no column."""
    names = list(known)
    synonym = _SYNONYMS.get(name.lower())
    near = synonym if synonym in names else nearest(name, names)
    return f"Did you mean '{near}'?" if near else "underdog offers --columns all lists them."
