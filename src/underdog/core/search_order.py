"""Candidates by name inside a search, in the user's order outside; and which are no larger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from underdog.core.search_records import (
    Candidates,
    Flags,
    Floats,
    Integers,
    Prediction,
    Reference,
)
from underdog.errors import UsageError

MEMORIES = ("memory_gib", "accelerator_memory_gib_total")
KINDS = ("accelerator", "arch")


class Order:
    """The candidates in the order of their names.

    Attributes:
        candidates: in that order.
        inside: (n,), place by name of each of the user's; ``outside_of`` the reverse.
    """

    def __init__(self, candidates: Candidates) -> None:
        self._count = len(candidates)
        names = np.array(candidates.names, dtype=object)
        self.outside_of: Integers = np.argsort(names, kind="stable").astype(np.int64)
        self.inside: Integers = np.empty(self._count, dtype=np.int64)
        self.inside[self.outside_of] = np.arange(self._count)
        self.candidates = candidates.take(self.outside_of)

    @property
    def outside(self) -> Integers:
        """Places inside in the user's order: ``column[outside]`` is the user's column."""
        return self.inside

    def flags(self, values: Flags | None) -> Flags:
        """The user's flags by name; all True where there are none."""
        if values is None:
            return np.ones(self._count, bool)
        self._check("'allowed'", len(values))
        return np.asarray(values, bool)[self.outside_of]

    def shares(self, values: Floats | None) -> Floats:
        """The user's shares by name; all 1 where there are none."""
        if values is None:
            return np.ones(self._count)
        self._check("'had'", len(values))
        return np.asarray(values, dtype=float)[self.outside_of]

    def references(self, references: Sequence[Reference]) -> list[Reference]:
        """References by name, those on the user's candidates in the order inside.

        One that never ran says nothing of a throughput and is left out.
        """
        found = []
        for reference in references:
            if reference.candidates is None:
                self._check(f"reference '{reference.workload}'", len(reference.throughput))
                failed = reference.failed
                reference = replace(
                    reference,
                    throughput=np.asarray(reference.throughput, dtype=float)[self.outside_of],
                    failed=None if failed is None else np.asarray(failed)[self.outside_of],
                )
            if (np.isfinite(reference.throughput) & ~_lost(reference)).any():
                found.append(reference)
        return sorted(found, key=lambda one: one.workload)

    def prediction(self, prediction: Prediction | None) -> Prediction | None:
        """The user's prediction by name."""
        if prediction is None:
            return None
        logs = np.asarray(prediction.log_throughput, dtype=float)
        self._check("the prediction", len(logs))
        return Prediction(logs[self.outside_of])

    def _check(self, what: str, length: int) -> None:
        if length != self._count:
            raise UsageError(f"There are {self._count} candidates, and {length} in {what}.")


def _lost(reference: Reference) -> Flags:
    count = len(reference.throughput)
    return np.zeros(count, bool) if reference.failed is None else reference.failed


def no_larger_of_kind(candidates: Candidates, row: int) -> Flags:
    """Candidates of the same kind with no more of any memory than one has: (n,).

    What ran out of memory there runs out of it here. Where no memory is known, none but itself.
    """
    alike = np.ones(len(candidates), bool)
    for name in KINDS:
        texts = candidates.texts.get(name)
        if texts is not None:
            alike &= np.array([(text or "") == (texts[row] or "") for text in texts])
    nodes = candidates.numbers.get("nodes", np.ones(len(candidates)))
    nodes = np.where(np.isfinite(nodes), nodes, 1.0)
    compared = np.zeros(len(candidates), bool)
    for name in MEMORIES:
        memory = candidates.numbers.get(name)
        if memory is None or not np.isfinite(memory[row]):
            continue
        # unknown memory may be larger
        alike &= (memory <= memory[row]) & (memory * nodes <= memory[row] * nodes[row])
        compared |= np.isfinite(memory)
    result = alike & compared
    result[row] = True
    return np.asarray(result)
