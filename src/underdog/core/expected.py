"""What is expected of getting the candidates of a search and of keeping them, as arrays.

The same figures as the columns of ``core.supply``, by which choosing scores, so that a search
values an offer as the decision does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from underdog.core.supply import NEVER, Supply
from underdog.core.table import Table

RARE = 0.1  # with a lower chance an offer is hardly to be had
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Expected:
    """Of n candidates.

    Attributes:
        wait: (n,), hours until one is got; NaN where nothing tells.
        chance: (n,), that an attempt succeeds at once; NaN likewise.
        interruptions: (n,), per hour of all its machines; 0 where none is taken away.
        supply: how the job copes with an interruption, and how long an offer is asked for.
    """

    wait: Floats
    chance: Floats
    interruptions: Floats
    supply: Supply

    @classmethod
    def of(cls, table: Table, rows: Sequence[int], supply: Supply) -> Expected:
        """Of rows of ``candidates``, in their order, from a table that was chosen from."""
        sql = "SELECT row, wait_hours, chance, interruptions FROM joined"
        found = table.run(sql).fetchnumpy()
        place = {int(row): i for i, row in enumerate(found["row"])}
        at = [place[row] for row in rows]
        figures: dict[str, Floats] = {
            name: np.ma.filled(np.ma.asarray(found[column], dtype=float), np.nan)[at]
            for name, column in (
                ("wait", "wait_hours"),
                ("chance", "chance"),
                ("interruptions", "interruptions"),
            )
        }
        return cls(supply=supply, **figures)

    def takes(self, price: Floats, soon: bool) -> Floats:
        """What makes one offer of a machine better than another, (n, 3): lower is better.

        Whether it is hardly to be had; hours until it is, where the job is to end ``soon``; and
        USD per hour of progress.

        Args:
            price: (n,), USD per hour; NaN where it is unknown.
        """
        useful, _ = self.progress(np.ones(len(price)), np.arange(len(price)), None)
        dollars = np.nan_to_num(price / useful, nan=math.inf)
        return np.column_stack([self.had < RARE, self.wait_seconds * soon, dollars])

    @property
    def counts(self) -> bool:
        """Whether it makes any difference to the value of a candidate."""
        return bool((self.interruptions > 0).any() or (self.wait > 0).any())

    @property
    def wait_seconds(self) -> Floats:
        """(n,), failed attempts included; what nobody knows counts as nothing."""
        return np.asarray(np.nan_to_num(self.wait, nan=0.0) * 3600)

    @property
    def had(self) -> Floats:
        """(n,), the chance to get one within ``supply.patience``; 1 where nothing tells."""
        waited = self.wait_seconds
        with np.errstate(divide="ignore"):
            later = np.where(waited > 0, np.exp(-self.supply.patience / waited), 1.0)
        return np.asarray(np.nan_to_num(1.0 - (1.0 - self.chance) * later, nan=1.0))

    def progress(
        self, rate: Floats, at: NDArray[np.int64], samples: float | None
    ) -> tuple[Floats, Floats]:
        """The share of paid time that is progress, and hours without a machine in the whole job.

        Daly's complete model of checkpoint and restart, as ``core.supply.expected`` has it in SQL.

        Args:
            rate: (..., k), samples per second.
            at: (k,), the candidates.
            samples: of the job; None where nobody knows.

        Returns:
            Both of the shape of ``rate``; a share of NaN where the job would never be done.
        """
        often = self.interruptions[at] + 0 * rate
        with np.errstate(all="ignore"):
            work = (math.nan if samples is None else samples) / (rate * 3600)
            useful = np.where(often > 0, self._useful(often, work), 1.0)
            useful = np.where(useful > NEVER, useful, np.nan)
            again = np.nan_to_num(often * work / useful, nan=0.0)
        return useful, self.wait_seconds[at] / 3600 * (1 + again)

    def _useful(self, often: Floats, work: Floats) -> Floats:
        supply = self.supply
        cost = supply.checkpoint_seconds / 3600
        started = np.exp(supply.restart_seconds / 3600 * often)
        if supply.interval_seconds is not None:
            interval = np.full(often.shape, supply.interval_seconds / 3600)
        elif cost == 0:
            return np.asarray(1 / started)
        else:
            x = cost * often
            best = np.sqrt(2 * cost / often) * (1 + np.sqrt(x / 2) / 3 + x / 18) - cost
            interval = np.where(x >= 2, 1 / often, best)
        segment = np.fmin(interval, work)
        return np.asarray(often * segment / (started * np.expm1((segment + cost) * often)))
