"""One formula serves numbers, arrays and query columns alike."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.metrics import METRICS, NOTHING_IN_THE_WAY, metric_columns, metrics_sql

POSITIVE = st.floats(1e-6, 1e9)
KNOWN = {
    "samples_per_second": 100.0,
    "samples_per_dollar": 180_000.0,
    "dollars_per_million_samples": 1e6 / 180_000,
    "hours_to_train": 3.6e6 / 360_000,
    "dollars_to_train": 20.0,
    "samples_per_kwh": 1_200_000.0,
    "kg_co2e": 1.5,
    "useful_share": 1.0,
}


def at(rate: object, price: object, power: object = 300.0) -> tuple[object, object]:
    m = SimpleNamespace(
        samples_per_second=rate,
        samples_per_paid_second=rate,
        samples_to_train=3.6e6,
        power_w=power,
        **NOTHING_IN_THE_WAY,
    )
    return m, SimpleNamespace(price_per_hour=price, kg_co2e_per_kwh=0.5)


def test_values_by_hand() -> None:
    assert set(KNOWN) == set(METRICS)
    for name, expected in KNOWN.items():
        assert METRICS[name].formula(*at(100.0, 2.0)) == pytest.approx(expected), name


@given(POSITIVE, POSITIVE)
def test_numbers_arrays_and_queries_agree(rate: float, price: float) -> None:
    row = (
        f"SELECT {rate!r}::DOUBLE AS rate, {price!r}::DOUBLE AS price, 300::DOUBLE AS power_w, "
        "3.6e6::DOUBLE AS samples_to_train, 0.5::DOUBLE AS kg_co2e_per_kwh"
    )
    found = (
        duckdb.connect().execute(f"SELECT {metrics_sql('rate', 'price')} FROM ({row})").fetchone()
    )
    assert found is not None
    for (name, metric), queried in zip(METRICS.items(), found, strict=True):
        plain = metric.formula(*at(rate, price))
        many = metric.formula(*at(np.array([rate]), np.array([price])))
        assert queried == pytest.approx(plain, rel=1e-12), name
        assert many[0] == pytest.approx(plain, rel=1e-12), name


@given(POSITIVE, POSITIVE, st.floats(1.01, 100))
def test_each_metric_improves_with_speed(rate: float, price: float, factor: float) -> None:
    for metric in METRICS.values():
        if metric.name == "useful_share":  # of keeping a machine, not of its speed
            continue
        slow, fast = metric.formula(*at(rate, price)), metric.formula(*at(rate * factor, price))
        assert (fast > slow) == (metric.better == "higher"), metric.name


@given(POSITIVE, POSITIVE, st.floats(1.01, 100))
def test_no_cost_improves_with_the_price(rate: float, price: float, factor: float) -> None:
    for metric in METRICS.values():
        cheap, dear = metric.formula(*at(rate, price)), metric.formula(*at(rate, price * factor))
        assert (dear <= cheap) if metric.better == "higher" else (dear >= cheap), metric.name


def test_unknown_stays_unknown() -> None:
    row = "SELECT 1::DOUBLE AS rate, NULL::DOUBLE AS price, NULL::DOUBLE AS power_w, "
    row += "NULL::DOUBLE AS samples_to_train, NULL::DOUBLE AS kg_co2e_per_kwh"
    found = (
        duckdb.connect().execute(f"SELECT {metrics_sql('rate', 'price')} FROM ({row})").fetchone()
    )
    assert found == (1.0, None, None, None, None, None, None, 1.0)


def test_every_metric_has_a_unit_and_a_meaning() -> None:
    for column in metric_columns():
        assert column.kind == "number"
        assert column.unit
        assert column.doc.endswith((".", "``."))


def test_the_page_of_metrics_names_them_all() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
    rows = re.findall(r"^\| `(\w+)` \| (\S.*?) \| (\w+) \|", page.read_text(), flags=re.M)
    assert rows == [(m.name, m.unit, m.better) for m in METRICS.values()]
