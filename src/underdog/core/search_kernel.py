"""How alike two offers are expected to do, learnt from how alike other workloads did on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from underdog.core.search_features import Features
from underdog.core.search_records import Floats, Integers

Square = NDArray[np.float64]

PAIRS = 6000
# In standard deviations of a feature: half a feature's range, and near, middle and far for all
# features together.
REACH = 2.0
REACHES = (1.0, 2.5, 6.0)
OWN = 0.05  # share of an offer's own where nothing is known of it
LEAST_OWN, MOST_OWN = 1e-3, 0.1  # facts always tell most, or nothing could be learnt
PULL = 0.1  # towards equal weights, as a share of what the pairs themselves weigh
FEWEST = 8  # offers to learn from
ROUNDS, SWEEPS = 3, 100


@dataclass(frozen=True, slots=True)
class Kernel:
    """A sum of correlations, one for each feature and some for all together, and an offer's own.

    ``weights`` (B,) and ``own`` sum to 1; ``variance`` is what they are shares of.
    """

    features: Features
    weights: Floats
    own: float
    variance: float

    def columns(self, rows: Integers, others: Integers) -> Floats:
        """Correlations of rows (m,) with others (k,): (m, k)."""
        result = self.own * (rows[:, None] == others)
        for index, weight in enumerate(self.weights):
            if weight > 1e-4:
                result = result + weight * _basis(self.features, index, rows[:, None], others)
        return np.asarray(result, dtype=float)


def default_kernel(features: Features, variance: float) -> Kernel:
    """The kernel where nothing is known: every feature counts alike."""
    count = _bases(features)
    return Kernel(features, np.full(count, (1 - OWN) / count), OWN, variance)


def fit_kernel(features: Features, logs: Floats, groups: Sequence[str]) -> Kernel:
    """Weights that explain how the logs (N, R) of R workloads differ between offers.

    Weighted least squares on the semivariances of pairs of offers, no weight below zero
    (Matheron, 1963; Cressie, 1985). Workloads of one group count as one.
    """
    some = np.flatnonzero(np.isfinite(logs).any(axis=1))
    if len(some) < FEWEST:
        return default_kernel(features, 1.0)
    rng = np.random.default_rng(0)
    one, two = rng.choice(some, PAIRS), rng.choice(some, PAIRS)
    semivariance, count = _semivariances(logs, one, two, groups)
    keep = (one != two) & (count > 0)
    one, two, count, target = one[keep], two[keep], count[keep], semivariance[keep]
    bases = [_basis(features, index, one, two) for index in range(_bases(features))]
    design = np.column_stack([*(1.0 - basis for basis in bases), np.ones(len(one))])
    scale = max(float(np.average(target, weights=count)), 1e-6)
    default = np.append(np.full(len(bases), scale / len(bases)), scale * OWN)
    found = default
    for _ in range(ROUNDS):
        # the variance of a semivariance grows with its square
        weight = count / np.maximum(design @ found, 0.1 * scale) ** 2
        found = _non_negative(design, target, weight, default)
    total = float(found.sum())
    share = float(found[-1]) / total
    own = float(np.clip(share, LEAST_OWN, MOST_OWN))
    # what no fact explains beyond that goes to all alike: such workloads taught nothing
    weights = found[:-1] / total + max(share - own, 0.0) / len(bases)
    return Kernel(features, weights * (1 - own) / float(weights.sum()), own, total)


def _bases(features: Features) -> int:
    return int(features.numbers.shape[1] + features.codes.shape[1] + len(REACHES))


def _basis(features: Features, index: int, one: Integers, two: Integers) -> Floats:
    """Correlation by one feature (exponential, or whether a text is the same) or by all."""
    numbers, codes = features.numbers, features.codes
    if index < numbers.shape[1]:
        column = numbers[:, index]
        return np.asarray(np.exp(-np.abs(column[one] - column[two]) / REACH))
    index -= numbers.shape[1]
    if index < codes.shape[1]:
        return np.asarray(codes[one, index] == codes[two, index], dtype=float)
    return _matern(_distance(features, one, two) / REACHES[index - codes.shape[1]])


def _distance(features: Features, one: Integers, two: Integers) -> Floats:
    """By all features; grows with the fourth root of their number, so that reaches hold."""
    square = np.zeros(np.broadcast_shapes(one.shape, two.shape))
    for column in features.numbers.T:
        square += (column[one] - column[two]) ** 2
    for code in features.codes.T:
        square += code[one] != code[two]
    count = max(features.numbers.shape[1] + features.codes.shape[1], 1)
    return np.asarray(np.sqrt(square / np.sqrt(count)))


def _matern(distance: Floats) -> Floats:
    """Matérn 5/2 (Rasmussen and Williams, Gaussian Processes, eq. 4.17)."""
    scaled = np.sqrt(5.0) * distance
    return np.asarray((1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled))


def _semivariances(
    logs: Floats, one: Integers, two: Integers, groups: Sequence[str]
) -> tuple[Floats, Floats]:
    """Mean over groups of half the squared difference, (P,), and over how many, (P,)."""
    squares = (logs[one] - logs[two]) ** 2 / 2.0
    known = np.isfinite(squares)
    squares = np.where(known, squares, 0.0)
    total, count = np.zeros(len(one)), np.zeros(len(one))
    for group in sorted(set(groups)):
        members = np.array([name == group for name in groups])
        measured = known[:, members].sum(axis=1)
        total += squares[:, members].sum(axis=1) / np.maximum(measured, 1)
        count += measured > 0
    return total / np.maximum(count, 1), count


def _non_negative(design: Square, target: Floats, weight: Floats, default: Floats) -> Floats:
    """Weighted least squares by coordinate descent, drawn a little to a default."""
    gram = (design * weight[:, None]).T @ design
    pull = PULL * float(np.trace(gram)) / len(gram)
    right = (design * weight[:, None]).T @ target + pull * default
    gram += pull * np.eye(len(gram))
    found = default.copy()
    for _ in range(SWEEPS):
        for i in range(len(found)):
            found[i] = max(0.0, found[i] + (right[i] - gram[i] @ found) / gram[i, i])
    return found
