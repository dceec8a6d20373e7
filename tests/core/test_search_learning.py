"""How likely each explanation is, learnt from references that play the new workload."""

from __future__ import annotations

import numpy as np
import pytest
from search_cases import offers, truth

from underdog.core.search_learning import MISTRUST, learn
from underdog.core.search_prior import Kind, Prior
from underdog.core.search_records import Candidates, Reference
from underdog.core.search_reference import gather


def chances(candidates: Candidates, found: list[Reference]) -> tuple[Prior, np.ndarray]:
    """The prior before it is taught, and its chances by kind after it."""
    prior, taught = (Prior(gather(candidates, found), None) for _ in range(2))
    learn(taught, candidates, found)
    return prior, np.array([taught.chances[taught.kinds == kind].sum() for kind in Kind])


def unlike(candidates: Candidates, found: list[Reference]) -> float:
    by_kind = chances(candidates, found)[1]
    return float(by_kind[[Kind.ALONE, Kind.BOTTLENECK]].sum())


@pytest.fixture(scope="module")
def candidates() -> Candidates:
    return offers(40)


@pytest.mark.parametrize("alike", [True, False])
def test_a_workload_unlike_all_is_expected_even_where_all_agree(
    candidates: Candidates, alike: bool
) -> None:
    seeds = [3] * 4 if alike else range(4)
    found = [Reference(f"job-{i}", truth(candidates, seed)) for i, seed in enumerate(seeds)]
    expected = unlike(candidates, found)
    assert MISTRUST < expected < 1
    if alike:  # and little more than that
        assert expected < MISTRUST + 0.15


def test_one_group_teaches_nothing(candidates: Candidates) -> None:
    found = [Reference(f"job-{i}", truth(candidates, 3), group="one") for i in range(3)]
    prior, taught = chances(candidates, found)
    before = [prior.chances[prior.kinds == kind].sum() for kind in Kind]
    np.testing.assert_allclose(taught, before)


def test_references_without_anything_in_common_are_not_believed(candidates: Candidates) -> None:
    rng = np.random.default_rng(0)
    found = [Reference(f"job-{i}", np.exp(rng.normal(0, 1, len(candidates)))) for i in range(4)]
    by_kind = chances(candidates, found)[1]
    alike = [
        Reference(f"job-{i}", truth(candidates, 3) * np.exp(rng.normal(0, 0.02, len(candidates))))
        for i in range(4)
    ]
    believed = [Kind.ONE, Kind.COMMON]
    assert by_kind[believed].sum() < 0.2
    assert chances(candidates, alike)[1][believed].sum() > 0.5
