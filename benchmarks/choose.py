"""How long choosing takes over many offers with a custom utility, in one process.

    python benchmarks/choose.py

Targets: 80,000 offers in 0.5 s after start, a million in 3 s. The offers are synthetic: machines
with and without accelerators, sold in many regions, on demand and as spot. The clock runs from
the loaded table to the ranking, the counts of the ledger and the machines to test next; the
complete ledger in JSON is timed apart. With ``--attempts N`` waiting and interruptions come from
so many records, over a quarter of the regions and 200 machines. ``against`` divides by the time
that DuckDB takes to sort the same offers by price per GiB in the same run, so that runs on
different machines compare.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace

import msgspec
import numpy as np

from underdog.core.attempts import Attempt, Place
from underdog.core.choosing import Request, choose
from underdog.core.columns import BY_NAME
from underdog.core.evidence import gather
from underdog.core.expression import parse
from underdog.core.supply import Supply
from underdog.core.table import Table
from underdog.core.utility import parse_utility
from underdog.model import Estimate, Machine, Measurement, Price, Profile, Software, Trial

BY = "samples_per_second / (price_per_hour + 0.1) + 0.01 * memory_gib"
WHERE = "memory_gib > 2"
CHIPS = {"T4": (320, 8.1), "A10G": (600, 31.2), "L4": (300, 30.3), "A100": (1555, 19.5)}


def offers(count: int, shapes: int, seed: int) -> Table:
    draw = np.random.default_rng(seed)
    shape = np.arange(count) % shapes
    chips = np.array([None, None, None, *CHIPS], dtype=object)[shape % (3 + len(CHIPS))]
    has = np.array([chip is not None for chip in chips])
    facts = np.array([CHIPS.get(chip, (np.nan, np.nan)) for chip in chips])
    place = np.arange(count) // shapes
    vcpus = 2.0 ** (1 + shape % 7)
    return Table.from_arrays(
        {
            "provider": np.full(count, "aws", dtype=object),
            "region": np.array([f"region-{i // 2}" for i in place], dtype=object),
            "instance_type": np.array([f"t{i}.large" for i in shape], dtype=object),
            "purchase": np.array(["on-demand", "spot"], dtype=object)[place % 2],
            "nodes": np.ones(count),
            "price_per_hour": draw.lognormal(0, 1, count),
            "vcpus": vcpus,
            "memory_gib": vcpus * 4,
            "arch": np.full(count, "x86_64", dtype=object),
            "cpu_fp32_tflops": vcpus * 0.08,
            "accelerator": chips,
            "accelerator_count": has * 1.0,
            "accelerator_usable_gib": np.where(has, 15.0, np.nan),
            "accelerator_gb_per_s": facts[:, 0],
            "fp32_tflops": facts[:, 1],
            "software": np.where(has, "cuda", None),
        }
    )


def trials() -> list[Trial]:
    profile = Profile(
        flops_per_sample=1e9, memory_traffic_bytes_per_sample=1e7, number_format="float32"
    )
    return [
        Trial(
            id=f"t{i}",
            workload="gpt",
            status="ok",
            price=Price(unknown_reason="not given"),
            machine=Machine(provider="aws", instance_type=f"t{i}.large"),
            software=Software(framework="torch"),
            peak_memory_gib={"accelerator": 7.0, "host": 3.0},
            profile=profile,
            measurement=Measurement(
                samples_per_second=Estimate(value=10.0 + i, low=9.5 + i, high=10.5 + i, n=30)
            ),
        )
        for i in range(8)
    ]


def attempts(count: int, seed: int) -> Supply:
    draw = np.random.default_rng(seed)
    made = []
    for region, kind, got, waited in zip(
        draw.integers(0, 6, count),
        draw.integers(0, 200, count),
        draw.random(count) < 0.6,
        draw.exponential(300, count),
        strict=True,
    ):
        place = Place(
            provider="aws",
            region=f"region-{region}",
            zone="",
            instance_type=f"t{kind}.large",
            purchase="spot" if kind % 2 else "on-demand",
        )
        made.append(Attempt(place=place, at=0.0, got=bool(got), waited=float(waited)))
    return Supply(attempts=made)


def seconds_to_choose(table: Table, known: Supply) -> tuple[float, float]:
    """From the loaded table to what the terminal shows, and the ledger as JSON."""
    began = time.perf_counter()
    request = Request(utility=parse_utility(BY), where=parse(WHERE, BY_NAME))
    choice = choose(table, gather(trials()), request, known=replace(known))
    assert choice.ranking()
    assert choice.funnel()
    assert choice.test_next()
    chosen = time.perf_counter()
    assert msgspec.json.encode(choice.ledger())
    return chosen - began, time.perf_counter() - chosen


def seconds_to_sort(table: Table) -> float:
    began = time.perf_counter()
    table.run("CREATE OR REPLACE TEMP TABLE s AS FROM offers ORDER BY price_per_hour / memory_gib")
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--attempts", type=int, default=0, help="on record")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    known = attempts(options.attempts, options.seed)
    print(f"{'offers':>10}{'machines':>10}{'choose':>10}{'target':>9}{'ledger':>9}{'against':>9}")
    for count, shapes, target in ((80_000, 4_000, 0.5), (1_000_000, 20_000, 3.0)):
        table = offers(count, shapes, options.seed)
        runs = [
            (*seconds_to_choose(table, known), seconds_to_sort(table))
            for _ in range(options.repeats)
        ]
        chosen, ledger, sort = (statistics.median(part) for part in zip(*runs, strict=True))
        print(
            f"{count:>10,}{shapes:>10,}{chosen:>9.2f}s{target:>8.1f}s{ledger:>8.2f}s"
            f"{chosen / sort:>9.1f}"
        )


if __name__ == "__main__":
    main()
