"""What the runs of a workload on one machine tell of how it will run on others.

A step's time has a part that does not depend on the batch (launching kernels, updating weights)
and a part that does; a machine that computes faster shortens the second, and the first only as far
as its host is faster. How much of a step is fixed is read from runs at other batch sizes. How
fast a workload gets at its best, for the work that it does, tells compute-bound from memory-bound
ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underdog.core.transfer_process import Floats, Labels
from underdog.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class Runs:
    """Rates of n rows (a workload with its knobs) on m machines, and what is known of the rows.

    Args:
        rates: samples per second, shape (n, m), positive; NaN where it was not measured.
        series: shape (n,); rows of one series are one workload at other batch or input sizes.
        groups: shape (n,); series of one group are alike, such as the models of one family. Only
            what holds for groups that were left out is believed.
        batch: samples per step, shape (n,); NaN where unknown.
        size: of a sample, such as its pixels, shape (n,): comparable within a series.
        work: of a sample, such as FLOP and bytes, shape (n, k): comparable between all rows.

    Raises:
        UsageError: arrays of different lengths, or a number that is zero, negative or infinite.
            All that is wrong is named at once.
    """

    rates: Floats
    series: Labels
    groups: Labels
    batch: Floats
    size: Floats
    work: Floats

    @classmethod
    def of(
        cls,
        rates: Floats,
        groups: Labels,
        *,
        series: Labels | None = None,
        batch: Floats | None = None,
        size: Floats | None = None,
        work: Floats | None = None,
    ) -> Runs:
        """Runs of which some things are not known."""
        count, unknown = len(rates), np.full(len(rates), np.nan)
        return cls(
            rates=rates,
            series=groups if series is None else series,
            groups=groups,
            batch=unknown if batch is None else batch,
            size=unknown if size is None else size,
            work=np.empty((count, 0)) if work is None else work,
        )

    def __post_init__(self) -> None:
        names = ("rates", "batch", "size", "work")
        check({name: getattr(self, name) for name in names}, len(self.series))

    def __len__(self) -> int:
        return len(self.rates)

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Runs:
        """The rows at an index or a mask."""
        return Runs(**{name: getattr(self, name)[index] for name in self.__slots__})


def check(numbers: dict[str, Floats], count: int) -> None:
    """Raise where an array has another length, or holds what is no positive number.

    Raises:
        UsageError: names every array that is wrong.
    """
    problems = []
    for name, values in numbers.items():
        if len(values) != count:
            problems.append(f"'{name}' has {len(values)} rows, not {count}.")
        wrong = values[~np.isnan(values) & ~((values > 0) & np.isfinite(values))]
        if wrong.size:
            problems.append(f"'{name}' holds {wrong.flat[0]}, which is no positive number.")
    if problems:
        raise UsageError("\n".join(problems), "Leave out what is unknown as NaN.")


def told(runs: Runs, machine: int) -> tuple[Floats, Floats]:
    """What the runs on one machine tell, of each row and of each row's series.

    Returns:
        Of the row, shape (n, 3 + k): log seconds of a step, the part of it that does not depend on
        the batch, the slope of log seconds over log batch, and log seconds per work.
        Of its series, shape (n, 2 + k): the least log seconds per size, the log of the fixed
        seconds, and the least log seconds per work. NaN where it cannot be told.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        sample = -np.log(runs.rates[:, machine])
        batch, paces = np.log(runs.batch), sample[:, None] - np.log(runs.work)
        step = sample + np.where(np.isnan(batch), 0.0, batch)
        fixed, slope = _batch_effects(runs, np.exp(step), batch)
        share = np.clip(fixed / np.exp(step), 0.0, 1.0)
        # a thousandth of the step is as good as nothing, and has a logarithm
        log_fixed = np.log(np.maximum(fixed, 1e-3 * np.exp(step)))
        best = sample - np.log(runs.size)
    of_row = np.column_stack([step, share, slope, paces])
    least = _by_series(np.column_stack([best, paces]), runs.series, np.min)
    level = _by_series(log_fixed[:, None], runs.series, np.mean)
    return of_row, np.column_stack([least[:, :1], level, least[:, 1:]])


def _batch_effects(runs: Runs, step: Floats, log_batch: Floats) -> tuple[Floats, Floats]:
    """Seconds that do not depend on the batch, and the local slope of log step over log batch."""
    fixed, slope = np.full(len(runs), np.nan), np.full(len(runs), np.nan)
    known = np.isfinite(step) & np.isfinite(log_batch)
    keys = np.column_stack([runs.series, runs.size, runs.work])[known]
    if not known.any():
        return fixed, slope
    _, lines = np.unique(np.nan_to_num(keys), axis=0, return_inverse=True)
    rows = np.flatnonzero(known)
    for line in range(int(lines.max()) + 1):
        members = rows[lines.ravel() == line]
        batches, order = np.unique(log_batch[members], return_index=True)
        if len(batches) < 2:
            continue
        seconds = step[members[order]]
        fixed[members] = _fixed(np.exp(batches), seconds)
        slopes = np.gradient(np.log(seconds), batches)
        slope[members] = np.interp(log_batch[members], batches, slopes)
    return fixed, slope


def _fixed(batch: Floats, seconds: Floats) -> float:
    """The constant of the line through seconds over batch of least relative error, neither < 0."""
    terms = np.column_stack([1 / seconds, batch / seconds])
    constant, each = np.linalg.lstsq(terms, np.ones(len(batch)), rcond=None)[0]
    if each < 0:
        return float(terms[:, 0].sum() / (terms[:, 0] ** 2).sum())
    return max(float(constant), 0.0)


def _by_series(
    values: Floats, series: Labels, summary: Callable[[Floats], np.floating[Any]]
) -> Floats:
    """A summary of each column over the known rows of a series, at each row."""
    found = np.full(values.shape, np.nan)
    for label in np.unique(series):
        rows = series == label
        for column in range(values.shape[1]):
            known = values[rows, column]
            known = known[np.isfinite(known)]
            if known.size:
                found[rows, column] = float(summary(known))
    return found
