"""Which offers a search has, and what it may know of them."""

from __future__ import annotations

import math

import numpy as np
from offers_and_trials import offer, plain

from underdog.core.candidates import as_offer, facts_of, one_of_each, reachable
from underdog.core.columns import OFFER_COLUMNS


def test_facts_are_numbers_and_texts_and_nothing_about_where_a_price_comes_from() -> None:
    rows = [offer("a", 1.0, price_source="list"), plain("b", None)]
    more = [
        {"offer": "x", "disk": "ssd", "cache_mib": "8", "amx": "True"},
        {"offer": "y", "disk": "", "cache_mib": "", "amx": "False"},
    ]
    numbers, texts = facts_of(rows, more)
    np.testing.assert_array_equal(numbers["price_per_hour"], [1.0, np.nan])
    np.testing.assert_array_equal(numbers["cache_mib"], [8.0, np.nan])
    assert texts["disk"] == ["ssd", None]
    assert texts["amx"] == ["True", "False"]
    assert texts["accelerator"] == ["A10G", None]
    assert not {"offer", "price_source", "price_unknown_reason"} & {*numbers, *texts}


def test_a_number_that_is_none_is_no_number() -> None:
    numbers, texts = facts_of([plain("a"), plain("b")], [{"x": "nan"}, {"x": "3"}])
    assert "x" not in numbers
    assert texts["x"] == ["nan", "3"]


def test_one_test_tells_of_every_region() -> None:
    inf = math.inf
    offers = [
        (0, "m5", (0, 2.0)),
        (1, "c5", (0, inf)),
        (2, "m5", (0, 1.0)),
        (3, "m5", (0, 1.0)),
        (4, "c5", (0, 9.0)),
        (5, "m5", (1, 0.1)),
    ]
    assert one_of_each(offers) == [2, 4]
    assert one_of_each([(7, "x", (inf,))]) == [7]


def test_what_only_another_job_was_tried_on_is_no_candidate() -> None:
    assert reachable({"a"}, [{"a", "b"}, {"b", "c"}, {"x"}]) == {"a", "b", "c"}
    assert reachable({"a"}, []) == {"a"}


def test_an_offer_of_a_row() -> None:
    row = {column.name: None for column in OFFER_COLUMNS} | offer("g5.xlarge", None, nodes=2)
    found = as_offer(row)
    assert found.id == "aws/us-east-1/2xg5.xlarge/on-demand"
    assert found.price.per_hour is None
    assert found.price.unknown_reason == "none was published"
