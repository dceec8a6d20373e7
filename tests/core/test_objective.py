"""The value that a search raises is the utility, limits and direction included."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offers_and_trials import offer, plain

from underdog.core.objective import Job, Objective
from underdog.core.utility import parse_utility

ROWS = [offer("a", 1.0), offer("b", 2.0), plain("c", 0.5), offer("d", None)]
PRICE = np.array([1.0, 2.0, 0.5, np.nan])
RATE = np.array([10.0, 30.0, 4.0, 100.0])


def objective(by: str, job: Job | None = None, **more: object) -> Objective:
    job = job or Job(samples=36_000)
    utility = parse_utility(by, has_samples=job.samples is not None, **more)  # type: ignore[arg-type]
    return Objective(utility, ROWS, job)


@pytest.mark.parametrize(
    ("by", "values"),
    [
        ("samples_per_second", [10, 30, 4, 100]),
        ("samples_per_dollar", [36_000, 54_000, 28_800, math.nan]),
        ("dollars_to_train", [1, 1.5, 0.8, math.nan]),
        ("samples_per_second / (price_per_hour + 1)", [5, 10, 4 / 1.5, math.nan]),
        # what looks at more than the price needs one
        ("if(accelerator = 'A10G', samples_per_second, 0.0)", [10, 30, 0, math.nan]),
        ("samples_per_kwh", [10 * 3.6e6 / 150, 30 * 3.6e6 / 150, math.nan, math.nan]),
        ("price_per_hour", [1, 1 / 2, 2, math.nan]),
    ],
)
def test_values(by: str, values: list[float]) -> None:
    found = objective(by)
    value = found(RATE, found.prices)
    np.testing.assert_allclose(value, values, rtol=1e-9)
    # a search asks for some of the candidates, in any order
    for some in ([2, 0], [1], [3, 1, 1]):
        part = found(np.array([RATE[some], RATE[some]]), found.prices[some])
        np.testing.assert_allclose(part, [value[some]] * 2)


def test_less_is_better_turned_over_and_back() -> None:
    found = objective("hours_to_train")
    value = found(RATE, PRICE)
    assert int(np.nanargmax(value)) == 3
    assert found.as_given(float(value[0])) == pytest.approx(1.0)
    assert objective("samples_per_second").as_given(5.0) == 5.0


def test_a_limit_that_is_missed_is_minus_infinity() -> None:
    deadline = objective("samples_per_dollar", Job(36_000, deadline_hours=1.0))(RATE, PRICE)
    np.testing.assert_array_equal(np.isneginf(deadline), [False, False, True, False])
    budget = objective("samples_per_second", Job(36_000, budget=0.9))(RATE, PRICE)
    np.testing.assert_array_equal(np.isneginf(budget), [True, False, True, False])
    assert np.isnan(budget[3])  # its price is unknown, and so whether it keeps the budget


def test_the_cheapest_that_is_fast_enough() -> None:
    value = objective("price_per_hour", Job(36_000, deadline_hours=1.0))(RATE, PRICE)
    assert int(np.nanargmax(value)) == 0


def test_an_expression_over_many_draws_is_that_over_each() -> None:
    draws = np.vstack([RATE, RATE * 2, np.where(RATE > 20, np.nan, RATE)])[None]
    for by in ("samples_per_second * memory_gib / price_per_hour", "samples_per_dollar"):
        found = objective(by)
        each = np.array([[found(row, found.prices) for row in draws[0]]])
        np.testing.assert_allclose(found(draws, found.prices), each)


def test_nothing_known_has_no_value() -> None:
    found = objective("samples_per_second * vcpus")
    assert np.isnan(found(np.full(4, np.nan), found.prices)).all()
    assert np.isnan(found(RATE, np.full(4, 77.0))).all()  # the price of no candidate
    with np.errstate(all="raise"):
        assert np.isnan(objective("samples_per_dollar")(np.full((2, 4), np.nan), PRICE)).all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(1e-90, 1e90) | st.just(math.nan), min_size=4, max_size=4))
def test_a_metric_and_its_expression_agree(rates: list[float]) -> None:
    throughput = np.array(rates)
    by_metric = objective("samples_per_dollar")(throughput, PRICE)
    spelled = objective("samples_per_second * 3600.0 / price_per_hour")(throughput, PRICE)
    np.testing.assert_allclose(by_metric, spelled, rtol=1e-12)


def test_equal_prices_are_told_apart_where_the_utility_looks_further() -> None:
    rows = [offer("a", 1.0, memory_gib=8), offer("b", 1.0, memory_gib=64), offer("c", 0.5)]
    found = Objective(parse_utility("samples_per_second * memory_gib"), rows, Job())
    assert len(set(found.prices)) == 3
    np.testing.assert_allclose(found.prices, [1.0, 1.0, 0.5], rtol=1e-9)
    np.testing.assert_allclose(found(np.full(3, 2.0), found.prices), [16, 128, 32])
    plain_one = Objective(parse_utility("samples_per_dollar"), rows, Job())
    np.testing.assert_array_equal(plain_one.prices, [1.0, 1.0, 0.5])
