"""The belief over log throughput after tests: a mixture of Gaussian processes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from underdog.core.search_prior import Blocks, Family, Form, Kind, Prior, factorise, log_evidence
from underdog.core.search_records import Floats, Integers

MOST, CELLS = 60, 2_000_000  # explanations that are followed up, and those times candidates
FEWEST = 12
LEAST_WEIGHT = 1e-3
LARGEST_LOG = 600.0  # beyond, an exponential is no number
JITTER = 1e-6
# A machine may be crippled by what no fact tells, as one whose memory holds the workload just
# not; then it says little of the others. How far off it is (logs).
ODD_SD = 2.0


@dataclass(frozen=True, slots=True)
class Explanations:
    """E explanations worked out for k rows.

    Attributes:
        weights: (E,), sum 1.
        means: (E, k) of log throughput.
        variances: (E, k).
    """

    weights: Floats
    means: Floats
    variances: Floats

    def moments(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of log throughput of every row, (k,) each."""
        mean = self.weights @ self.means
        square = self.weights @ (self.variances + (self.means - mean) ** 2)
        return np.asarray(mean), np.asarray(np.sqrt(square))


@dataclass(frozen=True, slots=True)
class _Branch:
    """Explanations that share a form and what they hold for odd: one Gaussian process."""

    form: Form
    family: Family
    case: int
    members: Integers  # places of the explanations asked for


@dataclass(frozen=True, slots=True)
class Tests:
    """What m tests showed.

    Attributes:
        rows: (m,) candidates.
        logs: (m,) log throughput; ``noise``: its variance.
        odd: (m,), chance that a test says little of the others.
        alike: (R,), log likelihood of all outcomes, failures too, by each reference.
    """

    rows: Integers
    logs: Floats
    noise: Floats
    odd: Floats
    alike: Floats


class Belief:
    """Weights of all explanations after tests of m candidates.

    Attributes:
        references: (R,), how much each reference explains; the sum is at most 1.
        by_speed: (R,), the same by throughput alone, failures left out.
    """

    def __init__(self, prior: Prior, columns: Blocks, tests: Tests) -> None:
        rows = tests.rows
        self._prior, self._columns, self._rows = prior, columns, rows
        # every test is what it seems, or one of them is odd: (m + 1, m)
        odd = np.vstack([np.zeros((1, len(rows))), ODD_SD**2 * np.eye(len(rows))])
        self._noises = tests.noise + odd
        self._cases = _cases(tests.odd)
        self._errors = tests.logs[:, None] - prior.means[rows] - prior.levels
        self._among = columns.take(rows)
        outcomes = _outcomes(prior, tests.alike)
        self._weights = self._weigh(outcomes)
        by_kind = self._weights.sum(axis=(1, 2))
        self.references = by_kind[prior.kinds == Kind.ONE]
        by_speed = by_kind * np.exp(-(outcomes - outcomes.min()))
        self.by_speed = (by_speed / by_speed.sum())[prior.kinds == Kind.ONE]

    def likeliest(self) -> Explanations:
        """The explanations that weigh most, for every candidate."""
        weights = self._weights.ravel()
        size = len(self._prior.means)
        most = max(FEWEST, min(MOST, CELLS // size))
        order = np.sort(np.argsort(-weights, kind="stable")[:most])
        order = order[weights[order] >= LEAST_WEIGHT * weights.max()]
        means, variances = np.zeros((2, len(order), size))
        for branch in self._branches(order):
            solved, known = self._solve(branch, order, self._columns)
            explanations = self._explanations(branch, order)
            shift = self._prior.means[:, explanations] + self._prior.levels[explanations]
            means[branch.members] = shift.T + known.T @ solved
            before = self._prior.variances(branch.form, branch.family)
            after = before - np.einsum("ij,ij->j", solved, solved)
            variances[branch.members] = np.maximum(after, JITTER)
        means = np.clip(means, -LARGEST_LOG, LARGEST_LOG)
        return Explanations(weights[order] / weights[order].sum(), means, variances)

    def draws(self, rows: Integers, count: int, rng: np.random.Generator) -> Floats:
        """Log throughput of rows (k,) drawn together from all explanations: (count, k)."""
        # systematic sampling: each explanation as often as its weight says, rare ones now and then
        points = (np.arange(count) + rng.random()) / count
        order = np.searchsorted(np.cumsum(self._weights), points * self._weights.sum())
        order = np.minimum(order, self._weights.size - 1)
        blocks = self._prior.blocks(rows, rows)
        columns = self._columns.take(rows)
        drawn = np.zeros((count, len(rows)))
        for branch in self._branches(order):
            solved, known = self._solve(branch, order, columns)
            explanations = self._explanations(branch, order)
            shift = self._prior.means[np.ix_(rows, explanations)] + self._prior.levels[explanations]
            mean = shift.T + known.T @ solved
            covariance = self._prior.covariance(blocks, branch.form, branch.family)
            covariance = covariance - solved.T @ solved
            jitter = JITTER * (1 + float(np.trace(covariance)) / len(rows))
            factor = factorise(covariance, jitter)
            drawn[branch.members] = mean + rng.standard_normal(mean.shape) @ factor.T
        return np.clip(drawn, -LARGEST_LOG, LARGEST_LOG)

    def _weigh(self, outcomes: Floats) -> Floats:
        """Chance of every explanation in every form and case: (Z, forms, m + 1), sum 1."""
        prior = self._prior
        log_weight = np.full((*prior.chances.shape, len(self._noises)), -np.inf)
        with np.errstate(divide="ignore"):
            chances = np.log(prior.chances) + outcomes[:, None]
        for column, form in enumerate(prior.forms):
            for family in Family:
                members = np.flatnonzero(prior.families == family)
                members = members[np.isfinite(chances[members, column])]
                if not len(members):
                    continue
                covariance = prior.covariance(self._among, form, family)
                for case, noise in enumerate(self._noises):
                    evidence = log_evidence(covariance, self._errors[:, members], noise)
                    chance = self._cases[case] + chances[members, column]
                    log_weight[members, column, case] = evidence + chance
        weight = np.exp(log_weight - log_weight.max())
        return np.asarray(weight / weight.sum())

    def _branches(self, order: Integers) -> list[_Branch]:
        """The Gaussian processes that explanations (flat places, E) come from."""
        explanations, forms, cases = np.unravel_index(order, self._weights.shape)
        families = self._prior.families[explanations]
        keys, branch_of = np.unique(
            np.column_stack([forms, families, cases]), axis=0, return_inverse=True
        )
        return [
            _Branch(
                self._prior.forms[form],
                Family(family),
                int(case),
                np.flatnonzero(branch_of.ravel() == i),
            )
            for i, (form, family, case) in enumerate(keys.tolist())
        ]

    def _explanations(self, branch: _Branch, order: Integers) -> Integers:
        """Which explanations the members of a branch are."""
        return np.unravel_index(order[branch.members], self._weights.shape)[0]

    def _solve(self, branch: _Branch, order: Integers, columns: Blocks) -> tuple[Floats, Floats]:
        """The factor's inverse times the covariances (m, k), and times the errors (m, E)."""
        among = self._prior.covariance(self._among, branch.form, branch.family)
        inverse = np.linalg.inv(factorise(among, self._noises[branch.case]))
        covariance = self._prior.covariance(columns, branch.form, branch.family)
        errors = self._errors[:, self._explanations(branch, order)]
        return inverse @ covariance.T, inverse @ errors


class Model:
    """Conditions a prior on tests; columns of covariances are kept from one to the next."""

    def __init__(self, prior: Prior) -> None:
        self._prior = prior
        self._columns: dict[int, Blocks] = {}

    def condition(self, tests: Tests) -> Belief:
        """The belief after tests."""
        rows = tests.rows
        every = np.arange(len(self._prior.means))
        for row in rows.tolist():
            if row not in self._columns:
                self._columns[row] = self._prior.blocks(every, np.array([row]))
        none = self._prior.blocks(every, rows[:0])
        columns = Blocks.beside([none, *(self._columns[row] for row in rows.tolist())])
        return Belief(self._prior, columns, tests)


def _cases(odd: Floats) -> Floats:
    """Log chance that no test is odd, and that each alone is: (m + 1,)."""
    none = float(np.log1p(-odd).sum())
    return np.append(none, none + np.log(odd) - np.log1p(-odd))


def _outcomes(prior: Prior, alike: Floats) -> Floats:
    """Log likelihood of outcomes, (Z,): of what is no reference, the mean of references."""
    result = np.zeros(len(prior.kinds))
    if len(alike):
        weights = prior.knowledge.weights
        result[:] = alike.max() + np.log(np.exp(alike - alike.max()) @ weights)
        result[prior.kinds == Kind.ONE] = alike
    return result


def mixture_quantile(mean: Floats, sd: Floats, sds: float) -> Floats:
    """Throughput so many standard deviations of its logarithm off the mean."""
    return np.asarray(np.exp(np.clip(mean + sds * sd, -LARGEST_LOG, LARGEST_LOG)))
