"""A search values an offer as choosing scores it, and asks late for what is hardly to be had."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offers_and_trials import offer, table, trial

from underdog.core import availability
from underdog.core.attempts import Attempt, Place
from underdog.core.availability import Told
from underdog.core.choosing import Choice, Request, choose
from underdog.core.evidence import gather
from underdog.core.expected import Expected
from underdog.core.exploring import Explorer
from underdog.core.objective import Job, Objective
from underdog.core.search import Candidates, Measured, Search, samples_per_dollar
from underdog.core.supply import Supply
from underdog.core.utility import parse_utility

NOW = 1_800_000_000.0
UTILITIES = (
    "samples_per_dollar",
    "dollars_per_million_samples",
    "samples_per_second",
    "samples_per_kwh",
    "useful_share",
    "hours_to_train",
    "dollars_to_train",
    "dollars_to_train * (hours_to_train + vcpus)",
)
some = settings(max_examples=25)
few = settings(max_examples=8)
purchases = st.lists(st.sampled_from(["spot", "on-demand"]), min_size=1, max_size=5)
rates = st.floats(0.01, 20.0)


@st.composite
def supplies(draw: st.DrawFn) -> Supply:
    places = [place_of(row) for row in rows_of(["spot", "on-demand"])]
    attempts = [
        Attempt(
            place=places[draw(st.integers(0, 1))],
            at=NOW - draw(st.floats(0, 1e6)),
            got=got,
            waited=draw(st.none() | st.floats(0, 1e5)),
            held=draw(st.floats(0, 1e6)) if got else None,
            interrupted=got and draw(st.booleans()),
        )
        for got in draw(st.lists(st.booleans(), max_size=6))
    ]
    told = [Told(place=places[0], interruptions=rate) for rate in draw(st.lists(rates, max_size=1))]
    return Supply(
        attempts=attempts,
        told=told,
        now=NOW,
        checkpoint_seconds=draw(st.sampled_from([0.0, 1.0, 60.0, 4000.0])),
        restart_seconds=draw(st.sampled_from([0.0, 300.0, 7200.0])),
        interval_seconds=draw(st.none() | st.floats(60.0, 1e5)),
        interruptions=draw(st.none() | st.floats(0.0, 5.0)),
    )


def rows_of(bought: list[str]) -> list[dict[str, Any]]:
    return [
        offer(price=1.0 + 0.1 * i, purchase=purchase, zone=f"z{i}")
        for i, purchase in enumerate(bought)
    ]


def place_of(row: dict[str, Any]) -> Place:
    names = ("provider", "region", "zone", "instance_type", "purchase")
    return Place(**{name: row.get(name) or "" for name in names})


def chosen(
    rows: list[dict[str, Any]],
    known: Supply,
    by: str = "dollars_to_train",
    samples: float | None = 36e6,
) -> Choice:
    asked = Request(utility=parse_utility(by, has_samples=samples is not None), samples=samples)
    return choose(table(rows), gather([trial()]), asked, known=known)


@few
@given(purchases, supplies(), st.sampled_from(UTILITIES), st.sampled_from([36e4, 36e6]))
def test_a_search_values_every_offer_as_choosing_scores_it(
    bought: list[str], known: Supply, by: str, samples: float
) -> None:
    rows = rows_of(bought)
    choice = chosen(rows, known, by, samples)
    scored = dict(choice.table.run("SELECT row, u FROM scored").fetchall())
    utility = choice.request.utility
    expected = Expected.of(choice.table, range(len(rows)), known)
    objective = Objective(utility, rows, Job(samples), expected)
    found = objective.raw(np.full(len(rows), 100.0), objective.prices)
    told = [math.nan if scored[i] is None else scored[i] for i in range(len(rows))]
    np.testing.assert_allclose(found, told, rtol=1e-6)


figures_of_four = st.lists(st.just(math.nan) | st.floats(0, 20), min_size=4, max_size=4)


@some
@given(figures_of_four, figures_of_four)
def test_a_deadline_and_a_budget_are_those_of_the_expected_run(
    wait: list[float], often: list[float]
) -> None:
    rows, rate = rows_of(["spot"] * 4), np.array([50.0, 100.0, 100.0, 200.0])
    expected = Expected(
        wait=np.array(wait),
        chance=np.full(4, math.nan),
        interruptions=np.nan_to_num(often),
        supply=Supply(),
    )
    for name, limit in (("hours_to_train", "deadline_hours"), ("dollars_to_train", "budget")):
        asked = parse_utility(name, has_samples=True), rows
        free = Objective(*asked, Job(36e6), expected)
        figures = free.raw(rate, free.prices)
        most = float(np.nanmedian(figures)) * (1 + 1e-9)
        bound = Objective(*asked, Job(36e6, **{limit: most}), expected)
        missed = bound(rate, bound.prices) == -np.inf
        assert missed.tolist() == (figures > most).tolist()


def test_without_a_record_a_machine_that_stays_is_worth_what_it_was() -> None:
    rows, rate = rows_of(["on-demand"] * 3), np.array([3.0, 5.0, math.nan])
    expected = Expected.of(chosen(rows, Supply()).table, range(3), Supply())
    assert not expected.counts
    assert expected.wait_seconds.tolist() == [0, 0, 0]
    assert expected.had.tolist() == [1, 1, 1]
    for by in UTILITIES:
        asked = parse_utility(by, has_samples=True), rows, Job(36e6)
        before, now = Objective(*asked), Objective(*asked, expected)
        np.testing.assert_array_equal(now.prices, before.prices)
        np.testing.assert_array_equal(now(rate, now.prices), before(rate, before.prices))


@few
@given(supplies())
def test_the_chance_is_that_of_the_fall_back_list(known: Supply) -> None:
    rows = rows_of(["spot", "on-demand"])
    expected = Expected.of(chosen(rows, known).table, [1, 0], known)
    for place, row in enumerate(reversed(rows)):
        at = known.at(place_of(row), 1)
        if not at.known:
            assert expected.had[place] == 1
            continue
        steps = availability.plan([0.0, 1.0], [at, at], known.patience)
        assert steps[1].reached is not None
        assert expected.had[place] == pytest.approx(1 - steps[1].reached, abs=1e-12)


def test_of_one_machine_the_offer_that_can_be_had_and_costs_the_least_for_its_progress() -> None:
    bought = ["spot", "on-demand", "spot"]
    rows = [offer(price=p, purchase=b) for p, b in zip((0.9, 1.0, 0.5), bought, strict=True)]
    prices = np.array([0.9, 1.0, 0.5])
    often = Expected.of(chosen(rows, Supply()).table, range(3), Supply()).interruptions
    assert (often > 0).tolist() == [True, False, True]

    def order(chance: list[float], hours: list[float], soon: bool) -> list[int]:
        told = Expected(
            wait=np.array(hours), chance=np.array(chance), interruptions=often, supply=Supply()
        )
        return sorted(range(3), key=lambda i: tuple(told.takes(prices, soon)[i]))

    unknown, never = [math.nan] * 3, [math.nan, math.nan, 0.01]
    assert order(unknown, unknown, False) == [2, 1, 0]  # 0.9 USD for 83 % of an hour is dearer
    assert order(never, unknown, False) == [1, 0, 2]
    assert order(unknown, [0.0, 5.0, 9.0], False) == [2, 1, 0]  # waiting costs no dollars
    assert order(unknown, [0.0, 5.0, 9.0], True) == [0, 1, 2]


PRICES = np.array([1.0, 2.0, 4.0, 8.0, 3.0])
SPEEDS = [10.0, 30.0, 50.0, 60.0, 5.0]
MACHINES = Candidates([f"m{i}" for i in range(5)], PRICES, {"vcpus": PRICES * 2}, {})
chances = st.lists(st.floats(0, 1), min_size=5, max_size=5)


def searched(had: Any = None) -> list[tuple[int, float, str]]:
    search = Search(MACHINES, samples_per_dollar, had=had)
    found = []
    while asked := search.ask():
        one = asked[0]
        found.append((one.index, one.expected_gain, one.reason))
        search.tell(one.index, Measured(SPEEDS[one.index]))
    return found


def test_what_is_got_as_often_as_not_is_searched_as_ever() -> None:
    assert searched() == searched(np.ones(5)) == searched(np.full(5, 0.5))
    assert len(searched()) == 5


@some
@given(chances, st.integers(0, 4))
def test_what_is_harder_to_get_never_comes_sooner(had: list[float], one: int) -> None:
    before = Search(MACHINES, samples_per_dollar, had=np.array(had)).ask()[0].index
    harder = np.array(had)
    harder[one] *= 0.5
    after = Search(MACHINES, samples_per_dollar, had=harder).ask()[0].index
    assert after != one or before == one


def test_what_is_hardly_to_be_had_comes_last_and_says_so() -> None:
    first = searched()[0][0]
    had = np.ones(5)
    had[first] = 1e-6
    tests = searched(had)
    assert tests[-1][0] == first
    assert "hard to get (chance 0%)" in tests[-1][2]
    assert not any("hard to get" in reason for _, _, reason in tests[:-1])


@some
@given(st.lists(st.floats(0, 4000), min_size=5, max_size=5), st.floats(0, 4000))
def test_no_test_is_begun_whose_machine_comes_too_late(waits: list[float], left: float) -> None:
    def explorer() -> Explorer:
        return Explorer(
            MACHINES,
            samples_per_dollar,
            values={"batch": ["1", "2"]},
            test_seconds=120.0,
            search={"seed": 0},
            waits=np.array(waits),
        )

    late = {i for i, wait in enumerate(waits) if 120 + wait > left}
    planned = explorer().next(5, seconds_left=left)
    assert {test.index for test in planned} == set(range(5)) - late
    assert {test.index for test in explorer().next(5)} == set(range(5))
