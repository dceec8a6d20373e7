"""Predictions keep to what is known, and their intervals hold what public data shows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.predict import WIDTHS, Prediction, Reference, Transfer, predict
from underdog.core.roofline import Hardware
from underdog.model import Estimate, Profile

T4 = {
    "arch": "x86_64",
    "vcpus": 4,
    "accelerator": "T4",
    "accelerator_count": 1,
    "accelerator_gb_per_s": 320,
    "fp32_tflops": 8.1,
    "fp16_tflops": 65,
    "software": "cuda",
}
A10G = T4 | {"accelerator": "A10G", "accelerator_gb_per_s": 600, "fp32_tflops": 31.2}
MI300X = T4 | {"accelerator": "MI300X", "software": "rocm", "accelerator_gb_per_s": 5300}
CPU = {"arch": "x86_64", "vcpus": 96, "cpu_fp32_tflops": 9.0, "accelerator_count": 0}
GRAVITON = CPU | {"arch": "arm64"}


def from_one(
    source: dict[str, Any], *targets: dict[str, Any], rate: float = 100.0, **more: Any
) -> Prediction:
    estimate = Estimate(value=rate, low=rate, high=rate, n=1)
    return predict(Hardware.of(targets), Hardware.of([source]), [Reference(estimate, **more)])


def kinds(found: Prediction) -> list[Transfer]:
    return [Transfer(kind) for kind in found.transfer]


def test_four_accelerators_predict_one_and_hold_slower_and_four_times() -> None:
    # tokens per second of one stream: 21,125 on one T4, 10,964 on four (Spare Cores)
    found = from_one(T4, T4 | {"accelerator_count": 4}, rate=21125)
    assert found.value[0] == pytest.approx(21125)
    assert found.low[0] < 10964
    assert found.high[0] > 4 * 21125


def test_one_accelerator_from_four_holds_a_quarter_and_twice() -> None:
    found = from_one(T4 | {"accelerator_count": 4}, T4, rate=10964)
    assert found.low[0] < 10964 / 4
    assert found.high[0] > 21125


def test_twice_the_threads_may_be_slower() -> None:
    # tokens per second: 50.3 on 96 vCPUs, 32.9 on 192 (Spare Cores)
    found = from_one(CPU, CPU | {"vcpus": 192, "cpu_fp32_tflops": 18.0}, rate=50.3)
    assert found.low[0] < 32.9
    assert found.high[0] > 2 * 50.3
    assert found.value[0] < 2 * 50.3


def test_a_script_that_leaves_accelerators_idle_gains_nothing_from_more() -> None:
    four, eight = T4 | {"accelerator_count": 4}, T4 | {"accelerator_count": 8}
    found = from_one(four, eight, accelerators_used=1)
    assert found.high[0] < 2 * 100


def test_the_kind_of_difference() -> None:
    accelerated = from_one(T4, T4 | {"vcpus": 64}, A10G, MI300X, CPU)
    assert kinds(accelerated) == [
        Transfer.SAME_ACCELERATOR,
        Transfer.OTHER_ACCELERATOR,
        Transfer.OTHER_STACK,
        Transfer.ACCELERATOR_TO_PROCESSOR,
    ]
    assert kinds(from_one(CPU, CPU | {"vcpus": 8}, GRAVITON, T4)) == [
        Transfer.SAME_ARCHITECTURE,
        Transfer.OTHER_ARCHITECTURE,
        Transfer.PROCESSOR_TO_ACCELERATOR,
    ]
    milan = CPU | {"cpu_model": "AMD Milan"}
    assert kinds(from_one(milan, milan | {"vcpus": 8})) == [Transfer.SAME_PROCESSOR]


def test_the_nearest_reference_speaks() -> None:
    estimates = [Estimate(value=v, low=v, high=v, n=1) for v in (500.0, 50.0)]
    references = [Reference(estimate) for estimate in estimates]
    found = predict(Hardware.of([A10G | {"vcpus": 32}]), Hardware.of([T4, A10G]), references)
    assert found.reference[0] == 1
    assert found.value[0] == pytest.approx(50)


def test_a_profile_tells_which_limit_holds() -> None:
    compute = Profile(flops_per_sample=1e12, memory_traffic_bytes_per_sample=1)
    memory = Profile(flops_per_sample=1, memory_traffic_bytes_per_sample=1e12)
    assert from_one(T4, A10G, profile=compute).value[0] == pytest.approx(100 * 31.2 / 8.1)
    assert from_one(T4, A10G, profile=memory).value[0] == pytest.approx(100 * 600 / 320)
    half = Profile(flops_per_sample=1e12, number_format="float16")
    same_half = A10G | {"fp16_tflops": 130}
    assert from_one(T4, same_half, profile=half).value[0] == pytest.approx(200)


def test_a_host_bound_job_gains_little_for_sure() -> None:
    free, bound = from_one(T4, A10G), from_one(T4, A10G, host_bound=True)
    assert bound.value[0] < free.value[0]
    assert bound.low[0] <= free.low[0] * 1.001
    assert bound.high[0] >= free.high[0] * 0.999


def test_launching_kernels_bounds_a_small_model() -> None:
    tiny = Profile(flops_per_sample=1e3, memory_traffic_bytes_per_sample=1e3, batch_size=8)
    assert from_one(CPU, T4, profile=tiny, rate=1e4).value[0] <= 8 / 3e-3


def test_nothing_known_predicts_nothing() -> None:
    bare = {"accelerator": "X1", "accelerator_count": 1, "software": "cuda"}
    assert math.isnan(from_one(T4, bare).value[0])
    assert math.isnan(from_one(T4, {"accelerator_count": 0}).value[0])
    nothing = predict(Hardware.of([T4]), Hardware.of([]), [])
    assert math.isnan(nothing.value[0])
    assert nothing.reference[0] == -1


@given(
    st.floats(1e-3, 1e6),
    st.sampled_from([T4, A10G, MI300X, CPU, GRAVITON]),
    st.sampled_from([T4, A10G, MI300X, CPU, GRAVITON]),
    st.sampled_from([0.25, 1, 2, 4, 8]),
    st.integers(1, 448),
)
def test_intervals_are_finite_ordered_and_scale(
    rate: float, source: dict[str, Any], target: dict[str, Any], count: float, vcpus: int
) -> None:
    if target["accelerator_count"]:
        target = target | {"accelerator_count": count}
    else:
        target = target | {"vcpus": vcpus, "cpu_fp32_tflops": vcpus * 0.09}
    one, ten = from_one(source, target, rate=rate), from_one(source, target, rate=10 * rate)
    ends = np.array([one.low[0], one.value[0], one.high[0]])
    assert np.isfinite(ends).all()
    assert (ends > 0).all()
    assert (np.diff(ends) > 0).all()
    assert ten.value[0] == pytest.approx(10 * one.value[0])


def test_a_profile_never_widens() -> None:
    assert all(with_profile <= without for without, with_profile in WIDTHS.values())
