"""The recorded tables of AWS in the shapes of DescribeInstanceTypes and GetProducts."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from underdog.catalog.sources import Raw, Row, number

# What the table of types leaves out of the answer that it was made from.
CAPACITY_BLOCKS = frozenset(
    (
        *("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "p5.4xlarge", "p5e.48xlarge"),
        *("p5en.48xlarge", "p6-b200.48xlarge", "p6-b300.48xlarge"),
        *("trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge", "trn2u.48xlarge"),
    )
)
HARD_DISKS = frozenset(("c1", "d2", "d3", "d3en", "h1", "m1", "m2"))
DISKS_WITHOUT_NVME = frozenset(("c3", "i2", "m3", "r3", "x1", "x1e"))


def recorded(prices: Iterable[Row], types: Iterable[Row], source: str, date: str) -> Raw:
    """Each row of the tables as an item of AWS's answers."""
    documents: dict[str, list[Any]] = {
        "instance_types": [instance_type(row) for row in types],
        "products": [product(row) for row in prices],
    }
    return Raw(provider="aws", documents=documents, source=source, date=date)


def product(row: Row) -> str:
    """An item of GetProducts: JSON text."""
    amount = row["usd_per_hour_ondemand"]
    price = {"unit": "Hrs", "pricePerUnit": {"USD": amount} if amount else {}}
    attributes = {
        "instanceType": row["instance"],
        "regionCode": row["region"],
        "locationType": "AWS Region",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    item = {
        "product": {"productFamily": "Compute Instance", "attributes": attributes},
        "terms": {"OnDemand": {"on-demand": {"priceDimensions": {"hour": price}}}},
    }
    return json.dumps(item)


def instance_type(row: Row) -> dict[str, Any]:
    """An item of DescribeInstanceTypes."""
    name = row["instance_type"]
    efa, disk = number(row["efa_interfaces"]), number(row["local_disk_gb"])
    usage = ["on-demand"]
    usage += ["spot"] if row["spot"] == "True" else []
    usage += ["capacity-block"] if name in CAPACITY_BLOCKS else []
    gib, ghz = number(row["memory_gib"]), number(row["cpu_ghz"])
    network: dict[str, Any] = {
        "NetworkPerformance": row["network"],
        "EfaSupported": efa is not None,
    }
    if efa is not None:
        network["EfaInfo"] = {"MaximumEfaInterfaces": efa}
    item = {
        "InstanceType": name,
        "SupportedUsageClasses": usage,
        "VCpuInfo": {"DefaultVCpus": number(row["vcpus"])},
        "MemoryInfo": {"SizeInMiB": gib and gib * 1024},
        "ProcessorInfo": {
            "SupportedArchitectures": row["arch"].split("/"),
            "SustainedClockSpeedInGhz": ghz,
        },
        "NetworkInfo": network,
        "InstanceStorageSupported": disk is not None,
        **_accelerators(row),
    }
    if disk is not None:
        item["InstanceStorageInfo"] = _disks(name.partition(".")[0], disk)
    return item


def _disks(family: str, gb: float) -> dict[str, Any]:
    return {
        "TotalSizeInGB": gb,
        "Disks": [{"Type": "hdd" if family in HARD_DISKS else "ssd"}],
        "NvmeSupport": "unsupported" if family in DISKS_WITHOUT_NVME else "required",
    }


def _accelerators(row: Row) -> dict[str, Any]:
    name, mib = row["api_accelerator"], number(row["api_accelerator_memory_mib"])
    if not name and mib is None:
        return {}
    count = float(row["api_accelerator_count"] or 0)
    device = {"Name": name, "Count": count, "MemoryInfo": {"SizeInMiB": mib}}
    if name.startswith(("Trainium", "Inferentia")):
        return {"NeuronInfo": {"NeuronDevices": [device]}}
    if name == "Qualcomm AI100":
        return {"InferenceAcceleratorInfo": {"Accelerators": [device]}}
    return {"GpuInfo": {"Gpus": [device]}}
