"""How quickly the page answers: every page and twin at 10,000 trials and 80,000 offers and more.

    python benchmarks/serve.py

Target: each under 100 ms, the median of warm requests, asked of ``underdog serve`` over HTTP on
loopback. The store has 10,000 trials, 9,000 of them of one workload, a study, and decisions among
all offers of the bundled catalog. ``times`` is over the smallest answer that the server gives, a
file of the style, asked in turn with each request, so that runs on different machines compare.
``first`` is the first request, which may have to work something out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import urllib3

TARGET_MS = 100.0
RATES = {"g4dn.xlarge": 200.0, "g5.xlarge": 500.0, "g6.xlarge": 450.0, "c7i.4xlarge": 30.0}
PRICES = {"g4dn.xlarge": 0.526, "g5.xlarge": 1.006, "g6.xlarge": 0.8048, "c7i.4xlarge": 0.714}
OTHER = 10  # one in so many is of another workload


def trials(count: int) -> Iterator[object]:
    from underdog.model import (
        Estimate,
        Machine,
        Measurement,
        Offer,
        Price,
        Software,
        Timeline,
        Trial,
    )

    begin, kinds = datetime(2026, 1, 1, tzinfo=UTC), list(RATES)
    seconds = [float(second) for second in range(120)]
    for place in range(count):
        kind = kinds[place % len(kinds)]
        rate = RATES[kind] * (1 + 0.02 * ((place * 7919) % 100) / 100)
        price = Price(per_hour=PRICES[kind], source="benchmark", date="2026-01-01")
        measured = Estimate(value=rate, low=0.99 * rate, high=1.01 * rate, n=100)
        at = begin + timedelta(minutes=30 * place)
        yield Trial(
            id=f"trial-{place:06}",
            workload="other" if place % OTHER == 0 else "main",
            command=["python", "train.py", "--batch-size", "32"],
            knobs={"batch_size": "32"},
            status="ok" if place % 50 else "failed",
            started_at=at.isoformat(timespec="seconds"),
            offer=Offer(provider="aws", region="us-east-1", instance_type=kind, price=price),
            price=price,
            measurement=Measurement(samples_per_second=measured, steps=1000, batch_size=32),
            phases={"data": 0.2, "forward": 0.3, "backward": 0.5},
            machine=Machine(provider="aws", region="us-east-1", instance_type=kind),
            software=Software(framework="torch", framework_version="2.13.0"),
            study="study-1" if count - place <= 40 else None,
            timeline=Timeline(
                steps={
                    "seconds": seconds,
                    "step": [10 * second for second in seconds],
                    "samples_per_second": [rate] * 120,
                },
                usage={"seconds": seconds, "cores": [3.0] * 120},
            ),
        )


def fill(path: Path, count: int) -> list[str]:
    """A store with so many trials; the ids of two decisions."""
    from underdog.store import open_store
    from underdog.verbs.choose import Options, decide

    with open_store(str(path)) as store:
        store.save_all(trials(count))  # type: ignore[arg-type]
        made = [
            decide(Options(workload="main", store=str(path), by=by)).decision
            for by in ("samples_per_dollar", "samples_per_second")
        ]
        store.save(replace(made[0], study="study-1"))
    return [decision.id for decision in made]


def pages(decisions: list[str], count: int) -> list[str]:
    trial = f"trial-{count - 1:06}"
    where = quote("accelerator_memory_gib >= 24 and price_per_hour < 2")
    both = f"a={trial}&b=trial-{count - 2:06}"
    found = [
        *("/", "/live", "/studies", "/studies/study-1", "/decisions", "/trials"),
        f"/trials?page={count // 50}",
        "/trials?workload=main&status=ok&page=3",
        *(f"/decisions/{decisions[0]}", f"/decisions/{decisions[0]}?whole=1"),
        f"/decisions/{decisions[0]}/ledger?find=g5",
        *(f"/trials/{trial}", "/workloads/main", "/workloads/other"),
        *("/catalog", f"/catalog?where={where}", "/catalog?page=900&sort=-memory_gib"),
        *(f"/compare?{both}", f"/compare?a={decisions[0]}&b={decisions[1]}"),
    ]
    return [way for page in found for way in (page, twin_of(page))]


def twin_of(page: str) -> str:
    path, mark, query = page.partition("?")
    return f"{'/index' if path == '/' else path}.json{mark}{query}"


def measure(address: str, ways: list[str], rounds: int) -> list[dict[str, object]]:
    pool = urllib3.PoolManager(maxsize=1)
    style = re.search(r'href="(/static/underdog[^"]+)"', _text(pool, address, "/"))
    assert style is not None
    first = {way: _ms(pool, address, way)[0] for way in ways}
    taken: dict[str, list[float]] = {way: [] for way in ways}
    bare: list[float] = []
    sizes: dict[str, int] = {}
    for _ in range(rounds):
        for way in ways:
            bare.append(_ms(pool, address, style[1])[0])
            ms, sizes[way] = _ms(pool, address, way)
            taken[way].append(ms)
    least = statistics.median(bare)
    return [
        {
            "way": way,
            "kb": sizes[way] / 1000,
            "first_ms": first[way],
            "median_ms": statistics.median(taken[way]),
            "times": statistics.median(taken[way]) / least,
        }
        for way in ways
    ]


def _text(pool: urllib3.PoolManager, address: str, way: str) -> str:
    return pool.request("GET", address + way).data.decode()


def _ms(pool: urllib3.PoolManager, address: str, way: str) -> tuple[float, int]:
    begin = time.perf_counter()
    answer = pool.request("GET", address + way)
    taken = 1000 * (time.perf_counter() - begin)
    assert answer.status == 200, (way, answer.status, answer.data[:300])
    return taken, len(answer.data)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_DATA_HOME"] = folder
        path = Path(folder) / "store.sqlite3"
        decisions = fill(path, asked.trials)
        command = [sys.executable, "-m", "underdog", "serve", "--port", "0", "--store", str(path)]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            told = re.search(r"http://[^/]+", server.stderr.readline())
            assert told is not None
            rows = measure(told[0], pages(decisions, asked.trials), asked.rounds)
        finally:
            server.terminate()
            server.wait()
    if asked.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'median ms':>10} {'first ms':>9} {'times':>6} {'kB':>7}  page")
    for row in rows:
        late = " *" if row["median_ms"] >= TARGET_MS else ""  # type: ignore[operator]
        print(
            f"{row['median_ms']:>10.1f} {row['first_ms']:>9.0f} {row['times']:>6.1f} "
            f"{row['kb']:>7.0f}  {row['way']}{late}"
        )


if __name__ == "__main__":
    main()
