"""The transient at the start is found, and nothing else is taken for it."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from underdog.core.warmup import find_warmup

Floats = NDArray[np.float64]

SHAPES: dict[str, Callable[[Floats], Floats]] = {
    "none": np.ones_like,
    "first step 1000×": lambda t: np.where(t == 0, 1000.0, 1.0),
    "settling": lambda t: 1 + 3 * np.exp(-t / 0.02),
    "slow settling": lambda t: 1 + np.exp(-t / 0.05),
    "level": lambda t: np.where(t < 0.1, 1.3, 1.0),
    "level for half": lambda t: np.where(t < 0.5, 1.3, 1.0),
    "quick at first": lambda t: np.where(t < 0.2, 0.8, 1.0),
    "compiled again": lambda t: np.where(np.abs(t - 0.3) < 0.6 / len(t), 200.0, 1.0),
}


def noise(kind: str, rng: np.random.Generator, n: int) -> Floats:
    white = rng.standard_normal(n)
    if kind == "bimodal":
        return np.where(rng.random(n) < 1 / 3, 1.4, -0.7)
    if kind == "periodic":
        return white + 20 * (np.arange(n) % 100 == 7) - 0.2
    if kind == "correlated":
        series = np.empty(n)
        last = 0.0
        for i in range(n):
            last = 0.7 * last + white[i] * math.sqrt(1 - 0.49)
            series[i] = last
        return series
    return white


@pytest.mark.parametrize("ground", ["white", "correlated", "bimodal", "periodic"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_bias_after_the_cut_is_below_half_a_percent(shape: str, ground: str) -> None:
    n, errors = 500, []
    rng = np.random.default_rng(11)
    for _ in range(12):
        steady = 0.1 * (1 + 0.05 * noise(ground, rng, n))
        seconds = steady * SHAPES[shape](np.arange(n) / n)
        cut = find_warmup(seconds).steps
        assert cut <= n // 2
        errors.append(seconds[cut:].mean() / steady.mean() - 1)
    assert abs(float(np.mean(errors))) < 0.005


def test_a_steady_run_keeps_its_steps() -> None:
    rng = np.random.default_rng(5)
    cut = [find_warmup(0.1 + 0.005 * rng.standard_normal(200)).steps for _ in range(60)]
    assert np.mean(np.array(cut) > 0) <= 0.1


def test_a_slow_first_of_five_is_warm_up() -> None:
    """Case C4 as steps."""
    assert find_warmup(np.array([1.25, 1.0, 1.01, 0.99, 1.0])).steps == 1


def test_a_run_without_noise_loses_its_transient_and_no_more_than_half_again() -> None:
    seconds = np.r_[np.full(20, 1.5), np.full(180, 1.0)]
    found = find_warmup(seconds)
    assert 20 <= found.steps <= 30
    assert found.settled
    assert find_warmup(np.full(100, 0.1)) == (0, True)


def test_a_drift_is_not_warm_up() -> None:
    rng = np.random.default_rng(2)
    drifting = np.linspace(1, 1.5, 400) * (1 + 0.01 * rng.standard_normal(400))
    assert not find_warmup(drifting).settled
    steady = 1 + 0.01 * rng.standard_normal(400)
    assert find_warmup(steady).settled


def test_slow_steps_that_come_again_are_not_cut() -> None:
    seconds = np.ones(300)
    seconds[40::60] = 50.0
    assert find_warmup(seconds).steps == 0
