"""Offers, rates and references made up for the tests of the search."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from underdog.core.search import (
    Candidates,
    Failure,
    Measured,
    Reference,
    Search,
    samples_per_dollar,
)

SEEDS = st.integers(0, 10_000)
FEW = settings(max_examples=4, deadline=None)


def offers(count: int, seed: int = 0, unknown: float = 0.0) -> Candidates:
    rng = np.random.default_rng(seed)
    vcpus = 2.0 ** rng.integers(1, 7, count)
    memory = vcpus * 2.0 ** rng.integers(1, 4, count)
    count_ = np.where(rng.random(count) < 0.3, 2.0 ** rng.integers(0, 4, count), 0.0)
    price = 0.04 * vcpus + 0.004 * memory + 0.7 * count_
    price = np.where(rng.random(count) < unknown, np.nan, price * rng.uniform(0.8, 1.2, count))
    kinds = ["L4", "A100"]
    texts = [
        kinds[int(i)] if c else None for i, c in zip(rng.integers(0, 2, count), count_, strict=True)
    ]
    return Candidates(
        [f"offer-{i:05d}" for i in range(count)],
        price,
        {
            "vcpus": vcpus,
            "memory_gib": memory,
            "accelerator_count": count_,
            "accelerator_memory_gib_total": 24.0 * count_,
        },
        {"accelerator": texts, "arch": ["x86_64"] * count},
    )


def truth(candidates: Candidates, seed: int) -> np.ndarray:
    """Throughput of one made-up workload: a product of powers of the facts, and some noise."""
    rng = np.random.default_rng(seed)
    logs = rng.uniform(0.3, 1.0) * np.log(candidates.numbers["vcpus"])
    logs = logs + rng.uniform(0, 0.5) * np.log(candidates.numbers["memory_gib"])
    logs = logs + rng.uniform(0, 3) * np.log1p(candidates.numbers["accelerator_count"])
    return np.exp(logs + rng.normal(0, 0.1, len(candidates)) + rng.normal(0, 2))


def references(candidates: Candidates, count: int, seed: int = 100) -> list[Reference]:
    return [Reference(f"job-{i}", truth(candidates, seed + i)) for i in range(count)]


def play(search: Search, rates: np.ndarray, tests: int) -> list[int]:
    """Test what is suggested; a NaN is a failure."""
    asked = []
    for _ in range(tests):
        found = search.ask()
        if not found:
            break
        index = found[0].index
        asked.append(index)
        rate = float(rates[index])
        search.tell(index, Measured(rate) if np.isfinite(rate) else Failure())
    return asked


def permuted(candidates: Candidates, order: np.ndarray) -> Candidates:
    return Candidates(
        [candidates.names[i] for i in order],
        candidates.price_per_hour[order],
        {name: values[order] for name, values in candidates.numbers.items()},
        {name: [texts[i] for i in order] for name, texts in candidates.texts.items()},
    )


def average_reached(
    known: Callable[[Candidates, int], list[Reference]], tests: int, runs: int
) -> float:
    reached = []
    for seed in range(runs):
        candidates = offers(60, seed)
        rates = truth(candidates, seed)
        value = rates / candidates.price_per_hour
        search = Search(candidates, samples_per_dollar, references=known(candidates, seed))
        asked = play(search, rates, tests)
        reached.append(value[asked].max() / value.max())
    return float(np.mean(reached))
