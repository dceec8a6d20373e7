"""Prices of specialised clouds, as SkyPilot's catalog had them, in the shape of its files.

A PCIe card has its full name where the catalog says no more than H100 or A100 (of Lambda's types,
its price list tells).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from underdog.catalog.sources import Raw, Row

SAME = ("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price")
COLUMNS = (*SAME, "SpotPrice", "AvailabilityZone", "Region", "GpuInfo")


def recorded(prices: Iterable[Row], types: Iterable[Row], source: str, date: str) -> Raw:
    """The rows of one cloud as a file; a row of the table stands for one of each region."""
    del types
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    cloud = ""
    for row in prices:
        cloud = row["cloud"]
        for region in row["Region"].split():
            writer.writerow([*(row[name] for name in COLUMNS[:-2]), region, _gpu_info(row)])
    files = [{"cloud": cloud, "text": text.getvalue()}]
    return Raw(provider="skypilot", documents={"files": files}, source=source, date=date)


def _gpu_info(row: Row) -> str:
    if not row["memory_mib"]:
        return ""
    each = {"SizeInMiB": int(row["memory_mib"])}
    count = float(row["AcceleratorCount"])
    gpu = {"Name": row["AcceleratorName"], "Count": count, "MemoryInfo": each}
    return repr({"Gpus": [gpu]})
