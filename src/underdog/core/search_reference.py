"""What other workloads did, brought onto the candidates of this search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from underdog.core.search_features import Features, encode
from underdog.core.search_kernel import Kernel, default_kernel, fit_kernel
from underdog.core.search_records import Candidates, Flags, Floats, Integers, Reference

SUPPORT = 200  # offers that what was not measured is filled in from
SUPPORT_CELLS = 2_000_000  # and at most so many pairs of offers
RIDGE = 0.05
ROUNDS = 50
# log throughput over log price where nothing is known, and its standard deviation: a machine at
# twice the price does somewhat less than twice the work
SLOPE, SLOPE_SD = 0.7, 0.4
UNKNOWN_VARIANCE = 1.5  # of log throughput at one price, where nothing is known


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What R references say of n candidates, in logarithms of throughput.

    Attributes:
        filled: (n, R), each without its level, what was not measured filled in.
        measured: (n, R), what was measured.
        failed: (n, R), 1 where it failed, 0 where it ran, NaN where it was not tried.
        levels: (R,), what was taken off.
        weights: (R,), sum 1; each group weighs the same.
        groups: of every reference.
        log_price: (n,), about its mean; 0 where unknown.
        slope: mean and standard deviation of log throughput over log price.
        deviation: how workloads differ from each other.
        variation: how a workload differs between offers at one price.
    """

    filled: Floats
    measured: Flags
    failed: Floats
    levels: Floats
    weights: Floats
    groups: tuple[str, ...]
    log_price: Floats
    slope: tuple[float, float]
    deviation: Kernel
    variation: Kernel

    @property
    def features(self) -> Features:
        """Of the candidates first, then of offers that only references have."""
        return self.deviation.features

    def __len__(self) -> int:
        return len(self.filled)


def gather(candidates: Candidates, references: Sequence[Reference]) -> Knowledge:
    """Bring the references onto the candidates, and learn from them how offers are alike.

    Each reference ran on one offer at least.
    """
    features, places = _rows(candidates, references)
    size = len(candidates)
    logs, failed = _table(len(features), references, places)
    groups = tuple(reference.group or reference.workload for reference in references)
    weights = np.array([1.0 / groups.count(group) for group in groups]) / max(len(set(groups)), 1)
    if not len(groups):
        unknown = default_kernel(features, UNKNOWN_VARIANCE)
        empty = np.zeros((size, 0))
        return Knowledge(
            empty, empty > 0, empty, np.zeros(0), np.zeros(0), (),
            features.log_price[:size], (SLOPE, SLOPE_SD), unknown, unknown,
        )  # fmt: skip
    levels, common = _two_way(logs, weights)
    slope = _slope(logs, features.log_price, weights * len(set(groups)))
    shapes = logs - levels
    priced = shapes - slope[0] * features.log_price[:, None]
    variation = fit_kernel(features, priced, groups)
    common = _completed(variation, common, slope[0] * features.log_price)
    deviations = shapes - common[:, None]
    deviation = _between_workloads(features, deviations, groups) or variation
    filled = common[:, None] + _fill(deviation, deviations)
    means = filled[:size].mean(axis=0)
    return Knowledge(
        filled[:size] - means, np.isfinite(logs[:size]), failed[:size], levels + means, weights,
        groups, features.log_price[:size], slope, deviation, variation,
    )  # fmt: skip


def _table(
    count: int, references: Sequence[Reference], places: Sequence[Integers]
) -> tuple[Floats, Floats]:
    """Log throughput (N, R), and where it failed (1), ran (0) or was not tried (NaN)."""
    logs, failed = np.full((2, count, len(references)), np.nan)
    for column, (reference, rows) in enumerate(zip(references, places, strict=True)):
        found = np.log(np.asarray(reference.throughput, dtype=float))
        lost = np.zeros(len(rows), bool) if reference.failed is None else reference.failed
        ran = np.isfinite(found) & ~lost
        logs[rows[ran], column], failed[rows[ran], column] = found[ran], 0.0
        failed[rows[lost], column] = 1.0
    return logs, failed


def _rows(
    candidates: Candidates, references: Sequence[Reference]
) -> tuple[Features, list[Integers]]:
    """Features of all offers that occur, and where the offers of each reference are in them."""
    tables = [candidates]
    for reference in references:
        other = reference.candidates
        if other is not None and all(other is not table for table in tables):
            tables.append(other)
    features = encode(tables)
    by_name = {name: row for row, name in enumerate(candidates.names)}
    by_facts: dict[bytes, int] = {}
    if len(tables) > 1:
        facts = np.column_stack([np.round(features.numbers, 6) + 0.0, features.codes])
        for row in range(len(facts)):
            by_facts.setdefault(facts[row].tobytes(), row)
    places, start = {}, 0
    for table in tables:
        rows = np.arange(start, start + len(table))
        start += len(table)
        if table is not candidates:
            # the same name, else the same facts, else an offer of its own
            alike = [by_facts[facts[row].tobytes()] for row in rows]
            rows = np.array(
                [by_name.get(n, row) for n, row in zip(table.names, alike, strict=True)], dtype=int
            )
        places[id(table)] = rows
    return features, [
        places[id(candidates if r.candidates is None else r.candidates)] for r in references
    ]


def _two_way(logs: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Levels (R,) of the workloads and what they have in common (N,), NaN where none ran."""
    known = np.isfinite(logs)
    weight = known * weights
    total = weight.sum(axis=1)
    filled = np.where(known, logs, 0.0)
    levels = filled.sum(axis=0) / known.sum(axis=0)
    for _ in range(ROUNDS):
        common = ((filled - levels) * weight).sum(axis=1) / np.maximum(total, 1e-12)
        moved = ((filled - common[:, None]) * known).sum(axis=0) / known.sum(axis=0)
        settled = float(np.abs(moved - levels).max()) < 1e-6
        levels = moved
        if settled:
            break
    return levels, np.where(total > 0, common, np.nan)


def _slope(logs: Floats, log_price: Floats, weights: Floats) -> tuple[float, float]:
    """Log throughput over log price: mean and deviation, what is not known counted as one more."""
    slopes, counts = [SLOPE], [1.0]
    for column, weight in zip(logs.T, weights, strict=True):
        known = np.isfinite(column)
        spread = float(np.var(log_price[known]))
        if known.sum() > 3 and spread > 0:
            both = np.cov(log_price[known], column[known], bias=True)
            slopes.append(float(both[0, 1]) / spread)
            counts.append(float(weight))
    mean = float(np.average(slopes, weights=counts))
    squares = (np.array(slopes) - mean) ** 2
    squares[0] = SLOPE_SD**2
    # workloads that agree may all scale unlike the new one
    return mean, max(float(np.sqrt(np.average(squares, weights=counts))), SLOPE_SD)


def _completed(kernel: Kernel, common: Floats, trend: Floats) -> Floats:
    """What workloads have in common, where none ran from alike offers at their price."""
    beyond = common - trend
    mean = float(np.nanmean(beyond))
    filled = _fill(kernel, (beyond - mean)[:, None])[:, 0]
    return np.asarray(trend + mean + filled)


def _between_workloads(
    features: Features, deviations: Floats, groups: Sequence[str]
) -> Kernel | None:
    """How a new workload deviates from the mean of G groups; None for fewer than two."""
    count = len(set(groups))
    if count < 2:
        return None
    kernel = fit_kernel(features, deviations, groups)
    # a mean of G deviates itself: what is left of a member is (G - 1) / G of its variance
    variance = kernel.variance * count / (count - 1) * (1 + 1 / count)
    return Kernel(features, kernel.weights, kernel.own, variance)


def _fill(kernel: Kernel, values: Floats) -> Floats:
    """Values (N, R) with those that are NaN predicted from those that are not."""
    known = np.isfinite(values)
    missing = np.flatnonzero(~known.all(axis=1))
    if not len(missing):
        return values
    support = _support(known)
    near = kernel.columns(missing, support)
    among = kernel.columns(support, support)
    filled = values.copy()
    for column in range(values.shape[1]):
        have = known[support, column]
        gaps = ~known[missing, column]
        gram = among[np.ix_(have, have)] + RIDGE * np.eye(int(have.sum()))
        solved = np.linalg.solve(gram, values[support[have], column])
        filled[missing[gaps], column] = near[np.ix_(gaps, have)] @ solved
    return filled


def _support(known: Flags) -> Integers:
    """Offers to fill in from."""
    some = np.flatnonzero(known.any(axis=1))
    most = max(min(SUPPORT, SUPPORT_CELLS // len(known)), 8)
    return best_known(known, some, most)


def best_known(known: Flags, some: Integers, most: int) -> Integers:
    """Of some offers at most so many: half those that most workloads ran on, half at random."""
    if len(some) <= most:
        return some
    order = some[np.argsort(-known[some].sum(axis=1), kind="stable")]
    rest = np.random.default_rng(0).permutation(order[most // 2 :])
    return np.sort(np.concatenate([order[: most // 2], rest[: most - most // 2]]))
