"""Curves of what bounds the work, and the resources of whole machines that they go by."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from search_cases import FEW, play

from underdog.core.search import Candidates, Search, samples_per_dollar
from underdog.core.search_bottlenecks import bottlenecks
from underdog.core.search_features import encode

LOGS = arrays(float, 12, elements=st.floats(-4, 4, allow_nan=False))


def centred(values: np.ndarray) -> np.ndarray:
    return np.asarray(values - values.mean())


@FEW
@given(LOGS, LOGS)
def test_more_of_what_bounds_the_work_never_slows_it(vcpus: np.ndarray, memory: np.ndarray) -> None:
    curves = bottlenecks({"vcpus": centred(vcpus), "memory_gib": centred(memory)})
    assert np.isfinite(curves).all()
    np.testing.assert_allclose(curves.mean(axis=0), 0.0, atol=1e-9)
    for one in range(12):
        more = (vcpus >= vcpus[one]) & (memory >= memory[one])
        assert (curves[more] >= curves[one] - 1e-9).all()


def test_nodes_help_up_to_a_point() -> None:
    curves = bottlenecks({"nodes": np.log([0.25, 0.5, 1.0, 2.0, 4.0])})
    best = set(np.argmax(curves, axis=0).tolist())
    assert {0, 4} < best  # work that nodes only slow down, and work that they still speed up


def test_where_no_amount_is_known_there_is_no_curve() -> None:
    assert bottlenecks({}).size == 0
    assert bottlenecks({"price_per_hour": np.zeros(3)}).shape == (3, 0)


@pytest.mark.parametrize("size", [1, 60, 3_000])
def test_there_are_fewer_curves_for_many_candidates(size: int) -> None:
    curves = bottlenecks({"vcpus": np.linspace(-1, 1, size)})
    assert len(curves) == size
    assert 16 <= curves.shape[1] <= min(1024, max(16, 640_000 // size))


def machines() -> Candidates:
    """A processor, one accelerator, four of them, an eighth, and one that is not known."""
    unknown = math.nan
    return Candidates(
        ["processor", "one", "four", "eighth", "strange"],
        np.array([1.0, 1.0, 5.0, 0.2, 1.0]),
        {
            "accelerator_count": np.array([0.0, 1.0, 4.0, 0.125, 1.0]),
            "fp16_tflops": np.array([unknown, 70.0, 70.0, 120.0, unknown]),
            "fp32_tflops": np.array([unknown, 31.0, 31.0, 30.0, unknown]),
            "accelerator_gb_per_s": np.array([unknown, 600.0, 600.0, 300.0, unknown]),
            "cpu_fp32_tflops": np.array([4.0, 0.2, 2.5, 0.2, 0.4]),
            "cpu_memory_gb_per_s": np.array([100.0, 8.0, 100.0, 6.0, 9.0]),
        },
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("all compute", [4.0, 70.0, 280.0, 15.0, None]),
        ("compute", [4.0, 70.0, 70.0, 15.0, None]),
        ("all single-precision compute", [4.0, 31.0, 124.0, 3.75, None]),
        ("all bandwidth", [100.0, 600.0, 2400.0, 37.5, None]),
    ],
)
def test_a_machine_computes_by_its_accelerators_else_by_its_processor(
    name: str, expected: list[float | None]
) -> None:
    found = encode([machines()]).resources[name]
    known = np.array([value is not None for value in expected])
    logs = np.log([value for value in expected if value is not None])
    np.testing.assert_allclose(found[known], logs - logs.mean())
    assert (found[~known] == 0).all()  # what is not known counts as the mean


def test_processors_alone_have_no_such_resources() -> None:
    numbers = {"vcpus": np.array([2.0, 4.0]), "cpu_fp32_tflops": np.array([1.0, 2.0])}
    assert encode([Candidates(["a", "b"], np.ones(2), numbers)]).resources == {}


@pytest.mark.parametrize("seed", [0, 3, 5])
def test_work_bound_by_compute_is_found_out_without_any_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 300
    has = rng.random(count) < 0.15
    vcpus = 2.0 ** rng.integers(1, 7, count)
    numbers = {
        "vcpus": vcpus,
        "memory_gib": 4 * vcpus,
        "accelerator_count": has.astype(float),
        "fp16_tflops": np.where(has, rng.choice([65.0, 120.0, 242.0, 362.0], count), np.nan),
        "accelerator_gb_per_s": np.where(has, rng.choice([300.0, 600.0, 900.0], count), np.nan),
        "cpu_fp32_tflops": 0.1 * vcpus * rng.choice([1, 2, 3], count),
        "cpu_memory_gb_per_s": 4.0 * vcpus,
    }
    price = 0.05 * vcpus + np.where(has, 0.7, 0.0)
    compute = np.where(has, numbers["fp16_tflops"], numbers["cpu_fp32_tflops"])
    rate = compute * rng.lognormal(0, 0.05, count)
    candidates = Candidates([f"m{i:03d}" for i in range(count)], price, numbers)
    tested = play(Search(candidates, samples_per_dollar, seed=seed), rate, 6)
    value = rate / price
    assert value[tested].max() > 0.9 * value.max()
