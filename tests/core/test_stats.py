"""Rates with intervals that hold the truth as often as they say."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from underdog.core.series import Series, combine
from underdog.core.stats import Throughput, is_precise, throughput
from underdog.model import Estimate

Floats = NDArray[np.float64]


def make(seconds: Any, samples: Any = 32.0, pauses: Any = ()) -> Series:
    taken = np.asarray(seconds, dtype=float)
    end = np.cumsum(taken)
    return Series(
        start=np.concatenate(([0.0], end[:-1])),
        end=end,
        samples=np.broadcast_to(np.asarray(samples, dtype=float), taken.shape).copy(),
        phases=np.zeros((len(taken), 6)),
        skipped=np.zeros(len(taken), dtype=bool),
        pauses=tuple(pauses),
    )


def correlated(rng: np.random.Generator, n: int, phi: float) -> Floats:
    series = np.empty(n)
    last = rng.standard_normal()
    for i, term in enumerate((rng.standard_normal(n) * math.sqrt(1 - phi**2)).tolist()):
        last = phi * last + term
        series[i] = last
    return series


def rate_of(result: Throughput) -> Estimate:
    assert result.samples_per_second is not None
    return result.samples_per_second


def codes(result: Throughput) -> list[str]:
    return [caveat.code for caveat in result.caveats]


@pytest.mark.slow
@pytest.mark.parametrize(("phi", "n"), [(0.0, 50), (0.0, 1000), (0.5, 200), (0.8, 200), (0.9, 500)])
def test_the_interval_holds_the_truth(phi: float, n: int) -> None:
    """Of 400 at 95 %, 371 to 395 lie within three standard errors of the band 93 to 97 %."""
    rng = np.random.default_rng([n, int(10 * phi)])
    held = 0
    for _ in range(400):
        rate = rate_of(throughput(make(0.1 + 0.005 * correlated(rng, n, phi))))
        held += rate.low <= 320 <= rate.high
    assert 400 * 0.93 - 15 <= held <= 400 * 0.97 + 10


def test_the_interval_is_little_wider_than_it_must_be() -> None:
    rng = np.random.default_rng(0)
    widths = []
    for _ in range(60):
        rate = rate_of(throughput(make(0.1 + 0.005 * rng.standard_normal(1000))))
        widths.append((rate.high - rate.low) / 2 / rate.value)
    assert np.median(widths) == pytest.approx(1.96 * 0.05 / math.sqrt(1000), rel=0.15)


def test_correlated_steps_have_a_wider_interval() -> None:
    rng = np.random.default_rng(0)
    result = throughput(make(0.1 + 0.005 * correlated(rng, 2000, 0.9)))
    rate = rate_of(result)
    honest = 1.96 * 0.05 / math.sqrt(2000) * math.sqrt(19)
    assert (rate.high - rate.low) / 2 / rate.value == pytest.approx(honest, rel=0.4)
    assert result.effective < 400


def test_batches_of_different_sizes_are_no_noise() -> None:
    """The rate is Σ/Σ, not a mean of rates, and time that goes with the samples is not spread."""
    rng = np.random.default_rng(1)
    samples = rng.integers(1, 65, 400).astype(float)
    result = throughput(make(samples * 0.01, samples))
    rate = rate_of(result)
    assert rate.value == pytest.approx(100)
    assert rate.high - rate.low < 1e-6
    assert result.step_seconds is not None
    assert result.step_seconds.high > 1.05 * result.step_seconds.low


def test_everything_is_counted() -> None:
    seconds = np.r_[5.0, np.full(99, 0.1)]
    seconds[[2, 20]] += [0.02, 0.05]  # a profile, then an evaluation
    series = make(seconds, 32, [("profile", 5.1, 5.12), ("evaluation", 7.0, 7.05)])
    series.phases[:] = [0.02, 0, 0.03, 0.03, 0, 0]
    series = replace(series, skipped=np.arange(100) == 3, ranks=2)
    result = throughput(series)
    assert (result.steps, result.samples, result.skipped_steps) == (100, 3200, 1)
    assert (result.batch_size, result.ranks) == (32, 2)
    assert result.warmup_steps == 1
    assert result.warmup_seconds == pytest.approx(5)
    assert result.seconds == pytest.approx(14.97)
    assert result.pauses == pytest.approx({"evaluation": 0.05})
    assert result.pause_counts == {"evaluation": 1}
    assert rate_of(result).value == pytest.approx(320)
    assert rate_of(result).n == 99
    assert result.samples_per_second_with_pauses == pytest.approx(99 * 32 / 9.95)
    assert sum(result.phases.values()) == pytest.approx(1)
    assert result.phases["data"] == pytest.approx(0.2)
    stored = result.measurement()
    assert stored.samples_per_second == result.samples_per_second
    assert stored.warmup_steps == 1


def test_a_first_step_whose_start_was_not_seen_is_left_out() -> None:
    result = throughput(make(np.r_[0.0, np.full(50, 0.1)]))
    assert (result.steps, result.samples) == (51, 51 * 32)
    assert rate_of(result).value == pytest.approx(320)
    assert codes(result) == []


def test_unknown_samples_give_no_rate_in_samples() -> None:
    result = throughput(make(np.full(50, 0.1), math.nan))
    assert result.samples_per_second is None
    assert result.samples is None
    assert result.batch_size is None
    assert result.steps_per_second is not None
    assert result.steps_per_second.value == pytest.approx(10)
    assert codes(result) == ["samples_unknown"]


def test_doubts_about_the_steps() -> None:
    rng = np.random.default_rng(4)
    noise = 0.1 + 0.002 * rng.standard_normal(400)
    assert codes(throughput(make(noise))) == []
    assert codes(throughput(make(noise[:10]))) == ["too_few_steps"]
    assert "drifting" in codes(throughput(make(noise * np.linspace(1, 2, 400))))
    two = noise * np.where(rng.random(400) < 0.4, 2, 1)
    assert codes(throughput(make(two))) == ["bimodal_steps"]
    stalled = noise.copy()
    stalled[300] = 8.0
    assert "stalls" in codes(throughput(make(stalled)))
    backwards = noise.copy()
    backwards[50] = -1.0
    assert "clock_problem" in codes(throughput(make(backwards)))
    paused = make(np.where(np.arange(400) % 50 == 0, 20.0, noise))
    evaluations = [("evaluation", end - 19.9, end) for end in paused.end[::50]]
    assert codes(throughput(replace(paused, pauses=tuple(evaluations)))) == ["pauses_dominate"]
    slow_swell = 0.1 + 0.05 * np.sin(np.arange(40) / 15)
    assert "too_few_steps" in codes(throughput(make(slow_swell)))


def test_precise_needs_a_narrow_interval_and_enough_steps() -> None:
    rng = np.random.default_rng(4)
    noise = 0.1 + 0.002 * rng.standard_normal(400)
    assert is_precise(throughput(make(noise)), 0.02)
    assert not is_precise(throughput(make(noise)), 0.001)
    assert not is_precise(throughput(make(noise[:20])), 0.02)
    assert not is_precise(throughput(make([])), 0.02)
    assert is_precise(throughput(make(noise, math.nan)), 0.02)


anything = st.floats(allow_nan=True, allow_infinity=True)
sane = st.floats(1e-3, 1e3)


def numbers(result: Throughput) -> list[float]:
    found = [result.warmup_seconds, result.seconds, result.effective, *result.phases.values()]
    found += [result.samples_per_second_with_pauses or 0.0, result.batch_size or 0.0]
    for estimate in (result.samples_per_second, result.steps_per_second, result.step_seconds):
        if estimate is not None:
            assert 0 < estimate.low <= estimate.value <= estimate.high
            found += [estimate.low, estimate.value, estimate.high]
    return found


@given(
    st.lists(st.one_of(anything, sane), max_size=40),
    st.lists(st.one_of(anything, sane), min_size=40, max_size=40),
    st.lists(st.tuples(st.just("evaluation"), anything, anything), max_size=3),
)
def test_no_input_gives_a_number_that_is_none(
    seconds: list[float], samples: list[float], pauses: list[tuple[str, float, float]]
) -> None:
    with np.errstate(all="ignore"):
        series = make(seconds, samples[: len(seconds)], pauses)
        series.phases[:] = np.array(samples[: len(seconds)]).reshape(-1, 1)
    result = throughput(series)
    assert all(math.isfinite(number) for number in numbers(result))
    if result.samples_per_second is None:
        assert result.caveats


@given(st.lists(sane, min_size=3, max_size=60), st.sampled_from([0.125, 2.0, 64.0]))
def test_time_times_k_is_rate_over_k(seconds: list[float], factor: float) -> None:
    one, other = throughput(make(seconds)), throughput(make(np.array(seconds) * factor))
    a, b = rate_of(one), rate_of(other)
    assert (b.value, b.low, b.high) == pytest.approx(
        (a.value / factor, a.low / factor, a.high / factor), rel=1e-6
    )
    assert one.warmup_steps == other.warmup_steps


@settings(max_examples=25)
@given(st.integers(1, 60), st.floats(1.5, 100), st.integers(0, 1000))
def test_a_warm_up_changes_the_answer_little(steps: int, factor: float, seed: int) -> None:
    steady = 0.1 + 0.002 * np.random.default_rng(seed).standard_normal(200)
    cold = throughput(make(np.r_[steady[:steps] * factor, steady]))
    assert rate_of(cold).value == pytest.approx(32 * 200 / steady.sum(), rel=0.01)


@settings(max_examples=25)
@given(st.permutations(range(3)), st.integers(0, 1000))
def test_the_order_of_the_ranks_does_not_matter(order: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    ranks = [
        replace(make(0.1 + 0.01 * rng.random(60)), rank=rank, world_size=3) for rank in range(3)
    ]
    one, other = combine(ranks), combine([ranks[i] for i in order])
    assert one is not None
    assert other is not None
    assert throughput(one.series) == throughput(other.series)
    assert rate_of(throughput(one.series)).value > 2 * 320
