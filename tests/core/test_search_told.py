"""What a search is told and what it says: faults of the input, ends, utilities, beliefs, speed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from search_cases import offers, play, references, truth

from underdog.core.search import (
    Candidates,
    Failure,
    Measured,
    Prediction,
    Reference,
    Search,
    cheapest_above,
    cheapest_within,
    fastest,
    samples_per_dollar,
    soonest_within,
)
from underdog.errors import UsageError


def test_told_twice_a_measurement_weighs_more_and_a_failure_is_told_once() -> None:
    candidates = offers(20)
    search = Search(candidates, fastest)
    search.tell(2, Measured(10.0, relative_sd=0.3))
    search.tell(2, Measured(20.0, relative_sd=0.1))
    assert 17.0 < search.beliefs().measured[2] < 20.0
    search.tell(3, Failure())
    once = search.beliefs().chance_of_failure
    search.tell(3, Failure())
    np.testing.assert_array_equal(search.beliefs().chance_of_failure, once)
    search.tell(3, Measured(5.0))
    assert not search.beliefs().failed[3]


@pytest.mark.parametrize("rate", [0.0, -1.0, np.nan, np.inf])
def test_what_is_no_throughput_is_refused(rate: float) -> None:
    with pytest.raises(UsageError, match="positive and finite"):
        Measured(rate)
    if not np.isnan(rate):
        with pytest.raises(UsageError, match="'job'"):
            Reference("job", np.array([1.0, rate]))


@pytest.mark.parametrize("price", [0.0, -2.0, np.inf])
def test_what_is_no_price_is_refused(price: float) -> None:
    with pytest.raises(UsageError, match="'b'"):
        Candidates(["a", "b"], np.array([1.0, price]))


def test_faults_of_the_input_are_named() -> None:
    one = np.array([1.0, 2.0])
    with pytest.raises(UsageError, match="at least one"):
        Candidates([], np.zeros(0))
    with pytest.raises(UsageError, match="distinct"):
        Candidates(["a", "a"], one)
    with pytest.raises(UsageError, match="vcpus"):
        Candidates(["a", "b"], one, {"vcpus": np.ones(3)})
    candidates = Candidates(["a", "b"], one)
    with pytest.raises(UsageError, match="no kind of failure"):
        Failure("tired")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="relative"):
        Measured(1.0, np.nan)
    with pytest.raises(UsageError, match="candidate 2"):
        Search(candidates, fastest).tell(2, Measured(1.0))
    with pytest.raises(UsageError, match="reference 'j'"):
        Search(candidates, fastest, references=[Reference("j", np.ones(3))])
    with pytest.raises(UsageError, match="allowed"):
        Search(candidates, fastest, allowed=np.ones(5, bool))


def test_huge_and_tiny_throughputs_are_survived() -> None:
    candidates = offers(20)
    search = Search(candidates, samples_per_dollar)
    for index, rate in enumerate([1e-290, 1e290, 1.0]):
        search.tell(index, Measured(rate))
    assert search.ask(3)
    assert np.isfinite(search.beliefs().throughput).all()


def test_one_candidate_is_asked_once_and_then_the_search_stops() -> None:
    search = Search(Candidates(["only"], np.array([2.0])), samples_per_dollar)
    assert not search.stop().stop
    assert [one.name for one in search.ask(5)] == ["only"]
    search.tell(0, Measured(4.0))
    assert search.ask() == []
    assert search.stop().stop
    assert search.stop().expected_loss == 0.0


def test_where_all_failed_the_search_ends_without_a_best() -> None:
    candidates = offers(6)
    search = Search(candidates, samples_per_dollar)
    for index in range(6):
        assert not search.stop().stop
        search.tell(index, Failure())
    assert search.ask() == []
    assert search.stop().stop
    assert search.stop().expected_loss == 1.0


def test_the_search_stops_once_the_best_is_found_and_not_before_anything_is() -> None:
    candidates = offers(40, 5)
    rates = truth(candidates, 5)
    known = [Reference(f"j{i}", rates * (1 + i)) for i in range(3)]
    search = Search(candidates, samples_per_dollar, references=known)
    tests = 0
    while not search.stop().stop:
        play(search, rates, 1)
        tests += 1
        assert tests < 40
    assert tests < 15
    measured = np.nan_to_num(search.beliefs().measured)
    value = rates / candidates.price_per_hour
    assert (value[measured > 0]).max() > 0.95 * value.max()


UTILITIES = {
    "a floor": cheapest_above(8.0),
    "a deadline": cheapest_within(1e6, 5.0),
    "a budget": soonest_within(1e6, 50.0),
    "minus the cost": lambda throughput, price: np.where(throughput >= 8.0, -price, np.nan),
}


@pytest.mark.parametrize("name", UTILITIES)
def test_any_utility_is_searched(name: str) -> None:
    utility = UTILITIES[name]
    reached = []
    for seed in range(4):
        candidates = offers(60, seed)
        rates = truth(candidates, 2)
        rates = rates * 12.0 / np.median(rates)
        value = utility(rates, candidates.price_per_hour)
        rank = np.argsort(np.argsort(-np.nan_to_num(value, nan=-np.inf, neginf=-np.inf)))
        asked = play(Search(candidates, utility), rates, 10)
        reached.append(rank[asked].min())
    assert np.median(reached) <= 3


def test_a_prediction_leads_the_first_test() -> None:
    candidates = offers(50, 6)
    rates = truth(candidates, 6)
    logs = np.log(rates)
    logs[::5] = np.nan
    prediction = Prediction(logs)
    found = Search(candidates, samples_per_dollar, prediction=prediction).ask()[0].index
    value = rates / candidates.price_per_hour
    assert value[found] > np.quantile(value, 0.9)


def test_what_references_say_and_what_was_measured_are_kept_apart() -> None:
    candidates = offers(30, 7)
    known = references(candidates, 3)
    search = Search(candidates, samples_per_dollar, references=known)
    before = search.beliefs()
    search.tell(4, Measured(123.0))
    after = search.beliefs()
    np.testing.assert_array_equal(before.reference_throughput, after.reference_throughput)
    assert after.measured[4] == pytest.approx(123.0)
    assert np.isnan(np.delete(after.measured, 4)).all()
    assert set(after.reference_weights) == {"job-0", "job-1", "job-2"}
    assert 0 <= sum(after.reference_weights.values()) <= 1 + 1e-9
    assert (after.throughput_low <= after.throughput).all()
    assert (after.throughput <= after.throughput_high).all()
    alone = Search(candidates, samples_per_dollar).beliefs()
    assert np.isnan(alone.reference_throughput).all()


DECISIONS = """
import sys, time
from search_cases import offers, references, truth
from underdog.core.search import Measured, Search, samples_per_dollar

candidates = offers(int(sys.argv[1]), 1)
rates = truth(candidates, 1)
search = Search(candidates, samples_per_dollar, references=references(candidates, 5))
for _ in range(3):
    start = time.process_time()
    index = search.ask()[0].index
    print(time.process_time() - start)
    search.tell(index, Measured(float(rates[index])))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("count", "seconds"), [(2_500, 0.3), (100_000, 3.0)])
def test_a_decision_is_quick(count: int, seconds: float) -> None:
    # on one core: threads that wait for a core of a loaded machine count as work
    done = subprocess.run(
        [sys.executable, "-c", DECISIONS, str(count)],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert min(map(float, done.stdout.split())) < seconds
