"""How likely each kind of explanation is: references play the new workload, one after another.

Each is explained by those of other groups from a few of its measurements; the chances are those
under which all of them together are the likeliest (empirical Bayes).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from underdog.core.search_prior import FAMILY, Family, Kind, Prior, log_evidence
from underdog.core.search_records import Candidates, Floats, Integers, Reference
from underdog.core.search_reference import best_known, gather

MOST = 600  # candidates to learn by
SUBSETS, SUBSET = 4, 6  # how often, and with how many offers, a reference plays the new workload
DOUBT = 1.0  # what the chances before weigh, in groups of references
ROUNDS = 30
# Chance that the new workload is like none of them, whatever they are to each other.
MISTRUST = 0.3


def learn(prior: Prior, candidates: Candidates, references: Sequence[Reference]) -> None:
    """Set the chances of the prior; with fewer than two groups there is nothing to learn from.

    Args:
        candidates, references: what the prior was made of.
    """
    knowledge = prior.knowledge
    groups = np.array(knowledge.groups)
    if len(set(knowledge.groups)) < 2:
        return
    rows = best_known(knowledge.measured, np.arange(len(knowledge)), MOST)
    few = candidates.take(rows)
    rng = np.random.default_rng(0)
    found, weights = [], []
    for group in sorted(set(knowledge.groups)):
        # kernels too are learnt without the group, or they would foretell what they have seen
        rest = [_on(references[i], rows) for i in np.flatnonzero(groups != group).tolist()]
        others = [reference for reference in rest if reference is not None]
        if not others:
            continue
        less = Prior(gather(few, others), None)
        for index in np.flatnonzero(groups == group).tolist():
            measured = np.flatnonzero(knowledge.measured[rows, index])
            if len(measured) < SUBSET:
                continue
            for _ in range(SUBSETS):
                some = np.sort(rng.permutation(measured)[:SUBSET])
                found.append(_left_out(less, some, knowledge.filled[rows[some], index]))
                weights.append(len(set(knowledge.groups)) * knowledge.weights[index] / SUBSETS)
    if found:
        start = prior.start()
        prior.set_chances(_mixing_weights(np.array(found), np.array(weights), start))


def _on(reference: Reference, rows: Integers) -> Reference | None:
    """A reference on some of the candidates; None where it ran on none of them."""
    if reference.candidates is not None:
        return reference
    failed = None if reference.failed is None else np.asarray(reference.failed)[rows]
    throughput = np.asarray(reference.throughput)[rows]
    ran = np.isfinite(throughput) if failed is None else np.isfinite(throughput) & ~failed
    return replace(reference, throughput=throughput, failed=failed) if ran.any() else None


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
    """All chance on the explanations that believe no reference: (kinds, forms)."""
    result = np.zeros_like(start)
    kinds = [Kind.ALONE, Kind.BOTTLENECK]
    result[kinds] = start[kinds] / start[kinds].sum()
    return result


def _left_out(less: Prior, rows: Integers, truth: Floats) -> Floats:
    """Log likelihood of a reference at some rows by those of other groups: (kinds, forms)."""
    blocks = less.blocks(rows, rows)
    result = np.full((len(Kind), len(less.forms)), -np.inf)
    for column, form in enumerate(less.forms):
        for kind in sorted(set(less.kinds.tolist())):
            members = less.kinds == kind
            covariance = less.covariance(blocks, form, Family(FAMILY[kind]))
            evidence = log_evidence(covariance, truth[:, None] - less.means[rows][:, members])
            top = evidence.max()
            result[kind, column] = top + np.log(np.exp(evidence - top) @ less.within[members])
    return result
