"""A small set of recorded trials: 24 machines in three sizes, four workloads of three groups."""

from __future__ import annotations

import csv
import math
from pathlib import Path

FAMILIES = {"c5": (2.0, 1.0), "m5": (4.0, 0.9), "r5": (8.0, 0.85), "g4dn": (4.0, 1.0)}
SIZES = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16, "8xlarge": 32, "12xlarge": 48}
# workload -> group, GiB needed, how well it uses many cores, what an accelerator gives
WORKLOADS = {
    "gpt-small": ("gpt", 6.0, 0.7, 1.0),
    "gpt-large": ("gpt", 30.0, 0.8, 1.4),
    "resnet": ("vision", 10.0, 0.6, 1.2),
    "tabular": ("tabular", 20.0, 0.9, 0.1),
}


def offers() -> list[dict[str, object]]:
    return [
        {
            "offer": f"aws/{family}.{size}",
            "provider": "aws",
            "region": "us-east-1",
            "instance_type": f"{family}.{size}",
            "price_per_hour": round(0.045 * cores * (1.6 if family == "g4dn" else 1.0), 4),
            "vcpus": cores,
            "memory_gib": cores * gib,
            "arch": "x86_64",
            "accelerator": "T4" if family == "g4dn" else "",
            "accelerator_count": 1 if family == "g4dn" else 0,
            "disk": "ssd" if family == "r5" else "ebs",
        }
        for family, (gib, _) in FAMILIES.items()
        for size, cores in SIZES.items()
    ]


def throughput(workload: str, offer: dict[str, object]) -> float | None:
    """Samples per second; None where memory is too small."""
    _, needed, scaling, accelerated = WORKLOADS[workload]
    cores, memory = float(str(offer["vcpus"])), float(str(offer["memory_gib"]))
    if memory < needed:
        return None
    family = str(offer["instance_type"]).partition(".")[0]
    rate = FAMILIES[family][1] * math.pow(cores, scaling)
    if family == "g4dn":  # the accelerator's own, whatever the processors; or none at all
        rate = max(12.0 * accelerated * math.pow(cores, 0.05), math.pow(cores, scaling))
    return round(rate * (10 if "gpt" in workload else 25), 4)


def value(workload: str, offer: dict[str, object]) -> float:
    """Samples per dollar; 0 where it fails."""
    rate = throughput(workload, offer)
    return 0.0 if rate is None else rate * 3600 / float(str(offer["price_per_hour"]))


def write(folder: Path) -> tuple[Path, Path]:
    """The files of trials and of offers."""
    trials, listed = folder / "trials.csv", folder / "offers.csv"
    with listed.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(offers()[0]))
        writer.writeheader()
        writer.writerows(offers())
    with trials.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["workload", "group", "offer", "throughput", "status"])
        for workload, (group, *_) in WORKLOADS.items():
            for offer in offers():
                rate = throughput(workload, offer)
                status = "out_of_memory" if rate is None else "ok"
                lines.writerow([workload, group, offer["offer"], rate, status])
    return trials, listed
