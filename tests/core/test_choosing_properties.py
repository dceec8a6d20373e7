"""What holds of every choice, whatever the offers and trials."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offers_and_trials import chosen, offer, trial

from underdog.core.choosing import Choice
from underdog.model import Trial

KINDS = [f"type{i}" for i in range(6)]
ROWS = st.lists(
    st.builds(
        lambda kind, price, region, count: offer(
            kind, price, region=region, accelerator_count=count
        ),
        st.sampled_from(KINDS),
        st.one_of(st.none(), st.floats(0.01, 100)),
        st.sampled_from(["us-east-1", "eu-west-1", "ap-south-1"]),
        st.sampled_from([1, 2]),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda row: (row["instance_type"], row["region"]),
)
RATES = st.dictionaries(st.sampled_from(KINDS), st.floats(1, 1000), min_size=1)


def trials_of(rates: dict[str, float]) -> list[Trial]:
    return [trial(kind, rate) for kind, rate in rates.items()]


def ids(choice: Choice) -> list[str]:
    return [entry["offer"]["id"] for entry in choice.ranking()]


@settings(max_examples=6, deadline=None)
@given(ROWS, RATES, st.floats(0.01, 100))
def test_scaling_all_prices_leaves_the_ranking(
    rows: list[dict[str, Any]], rates: dict[str, float], factor: float
) -> None:
    scaled = [
        r | {"price_per_hour": r["price_per_hour"] and r["price_per_hour"] * factor} for r in rows
    ]
    plain_, other = (chosen(r, trials_of(rates)) for r in (rows, scaled))
    before, after = plain_.ranking(), other.ranking()
    for one, two in zip(before, after, strict=True):
        assert two["utility"]["value"] == pytest.approx(one["utility"]["value"] / factor)


@settings(max_examples=6, deadline=None)
@given(ROWS, RATES, st.randoms(use_true_random=False))
def test_the_order_of_the_offers_never_matters(
    rows: list[dict[str, Any]], rates: dict[str, float], order: random.Random
) -> None:
    shuffled = order.sample(rows, len(rows))
    one, two = (chosen(r, trials_of(rates)) for r in (rows, shuffled))
    assert one.ranking() == two.ranking()
    assert one.ledger() == two.ledger()


@settings(max_examples=6, deadline=None)
@given(ROWS, RATES)
def test_every_candidate_is_in_the_ledger_once_and_unknown_prices_never_rank(
    rows: list[dict[str, Any]], rates: dict[str, float]
) -> None:
    choice = chosen(rows, trials_of(rates))
    lines = choice.ledger()
    assert len(lines) == len(rows)
    assert sum(line["offers"] for line in choice.funnel()) == len(rows)
    assert {line["verdict"] for line in lines} <= {
        "best",
        "tied",
        "beaten",
        "excluded",
        "untested",
    }
    assert all(line["reason"] for line in lines)
    unknown = [i for i, row in enumerate(rows) if row["price_per_hour"] is None]
    excluded = [line for line in lines if line["cause"] == "price unknown"]
    assert len(excluded) == len(unknown)
    assert all(entry["offer"]["price_per_hour"] for entry in choice.ranking())


@settings(max_examples=6, deadline=None)
@given(ROWS, RATES)
def test_a_dominated_offer_changes_no_winner_and_the_front_has_no_dominated(
    rows: list[dict[str, Any]], rates: dict[str, float]
) -> None:
    before = chosen(rows, trials_of(rates))
    worse = [offer("worse", 1000.0)]
    after = chosen(rows + worse, [*trials_of(rates), trial("worse", 0.5)])
    if before.winner is not None:
        assert after.winner is not None
        assert after.winner.name == before.winner.name
    front = [e for e in before.ranking() if e["pareto"] and e["source"] == "measured"]
    for one in front:
        for two in front:
            slower = one["samples_per_second"]["value"] < two["samples_per_second"]["value"]
            dearer = one["samples_per_dollar"]["value"] < two["samples_per_dollar"]["value"]
            assert not (slower and dearer)


@settings(max_examples=6, deadline=None)
@given(ROWS, RATES)
def test_measured_first_each_half_by_utility(
    rows: list[dict[str, Any]], rates: dict[str, float]
) -> None:
    entries = chosen(rows, trials_of(rates)).ranking()
    keys = [(e["source"] != "measured", -e["utility"]["value"]) for e in entries]
    assert keys == sorted(keys)
    assert [e["rank"] for e in entries] == list(range(1, len(entries) + 1))
    for entry in entries:
        low, value, high = (entry["utility"][end] for end in ("low", "value", "high"))
        assert 0 < low <= value <= high < float("inf")
