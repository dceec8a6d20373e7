"""Search: which offer to test next, why, and when to stop. Ask and tell; pure.

    search = Search(candidates, samples_per_dollar, references=references)
    while not search.stop().stop:
        for suggestion in search.ask():
            search.tell(suggestion.index, test(suggestion))   # Measured(...) or Failure(...)

The state is what was told, in any order: a search that was cut short is made again by telling it
the same things. ``docs/explanation/search.md`` says how it works.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from underdog.core.search_failures import Failures
from underdog.core.search_gain import Outlook, look_out, possible, shortlist, worth
from underdog.core.search_learning import learn
from underdog.core.search_model import Belief, Model, Tests, mixture_quantile
from underdog.core.search_order import Order, no_larger_of_kind
from underdog.core.search_prior import Prior
from underdog.core.search_records import (
    Beliefs,
    Candidates,
    Failure,
    FailureKind,
    Flags,
    Floats,
    Integers,
    Measured,
    Outcome,
    Prediction,
    Reference,
    Settings,
    Stopping,
    Suggestion,
    Utility,
)
from underdog.core.search_reference import gather
from underdog.core.search_utility import (
    cheapest_above,
    cheapest_within,
    fastest,
    samples_per_dollar,
    soonest_within,
)
from underdog.core.search_words import HARD_TO_GET, reason_to_stop, reason_to_test
from underdog.errors import UsageError

__all__ = [
    "Beliefs",
    "Candidates",
    "Failure",
    "FailureKind",
    "Measured",
    "Outcome",
    "Prediction",
    "Reference",
    "Search",
    "Settings",
    "Stopping",
    "Suggestion",
    "Utility",
    "cheapest_above",
    "cheapest_within",
    "fastest",
    "samples_per_dollar",
    "soonest_within",
]

NINETY = 1.645  # standard deviations on either side that hold 90 %
DEFAULTS = Settings()


class Search:
    """One search over n candidates.

    Args:
        candidates: n offers.
        utility: value of (throughput, price), higher is better; see ``search_utility``.
        references: what other workloads did.
        allowed: (n,), False where a candidate may not be tested.
        prediction: of the roofline, where there is one.
        had: (n,), the chance to get each one for a test; 1 without it. What is got less often
            than not comes later, what is hardly to be had late.
        seed: of the draws. The same seed and the same tells give the same answers, in whatever
            order the candidates stand.
        settings: see ``Settings``.

    Raises:
        UsageError: lengths that do not agree with the candidates.
    """

    def __init__(
        self,
        candidates: Candidates,
        utility: Utility,
        *,
        references: Sequence[Reference] = (),
        allowed: Flags | None = None,
        prediction: Prediction | None = None,
        had: Floats | None = None,
        seed: int = 0,
        settings: Settings = DEFAULTS,
    ) -> None:
        # inside, candidates stand by name, so that their order decides nothing
        self._order = Order(candidates)
        self._candidates = self._order.candidates
        self._price = self._candidates.price_per_hour
        self._utility, self._settings, self._seed = utility, settings, seed
        self._allowed = self._order.flags(allowed) & possible(utility, self._price)
        self._had = self._order.shares(had)
        self._asked = np.minimum(self._had / HARD_TO_GET, 1.0)
        references = self._order.references(references)
        knowledge = gather(self._candidates, references)
        self._names = tuple(reference.workload for reference in references)
        self._prior = Prior(knowledge, self._order.prediction(prediction))
        learn(self._prior, self._candidates, references)
        self._model, self._failures = Model(self._prior), Failures(knowledge)
        self._measured: dict[int, list[Measured]] = {}
        self._failed: dict[int, FailureKind] = {}
        self._belief: Belief | None = None

    def tell(self, index: int, outcome: Outcome) -> None:
        """What a test showed. Several measurements of one candidate are used together.

        A failure after a measurement, and a measurement after a failure, replace what was told.

        Raises:
            UsageError: no such candidate.
        """
        if not 0 <= index < len(self._candidates):
            raise UsageError(
                f"There is no candidate {index}; there are {len(self._candidates)}, from 0."
            )
        row = int(self._order.inside[index])
        if isinstance(outcome, Measured):
            self._failed.pop(row, None)
            self._measured.setdefault(row, []).append(outcome)
        else:
            self._measured.pop(row, None)
            self._failed[row] = outcome.kind
        self._belief = None

    def ask(
        self,
        k: int = 1,
        *,
        pending: Sequence[int] = (),
        dollars_left: float | None = None,
        fits: Flags | None = None,
    ) -> list[Suggestion]:
        """The next k tests, best first, all different; fewer where fewer are left, [] where none.

        Several are chosen so that together they gain the most: the second is the best where the
        first does not turn out well.

        Args:
            k: how many at once.
            pending: tests that run now: not suggested, and what they may show is allowed for.
            dollars_left: no test dearer than this, nor one whose price is unknown.
            fits: (n,), False where a test cannot be begun now.
        """
        running = self._order.inside[np.array(pending, dtype=int)]
        open_ = self._open() & self._order.flags(fits)
        open_[running] = False
        if dollars_left is not None:
            open_ &= self._dollars() <= dollars_left
        if not open_.any() or k < 1:
            return []
        rows = self._shortlist(open_)
        outlook = self._look_out(np.concatenate([rows, running]))
        taken = list(range(len(rows), len(outlook.rows)))
        found: list[Suggestion] = []
        for _ in range(min(k, len(rows))):
            gains = outlook.gains(np.array(taken, dtype=int))
            worth_asking = gains * self._asked[outlook.rows]
            worth_asking[taken] = -1.0
            # where nothing is expected to gain, the short list stands in its order
            place = int(np.argmax(worth_asking))
            taken.append(place)
            found.append(self._suggestion(outlook, place, float(gains[place])))
        return found

    def stop(self) -> Stopping:
        """Whether another test is worth it, by what stopping now may lose."""
        open_ = self._open()
        best = self._best()
        found = np.isfinite(best[0])
        if not open_.any():
            return reason_to_stop(self._settings, 0.0 if found else 1.0, None, len(self._measured))
        rows = self._shortlist(open_)
        losses = self._look_out(rows).losses()
        if not found or not len(losses):
            return reason_to_stop(self._settings, 1.0, 1.0, len(self._measured))
        return reason_to_stop(
            self._settings,
            float(losses.mean()),
            float(np.quantile(losses, 0.9)),
            len(self._measured),
        )

    def beliefs(self) -> Beliefs:
        """What is believed of every candidate."""
        belief, chance = self._believe()
        mean, sd = self._likeliest.moments()
        rates = [mixture_quantile(mean, sd, sds) for sds in (0.0, -NINETY, NINETY)]
        values = [worth(self._utility, np.log(rate), self._price) for rate in rates]
        rows, logs, _ = self._tests()
        measured = np.full(len(mean), np.nan)
        measured[rows] = np.exp(logs)
        failed = np.zeros(len(mean), bool)
        failed[list(self._failed)] = True
        weights = dict(zip(self._names, map(float, belief.references), strict=True))
        out = self._order.outside
        return Beliefs(
            throughput=rates[0][out],
            throughput_low=rates[1][out],
            throughput_high=rates[2][out],
            value=values[0][out],
            value_low=np.minimum(values[1], values[2])[out],
            value_high=np.maximum(values[1], values[2])[out],
            chance_of_failure=chance[out],
            reference_throughput=self._from_references()[out],
            measured=measured[out],
            failed=failed[out],
            reference_weights=weights,
        )

    def _from_references(self) -> Floats:
        """Throughput as the explanations foresaw it before any test; NaN without references."""
        prior = self._prior
        if not prior.has_references:
            return np.full(len(self._candidates), np.nan)
        weight = prior.chances.sum(axis=1)
        return np.asarray(np.exp(np.clip((prior.means + prior.levels) @ weight, -600, 600)))

    def _tests(self) -> tuple[Integers, Floats, Floats]:
        """Candidates measured (m,), their mean log throughput, and its variance beyond the least.

        In the order of their names, so that the order of tells decides nothing.
        """
        rows = sorted(self._measured)
        logs, noise = np.zeros((2, len(rows)))
        for place, row in enumerate(rows):
            told = self._measured[row]
            found = np.log([one.throughput for one in told])
            variances = np.array([one.relative_sd**2 for one in told])
            weights = 1.0 / np.maximum(variances, 1e-8)
            logs[place] = np.average(found, weights=weights)
            noise[place] = float((weights**2 @ variances) / weights.sum() ** 2)
        return np.array(rows, dtype=int), logs, noise

    def _believe(self) -> tuple[Belief, Floats]:
        """The belief after all that was told, and every candidate's chance of failure."""
        if self._belief is None:
            rows, logs, noise = self._tests()
            lost = sorted(row for row, kind in self._failed.items() if kind != "no_capacity")
            failed = np.array(lost, dtype=int)
            kinds = [self._failed[row] for row in lost]
            odd = self._failures.odd(rows, failed, kinds)
            alike = self._failures.alike(rows, failed)
            self._belief = self._model.condition(Tests(rows, logs, noise, odd, alike))
            self._likeliest = self._belief.likeliest()
            self._chance = self._failures.chance(rows, failed, kinds, self._belief.by_speed)
        return self._belief, self._chance

    def _open(self) -> Flags:
        """Candidates that may be tested next."""
        open_ = self._allowed.copy()
        open_[[*self._measured, *self._failed]] = False
        for row, kind in self._failed.items():
            if kind == "out_of_memory":
                open_ &= ~no_larger_of_kind(self._candidates, row)
        return open_

    def _best(self) -> tuple[float, int | None]:
        """The best value found so far and where; -inf where nothing holds."""
        rows, logs, _ = self._tests()
        value = worth(self._utility, logs, self._price[rows])
        if not np.isfinite(value).any():
            return -np.inf, None
        return float(value.max()), int(rows[np.argmax(value)])

    def _look_out(self, rows: Integers) -> Outlook:
        belief, chance = self._believe()
        best = self._best()[0]
        return look_out(
            belief, self._utility, self._price, chance, rows, best=best, seed=self._seed
        )

    def _shortlist(self, open_: Flags) -> Integers:
        _, chance = self._believe()
        hopes = self._likeliest, self._utility, self._price
        return shortlist(*hopes, chance, open_, self._asked)

    def _dollars(self) -> Floats:
        return np.asarray(self._price * self._settings.test_seconds / 3600.0)

    def _suggestion(self, outlook: Outlook, place: int, gain: float) -> Suggestion:
        """The suggestion of one place of the outlook."""
        row = int(outlook.rows[place])
        belief, chance = self._believe()
        mean, sd = (column[row] for column in self._likeliest.moments())
        rates = np.array([mixture_quantile(mean, sd, sds) for sds in (0.0, -NINETY, NINETY)])
        price = np.full(3, self._price[row])
        values = worth(self._utility, np.log(rates), price)
        best = self._best()
        alike = np.argmax(belief.references) if len(belief.references) else None
        reason = reason_to_test(
            gain=gain,
            chance_of_failure=float(chance[row]),
            had=float(self._had[row]),
            best=None if best[1] is None else self._candidates.names[best[1]],
            tested=len(self._measured) + len(self._failed),
            alike=None if alike is None else (self._names[alike], float(belief.references[alike])),
        )
        return Suggestion(
            int(self._order.outside_of[row]),
            self._candidates.names[row],
            reason,
            float(values[0]),
            float(min(values[1:])),
            float(max(values[1:])),
            gain,
            float(chance[row]),
            float(self._dollars()[row]),
        )
