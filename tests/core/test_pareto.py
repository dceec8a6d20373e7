"""The front has no dominated member, and whoever is off it is dominated."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.pareto import dominated, front

VALUES = st.one_of(st.integers(0, 6).map(float), st.floats(-1e6, 1e6), st.just(float("nan")))


def beats(a: tuple[float, float], b: tuple[float, float]) -> bool:
    return a[0] >= b[0] and a[1] >= b[1] and a != b


@given(st.lists(st.tuples(VALUES, VALUES), max_size=40))
def test_front_is_what_the_definition_says(points: list[tuple[float, float]]) -> None:
    first = np.array([p[0] for p in points], dtype=float)
    second = np.array([p[1] for p in points], dtype=float)
    expected = [
        not any(np.isnan(p)) and not any(beats(q, p) for q in points if not any(np.isnan(q)))
        for p in points
    ]
    assert front((first, second)).tolist() == expected


def test_a_known_front() -> None:
    points = np.array([3.0, 2.0, 1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0, 1.0, 1.0])
    assert front(points).tolist() == [True, True, True, False, True]


def test_dominated_by_others_only() -> None:
    mine = np.array([1.0, 5.0]), np.array([1.0, 5.0])
    theirs = np.array([2.0]), np.array([2.0])
    assert dominated(mine, theirs).tolist() == [True, False]
    nobody = np.array([]), np.array([])
    assert dominated(mine, nobody).tolist() == [False, False]
