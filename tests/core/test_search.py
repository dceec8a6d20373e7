"""What holds of every search: order, scale and seed, failures, references."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_cases import FEW, SEEDS, average_reached, offers, permuted, play, references, truth

from underdog.core.search import (
    Candidates,
    Failure,
    Measured,
    Reference,
    Search,
    Settings,
    fastest,
    samples_per_dollar,
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
