"""Curves that throughput may follow by what bounds the work: a bank of bottleneck models.

The seconds of a sample are a sum: a part that no machine shortens, parts that shrink as an amount
grows (threads, bandwidth, memory, nodes), and a part that grows with the nodes, for they have to
agree. Ernest (Venkataraman et al., NSDI 2016) fits such a sum to one job; here nothing is fitted:
many are drawn, and tests tell which of them hold. And where memory is short of what the work keeps
in it, the work is slower, by a step or by how much is short.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from underdog.core.search_records import Floats

MOST, CELLS = 1024, 640_000  # curves, and those times candidates
FEWEST = 16
PARTS = 3  # amounts that shorten the work, at most
SHORT = 0.8  # chance that memory may be short
STEEP = (0.5, 4.0)  # power of the throughput over the memory where it is short
STEP = (0.4, 2.0)  # or the drop of its logarithm
MEMORY, NODES = "memory_gib", "nodes"
# What bounds no work: it is no amount, or one of the parts that a machine may lack, which its
# whole compute and bandwidth tell better.
NO_BOUNDS = re.compile(
    r"price_per_hour|kg_co2e|vector_bits|compute_capability|ratio|_power_|accelerator_(count|gb_per_s|"
    r"memory_gib$|usable)|^(fp|bf|tf|int)\d+_t"
)


def bottlenecks(amounts: Mapping[str, Floats]) -> Floats:
    """Curves of log throughput about zero, (n, C); (n, 0) where no amount is known.

    Args:
        amounts: logarithms about their mean of facts by name, each (n,).
    """
    names = sorted(name for name in amounts if not NO_BOUNDS.search(name))
    size = len(next(iter(amounts.values()), ()))
    if not names:
        return np.zeros((size, 0))
    rng = np.random.default_rng(0)
    count = min(MOST, max(FEWEST, CELLS // size))
    return np.column_stack([_curve(amounts, names, rng) for _ in range(count)])


def _curve(amounts: Mapping[str, Floats], names: list[str], rng: np.random.Generator) -> Floats:
    some = rng.permutation(names)[: rng.integers(1, PARTS + 1)].tolist()
    # of the time at the mean of all amounts
    fixed, *shares, agreeing = rng.dirichlet(np.ones(len(some) + 2))
    seconds = np.full(len(amounts[names[0]]), fixed)
    for name, share in zip(some, shares, strict=True):
        seconds += share * np.exp(-amounts[name])
    if NODES in amounts:
        seconds += agreeing * np.exp(amounts[NODES])
    logs = -np.log(seconds)
    memories = [name for name in names if MEMORY in name]
    if memories and rng.random() < SHORT:
        memory = amounts[memories[rng.integers(len(memories))]]
        wanted = rng.uniform(memory.min(), memory.max())
        if rng.random() < 0.5:
            logs -= rng.uniform(*STEP) * (memory < wanted)
        else:
            logs -= rng.uniform(*STEEP) * np.maximum(wanted - memory, 0.0)
    return np.asarray(logs - logs.mean())
