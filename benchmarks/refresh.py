"""A refresh of recorded sources of 100,000 rows: seconds and peak memory.

The answers are made up in the shape of SkyPilot's catalog files, recorded, and replayed by a
process of its own, which reads, checks, merges and writes them. The bar is 5 s and 500 MB.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from underdog.catalog import answers
from underdog.catalog.sources import Raw

CLOUDS = ("alpha", "beta", "gamma", "delta")
REGIONS = 50
# model, MiB of one, USD per hour of one
MODELS = (("L4", 24576, 0.7), ("A100-80GB", 81920, 1.8), ("H100", 81920, 3.0), ("T4", 16384, 0.4))
HEADER = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice"
)


def lines(count: int, chance: random.Random) -> list[str]:
    """Machines with and without accelerators, each in all regions at about one price."""
    found = []
    for kind in range(-(-count // REGIONS)):
        size = 2 ** (kind % 4)
        name, mib, price = MODELS[kind % len(MODELS)]
        accelerated = kind % 3 == 0
        info = (
            f"\"{{'Gpus': [{{'Name': '{name}', 'Manufacturer': 'NVIDIA', 'Count': {size}.0, "
            f"'MemoryInfo': {{'SizeInMiB': {mib}}}}}], 'TotalGpuMemoryInMiB': {mib * size}}}\""
        )
        for region in range(REGIONS):
            factor = chance.uniform(0.95, 1.05)
            if accelerated:
                usd = price * size * factor
                gpu = f"{name},{size}"
            else:
                usd, gpu = 0.05 * size * factor, ","
            found.append(
                f"m{kind}_{size}x,{gpu},{8 * size},{32 * size},{usd:.4f},r{region},"
                f"{info if accelerated else ''},{usd * 0.4:.4f}"
            )
    return found[:count]


def make(folder: Path, rows: int) -> None:
    """Record answers of ``rows`` offers; each line is one on demand and one as spot."""
    chance = random.Random(0)
    each = rows // 2 // len(CLOUDS)
    files = [
        {"cloud": cloud, "text": "\n".join([HEADER, *lines(each, chance)])} for cloud in CLOUDS
    ]
    raw = Raw(provider="skypilot", documents={"files": files}, source="made up", date="2026-11-30")
    answers.record(raw, folder)


def replay(folder: Path, profile: bool) -> None:
    """Refresh in this process, and print what it took."""
    from underdog.verbs import catalog

    profiler = cProfile.Profile()
    began, worked = time.perf_counter(), time.process_time()
    if profile:
        found = profiler.runcall(catalog.refresh, replay=folder)
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("cumulative").print_stats(35)
    else:
        found = catalog.refresh(replay=folder)
    taken = {
        "seconds": time.perf_counter() - began,
        "processor": time.process_time() - worked,
        "mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
        "offers": sum(one.offers for one in found.outcomes),
    }
    print(json.dumps(taken))


def main(rows: int, repeats: int, profile: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder / "recorded", rows)
        command = [sys.executable, __file__, "--child", str(folder / "recorded")]
        runs = []
        for number in range(repeats):
            environment = os.environ | {"XDG_DATA_HOME": str(folder / f"data{number}")}
            done = subprocess.run(
                command + ["--profile"] * profile,
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
            runs.append(json.loads(done.stdout))
        middle = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    for name, value in (
        ("offers in the answer", f"{middle['offers']:,.0f}"),
        ("seconds (bar 5 s)", f"{middle['seconds']:.2f} s"),
        ("processor time", f"{middle['processor']:.2f} s"),
        ("peak memory (bar 500 MB)", f"{middle['mb']:.0f} MB"),
    ):
        print(f"{name:<28} {value:>12}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--data", help="not used: the answers are made up")
    given = parser.parse_args()
    if given.child is not None:
        replay(given.child, given.profile)
    else:
        main(given.rows, given.repeats, given.profile)
