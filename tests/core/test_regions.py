"""Choosing where one machine is sold in many places, on many machines, or against nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offers_and_trials import offer, table, trial

from underdog.core.choosing import Choice, Request, choose
from underdog.core.evidence import gather
from underdog.core.utility import parse_utility
from underdog.model import Trial


def chosen(
    rows: list[dict[str, Any]], trials: list[Trial], by: str, tolerance: float = 0.0, **request: Any
) -> Choice:
    utility = parse_utility(by, tolerance=tolerance, has_samples="samples" in request)
    return choose(table(rows), gather(trials), Request(utility=utility, **request))


def places(choice: Choice) -> list[str]:
    return [entry["offer"]["region"] for entry in choice.ranking()]


def sold(region: str, price: float, carbon: float = 0.4, **more: Any) -> dict[str, Any]:
    return offer(price=price, region=region, kg_co2e_per_kwh=carbon, **more)


def test_a_later_rule_chooses_among_the_regions_of_one_machine() -> None:
    rows = [sold("dear", 1.2, 0.01), sold("cheap", 1.0, 0.4), sold("clean", 1.05, 0.1)]
    rule = "samples_per_dollar, kg_co2e"
    choice = chosen(rows, [trial()], rule, 0.1, samples=1e6)
    (entry,) = choice.ranking()
    assert entry["offer"]["region"] == "clean"
    assert entry["other_regions"] == 2
    assert places(chosen(rows, [trial()], rule, samples=1e6)) == ["cheap"]
    beaten = next(line for line in choice.ledger() if "cheap" in line["offer"])
    assert "leads by most samples_per_dollar, then least kg_co2e" in beaten["reason"]


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.floats(1.0, 2.0), st.floats(0.01, 1.0)),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([0.0, 0.1, 0.5]),
)
def test_a_rule_of_two_terms_is_what_sorting_all_offers_gives(
    given_rows: list[tuple[str, float, float]], tolerance: float
) -> None:
    rows = [sold(f"r{i}", p, c, instance_type=k) for i, (k, p, c) in enumerate(given_rows)]
    trials = [trial("a", 100.0), trial("b", 120.0)]
    best = chosen(rows, trials, "samples_per_dollar, kg_co2e", tolerance, samples=1e6).ranking()[0]
    rates = {"a": 100.0, "b": 120.0}
    gains = [rates[k] / p for k, p, _ in given_rows]
    bar = max(gains) * (1 - tolerance) * (1 - 1e-12)
    carbon = [
        c / rates[k] for (k, _, c), gain in zip(given_rows, gains, strict=True) if gain >= bar
    ]
    assert best["kg_co2e"]["value"] == pytest.approx(min(carbon) * 1e6 * 150 / 3.6e6, rel=1e-9)


def test_the_front_knows_the_cheaper_region_that_is_not_listed() -> None:
    # by carbon the dear clean region of "a" is listed, but its cheap one beats "b" on both
    rows = [
        sold("clean", 5.0, 0.01, instance_type="a"),
        sold("coal", 1.0, 0.9, instance_type="a"),
        sold("coal", 2.0, 0.9, instance_type="b"),
    ]
    trials = [trial("a", 100.0), trial("b", 90.0)]
    entries = chosen(rows, trials, "kg_co2e", samples=1e6).ranking()
    assert [(e["offer"]["instance_type"], e["pareto"]) for e in entries] == [
        ("a", False),
        ("b", False),
    ]


def test_one_machine_and_two_may_be_tied_and_each_name_stands_once() -> None:
    rows = [offer("a"), offer("b", 1.1)]
    entries = chosen(
        rows,
        [trial("a", 100.0, 0.3), trial("b", 100.0, 0.3)],
        "samples_per_dollar",
        machines=(1, 2),
    ).ranking()
    for entry in entries:
        assert len(entry["tied_with"]) == len(set(entry["tied_with"]))
    own = [entry for entry in entries if entry["offer"]["instance_type"] == "a"]
    assert [entry["nodes"] for entry in own] == [1, 2]
    assert own[0]["offer"]["id"] in own[0]["tied_with"]


def test_what_a_gain_is_over() -> None:
    better = offer("h100", 6.0, accelerator="H100", fp32_tflops=670)
    choice = chosen([offer(), better], [trial()], "samples_per_dollar")
    (entry,) = choice.test_next()
    assert entry["against"] == {
        "offer": "aws/us-east-1/g5.xlarge/on-demand",
        "nodes": 1,
        "source": "measured",
        "value": pytest.approx(360_000),
    }
    unpriced = chosen([offer(price=None), better], [trial()], "samples_per_dollar")
    (entry,) = unpriced.test_next()
    assert entry["against"]["source"] == "predicted"
    assert entry["against"]["offer"] == entry["offer"]
    assert entry["against"]["value"] == entry["predicted"]["low"]
    hours = chosen([offer(price=None), better], [trial()], "dollars_to_train", samples=1e6)
    (entry,) = hours.test_next()
    assert entry["against"]["value"] == entry["predicted"]["high"]


def test_a_throughput_beyond_any_machine_does_not_count() -> None:
    choice = chosen([offer()], [trial(rate=1e200)], "samples_per_second")
    assert choice.ranking() == []


def test_a_test_on_several_machines_says_how_many() -> None:
    rows = [offer("a"), offer("b", 1.1)]
    choice = chosen(rows, [trial("a")], "samples_per_second", machines=(4,))
    entries = choice.test_next()
    assert entries
    assert [entry["nodes"] for entry in entries] == [4] * len(entries)
    assert any(entry["pareto"] for entry in choice.ranking())


def test_the_front_is_not_empty_where_more_machines_cost_no_more() -> None:
    rows = [offer("a"), offer("b", 1.1)]
    trials = [trial("a", 100.0), trial("b", 101.0)]
    entries = chosen(rows, trials, "samples_per_dollar", machines=(2, 3, 4)).ranking()
    assert [(e["offer"]["instance_type"], e["nodes"], e["pareto"]) for e in entries] == [
        ("a", 2, True),
        ("b", 2, True),
    ]
