"""How likely each kind of explanation is: references play the new workload, one after another.

Each is explained by those of other groups from a few of its measurements; the chances are those
under which all of them together are the likeliest (empirical Bayes).
"""

from __future__ import annotations

import numpy as np

from underdog.core.search_prior import Blocks, Family, Kind, Prior, log_evidence, shared_factors
from underdog.core.search_records import Floats, Integers

SUBSETS, SUBSET = 4, 6  # how often, and with how many offers, a reference plays the new workload
DOUBT = 1.0  # what the chances before weigh, in groups of references
ROUNDS = 30
# Chance that the new workload is like none of them, whatever they are to each other.
MISTRUST = 0.3


def learn(prior: Prior) -> None:
    """Set the chances of the prior; with fewer than two groups there is nothing to learn from."""
    knowledge = prior.knowledge
    groups = len(set(knowledge.groups))
    if groups < 2:
        return
    rng = np.random.default_rng(0)
    found, weights = [], []
    for index, weight in enumerate(knowledge.weights.tolist()):
        measured = np.flatnonzero(knowledge.measured[:, index])
        if len(measured) < SUBSET:
            continue
        for _ in range(SUBSETS):
            found.append(_left_out(prior, index, np.sort(rng.permutation(measured)[:SUBSET])))
            weights.append(groups * weight / SUBSETS)
    if found:
        start = prior.start()
        prior.set_chances(_mixing_weights(np.array(found), np.array(weights), start))


def _mixing_weights(log_likelihood: Floats, weights: Floats, start: Floats) -> Floats:
    """Expectation maximisation of the weights of a mixture, drawn to ``start``: (kinds, forms)."""
    top = log_likelihood.max(axis=(1, 2), keepdims=True)
    likelihood = np.exp(log_likelihood - top)
    chances = start
    for _ in range(ROUNDS):
        share = likelihood * chances
        share /= np.maximum(share.sum(axis=(1, 2), keepdims=True), 1e-300)
        chances = (share * weights[:, None, None]).sum(axis=0) + DOUBT * start
        chances = chances / chances.sum()
    # references that agree with each other may still all mislead
    return (1 - MISTRUST) * chances + MISTRUST * _no_shape(start)


def _no_shape(start: Floats) -> Floats:
    """All chance on the explanations that follow no reference's shape."""
    result = np.zeros_like(start)
    kinds = [Kind.PRICE, Kind.ALONE]
    result[kinds] = 0.5 * start[kinds] / start[kinds].sum(axis=1, keepdims=True)
    return result


def _left_out(prior: Prior, index: int, rows: Integers) -> Floats:
    """Log likelihood of a reference at some rows by those of other groups: (kinds, forms)."""
    knowledge = prior.knowledge
    groups = np.array(knowledge.groups)
    others = np.flatnonzero(groups != groups[index])
    weights = knowledge.weights[others] / knowledge.weights[others].sum()
    filled = knowledge.filled[:, others]
    shared = shared_factors(filled, weights)[rows]
    blocks = prior.blocks(rows, rows)
    blocks = Blocks(blocks.kernels, shared @ shared.T, blocks.trend)
    truth = knowledge.filled[rows, index][:, None]
    means = {
        Kind.ONE: filled[rows],
        Kind.COMMON: filled[rows] @ weights[:, None],
        Kind.PRICE: prior.means[rows][:, prior.kinds == Kind.PRICE],
        Kind.ALONE: prior.means[rows][:, prior.kinds == Kind.ALONE],
    }
    families = {Kind.PRICE: Family.OFFERS, Kind.ALONE: Family.NOTHING}
    result = np.full((len(Kind), len(prior.forms)), -np.inf)
    for column, form in enumerate(prior.forms):
        for kind, mean in means.items():
            family = families.get(kind, Family.WORKLOADS)
            evidence = log_evidence(prior.covariance(blocks, form, family), truth - mean)
            within = weights if kind == Kind.ONE else np.ones(1)
            top = evidence.max()
            result[kind, column] = top + np.log(np.exp(evidence - top) @ within)
    return result
