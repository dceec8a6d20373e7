"""Spot under a deadline: the policy and the cost model over recorded markets.

Replays ``*.json.gz`` of ``--data`` (``metadata.gap_seconds``, ``data``: nodes to be had at each
tick) with jobs of 0.8 of 48 hours and a changeover of 0.2 h, beside the greedy rule, uniform
progress as published, and the omniscient plan (dynamic programming over the record). Bars: no
deadline missed; at least 84 % of the omniscient plan's spot hours; the expected cost of
``core.spot.by_deadline`` within 10 % of the replayed mean. The last column is what
``core.spot_markets``, which ``choose`` asks, makes of the record's rate of interruption and of how
long spot was away on average.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path

import numpy as np

from underdog.core.spot import by_deadline
from underdog.core.spot_markets import Way, simulate
from underdog.core.spot_policy import (
    IDLE,
    ON_DEMAND,
    SPOT,
    Job,
    Place,
    Rule,
    State,
    replay,
    uniform_progress,
)
from underdog.model import Estimate

ROOT = Path(__file__).resolve().parent.parent
DEADLINE, FRACTION, CHANGEOVER = 48.0, 0.8, 0.2
SPOT_PRICE = 0.3  # of the on-demand price
COARSEST = 0.05  # hours: finer records are merged to this
RESOLUTION = 5  # units of progress in a tick


def greedy(job: Job, state: State, there: bool) -> Place:
    return SPOT if there else IDLE


def published(job: Job, state: State, there: bool) -> Place:
    line = job.work / job.deadline
    if state.place == ON_DEMAND and state.progress < (state.now + 2 * job.changeover) * line:
        return ON_DEMAND
    if there:
        return SPOT
    return ON_DEMAND if state.progress < state.now * line else IDLE


RULES: dict[str, Rule] = {
    "greedy": greedy,
    "uniform progress, published": published,
    "underdog": uniform_progress,
}


def omniscient(available: np.ndarray, tick: float, job: Job) -> tuple[float, float]:
    """Hours on spot and on demand of the plan with the least on demand, then the least spot."""
    lost = round(job.changeover / tick * RESOLUTION)
    most = int(np.ceil(job.work / tick)) * RESOLUTION + lost
    left = np.arange(most + 1)
    stay = np.maximum(left - RESOLUTION, 0)
    start = np.maximum(np.minimum(left + lost, most) - RESOLUTION, 0)
    never = np.where(left + lost > most, np.inf, 0.0)
    small = 1e-5
    idle, spot, demand = (np.where(left == 0, 0.0, np.inf) for _ in range(3))
    for there in available[::-1]:
        to_demand, keep_demand = demand[start] + never + 1, demand[stay] + 1
        to_spot = spot[start] + never + small if there else np.inf
        keep_spot = spot[stay] + small if there else np.inf
        wait = idle
        idle = np.minimum(np.minimum(wait, to_demand), to_spot)
        spot = np.minimum(np.minimum(wait, to_demand), keep_spot)
        demand = np.minimum(np.minimum(wait, keep_demand), to_spot)
        idle[0] = spot[0] = demand[0] = 0.0
    value = float(idle[most - lost])
    ticks = int(value + small / 2)
    return round((value - ticks) / small) * tick, ticks * tick


def record(path: Path) -> tuple[float, np.ndarray]:
    """Hours of a tick, and whether all nodes were to be had."""
    with gzip.open(path, "rt") as file:
        read = json.load(file)
    tick, nodes = read["metadata"]["gap_seconds"] / 3600, np.array(read["data"])
    there = nodes >= nodes.max()
    merged = max(1, round(COARSEST / tick))
    there = there[: len(there) // merged * merged].reshape(-1, merged).all(axis=1)
    return tick * merged, there


def run(path: Path, count: int) -> dict[str, float] | None:
    tick, there = record(path)
    length = round(DEADLINE / tick)
    if len(there) < length:
        return None
    job = Job(work=FRACTION * length * tick, deadline=length * tick, changeover=CHANGEOVER)
    starts = np.unique(np.linspace(0, len(there) - length, count).astype(int))
    windows = [there[start : start + length] for start in starts]
    plans = np.array([omniscient(window, tick, job) for window in windows])
    best = float((plans @ [SPOT_PRICE, 1]).mean())
    row = {"available": float(there.mean())}
    for name, rule in RULES.items():
        states = [replay(job, window.tolist(), tick, rule) for window in windows]
        row[f"{name}: missed"] = sum(s.progress < job.work - 1e-6 for s in states)
        cost = np.mean([SPOT_PRICE * s.spot_hours + s.on_demand_hours for s in states])
        row[f"{name}: spot use"] = sum(s.spot_hours for s in states) / plans[:, 0].sum()
        row[f"{name}: cost"] = float(cost) / best
    model = by_deadline(job.work, job.deadline, there.tolist(), tick, job.changeover)
    row["model over replay"] = model.dollars(SPOT_PRICE, 1) / float(cost)
    row["drawn over replay"] = drawn(job, there, tick) / float(cost)
    return row


def drawn(job: Job, there: np.ndarray, tick: float) -> float:
    """What the policy is expected to cost on markets like the record, drawn by chance."""
    edges = np.diff(there.astype(int))
    ends, begins = max((edges < 0).sum(), 0.5), max((edges > 0).sum(), 1)
    rate, gap = ends / (there.sum() * tick), max((~there).sum(), 1) * tick / begins
    way = Way(
        work=_exactly(job.work),
        pace=1.0,
        redo=0.0,
        changeover=job.changeover,
        wait=0.0,
        gap=float(gap),
        interruptions=_exactly(float(rate)),
        spot_price=SPOT_PRICE,
        on_demand_price=1.0,
    )
    (found,) = simulate([way], job.deadline, seed=0)
    return found.mixed.dollars.value


def _exactly(value: float) -> Estimate:
    return Estimate(value=value, low=value, high=value, n=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "spot")
    parser.add_argument("--windows", type=int, default=8, help="starts in each record")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    paths = sorted(given.data.glob("*.json.gz"))
    if not paths:
        sys.exit(f"no recorded market in '{given.data}': nothing to replay")
    rows = {path.name.removesuffix(".json.gz"): run(path, given.windows) for path in paths}
    kept = {name: row for name, row in rows.items() if row is not None}
    if given.json:
        print(json.dumps(kept, indent=1))
        return
    print(
        f"{'record':<58}{'there':>6}{'spot use of omniscient':>24}{'model/replay':>14}{'drawn':>8}"
    )
    for name, row in kept.items():
        uses = "".join(f"{row[f'{rule}: spot use']:>8.2f}" for rule in RULES)
        print(
            f"{name[:57]:<58}{row['available']:>6.2f}{uses}{row['model over replay']:>14.2f}"
            f"{row['drawn over replay']:>8.2f}"
        )
    over = f"mean over {len(kept)} records"
    print(f"\n{over:<32}{'spot use':>10}{'cost':>8}{'missed':>8}")
    for rule in RULES:
        figures = [
            [row[f"{rule}: {what}"] for row in kept.values()] for what in ("spot use", "cost")
        ]
        missed = sum(row[f"{rule}: missed"] for row in kept.values())
        use, cost = (float(np.mean(values)) for values in figures)
        print(f"{rule:<32}{use:>10.3f}{cost:>8.3f}{missed:>8}")
    print()
    for said, name in (("expected cost", "model"), ("drawn markets", "drawn")):
        errors = np.array([row[f"{name} over replay"] for row in kept.values()]) - 1
        print(
            f"{said} against the replayed mean: {errors.mean():+.1%} in the mean, worst "
            f"{errors[np.abs(errors).argmax()]:+.1%}, within 10 % on "
            f"{(np.abs(errors) <= 0.1).sum()} of {len(errors)}"
        )
    print("bars: no deadline missed, spot use 0.84 (greedy 0.63), cost within 10 %")


if __name__ == "__main__":
    main()
