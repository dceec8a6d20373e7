"""What ``--by`` may say, and what it means."""

from __future__ import annotations

import pytest

from underdog.core.metrics import METRICS
from underdog.core.utility import parse_utility
from underdog.errors import ExpressionError, UsageError


def test_a_bare_metric_has_its_own_direction() -> None:
    for name, metric in METRICS.items():
        utility = parse_utility(name, has_samples=True)
        assert utility.first.better == metric.better
        assert utility.first.unit == metric.unit


def test_an_expression_is_better_higher_unless_told() -> None:
    assert parse_utility("memory_gib / price_per_hour").first.better == "higher"
    assert parse_utility("2 * price_per_hour", direction="lower").first.better == "lower"
    assert parse_utility("price_per_hour").first.better == "lower"


def test_several_terms_are_split_outside_of_brackets() -> None:
    utility = parse_utility("round(samples_per_second, 2), price_per_hour", tolerance=0.1)
    assert [term.expression.text for term in utility.terms] == [
        "round(samples_per_second, 2)",
        "price_per_hour",
    ]
    assert utility.uses("price_per_hour")
    assert not utility.uses("memory_gib")


def test_an_unknown_name_names_the_nearest() -> None:
    with pytest.raises(ExpressionError, match="samples_per_dollar"):
        parse_utility("samples_per_dolar")


def test_a_metric_of_the_job_needs_its_samples() -> None:
    with pytest.raises(UsageError, match="--samples"):
        parse_utility("hours_to_train + 1")


def test_a_tolerance_needs_two_terms() -> None:
    with pytest.raises(UsageError, match="second rule"):
        parse_utility("samples_per_dollar", tolerance=0.1)


@pytest.mark.parametrize("text", ["", "samples_per_second,", "region", "samples_per_second > 1"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse_utility(text)
