"""What a test may gain: draws of what every candidate may be worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from underdog.core.search_failures import badly
from underdog.core.search_model import Belief, Explanations, mixture_quantile
from underdog.core.search_records import Flags, Floats, Integers, Utility

DRAWS = 384
SHORTLIST = 200
OPTIMIST = 1.2  # standard deviations


@dataclass(frozen=True, slots=True)
class Outlook:
    """Draws of the values of a short list of candidates.

    Values count from ``floor``, so that what does not hold is 0 and a share of a value has a
    meaning: 0 for a utility that is never negative, else the least value seen.

    Attributes:
        rows: (k,) candidates.
        values: (draws, k), from the floor; 0 where it fails or does not hold.
        best: the best value found so far, from the floor; 0 where nothing holds yet.
        optimum: (draws,), the best there is.
    """

    rows: Integers
    values: Floats
    best: float
    optimum: Floats
    floor: float

    def gains(self, given: Integers) -> Floats:
        """Expected gain over the best so far and tests ``given``, as a share of the optimum: (k,).

        ``given`` are places in ``rows``.
        """
        best = np.maximum(self.best, self.values[:, given].max(axis=1, initial=0.0))
        holds = self.optimum > 0
        gain = np.maximum(self.values[holds] - best[holds, None], 0.0) / self.optimum[holds, None]
        return np.asarray(gain.sum(axis=0) / len(self.optimum))

    def losses(self) -> Floats:
        """Share of the optimum that stopping now loses, in draws where anything holds."""
        holds = self.optimum > 0
        return np.asarray(1.0 - self.best / self.optimum[holds])


def worth(utility: Utility, logs: Floats, price: Floats) -> Floats:
    """Value of log throughputs (..., n) at prices (n,); -inf where it does not hold."""
    with np.errstate(all="ignore"):
        value = np.asarray(utility(np.exp(logs), price), dtype=float)
    return np.where(np.isnan(value) | np.isposinf(value), -np.inf, value)


def possible(utility: Utility, price: Floats) -> Flags:
    """Whether a candidate can hold at any throughput at all: (n,)."""
    trials = np.linspace(-40.0, 40.0, 81)
    some = np.array([np.full(len(price), log) for log in trials])
    return np.asarray(np.isfinite(worth(utility, some, price)).any(axis=0))


def shortlist(
    found: Explanations,
    utility: Utility,
    price: Floats,
    chance: Floats,
    open_: Flags,
    asked: Floats,
) -> Integers:
    """The candidates with the best outlook, best first: at most ``SHORTLIST``.

    The score is a share of the best value that each explanation foresees, so that explanations
    of different level weigh alike. ``chance`` is that of failure; ``asked`` the
    share of its worth at which a candidate counts, less where it is hard to get.
    """
    score = np.zeros(len(price))
    for weight, mean, variance in zip(found.weights, found.means, found.variances, strict=True):
        for sds in (0.0, OPTIMIST):
            value = worth(utility, mean + sds * np.sqrt(variance), price)
            holds = np.isfinite(value)
            if holds.any():
                least = min(float(value[holds].min()), 0.0)
                value = np.where(holds, value - least, 0.0)
                score += weight * value / max(float(value.max()), 1e-300)
    score *= (1.0 - badly(chance)) * asked
    # where nothing is foreseen to hold, the fastest is the best hope
    if not score[open_].any():
        score = mixture_quantile(*found.moments(), OPTIMIST) * (1.0 - chance) * asked
    rows = np.flatnonzero(open_)
    return rows[np.argsort(-score[rows], kind="stable")[:SHORTLIST]]


def look_out(
    belief: Belief,
    utility: Utility,
    price: Floats,
    chance: Floats,
    rows: Integers,
    *,
    best: float,
    seed: int,
) -> Outlook:
    """Draw the values of rows. ``best`` is the best value found so far, -inf for none."""
    rng = np.random.default_rng(seed)
    logs = belief.draws(rows, DRAWS, rng)
    # one number for all candidates of a draw: a workload that asks for much fails wherever one
    # that asks for less does
    luck = (rng.permutation(DRAWS) + 0.5) / DRAWS
    value = worth(utility, logs, price[rows])
    value = np.where(badly(chance[rows]) > luck[:, None], -np.inf, value)
    seen = np.append(value[np.isfinite(value)], best if np.isfinite(best) else 0.0)
    floor = min(float(seen.min()), 0.0)
    value = np.where(np.isfinite(value), value - floor, 0.0)
    start = max(best - floor, 0.0) if np.isfinite(best) else 0.0
    return Outlook(rows, value, start, np.maximum(value.max(axis=1, initial=0.0), start), floor)
