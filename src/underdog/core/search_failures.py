"""The chance that a test fails: as it did for another workload, or for want of something.

An explanation is either the pattern of one reference, or a demand: whatever has less of one fact
(memory, threads, price, ...) than a threshold fails. What was seen, failures and successes, weighs
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from underdog.core.search_records import FailureKind, Floats, Integers
from underdog.core.search_reference import Knowledge

WRONG = 0.08  # share of outcomes that the right explanation does not foresee
# What just runs is strained: beside each chance to fail stands half as much to run, but badly.
STRAINED = 0.5
ODD, ODDEST = 0.05, 0.5  # chance of a test to be odd for no reason, and at most
THRESHOLDS = 24  # for each fact
OFTEN = 1.0  # of a workload's share of failures is the chance that one alike fails elsewhere
TEMPER = 8.0  # outcomes that one reference's whole pattern counts as
BASE, BASE_WEIGHT = 0.1, 0.2  # chance where nothing was tried, and what it weighs in workloads
LIKE_ONE, DEMAND, NONE = 0.5, 0.35, 0.15  # chance of each sort of explanation
SPEED = "speed"  # how fast other workloads are there: what is too slow fails for time


@dataclass(frozen=True, slots=True)
class _Demands:
    """Thresholds (T,) of one fact (n,) with their chance before anything was seen (T,)."""

    fact: Floats
    thresholds: Floats
    chances: Floats
    memory: bool

    def fails(self, rows: Integers) -> Floats:
        """Chance that each row fails under each threshold: (rows, T)."""
        below = self.fact[rows][:, None] < self.thresholds
        return np.where(below, 1 - WRONG, WRONG)

    def chance(self, weights: Floats) -> Floats:
        """Sum over thresholds of weight × chance of failure, for every candidate: (n,)."""
        # a candidate fails by the thresholds above its fact
        above = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        failing = above[np.searchsorted(self.thresholds, self.fact, side="right")]
        return np.asarray(WRONG * weights.sum() + (1 - 2 * WRONG) * failing)


class Failures:
    """Explanations of failures of n candidates."""

    def __init__(self, knowledge: Knowledge) -> None:
        size = len(knowledge)
        self._weights = knowledge.weights
        failed, weights = knowledge.failed, knowledge.weights
        tried = np.isfinite(failed)
        usual = (np.nan_to_num(failed) * weights).sum(axis=1) + BASE * BASE_WEIGHT
        usual /= (tried * weights).sum(axis=1) + BASE_WEIGHT
        # a workload that fails often is likelier to be the one alike where a failure surprises
        often = (np.nan_to_num(failed).sum(axis=0) + BASE) / (tried.sum(axis=0) + 1.0)
        surprise = np.clip(OFTEN * often, WRONG, 0.5)
        told = np.where(failed == 1, 1 - WRONG, surprise)
        self._patterns = np.where(tried, told, usual[:, None])
        facts = {name: fact[:size] for name, fact in knowledge.features.amounts.items()}
        if len(weights):
            facts[SPEED] = knowledge.filled @ weights
        self._demands = _demands(facts, failed, weights)

    def alike(self, ran: Integers, failed: Integers) -> Floats:
        """Log likelihood of what ran and what failed by each reference's pattern, (R,)."""
        return _likelihood(self._patterns[ran], self._patterns[failed])

    def odd(self, ran: Integers, failed: Integers, kinds: list[FailureKind]) -> Floats:
        """Chance that each that ran ran badly, by what the others tell: (m,)."""
        result = np.zeros(len(ran))
        for place, row in enumerate(ran.tolist()):
            others = np.delete(ran, place)
            chance = float(self.chance(others, failed, kinds, self._weights)[row])
            result[place] = min(ODD + STRAINED * chance / max(1 - chance, 1e-9), ODDEST)
        return result

    def chance(
        self, ran: Integers, failed: Integers, kinds: list[FailureKind], references: Floats
    ) -> Floats:
        """Chance of failure of every candidate, (n,).

        Args:
            ran, failed: candidates that ran and that failed for the workload's sake.
            kinds: of the failures.
            references: (R,), how much each reference explains of the throughput.
        """
        short = np.array([kind == "out_of_memory" for kind in kinds], bool)
        late = np.array([kind == "timeout" for kind in kinds], bool)
        likelihoods = [_likelihood(self._patterns[ran], self._patterns[failed])]
        chances = [LIKE_ONE * references]
        for demands in self._demands:
            fails = demands.fails(failed)
            # a want of memory does not explain a timeout, nor a want of speed a full memory
            fails = np.where((late if demands.memory else short)[:, None], WRONG, fails)
            likelihoods.append(_likelihood(demands.fails(ran), fails))
            chances.append(DEMAND * demands.chances)
        none = np.array([len(ran) * np.log(1 - WRONG) + len(failed) * np.log(WRONG)])
        likelihoods.append(none)
        chances.append(np.array([NONE + LIKE_ONE * (1 - references.sum())]))
        log_weight = np.concatenate(likelihoods)
        weight = np.exp(log_weight - log_weight.max()) * np.concatenate(chances)
        weight /= weight.sum()
        cuts = np.cumsum([len(one) for one in likelihoods])[:-1]
        parts = np.split(weight, cuts)
        result = self._patterns @ parts[0] + WRONG * float(parts[-1].sum())
        for demands, part in zip(self._demands, parts[1:-1], strict=True):
            result = result + demands.chance(part)
        return np.asarray(np.clip(result, 0.0, 1.0))


def badly(chance: Floats) -> Floats:
    """Chance to fail or to run badly, by the chance to fail: never sure where that is not."""
    return np.asarray(1 - (1 - chance) ** (1 + STRAINED))


def _likelihood(ran: Floats, failed: Floats) -> Floats:
    """Log likelihood of outcomes by chances of failure (m, H) of what ran and what failed: (H,)."""
    return np.asarray(np.log1p(-ran).sum(axis=0) + np.log(failed).sum(axis=0))


def _demands(facts: dict[str, Floats], failed: Floats, weights: Floats) -> list[_Demands]:
    """Thresholds between the values of every fact; those that explain references are likelier."""
    found: list[tuple[Floats, Floats, Floats, bool]] = []
    for name, fact in sorted(facts.items()):
        cuts = np.linspace(0, 1, THRESHOLDS + 1)[:-1]
        thresholds = np.unique(np.quantile(fact, cuts, method="nearest"))[1:]
        if len(thresholds):
            explained = _explained(fact, thresholds, failed)
            found.append((fact, thresholds, explained, "memory" in name))
    count = sum(len(thresholds) for _, thresholds, _, _ in found)
    if not count:
        return []
    explained = np.concatenate([one for _, _, one, _ in found])
    fit = np.exp(explained - explained.max(axis=0, initial=-np.inf))
    fit = fit / fit.sum(axis=0)
    chances = np.full(count, 1.0 / count)
    if len(weights):
        chances = 0.5 * chances + 0.5 * fit @ weights
    parts = np.split(chances, np.cumsum([len(one) for _, one, _, _ in found])[:-1])
    return [
        _Demands(fact, thresholds, chance, memory)
        for (fact, thresholds, _, memory), chance in zip(found, parts, strict=True)
    ]


def _explained(fact: Floats, thresholds: Floats, failed: Floats) -> Floats:
    """Tempered log likelihood of every reference's failures by each threshold: (T, R)."""
    below = (fact < thresholds[:, None]).astype(float)
    lost, ran = (failed == 1).astype(float), (failed == 0).astype(float)
    right = below @ lost + (1 - below) @ ran
    tried = np.maximum((lost + ran).sum(axis=0), 1.0)
    share = right / tried
    return np.asarray(TEMPER * (share * np.log(1 - WRONG) + (1 - share) * np.log(WRONG)))
