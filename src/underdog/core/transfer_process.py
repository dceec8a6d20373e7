"""A Gaussian process over rows that come in groups, for ``underdog.core.transfer``.

A row is one quantity to be predicted (the log time of a workload on a machine), with its own
``features``, the ``shape`` of the group that it belongs to (what all rows of a network, or of an
accelerator, have in common) and the ``group``. The covariance of two rows is the sum of what a
straight line explains, of a smooth function, of what groups of like shape share, and of what only
rows of the same group share:

    1 + l·l' + S + A (1/3 + S/3) + [same group] (1/10 + S/10) + noise,

with S the Matérn-5/2 similarity of the features and A the Gaussian similarity of the shapes, times
the variance of the values (Rasmussen and Williams: Gaussian Processes for Machine Learning, 2006,
chapters 2, 4 and 5.4.2). The weights are the same for every set: there are seldom enough groups to
fit them by, and the error hardly depends on them (benchmarks/predict.py --sensitivity).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Weights:
    """Parts of the covariance, relative to the variance of the values; lengths in deviations.

    ``usual`` is by how many deviations a row may be missed before it counts as noisier.
    """

    line: float = 1.0
    smooth: float = 1.0
    alike: float = 0.3
    own: float = 0.1
    noise: float = 0.05
    usual: float = 1.5
    length: float = 2.0
    shape_length: float = 1.4


WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of finite numbers.

    Args:
        features: of each row, shape (n, d).
        shape: of each row's group, shape (n, e).
        groups: shape (n,); equal numbers are one group, of which rows may be known already.
        units: shape (n,); what is left out as a whole to see how far off a prediction is.
    """

    features: Floats
    shape: Floats
    groups: Labels
    units: Labels


class Process:
    """Values of rows, learnt from other rows.

    A row that its left-out prediction misses by more than ``usual`` deviations counts as that much
    noisier: one odd group does not bend what is predicted for those that look like it.

    Args:
        rows: n of them.
        values: shape (n,), finite.
    """

    def __init__(self, rows: Rows, values: Floats, weights: Weights = WEIGHTS) -> None:
        self._weights, self._known = weights, rows
        self._scales = [(part.mean(0), _deviation(part)) for part in (rows.features, rows.shape)]
        self._scaled_rows = self._scaled(rows)
        self._centre = float(np.median(values))
        rest = values - self._centre
        # values that are all the same leave nothing to explain, yet a variance is needed
        self._variance = max(float(np.mean(rest**2)), 1e-12)
        covariance = self._between(self._scaled_rows, rows.groups)
        noise = np.full(len(values), weights.noise)
        self._inverse = np.linalg.inv(covariance + np.diag(noise))
        self._pull: Floats = self._inverse @ rest
        missed, spread = self._left_out()
        self._excess = np.maximum(missed**2 / (weights.usual**2 * self._variance) - spread, 0.0)
        if self._excess.any():
            self._inverse = np.linalg.inv(covariance + np.diag(noise + self._excess))
            self._pull = self._inverse @ rest
            missed, spread = self._left_out()
        # what would be missed by a row of usual noise
        spread = np.maximum(spread - self._excess, 1e-12)
        self.left_out = (missed, np.sqrt(self._variance * spread))
        """What each row misses, value minus prediction, and its standard deviation, where its
        whole unit is left out: two arrays of shape (n,)."""

    def _scaled(self, rows: Rows) -> tuple[Floats, Floats]:
        (mean, deviation), (shape_mean, shape_deviation) = self._scales
        return (rows.features - mean) / deviation, (rows.shape - shape_mean) / shape_deviation

    def _between(self, rows: tuple[Floats, Floats], groups: Labels) -> Floats:
        """Covariance of some rows with the known ones over the variance, shape (m, n)."""
        weights, (features, shape), (known, known_shape) = (
            self._weights,
            rows,
            self._scaled_rows,
        )
        smooth = _matern(_squares(features, known) / weights.length**2)
        alike = np.exp(-_squares(shape, known_shape) / (2 * weights.shape_length**2))
        own = weights.own * (groups[:, None] == self._known.groups[None])
        line = 1 + weights.line * (features @ known.T) / max(features.shape[1], 1)
        whole: Floats = line + weights.smooth * smooth
        whole += (weights.alike * alike + own) * (1 + smooth)
        return whole

    def predict(self, rows: Rows) -> tuple[Floats, Floats]:
        """Mean and standard deviation of m other rows, shapes (m,)."""
        weights, scaled = self._weights, self._scaled(rows)
        between = self._between(scaled, rows.groups)
        line = 1 + weights.line * (scaled[0] ** 2).sum(1) / max(scaled[0].shape[1], 1)
        whole = line + weights.smooth + 2 * (weights.alike + weights.own) + weights.noise
        rest = whole - ((between @ self._inverse) * between).sum(1)
        mean = self._centre + between @ self._pull
        return mean, np.sqrt(self._variance * np.maximum(rest, 1e-12))

    def _left_out(self) -> tuple[Floats, Floats]:
        """What each row misses without its unit, and the variance of that over the values'.

        In closed form from the inverse of the covariance: Rasmussen and Williams, section 5.4.2,
        by blocks.
        """
        units = self._known.units
        missed, spread = np.empty(len(units)), np.empty(len(units))
        for unit in np.unique(units):
            rows = np.flatnonzero(units == unit)
            block = np.linalg.inv(self._inverse[np.ix_(rows, rows)])
            missed[rows], spread[rows] = block @ self._pull[rows], np.diag(block)
        return missed, spread


def _deviation(part: Floats) -> Floats:
    deviation: Floats = part.std(0)
    return np.where(deviation > 1e-9 * np.abs(part).max(0, initial=0.0), deviation, 1.0)


def _squares(one: Floats, other: Floats) -> Floats:
    """Squared distances, shape (m, n)."""
    lengths = (one**2).sum(1)[:, None] + (other**2).sum(1)[None]
    squares: Floats = np.maximum(lengths - 2 * one @ other.T, 0.0)
    return squares


def _matern(squares: Floats) -> Floats:
    root = np.sqrt(5 * squares)
    return (1 + root + root**2 / 3) * np.exp(-root)
