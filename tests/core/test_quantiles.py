"""Quantiles against printed tables."""

from __future__ import annotations

import pytest

from underdog.core.quantiles import student


@pytest.mark.parametrize(
    ("quantile", "freedom", "value"),
    [
        (0.975, 3, 3.182),
        (0.975, 4, 2.776),
        (0.975, 9, 2.262),
        (0.975, 30, 2.042),
        (0.95, 5, 2.015),
        (0.995, 10, 3.169),
        (0.5, 7, 0.0),
        (0.025, 9, -2.262),
    ],
)
def test_student(quantile: float, freedom: int, value: float) -> None:
    assert student(quantile, freedom) == pytest.approx(value, rel=0.01, abs=1e-9)
