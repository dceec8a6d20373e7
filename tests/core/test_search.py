"""Properties of the search that hold whatever is searched."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from underdog.core.search import (
    Candidates,
    Failure,
    Measured,
    Prediction,
    Reference,
    Search,
    Settings,
    cheapest_above,
    cheapest_within,
    fastest,
    samples_per_dollar,
    soonest_within,
)
from underdog.errors import UsageError

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


@FEW
@given(SEEDS)
def test_order_of_candidates_and_references_decides_nothing(seed: int) -> None:
    candidates = offers(40, seed)
    rates = truth(candidates, seed)
    order = np.random.default_rng(seed).permutation(40)
    known = references(candidates, 3)
    mixed = [Reference(r.workload, r.throughput[order]) for r in reversed(known)]
    one = play(Search(candidates, samples_per_dollar, references=known), rates, 5)
    two = play(
        Search(permuted(candidates, order), samples_per_dollar, references=mixed), rates[order], 5
    )
    assert [candidates.names[i] for i in one] == [candidates.names[order[i]] for i in two]


@FEW
@given(SEEDS, st.sampled_from([0.125, 2.0, 64.0]))
def test_the_currency_decides_nothing(seed: int, factor: float) -> None:
    candidates = offers(40, seed)
    rates = truth(candidates, seed)
    dearer = Candidates(
        candidates.names, candidates.price_per_hour * factor, candidates.numbers, candidates.texts
    )
    one = play(Search(candidates, samples_per_dollar), rates, 5)
    assert one == play(Search(dearer, samples_per_dollar), rates, 5)


@FEW
@given(SEEDS)
def test_the_same_seed_and_tells_give_the_same_answers_in_any_order(seed: int) -> None:
    candidates = offers(30, seed)
    rates = truth(candidates, seed)
    told = [3, 11, 20, 7]
    answers = []
    for order in (told, told[::-1]):
        search = Search(candidates, samples_per_dollar, seed=seed)
        for index in order:
            search.tell(index, Failure() if index == 7 else Measured(float(rates[index])))
        answers.append((search.ask(3), search.stop()))
    assert answers[0] == answers[1]


@FEW
@given(SEEDS, st.integers(1, 12))
def test_several_at_once_are_distinct_and_not_tested_yet(seed: int, k: int) -> None:
    candidates = offers(10, seed)
    search = Search(candidates, samples_per_dollar, seed=seed)
    search.tell(4, Measured(3.0))
    found = [one.index for one in search.ask(k, pending=[6])]
    assert len(found) == len(set(found)) == min(k, 8)
    assert not {4, 6} & set(found)


def test_several_at_once_are_not_near_copies() -> None:
    copies = 12
    price = np.array([1.0] * copies + [1.05])
    candidates = Candidates(
        [f"copy-{i}" for i in range(copies)] + ["other"],
        price,
        {"vcpus": np.array([8.0] * copies + [4.0]), "memory_gib": np.full(copies + 1, 16.0)},
        {"arch": ["x86_64"] * copies + ["arm64"]},
    )
    found = {one.name for one in Search(candidates, samples_per_dollar).ask(3)}
    assert "other" in found


@FEW
@given(SEEDS)
def test_an_unknown_price_is_never_suggested_for_a_utility_of_cost(seed: int) -> None:
    candidates = offers(30, seed, unknown=0.4)
    rates = truth(candidates, seed)
    asked = play(Search(candidates, samples_per_dollar), rates, 30)
    known = np.flatnonzero(np.isfinite(candidates.price_per_hour))
    assert sorted(asked) == known.tolist()
    assert len(play(Search(candidates, fastest), rates, 30)) == 30


def test_a_budget_leaves_dear_and_unpriced_tests_out() -> None:
    candidates = offers(30, 1, unknown=0.3)
    search = Search(candidates, fastest, settings=Settings(test_seconds=3600.0))
    limit = float(np.nanmedian(candidates.price_per_hour))
    found = search.ask(30, dollars_left=limit)
    assert found
    assert all(one.dollars <= limit for one in found)
    assert search.ask(dollars_left=0.0) == []


def test_what_is_not_allowed_is_not_suggested() -> None:
    candidates = offers(20)
    allowed = np.arange(20) % 3 == 0
    search = Search(candidates, samples_per_dollar, allowed=allowed)
    assert {one.index for one in search.ask(20)} == set(range(0, 20, 3))


def memories(gib: list[float], accelerators: list[str | None]) -> Candidates:
    count = len(gib)
    return Candidates(
        [f"o{i}" for i in range(count)],
        np.linspace(1.0, 2.0, count),
        {"memory_gib": np.array(gib), "vcpus": np.full(count, 8.0)},
        {"accelerator": accelerators},
    )


def test_out_of_memory_excludes_no_larger_ones_of_the_same_kind() -> None:
    candidates = memories([16, 32, 32, 64, 16, np.nan], [None, None, None, None, "L4", None])
    search = Search(candidates, samples_per_dollar)
    search.tell(1, Failure("out_of_memory"))
    assert {one.index for one in search.ask(6)} == {3, 4, 5}


@pytest.mark.parametrize("kind", ["timeout", "failed", "no_capacity"])
def test_other_failures_exclude_only_what_failed(kind: str) -> None:
    candidates = memories([16, 32, 32, 64, 16, 8], [None] * 6)
    search = Search(candidates, samples_per_dollar)
    search.tell(1, Failure(kind))  # type: ignore[arg-type]
    assert {one.index for one in search.ask(6)} == {0, 2, 3, 4, 5}


def test_failures_make_smaller_ones_likelier_to_fail_and_no_capacity_does_not() -> None:
    candidates = memories([8, 16, 32, 64, 128, 256], [None] * 6)
    before = Search(candidates, samples_per_dollar).beliefs().chance_of_failure
    short, full = (Search(candidates, samples_per_dollar) for _ in range(2))
    short.tell(2, Failure("failed"))
    full.tell(2, Failure("no_capacity"))
    after = short.beliefs().chance_of_failure
    assert after[0] > before[0]
    assert after[0] > after[5]
    np.testing.assert_allclose(full.beliefs().chance_of_failure, before)


def test_a_failed_reference_warns_only_where_it_failed() -> None:
    candidates = offers(40, 3)
    rates = truth(candidates, 3)
    lost = candidates.numbers["memory_gib"] <= 8
    known = [Reference(f"j{i}", np.where(lost, np.nan, rates), lost) for i in range(3)]
    chance = Search(candidates, fastest, references=known).beliefs().chance_of_failure
    assert chance[lost].min() > chance[~lost].max()


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


def test_references_help_where_jobs_are_alike_and_do_no_harm_where_not() -> None:
    def alike(candidates: Candidates, seed: int) -> list[Reference]:
        rng = np.random.default_rng(seed)
        noise = rng.normal(0, 0.05, (3, len(candidates)))
        found = [truth(candidates, seed) * np.exp(one) for one in noise]
        return [Reference(f"j{i}", rates) for i, rates in enumerate(found)]

    def misleading(candidates: Candidates, seed: int) -> list[Reference]:
        rng = np.random.default_rng(seed + 50)
        count = len(candidates)
        found = [truth(candidates, seed + i + 9)[rng.permutation(count)] for i in range(4)]
        return [Reference(f"j{i}", rates) for i, rates in enumerate(found)]

    alone = average_reached(lambda *_: [], 16, 4)
    assert average_reached(alike, 1, 4) > 0.9
    # what misleads costs tests at first, and is found out
    assert average_reached(misleading, 16, 4) > alone - 0.1


def test_references_on_other_offers_carry_over_by_their_facts() -> None:
    here, there = offers(50, 8), offers(50, 8)
    there = Candidates(
        [f"else-{name}" for name in there.names], there.price_per_hour, there.numbers, there.texts
    )
    rates = truth(here, 8)
    known = [Reference(f"j{i}", rates * (1 + i), candidates=there) for i in range(2)]
    found = Search(here, samples_per_dollar, references=known).ask()[0].index
    value = rates / here.price_per_hour
    assert value[found] > 0.9 * value.max()
    # and by a likeness of facts where none is the same
    other = offers(80, 9)
    other = Candidates(
        [f"far-{name}" for name in other.names], other.price_per_hour, other.numbers, other.texts
    )
    far = [Reference(f"j{i}", truth(other, 8), candidates=other) for i in range(2)]
    beliefs = Search(here, samples_per_dollar, references=far).beliefs()
    assert np.corrcoef(np.log(beliefs.reference_throughput), np.log(rates))[0, 1] > 0.8


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
    prediction = Prediction(logs, np.full(50, 0.1))
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


@pytest.mark.slow
@pytest.mark.parametrize(("count", "seconds"), [(2_500, 0.3), (100_000, 3.0)])
def test_a_decision_is_quick(count: int, seconds: float) -> None:
    candidates = offers(count, 1)
    rates = truth(candidates, 1)
    search = Search(candidates, samples_per_dollar, references=references(candidates, 5))
    asked = []
    for _ in range(3):
        start = time.process_time()
        index = search.ask()[0].index
        asked.append(time.process_time() - start)
        search.tell(index, Measured(float(rates[index])))
    assert min(asked) < seconds
