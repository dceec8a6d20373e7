"""Answers of providers in their own shape, as small as a case needs them."""

from __future__ import annotations

import csv
import importlib
import io
import json
from typing import Any

from underdog.catalog.sources import LeftOut, Raw

Row = dict[str, Any]
DATE = "2026-07-20"


def parsed(provider: str, **documents: list[Any]) -> tuple[list[Row], list[LeftOut]]:
    """The offers of an answer, and what is no offer."""
    module = importlib.import_module(f"underdog.catalog.providers.{provider}")
    raw = Raw(provider=provider, documents=documents, source="its answer", date=DATE)
    found = list(module.parse(raw))
    rows = [one for one in found if not isinstance(one, LeftOut)]
    return rows, [one for one in found if isinstance(one, LeftOut)]


def ec2_type(
    name: str, *gpus: dict[str, Any], usage: tuple[str, ...] = ("on-demand",), **more: Any
) -> Row:
    """An item of DescribeInstanceTypes."""
    made = {
        "InstanceType": name,
        "SupportedUsageClasses": list(usage),
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "VCpuInfo": {"DefaultVCpus": 8},
        "MemoryInfo": {"SizeInMiB": 65536},
    }
    if gpus:
        total = sum(gpu["Count"] * gpu["MemoryInfo"]["SizeInMiB"] for gpu in gpus)
        made["GpuInfo"] = {"Gpus": list(gpus), "TotalGpuMemoryInMiB": total}
    return made | more


def ec2_gpu(name: str, count: int, mib: int) -> Row:
    return {
        "Name": name,
        "Manufacturer": "NVIDIA",
        "Count": count,
        "MemoryInfo": {"SizeInMiB": mib},
    }


def ec2_machine(name: str, *gpus: dict[str, Any]) -> Row:
    """The offer of a type that has no price."""
    rows, left = parsed("aws", instance_types=[ec2_type(name, *gpus)])
    assert left == []
    (row,) = (row for row in rows if row["instance_type"] == name)
    return row


def ec2_product(name: str, usd: str, region: str = "us-east-1") -> str:
    """An item of GetProducts: JSON text."""
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": usd}}
    attributes = {
        "instanceType": name,
        "regionCode": region,
        "locationType": "AWS Region",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",
    }
    item = {
        "product": {"productFamily": "Compute Instance", "attributes": attributes},
        "terms": {"OnDemand": {"A.B": {"priceDimensions": {"A.B.C": dimension}}}},
    }
    return json.dumps(item)


def meter(size: str, usd: float | None, region: str = "eastus", **more: Any) -> Row:
    """An item of Azure's Retail Prices API."""
    made = {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": usd,
        "unitPrice": usd,
        "armRegionName": region,
        "effectiveStartDate": "2021-11-01T00:00:00Z",
        "meterName": size.removeprefix("Standard_").replace("_", " "),
        "productName": "Virtual Machines Series",
        "skuName": size.removeprefix("Standard_").replace("_", " "),
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": size,
    }
    return {name: value for name, value in (made | more).items() if value is not None}


def gce_type(
    name: str, vcpus: int, gib: float, gpu: str | None = None, count: int = 0, **more: Any
) -> Row:
    """An item of Compute Engine's machineTypes."""
    made: Row = {
        "name": name,
        "guestCpus": vcpus,
        "memoryMb": int(gib * 1024),
        "zone": "us-central1-a",
        "architecture": "X86_64",
    }
    if gpu is not None:
        made["accelerators"] = [{"guestAcceleratorType": gpu, "guestAcceleratorCount": count}]
    return made | more


def sku(said: str, usd: float, group: str = "CPU", usage: str = "OnDemand", unit: str = "h") -> Row:
    """An item of the Cloud Billing catalog."""
    whole, nanos = divmod(round(usd * 1e9), 10**9)
    price = {"currencyCode": "USD", "units": str(whole), "nanos": nanos}
    return {
        "description": said,
        "category": {
            "serviceDisplayName": "Compute Engine",
            "resourceFamily": "Compute",
            "resourceGroup": group,
            "usageType": usage,
        },
        "serviceRegions": ["us-central1"],
        "pricingInfo": [
            {
                "pricingExpression": {
                    "usageUnit": unit,
                    "tieredRates": [{"startUsageAmount": 0, "unitPrice": price}],
                }
            }
        ],
    }


SKY = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price")
SKY += ("Region", "AvailabilityZone", "GpuInfo", "SpotPrice")


def sky(cloud: str, *rows: dict[str, Any]) -> tuple[list[Row], list[LeftOut]]:
    """What is read of a file of SkyPilot's catalog with these rows."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, SKY, lineterminator="\n")
    writer.writeheader()
    writer.writerows({"vCPUs": 8, "MemoryGiB": 64, "Region": "us", "Price": 1.0, **r} for r in rows)
    return parsed("skypilot", files=[{"cloud": cloud, "text": text.getvalue()}])


def gpu_info(name: str, count: float, mib: int, total: int) -> str:
    """The field GpuInfo, in the spelling of Python as in the files."""
    one = {"Name": name, "Manufacturer": "NVIDIA", "Count": count}
    return repr({"Gpus": [one | {"MemoryInfo": {"SizeInMiB": mib}}], "TotalGpuMemoryInMiB": total})
