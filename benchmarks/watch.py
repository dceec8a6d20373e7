"""How long a watch of 200 stored decisions takes on a catalog of 80,000 offers and more.

    python benchmarks/watch.py

Target: under 10 s from the command to its end, nothing asked of the network. The decisions are of
ten workloads, twenty questions each (metrics, expressions, conditions, a deadline and a budget),
made by ``choose`` on the bundled catalog. The catalog that they are watched by has another price
on every spot offer, on one in a hundred others, and thirty new types, so that none of the work can
be left out. ``against`` is the time of one ``underdog choose`` in the same minutes, so that runs on
different machines compare: 200 times that is what judging one by one would take.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

WORKLOADS = 10
BY = (
    "samples_per_dollar",
    "samples_per_second",
    "dollars_per_million_samples",
    "samples_per_second / (price_per_hour + 0.1) + 0.01 * memory_gib",
)
WHERE = (
    None,
    "price_per_hour < 5",
    "memory_gib > 16 and vcpus <= 96",
    "region like 'us%'",
    "accelerator_count <= 4",
)
RATES = {
    ("aws", "g4dn.xlarge"): 200.0,
    ("aws", "g5.xlarge"): 500.0,
    ("aws", "g6.xlarge"): 450.0,
    ("azure", "Standard_NC4as_T4_v3"): 190.0,
    ("gcp", "g2-standard-4"): 440.0,
}


def trials(workload: str) -> list[object]:
    from underdog.model import (
        Estimate,
        Machine,
        Measurement,
        Offer,
        Price,
        Profile,
        Software,
        Trial,
    )

    unknown = Price(unknown_reason="not given")
    profile = Profile(
        flops_per_sample=1e9, memory_traffic_bytes_per_sample=1e7, number_format="float32"
    )
    return [
        Trial(
            id=f"{workload}-{kind}",
            workload=workload,
            status="ok",
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            offer=Offer(provider=provider, region="", instance_type=kind, price=unknown),
            price=unknown,
            machine=Machine(),
            software=Software(framework="torch", framework_version="2.13.0"),
            profile=profile,
            measurement=Measurement(
                samples_per_second=Estimate(value=rate, low=rate * 0.98, high=rate * 1.02, n=50)
            ),
        )
        for (provider, kind), rate in RATES.items()
    ]


def decide(store_url: str) -> int:
    """Store the trials and the decisions; returns how many decisions there are."""
    from underdog.store import open_store
    from underdog.verbs.choose import Options
    from underdog.verbs.choose import decide as choose

    with open_store(store_url) as store:
        store.save(*trials("w0"))
    questions = [{"by": by, "where": where} for by in BY for where in WHERE]
    questions[-1] |= {"samples": 3e8, "deadline": "48h", "budget": 5000.0}
    made = [choose(Options(workload="w0", store=store_url, **q)).decision for q in questions]
    with open_store(store_url) as store:
        for k in range(1, WORKLOADS):
            copies = [
                dataclasses.replace(
                    one,
                    id=f"{one.id}-{k}",
                    workload=f"w{k}",
                    trials=[name.replace("w0", f"w{k}") for name in one.trials],
                )
                for one in made
            ]
            store.save(*trials(f"w{k}"), *copies)
    return WORKLOADS * len(made)


def move(seed: int) -> int:
    """A snapshot with other prices and new types; returns how many offers it has."""
    from underdog.catalog import archive, snapshot

    draw, whole = np.random.default_rng(seed), snapshot.load()
    rows = whole.table.select()
    for row in rows:
        price = row["price_per_hour"]
        if price and (row["purchase"] == "spot" or draw.random() < 0.01):
            row["price_per_hour"] = price * float(draw.uniform(0.85, 1.15))
    new = [row | {"instance_type": f"new{k}.large"} for k, row in enumerate(rows[:30])]
    rows += new

    def write(path: Path) -> str:
        return snapshot.write(path, rows, date="2026-11-30", sources=[], left_out=[])

    with archive.locked():
        return archive.add(write, datetime.now(UTC)).rows


def seconds_of(*arguments: str) -> tuple[float, str]:
    began = time.perf_counter()
    command = [sys.executable, "-m", "underdog", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return time.perf_counter() - began, done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        os.environ["UNDERDOG_STORE"] = str(Path(folder) / "store.sqlite3")
        decisions = decide(os.environ["UNDERDOG_STORE"])
        offers = move(options.seed)
        print(f"{'decisions':>10}{'offers':>9}{'watch':>9}{'target':>9}{'choose':>9}{'against':>9}")
        runs = []
        for _ in range(options.repeats):  # interleaved, so that a busy machine slows both
            watch, output = seconds_of("watch", "--no-refresh", "--json")
            choose, _ = seconds_of("choose", "--workload", "w0", "--json")
            runs.append((watch, choose))
        judged = json.loads(output)["judged"]
        assert len(judged) == decisions
        watch, choose = (statistics.median(part) for part in zip(*runs, strict=True))
        print(
            f"{decisions:>10,}{offers:>9,}{watch:>8.2f}s{10.0:>8.1f}s{choose:>8.2f}s"
            f"{watch / choose:>9.1f}"
        )
        counts = {v: sum(o["verdict"] == v for o in judged) for v in ("stands", "open", "falls")}
        print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


if __name__ == "__main__":
    main()
