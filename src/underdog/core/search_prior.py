"""How the throughput of this workload may come about, before any of it was measured.

It does as one other workload, as all of them on average, as a prediction says, as the price says,
or as amounts of the machine bound it; and it deviates from that more or less, in ways that offers
of alike facts share, or that other workloads share. Some explanations believe no other workload,
so that those that mislead are found out. Each is a Gaussian process; how likely each kind is, is
learnt by leaving out one group of references after another (``search_learning``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from underdog.core.search_bottlenecks import bottlenecks
from underdog.core.search_kernel import default_kernel
from underdog.core.search_records import Floats, Integers, Prediction
from underdog.core.search_reference import SLOPE, SLOPE_SD, UNKNOWN_VARIANCE, Knowledge


class Kind(IntEnum):
    """What the mean of an explanation is."""

    ONE = 0
    COMMON = 1
    PRICE = 2
    ALONE = 3
    PREDICTED = 4
    BOTTLENECK = 5


class Family(IntEnum):
    """What the deviation of an explanation goes by."""

    WORKLOADS = 0  # as workloads differ from each other
    OFFERS = 1  # as offers differ for other workloads
    NOTHING = 2  # as offers differ where no other workload is believed
    BOTTLENECKS = 3  # as offers differ for other workloads, with no trend of the price besides


FAMILY = np.array(
    [
        Family.WORKLOADS,
        Family.WORKLOADS,
        Family.OFFERS,
        Family.NOTHING,
        Family.NOTHING,
        Family.BOTTLENECKS,
    ]
)
CHANCE = np.array([0.2, 0.1, 0.55, 0.15, 0.35, 0.3])  # of each kind before references were compared
SCALES = (0.15, 0.3, 0.6, 1.2)  # of the deviation, over the usual one
LEAST_SCALE = 0.6  # where no other workload is believed
SHARED = (0.0, 0.6)  # share of its variance that follows the other workloads
LEVEL_SD = 1.5  # of the level of one workload over another's
UNKNOWN_LEVEL_SD = 10.0  # where there is none
NOISE_SD = 0.02  # of a measurement that says nothing of its own noise


@dataclass(frozen=True, slots=True)
class Form:
    """How an explanation deviates from its mean."""

    scale: float
    shared: float


@dataclass(frozen=True, slots=True)
class Blocks:
    """What covariances between rows (m,) and others (k,) are made of, each (m, k).

    ``kernels`` are by family; ``shared`` follows the other workloads, ``trend`` the price.
    """

    kernels: Mapping[Family, Floats]
    shared: Floats
    trend: Floats

    def take(self, rows: Integers) -> Blocks:
        """Those of some of the rows."""
        kernels = {family: kernel[rows] for family, kernel in self.kernels.items()}
        return Blocks(kernels, self.shared[rows], self.trend[rows])

    @classmethod
    def beside(cls, blocks: Sequence[Blocks]) -> Blocks:
        """Blocks of the same rows with the others of all."""
        return cls(
            {
                family: np.hstack([b.kernels[family] for b in blocks])
                for family in blocks[0].kernels
            },
            np.hstack([b.shared for b in blocks]),
            np.hstack([b.trend for b in blocks]),
        )


class Prior:
    """Explanations z of the log throughput of n candidates, each in several forms.

    Attributes:
        means: (n, Z) about zero; ``levels``: (Z,); ``kinds`` and ``families``: (Z,).
        within: (Z,), the chance of each among those of its kind.
        chances: (Z, forms), sum 1.
    """

    def __init__(self, knowledge: Knowledge, prediction: Prediction | None) -> None:
        self.knowledge = knowledge
        self.has_references = bool(len(knowledge.groups))
        shares = SHARED if self.has_references else (0.0,)
        self.forms = [Form(scale, shared) for scale in SCALES for shared in shares]
        self._explain(prediction)
        self._level_sd = LEVEL_SD if self.has_references else UNKNOWN_LEVEL_SD
        plain = default_kernel(knowledge.features, UNKNOWN_VARIANCE)
        kernels = (knowledge.deviation, knowledge.variation, plain, knowledge.variation)
        self._kernels = {family: kernels[family] for family in sorted(set(self.families.tolist()))}
        self._slope_sds = (0.0, knowledge.slope[1], SLOPE_SD, 0.0)
        self._shared = shared_factors(knowledge.filled, knowledge.weights)
        # set by ``search_learning.learn``; until then every kind is as likely as ``CHANCE`` says
        self.set_chances(self.start())

    def _explain(self, prediction: Prediction | None) -> None:
        """Means, levels, kinds and weights within a kind of all explanations."""
        knowledge = self.knowledge
        level = float(knowledge.weights @ knowledge.levels) if self.has_references else 0.0
        trend = SLOPE * knowledge.log_price
        found = [(Kind.ALONE, trend, level, 1.0)]
        if self.has_references:
            found = [
                *zip(
                    [Kind.ONE] * len(knowledge.groups),
                    knowledge.filled.T,
                    knowledge.levels.tolist(),
                    knowledge.weights.tolist(),
                    strict=True,
                ),
                (Kind.COMMON, knowledge.filled @ knowledge.weights, level, 1.0),
                (Kind.PRICE, knowledge.slope[0] * knowledge.log_price, level, 1.0),
                *found,
            ]
        features, size = knowledge.features, len(knowledge)
        amounts = {**features.amounts, **features.resources}
        curves = bottlenecks({name: logs[:size] for name, logs in amounts.items()})
        found.extend((Kind.BOTTLENECK, curve, level, 1.0) for curve in curves.T)
        if prediction is not None and np.isfinite(prediction.log_throughput).any():
            logs = prediction.log_throughput
            known = np.isfinite(logs)
            centre = float(logs[known].mean())
            trend = trend - float(trend[known].mean())
            found.append((Kind.PREDICTED, np.where(known, logs - centre, trend), centre, 1.0))
        kinds, means, levels, weights = zip(*found, strict=True)
        self.means, self.levels = np.column_stack(means), np.array(levels)
        self.kinds, self.within = np.array(kinds), np.array(weights)
        for kind in set(kinds):
            self.within[self.kinds == kind] /= self.within[self.kinds == kind].sum()
        self.families = FAMILY[self.kinds]

    def start(self) -> Floats:
        """Chance of each kind in each form, (kinds, forms), before references were compared."""
        follows = np.array([form.shared > 0 for form in self.forms])
        start = np.zeros((len(Kind), len(self.forms)))
        for kind in sorted(set(self.kinds.tolist())):
            # what workloads share is a form only where one is believed
            forms = np.ones(len(follows), bool)
            if FAMILY[kind] != Family.WORKLOADS:
                forms = ~follows
            if FAMILY[kind] == Family.NOTHING:
                # a few tests of alike offers must not pass for knowledge of all
                forms &= np.array([form.scale >= LEAST_SCALE for form in self.forms])
            start[kind, forms] = CHANCE[kind] / forms.sum()
        return np.asarray(start / start.sum())

    def set_chances(self, by_kind: Floats) -> None:
        """Take over chances of each kind in each form, (kinds, forms)."""
        chances = by_kind[self.kinds] * self.within[:, None]
        self.chances: Floats = np.asarray(chances / chances.sum())

    def blocks(self, rows: Integers, others: Integers) -> Blocks:
        """What covariances of rows and others are made of."""
        price = self.knowledge.log_price
        return Blocks(
            {family: kernel.columns(rows, others) for family, kernel in self._kernels.items()},
            self._shared[rows] @ self._shared[others].T,
            np.multiply.outer(price[rows], price[others]),
        )

    def covariance(self, blocks: Blocks, form: Form, family: Family) -> Floats:
        """(m, k)."""
        kernel = self._kernels[family]
        own, shared = blocks.kernels[family], form.shared
        mixed = (1 - shared) * own + shared * blocks.shared if shared else own
        result = (kernel.variance * form.scale**2) * mixed + self._level_sd**2
        if self._slope_sds[family]:
            result = result + self._slope_sds[family] ** 2 * blocks.trend
        return np.asarray(result)

    def variances(self, form: Form, family: Family) -> Floats:
        """(n,), the diagonal of ``covariance`` of every candidate with itself."""
        shared = (self._shared**2).sum(axis=1)
        ones = np.ones(len(self.knowledge))
        blocks = Blocks({family: ones}, shared, self.knowledge.log_price**2)
        return self.covariance(blocks, form, family)


def log_evidence(covariance: Floats, errors: Floats, noise: Floats | float = 0.0) -> Floats:
    """Log density of errors (m, Z) up to a constant: (Z,)."""
    factor = factorise(covariance, noise)
    solved = np.linalg.solve(factor, errors)
    return np.asarray(-0.5 * (solved**2).sum(axis=0) - np.log(np.diag(factor)).sum())


def factorise(covariance: Floats, noise: Floats | float = 0.0) -> Floats:
    """Cholesky factor of a covariance with noise (variances beyond ``NOISE_SD``) on it."""
    with_noise = covariance + np.diag(noise + np.full(len(covariance), NOISE_SD**2))
    return np.asarray(np.linalg.cholesky(with_noise), dtype=float)


def shared_factors(filled: Floats, weights: Floats) -> Floats:
    """Deviations of workloads from their mean as factors of a covariance of mean variance 1."""
    if not filled.shape[1]:
        return np.zeros((len(filled), 0))
    factors = (filled - (filled @ weights)[:, None]) * np.sqrt(weights)
    return np.asarray(factors / np.sqrt(max(float((factors**2).sum(axis=1).mean()), 1e-12)))
