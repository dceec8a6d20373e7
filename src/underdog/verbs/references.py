"""What other workloads did on the candidates of a study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from underdog.core.evidence import gather, shape_of
from underdog.core.search import Reference
from underdog.model import Trial


class Searched(Protocol):
    """Of a search, the workload and its candidates."""

    @property
    def workload(self) -> str:
        """Its name."""

    @property
    def names(self) -> Sequence[str]:
        """Of the candidates."""

    def index_of(self, trial: Trial) -> int | None:
        """The candidate that a trial ran on."""


def rates_of_others(
    laid_out: Searched, stored: Sequence[Trial]
) -> dict[str, dict[str, float | None]]:
    """What other workloads of the store did on the candidates: samples per second, None: failed."""
    by_workload: dict[str, list[Trial]] = {}
    for trial in stored:
        if trial.workload != laid_out.workload and laid_out.index_of(trial) is not None:
            by_workload.setdefault(trial.workload, []).append(trial)
    found: dict[str, dict[str, float | None]] = {}
    for workload, trials in by_workload.items():
        rates = found.setdefault(workload, {})
        for evidence in gather(trials):
            tried = next(t for t in trials if shape_of(t) == evidence.shape)
            index = laid_out.index_of(tried)
            if index is not None:
                estimate = evidence.estimate
                rates[laid_out.names[index]] = None if estimate is None else estimate.value
    return found


def references_of(
    laid_out: Searched, rates: Mapping[str, Mapping[str, float | None]]
) -> list[Reference]:
    """The same as the search takes it; a workload with nothing known is left out."""
    made = []
    for workload, by_name in rates.items():
        given = [by_name.get(name) for name in laid_out.names]
        throughput: NDArray[np.float64] = np.array(given, dtype=float)
        failed = np.array(
            [name in by_name and by_name[name] is None for name in laid_out.names], dtype=bool
        )
        if failed.any() or np.isfinite(throughput).any():
            made.append(Reference(workload, throughput, failed))
    return made
