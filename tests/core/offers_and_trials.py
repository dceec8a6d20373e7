"""Offers and trials for the tests of choosing; C1 is the case of the former SkyPilot page."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from underdog.core.choosing import Choice, Request, choose
from underdog.core.evidence import gather
from underdog.core.table import Table
from underdog.core.utility import parse_utility
from underdog.model import Caveat, Estimate, Machine, Measurement, Price, Profile, Software, Trial

# accelerator, seconds per step, dollars per step
C1 = {
    "p2.xlarge": ("K80", 1.1548, 0.000058),
    "g4dn.xlarge": ("T4", 0.6429, 0.000094),
    "g5.xlarge": ("A10G", 0.1859, 0.000052),
    "p3.2xlarge": ("V100", 0.2005, 0.000165),
}


def offer(kind: str = "g5.xlarge", price: float | None = 1.0, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "provider": "aws",
        "region": "us-east-1",
        "instance_type": kind,
        "purchase": "on-demand",
        "nodes": 1,
        "price_per_hour": price,
        "price_unknown_reason": None if price else "none was published",
        "vcpus": 4,
        "memory_gib": 16,
        "arch": "x86_64",
        "accelerator": "A10G",
        "accelerator_count": 1,
        "accelerator_memory_gib": 24,
        "accelerator_usable_gib": 22.0,
        "accelerator_gb_per_s": 600,
        "fp32_tflops": 31.2,
        "accelerator_power_w": 150,
        "compute_capability": 8.6,
        "software": "cuda",
    }
    return made | more


def plain(kind: str, price: float | None = 1.0, **more: Any) -> dict[str, Any]:
    made = offer(kind, price)
    for name in made:
        if name.startswith("accelerator") or name in ("fp32_tflops", "software"):
            made[name] = None
    return made | {"accelerator_count": 0, "compute_capability": None} | more


def table(rows: Sequence[dict[str, Any]]) -> Table:
    names = {name for row in rows for name in row}
    return Table.from_arrays({name: [row.get(name) for row in rows] for name in names})


def trial(
    kind: str = "g5.xlarge", rate: float | None = 100.0, spread: float = 0.02, **more: Any
) -> Trial:
    given: dict[str, Any] = {
        "id": f"trial-{kind}-{len(more)}-{rate}",
        "workload": "gpt",
        "status": "ok",
        "started_at": "2026-07-01T00:00:00Z",
        "price": Price(unknown_reason="not given"),
        "machine": Machine(provider="aws", instance_type=kind),
        "software": Software(framework="torch"),
    }
    if rate is not None:
        low, high = rate * (1 - spread), rate * (1 + spread)
        estimate = Estimate(value=rate, low=low, high=high, n=30)
        given["measurement"] = Measurement(samples_per_second=estimate)
    return Trial(**(given | more))


def c1_offers() -> list[dict[str, Any]]:
    return [
        offer(kind, dollars / seconds * 3600, accelerator=accelerator)
        for kind, (accelerator, seconds, dollars) in C1.items()
    ]


def c1_trials() -> list[Trial]:
    return [trial(kind, 1 / seconds) for kind, (_, seconds, _) in C1.items()]


def write_offers(file: Path, rows: Sequence[dict[str, Any]]) -> str:
    """A file of offers; returns its path."""
    names = ["provider", "region", "instance_type", "purchase", "price_per_hour", "accelerator"]
    names += ["accelerator_count", "vcpus", "memory_gib", "arch"]
    with file.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return str(file)


UNUSED = Caveat(code="accelerator_unused", message="The A10G was not used.", remedy="Use it.")
PROFILE = Profile(
    flops_per_sample=1e9,
    memory_traffic_bytes_per_sample=1e7,
    batch_size=16,
    parameter_bytes=4 * 2**30,
    gradient_bytes=4 * 2**30,
    optimizer_bytes=8 * 2**30,
    number_format="float32",
)


def chosen(
    rows: list[dict[str, Any]],
    trials: list[Trial],
    by: str = "samples_per_dollar",
    *,
    better: Any = None,
    tolerance: float = 0.0,
    **request: Any,
) -> Choice:
    utility = parse_utility(
        by, direction=better, tolerance=tolerance, has_samples="samples" in request
    )
    return choose(table(rows), gather(trials), Request(utility=utility, **request))
