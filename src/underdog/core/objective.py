"""The utility and the limits of a job as the one value that a search makes as high as it can."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underdog.core.columns import BY_NAME
from underdog.core.expected import Expected
from underdog.core.metrics import METRICS, metrics_sql
from underdog.core.table import Table
from underdog.core.utility import Utility

Floats = NDArray[np.float64]
_OF_RATE_AND_PRICE = {
    "price_per_hour",
    "samples_per_second",
    "samples_per_dollar",
    "dollars_per_million_samples",
    "hours_to_train",
    "dollars_to_train",
}


@dataclass(frozen=True, slots=True)
class Job:
    """The whole job: its samples, and the limits that it must keep. None: not known, no limit."""

    samples: float | None = None
    deadline_hours: float | None = None
    budget: float | None = None


class Objective:
    """The value of throughputs on candidates; higher is better.

    The value is that of the utility's first term. Where less of it is better it is turned over
    (1 / u, jobs per dollar for dollars per job), so that "5 % better" means the same either way;
    what is not positive then has no value. It is minus infinity where a limit of the job is missed
    and NaN where something that it needs is unknown.

    A search asks for the values of some candidates and names them by their prices alone. Where the
    utility looks at more than throughput and price, ``prices`` are told apart by less than a
    billionth, so that each names its candidate; one of unknown price has no value then.

    Args:
        utility: what is asked for.
        rows: the n candidates as dicts of offer columns.
        job: its samples and limits.
        expected: of getting and keeping them: interruptions of spot lengthen the job and make it
            dearer, waiting lengthens it, as in choosing. One of unknown price is taken as one that
            is there and stays.
    """

    def __init__(
        self,
        utility: Utility,
        rows: Sequence[Mapping[str, Any]],
        job: Job,
        expected: Expected | None = None,
    ) -> None:
        self._term, self._job, self._rows = utility.first, job, rows
        self._expected = expected if expected is not None and expected.counts else None
        self._by_row = not set(self._term.expression.columns) <= _OF_RATE_AND_PRICE
        self._power = _column(rows, "accelerator_power_w") * _column(rows, "accelerator_count")
        self._power[self._power == 0] = np.nan
        self._grid = _column(rows, "kg_co2e_per_kwh")
        self.prices = _column(rows, "price_per_hour")
        self._order = np.argsort(self.prices, kind="stable")  # the unknown ones come last
        if self._by_row or self._expected is not None:
            apart = 1.0 + 1e-13 * np.arange(len(rows))
            self.prices[self._order] = self.prices[self._order] * apart
        self._known = self.prices[self._order][: int(np.isfinite(self.prices).sum())]
        self._table: Table | None = None

    def __call__(self, throughput: Floats, price: Floats) -> Floats:
        """Values of throughputs (..., k) in samples per second at some of ``prices`` (k,)."""
        rate = np.asarray(throughput, dtype=float)
        raw = self.raw(rate, price)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = raw if self._term.sign > 0 else np.where(raw > 0, 1.0 / raw, np.nan)
            value = np.where(np.isnan(rate), np.nan, value)
            if self._job.budget is not None:  # without a price nobody knows whether it is kept
                value = np.where(np.isnan(price), np.nan, value)
            return np.asarray(np.where(self._misses(rate, price), -np.inf, value))

    def as_given(self, value: float) -> float:
        """The utility, its direction as the user gave it, of a value of the search."""
        return value if self._term.sign > 0 else 1.0 / value if value else math.inf

    def raw(self, rate: Floats, price: Floats) -> Floats:
        """The utility as the user gave it, its direction untouched; NaN where it has no value."""
        name = self._term.expression.text.lower()
        price = np.asarray(price, dtype=float)
        at = self._named(price) if self._by_row else np.zeros(len(price), dtype=int)
        with np.errstate(all="ignore"):
            if name in METRICS:
                found = self._metric(name, rate, price, at)
            else:
                found = self._sql(rate, price, at)
        return np.asarray(np.where(np.isfinite(found) & (at >= 0), found, np.nan))

    def _progress(self, rate: Floats, price: Floats) -> tuple[Floats, Floats]:
        """Samples per second of paid time, and hours of the job without a machine."""
        if self._expected is None:
            return rate, np.zeros(rate.shape)
        at = self._named(price)
        useful, waiting = self._expected.progress(rate, at, self._job.samples)
        return rate * np.where(at < 0, 1.0, useful), np.where(at < 0, 0.0, waiting)

    def _named(self, price: Floats) -> NDArray[np.int64]:
        """The candidates of those prices; -1 for one that is none of them."""
        place = np.clip(np.searchsorted(self._known, price), 0, max(len(self._known) - 1, 0))
        if not len(self._known):
            return np.full(len(price), -1)
        return np.where(self._known[place] == price, self._order[place], -1)

    def _misses(self, rate: Floats, price: Floats) -> NDArray[np.bool_]:
        job, missed = self._job, np.zeros(rate.shape, dtype=bool)
        if job.samples is None:
            return missed
        paid, waiting = self._progress(rate, price)
        hours = job.samples / paid / 3600
        if job.deadline_hours is not None:
            missed |= hours + waiting > job.deadline_hours
        if job.budget is not None:
            missed |= hours * price > job.budget
        return missed

    def _metric(self, name: str, rate: Floats, price: Floats, at: NDArray[np.int64]) -> Floats:
        samples = np.nan if self._job.samples is None else self._job.samples
        paid, waiting = self._progress(rate, price)
        measured = SimpleNamespace(
            samples_per_second=rate,
            samples_per_paid_second=paid,
            samples_to_train=samples,
            power_w=self._power[at],
            waiting_hours=waiting,
        )
        offer = SimpleNamespace(price_per_hour=price, kg_co2e_per_kwh=self._grid[at])
        return np.asarray(METRICS[name].formula(measured, offer) + 0 * rate, dtype=float)

    def _sql(self, rate: Floats, price: Floats, at: NDArray[np.int64]) -> Floats:
        """Any expression: the same SQL that choosing ranks by, over all throughputs at once."""
        flat = np.ascontiguousarray(rate).reshape(-1)
        known = np.flatnonzero(np.isfinite(flat))
        result = np.full(len(flat), np.nan)
        if not len(known):
            return result.reshape(rate.shape)
        table = self._table = self._table or _table(self._rows)
        place = known % len(price)
        given = {"k": known, "at": at[place], "rate": flat[known], "price": price[place]}
        paid, waiting = self._progress(rate, price)
        given |= {"paid": paid.reshape(-1)[known], "waiting": waiting.reshape(-1)[known]}
        table.connection.register("given", given)
        job = "NULL" if self._job.samples is None else repr(float(self._job.samples))
        columns = self._term.expression.columns
        facts = [name for name in columns if name in BY_NAME and name != "price_per_hour"]
        listed = "".join(f'o."{name}", ' for name in {*facts, "kg_co2e_per_kwh"})
        joined = (
            f"SELECT {listed}g.k, g.rate, g.waiting, nullif(g.paid, 'NaN'::DOUBLE) AS paid, "
            "nullif(g.price, 'NaN'::DOUBLE) AS price, price AS price_per_hour, "
            f"CAST({job} AS DOUBLE) AS samples_to_train, "
            "nullif(o.accelerator_power_w * o.accelerator_count, 0) AS power_w "
            "FROM given AS g JOIN offers AS o ON o.rowid = g.at"
        )
        used = [name for name in METRICS if name in columns]
        expected = {"samples_per_paid_second": "paid", "waiting_hours": "waiting"}
        metrics = metrics_sql("rate", "price", used, expected) if used else "NULL"
        found = table.run(
            f"SELECT k, ({self._term.expression.sql})::DOUBLE AS u "
            f"FROM (SELECT *, {metrics} FROM ({joined}))"
        ).fetchnumpy()
        table.connection.unregister("given")
        values: Floats = np.ma.filled(np.ma.asarray(found["u"], dtype=float), np.nan)
        result[np.asarray(found["k"], dtype=int)] = values
        return result.reshape(rate.shape)


def _column(rows: Sequence[Mapping[str, Any]], name: str) -> Floats:
    return np.array([row.get(name) for row in rows], dtype=float)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    names = {name for row in rows for name in row}
    return Table.from_arrays({name: [row.get(name) for row in rows] for name in sorted(names)})
