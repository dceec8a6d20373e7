"""Exploring: from everything that was tried so far to the next tests, knobs included. Pure.

The search finds machines, ``underdog.core.knobs`` finds settings on a machine; a machine is worth
what its best setting gives. The state is the list of attempts: the same ones in any order give the
same next tests, so that an exploration that was cut short goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underdog.core import knobs
from underdog.core.evidence import has_interval, pool
from underdog.core.knobs import Tried
from underdog.core.search import (
    NINETY,
    Beliefs,
    Candidates,
    Failure,
    FailureKind,
    Measured,
    Outcome,
    Search,
    Stopping,
    Suggestion,
    Utility,
)
from underdog.core.search_gain import worth
from underdog.core.search_model import LARGEST_LOG
from underdog.model import Estimate

Floats = NDArray[np.float64]
Setting = Mapping[str, str]
_KINDS: dict[str, FailureKind] = {
    "out_of_memory": "out_of_memory",
    "no_capacity": "no_capacity",
    "hung": "timeout",
}
_TWO_SIDED = 1.96  # standard deviations between a mean and the end of its 95 % interval


@dataclass(frozen=True, slots=True)
class Attempt:
    """One trial on a candidate: its setting of the knobs, how it ended, what it gave."""

    index: int
    setting: Setting
    status: str
    rate: Estimate | None


@dataclass(frozen=True, slots=True)
class Planned:
    """A test to run: where, with which knobs, why, and what it costs (NaN: price unknown).

    ``suggestion`` is what the search expects; None for a test of other knobs on a known machine.
    """

    index: int
    setting: dict[str, str]
    reason: str
    dollars: float
    suggestion: Suggestion | None = None


@dataclass(frozen=True, slots=True)
class _Left:
    """What tests may still cost together, and how long each may take; None: no limit."""

    dollars: float | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Best:
    """The best candidate so far, with its value as the search counts it, and the lower end."""

    index: int
    setting: Setting
    rate: Estimate
    value: float
    low: float


class Explorer:
    """What to test next over n candidates.

    Args:
        candidates: the offers.
        objective: values of throughputs; see ``underdog.core.objective``.
        values: of the knobs, by name; empty for none.
        test_seconds: how long a test may take.
        search: further arguments of ``Search``: references, prediction, seed, the chance to get
            each candidate.
        waits: (n,), seconds that each candidate is waited for; nothing without it.

    Attributes:
        seconds: (n,), of a test from asking for the machine to its end.
    """

    def __init__(
        self,
        candidates: Candidates,
        objective: Utility,
        *,
        values: Mapping[str, Sequence[str]],
        test_seconds: float,
        search: Mapping[str, Any],
        waits: Floats | None = None,
    ) -> None:
        self.candidates, self.objective, self.values = candidates, objective, values
        self.dollars = candidates.price_per_hour * test_seconds / 3600
        self.seconds = test_seconds + (np.zeros(len(candidates)) if waits is None else waits)
        self._memory = _memory(candidates)
        self._with = dict(search)
        self._attempts: dict[int, list[Attempt]] = {}
        self._told: dict[int, Outcome] = {}
        self._search = Search(candidates, objective, **self._with)

    def record(self, attempt: Attempt) -> None:
        """Take note of a trial that ended."""
        self._attempts.setdefault(attempt.index, []).append(attempt)

    @property
    def untested(self) -> int:
        """How many candidates were never tried."""
        return len(self.candidates) - len(self._attempts)

    @property
    def search(self) -> Search:
        """The search that was told all that is known."""
        known = {index: self._outcome(index) for index in self._attempts}
        outcomes = {index: found for index, found in known.items() if found is not None}
        if any(outcomes.get(index) != told for index, told in self._told.items()):
            self._search, self._told = Search(self.candidates, self.objective, **self._with), {}
        for index, outcome in outcomes.items():
            if index not in self._told:
                self._search.tell(index, outcome)
                self._told[index] = outcome
        return self._search

    def best(self) -> Best | None:
        """The candidate of the highest value among the measured; None where none has one."""
        found: Best | None = None
        for index in self._attempts:
            one = self._best_on(index)
            if one is not None and (found is None or one.value > found.value):
                found = one
        return found

    def value(self, index: int, rate: float) -> float:
        """The value of a throughput on one candidate; NaN where it has none."""
        rates = np.full(len(self.candidates), np.nan)
        rates[index] = rate
        return float(self.objective(rates, self.candidates.price_per_hour)[index])

    def settings_left(self, index: int) -> int:
        """How many settings of the knobs were not tried on a candidate."""
        tried = {tuple(one.setting[knob] for knob in self.values) for one in self._tried(index)}
        given = list(self.values.values())
        return self.settings - sum(all(map(operator.contains, given, one)) for one in tried)

    @property
    def settings(self) -> int:
        """How many settings of the knobs there are."""
        return math.prod(len(given) for given in self.values.values())

    def references(self) -> dict[str, float]:
        """How much each other workload explains of what was measured; the sum is at most 1."""
        return {k: float(v) for k, v in self.search.beliefs().reference_weights.items()}

    def beliefs(self) -> Beliefs:
        """What is believed of every candidate, with 95 % intervals, as measurements have them."""
        held = self.search.beliefs()
        price, middle = self.candidates.price_per_hour, np.log(held.throughput)
        wider = _TWO_SIDED / NINETY
        ends = [
            np.clip(middle + (np.log(end) - middle) * wider, -LARGEST_LOG, LARGEST_LOG)
            for end in (held.throughput_low, held.throughput_high)
        ]
        values = [worth(self.objective, end, price) for end in ends]
        return dataclasses.replace(
            held,
            throughput_low=np.exp(ends[0]),
            throughput_high=np.exp(ends[1]),
            value_low=np.minimum(*values),
            value_high=np.maximum(*values),
        )

    def stopping(self) -> Stopping:
        """Whether another machine is worth a test."""
        return self.search.stop()

    def next(
        self,
        count: int,
        running: Sequence[tuple[int, Setting]] = (),
        dollars_left: float | None = None,
        closing: bool = False,
        seconds_left: float | None = None,
    ) -> list[Planned]:
        """The next tests, at most ``count``; fewer where fewer are left or can be paid for.

        Args:
            running: candidate and setting of the tests that run now.
            dollars_left: no tests that cost more together, nor one whose price is unknown.
            closing: no more machines: only other knobs on the best one.
            seconds_left: no test that might end later, its machine waited for.
        """
        tests: list[Planned] = []
        busy = {index for index, _ in running}
        while len(tests) < count:
            dollars = dollars_left
            if dollars is not None:
                dollars -= sum(test.dollars for test in tests)
            left = _Left(dollars, seconds_left)
            test = self._to_fit(busy, left) or self._to_tune(busy, left, closing)
            if test is None and not closing:
                test = self._elsewhere(busy, left)
            test = test or self._to_work(busy, left)
            if test is None:
                break
            tests.append(test)
            busy.add(test.index)
        return tests

    def _to_fit(self, busy: set[int], left: _Left) -> Planned | None:
        """A smaller batch on a machine where all that was tried ran out of memory."""
        for index in self._attempts:
            setting = knobs.to_fit(self.values, self._tried(index))
            if setting is not None and index not in busy and self._affordable(index, left):
                return self._again(index, setting, "It ran out of memory: a smaller batch.")
        return None

    def _to_work(self, busy: set[int], left: _Left) -> Planned | None:
        """Other knobs, the cheapest machine first, where nothing works and no machine is left."""
        if any(self._best_rate(index) for index in self._attempts):
            return None
        dollars = np.nan_to_num(self.dollars, nan=math.inf)
        for index in sorted(self._attempts, key=lambda i: (dollars[i], i)):
            setting = knobs.to_work(self.values, self._tried(index))
            if setting is not None and index not in busy and self._affordable(index, left):
                return self._again(index, setting, "Nothing works yet: other knobs.")
        return None

    def _to_tune(self, busy: set[int], left: _Left, closing: bool) -> Planned | None:
        """Other knobs on the cheapest measured machine; on the best one at the end."""
        if not self.values:
            return None
        index = self._leader() if closing else self._cheap()
        if index is None or index in busy or not self._affordable(index, left):
            return None
        # one place each way for each knob is all that a dear machine gets
        most = None if index == self._cheap() else 1 + 2 * len(self.values)
        tried = self._tried(index)
        if not tried:  # it was measured before, without these knobs
            return self._again(index, self._first_setting(index), "Its knobs were not tried yet.")
        setting = knobs.to_improve(self.values, tried, most)
        if setting is None:
            return None
        return self._again(index, setting, "The neighbour of the best knobs so far.")

    def _again(self, index: int, setting: dict[str, str], reason: str) -> Planned:
        return Planned(index, setting, reason, float(self.dollars[index]))

    def _elsewhere(self, busy: set[int], left: _Left) -> Planned | None:
        unresolved = [i for i in self._attempts if self._outcome(i) is None]
        pending = sorted(busy | set(unresolved))
        fits = None if left.seconds is None else self.seconds <= left.seconds
        found = self.search.ask(1, pending=pending, dollars_left=left.dollars, fits=fits)
        if not found:
            return None
        one = found[0]
        setting = self._first_setting(one.index) if self.values else {}
        reason = one.reason
        if len(self.candidates) == 1:
            batch = knobs.batch_knob(self.values) is not None
            reason = f"The only candidate{': the largest batch first' if batch else ''}."
        return Planned(one.index, setting, reason, float(self.dollars[one.index]), one)

    def _affordable(self, index: int, left: _Left) -> bool:
        fits = left.seconds is None or bool(self.seconds[index] <= left.seconds)
        return fits and (left.dollars is None or bool(self.dollars[index] <= left.dollars))

    def _cheap(self) -> int | None:
        """The machine to try knobs on: a measured one of the cheaper half.

        Where several settings were tried already it stays the one; else it is the cheapest.
        """
        price = self.candidates.price_per_hour
        known = price[~np.isnan(price)]
        middle = np.median(known) if len(known) else math.inf
        found = [i for i in self._attempts if self._best_rate(i) and not price[i] > middle]
        if not found:
            return None
        return min(
            found, key=lambda i: (-len(self._tried(i)), np.nan_to_num(price[i], nan=math.inf), i)
        )

    def _leader(self) -> int | None:
        best = self.best()
        return None if best is None else best.index

    def _first_setting(self, index: int) -> dict[str, str]:
        """The knobs that a machine begins with: the best of where most settings were tried."""
        measured = [i for i in self._attempts if any(o.rate is not None for o in self._tried(i))]
        if not measured:
            return knobs.first_setting(self.values)
        most = max(measured, key=lambda i: (len(self._tried(i)), -i))
        room = self._memory[index] / self._memory[most]
        return knobs.first_setting(
            self.values, self._tried(most), 1.0 if math.isnan(room) else float(room)
        )

    def _tried(self, index: int) -> list[Tried]:
        return [
            Tried(one.setting, one.rate.value if one.rate else None, one.status)
            for one in self._attempts.get(index, ())
            if set(self.values) <= set(one.setting)
        ]

    def _best_rate(self, index: int) -> tuple[Setting, Estimate] | None:
        """The setting of the highest throughput on a machine, its repeats taken together."""
        by_setting: dict[tuple[tuple[str, str], ...], list[Estimate]] = {}
        for one in self._attempts[index]:
            if one.rate is not None:
                key = tuple(sorted(one.setting.items()))
                by_setting.setdefault(key, []).append(one.rate)
        if not by_setting:
            return None
        pooled = {
            key: rates[0] if len(rates) == 1 else pool(rates) for key, rates in by_setting.items()
        }
        key = max(pooled, key=lambda one: pooled[one].value)
        return dict(key), pooled[key]

    def _best_on(self, index: int) -> Best | None:
        found = self._best_rate(index)
        if found is None:
            return None
        setting, rate = found
        value = self.value(index, rate.value)
        if not math.isfinite(value):
            return None
        ends = [self.value(index, end) for end in (rate.low, rate.high)]
        low = min((end for end in ends if not math.isnan(end)), default=value)
        return Best(index, setting, rate, value, low)

    def _outcome(self, index: int) -> Outcome | None:
        """What the search is told of a machine; None while that is still open."""
        found = self._best_rate(index)
        if found is not None:
            rate = found[1]
            sd = (rate.high - rate.low) / 2 / _TWO_SIDED / rate.value if has_interval(rate) else 0.0
            return Measured(rate.value, sd)
        if knobs.to_fit(self.values, self._tried(index)) is not None:
            return None
        return Failure(_KINDS.get(self._attempts[index][-1].status, "failed"))


def _memory(candidates: Candidates) -> Floats:
    """GiB that a batch has to fit into: of an accelerator, else of the host; NaN unknown."""
    unknown = np.full(len(candidates), np.nan)
    count = candidates.numbers.get("accelerator_count", unknown)
    each = candidates.numbers.get("accelerator_memory_gib", unknown)
    return np.where(count > 0, each, candidates.numbers.get("memory_gib", unknown))
