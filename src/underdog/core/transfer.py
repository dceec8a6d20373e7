"""Transfer: a prediction for a machine from what other workloads, or other machines, did.

``transfer`` predicts a workload on a machine where others ran: the ratio of the two machines is
learnt from the workloads that were measured on both, as a function of how the workload behaves on
the machine that is known. ``extrapolate`` predicts a workload on a machine where nothing ran, from
the machines that it did run on and their facts. Both use one Gaussian process with one set of
weights, and both widen their interval until it holds what the same method misses where whole
groups are left out (Papadopoulos et al.: Regression conformal prediction, JAIR 40, 2011; Vovk:
Cross-conformal predictors, 2015).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from underdog.core.quantiles import student
from underdog.core.transfer_features import Runs, check, told
from underdog.core.transfer_process import WEIGHTS, Floats, Labels, Process, Rows, Weights
from underdog.errors import UsageError

# the fewest groups from which it can be seen how far off a prediction for another group is
LEAST_GROUPS = 3
# the time grows with the cube of the rows: 1,000 take about half a second
MOST_ROWS = 1000
# What the same run differs by, as a variance of logs: what one machine misses tells nothing of
# another below it.
REPEAT = 0.003


@dataclass(frozen=True, slots=True)
class Forecast:
    """Samples per second with an interval, shapes (k,); NaN where nothing can be said.

    ``references`` is how many rows it rests on.
    """

    value: Floats
    low: Floats
    high: Floats
    references: int


@dataclass(frozen=True, slots=True)
class _Route:
    """From one measured machine to another: log rates of the targets, and what it misses.

    ``mean`` and ``spread`` have shape (k,), ``missed`` and ``spreads`` shape (n,), NaN at rows
    that were not measured on both machines or not used.
    """

    mean: Floats
    spread: Floats
    missed: Floats
    spreads: Floats


def transfer(
    references: Runs,
    targets: Runs,
    machine: int,
    *,
    level: float = 0.9,
    weights: Weights = WEIGHTS,
) -> Forecast:
    """Predict the rates of rows on one machine, from theirs on others and other rows on both.

    Each machine that a target was measured on predicts it. What these predictions miss on each
    other corrects them, as far as it did for the references. Their mean counts.

    Args:
        references: n rows; rows in the group of a target are left aside.
        targets: k rows on the same m machines; their rate on ``machine`` is not looked at.
        machine: the column to predict.
        level: the share of intervals that hold the truth.

    Raises:
        UsageError: other numbers of machines, or a column that there is not.
    """
    machines = references.rates.shape[1]
    if targets.rates.shape[1] != machines or not 0 <= machine < machines:
        raise UsageError(f"There is no column {machine} in {machines} machines of all rows.")
    references = references.take(~np.isin(references.groups, targets.groups))
    count = len(targets)
    unknown = np.full(count, np.nan)
    value, low, high, used = unknown.copy(), unknown.copy(), unknown.copy(), 0
    measured = ~np.isnan(targets.rates)
    measured[:, machine] = False
    # rows that were measured on the same machines are predicted together
    for pattern in np.unique(measured, axis=0):
        rows = np.flatnonzero((measured == pattern).all(1))
        sources = _useful(references, np.flatnonzero(pattern).tolist(), machine)
        if not sources:
            continue
        mean, half, rest = _from(references, targets, rows, [*sources, machine], level, weights)
        value[rows], low[rows], high[rows] = (np.exp(mean + k * half) for k in (0, -1, 1))
        used = max(used, rest)
    return Forecast(value, low, high, used)


def _useful(references: Runs, sources: Sequence[int], machine: int) -> list[int]:
    """The sources that enough groups were measured on together with the machine."""
    found = []
    for source in sources:
        both = ~np.isnan(references.rates[:, [source, machine]]).any(1)
        if len(np.unique(references.groups[both])) >= LEAST_GROUPS:
            found.append(source)
    return found


def _from(
    references: Runs,
    targets: Runs,
    rows: Labels,
    machines: Sequence[int],
    level: float,
    weights: Weights,
) -> tuple[Floats, Floats, int]:
    """Log rates of some targets, half-widths of their intervals, and the number of references.

    Of ``machines``, the last is predicted and the others were measured.
    """
    *sources, machine = machines
    chosen = _spread_out(references, machines)
    pieces = []
    for source in sources:
        route = _route(references, targets, (chosen, rows), (source, machine), weights)
        others = [other for other in sources if other != source]
        checks = [
            _route(references, targets, (chosen, rows), (source, other), weights)
            for other in others
        ]
        logs = np.log(targets.rates[rows][:, others])
        pieces.append(_corrected(route, checks, logs, references.groups[chosen]))
    trust = np.array([1 / max(float(np.nanmean(piece.missed**2)), 1e-12) for piece in pieces])
    trust /= trust.sum()
    mean, spread, missed, spreads = (
        _average([getattr(piece, name) for piece in pieces], trust) for name in _Route.__slots__
    )
    known = ~np.isnan(missed)
    groups = len(np.unique(references.groups[chosen[known]]))
    half = spread * _reach(missed[known] / spreads[known], groups, level)
    return mean, half, int(known.sum())


def _spread_out(references: Runs, machines: Sequence[int]) -> Labels:
    """Rows that tell something of the machines, at most ``MOST_ROWS``, evenly over the groups."""
    known = ~np.isnan(references.rates[:, machines])
    rows = np.flatnonzero(known[:, -1] & known[:, :-1].any(1))
    return _thinned(rows[np.argsort(references.groups[rows], kind="stable")])


def _thinned(rows: Labels) -> Labels:
    if len(rows) <= MOST_ROWS:
        return rows
    return rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.int64)]


def _route(
    references: Runs,
    targets: Runs,
    rows: tuple[Labels, Labels],
    machines: tuple[int, int],
    weights: Weights,
) -> _Route:
    (chosen, wanted), (source, goal) = rows, machines
    features, shape = (
        _complete(known[chosen], new[wanted])
        for known, new in zip(told(references, source), told(targets, source), strict=True)
    )
    logs = np.log(references.rates[chosen])
    ratio = logs[:, goal] - logs[:, source]
    both = ~np.isnan(ratio)
    groups = references.groups[chosen]
    rows_of_both = Rows(features[0][both], shape[0][both], groups[both], groups[both])
    process = Process(rows_of_both, ratio[both], weights)
    new = targets.groups[wanted]
    mean, spread = process.predict(Rows(features[1], shape[1], new, new))
    missed, spreads = np.full(len(chosen), np.nan), np.full(len(chosen), np.nan)
    missed[both], spreads[both] = process.left_out
    return _Route(mean + np.log(targets.rates[wanted, source]), spread, missed, spreads)


def _complete(known: Floats, new: Floats) -> tuple[Floats, Floats]:
    """Both with the middle of the known column where a number is missing."""
    filled = known.copy(), new.copy()
    for column in range(known.shape[1]):
        values = known[:, column]
        values = values[np.isfinite(values)]
        middle = float(np.median(values)) if values.size else 0.0
        for part in filled:
            lost = ~np.isfinite(part[:, column])
            # a column that no reference knows tells nothing of the target either
            part[lost if values.size else slice(None), column] = middle
    return filled


def _corrected(route: _Route, checks: Sequence[_Route], logs: Floats, groups: Labels) -> _Route:
    """A route, less what it is expected to miss by what it missed on the other measured machines.

    The ridge regression of one error on the others, over references whose group was left out.
    """
    if not checks:
        return route
    errors = np.column_stack([check.missed for check in checks])
    known = ~np.isnan(route.missed) & ~np.isnan(errors).any(1)
    if len(np.unique(groups[known])) < LEAST_GROUPS:
        return route
    errors, count = errors[known], int(known.sum())
    noise = REPEAT * count * np.eye(len(checks))
    share = np.linalg.solve(errors.T @ errors + noise, errors.T @ route.missed[known])
    seen = logs - np.column_stack([check.mean for check in checks])
    missed = np.full(len(known), np.nan)
    missed[known] = route.missed[known] - errors @ share
    return _Route(route.mean + seen @ share, route.spread, missed, route.spreads)


def _average(parts: Sequence[Floats], trust: Floats) -> Floats:
    """The weighted mean over the parts, at each place of those that are known there."""
    stacked = np.stack(parts)
    shares = np.where(np.isnan(stacked), 0.0, trust[:, None])
    total = shares.sum(0)
    whole = (shares * np.nan_to_num(stacked)).sum(0)
    return np.where(total > 0, whole / np.where(total > 0, total, 1.0), np.nan)


def _reach(relative: Floats, groups: int, level: float) -> float:
    """How many standard deviations hold a share of errors as large as these: of left-out groups.

    Rows of one group err together, so few groups tell little of it however many rows they have:
    the share of the errors themselves is widened as Student's t is wider than the normal.
    """
    end = (1 + level) / 2
    widened = student(end, groups - 1) / NormalDist().inv_cdf(end)
    count = len(relative)
    share = min(level * (count + 1) / count, 1.0)
    return widened * float(np.quantile(np.abs(relative), share))


@dataclass(frozen=True, kw_only=True, slots=True)
class Machines:
    """Facts of n machines as numbers; logs of rates and sizes, NaN where unknown.

    Args:
        features: of the machine, shape (n, d).
        shape: of its chip, shape (n, e).
        groups: shape (n,); machines of one chip.
        units: shape (n,); how far off a prediction is, is read from left-out units.
    """

    features: Floats
    shape: Floats
    groups: Labels
    units: Labels

    def take(self, index: Labels | NDArray[np.bool_]) -> Machines:
        """The machines at an index or a mask."""
        return Machines(**{name: getattr(self, name)[index] for name in self.__slots__})


def extrapolate(
    known: Machines,
    rates: Floats,
    new: Machines,
    *,
    level: float = 0.9,
    weights: Weights = WEIGHTS,
) -> Forecast:
    """Predict the rates of one workload on machines that nothing ran on, from facts alone.

    Args:
        known: n machines.
        rates: samples per second on them, shape (n,), positive.
        new: k machines.
        level: the share of intervals that hold the truth.

    Raises:
        UsageError: a rate that is no positive number.
    """
    check({"rates": rates}, len(known.groups))
    if np.isnan(rates).any():
        raise UsageError("'rates' holds NaN.", "Leave out the machines that were not measured.")
    rows, middle = _distinct(known, np.log(rates))
    unknown = np.full(len(new.groups), np.nan)
    if len(np.unique(known.units[rows])) < LEAST_GROUPS:
        return Forecast(unknown, unknown, unknown, 0)
    features = _complete(known.features[rows], new.features)
    shape = _complete(known.shape[rows], new.shape)
    groups, units = known.groups[rows], known.units[rows]
    process = Process(Rows(features[0], shape[0], groups, units), middle, weights)
    mean, spread = process.predict(Rows(features[1], shape[1], new.groups, new.units))
    missed, spreads = process.left_out
    half = spread * _reach(missed / spreads, len(np.unique(units)), level)
    return Forecast(np.exp(mean), np.exp(mean - half), np.exp(mean + half), len(rows))


def _distinct(machines: Machines, values: Floats) -> tuple[Labels, Floats]:
    """One row of all that have equal facts, with the median value of these."""
    keys = np.column_stack([machines.units, machines.groups, machines.features, machines.shape])
    _, first, kinds = np.unique(np.nan_to_num(keys), axis=0, return_index=True, return_inverse=True)
    order = np.argsort(kinds.ravel(), kind="stable")
    parts = np.split(values[order], np.flatnonzero(np.diff(kinds.ravel()[order])) + 1)
    kept = _thinned(np.arange(len(first)))
    return first[kept], np.array([np.median(parts[i]) for i in kept])
