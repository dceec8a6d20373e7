"""The policies that ``benchmarks/search.py`` compares: simple rules, a Gaussian process, ours.

A policy is a generator. It yields a ``Step``, the index of the candidate to test next, and is sent
what the test gave: the throughput, NaN where it failed. It never ends by itself before all
candidates are tested; ``Step.stop`` says that it would have stopped before this test.
"""

from __future__ import annotations

import contextlib
import math
import zlib
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from search_data import Floats, Offers, Task

from underdog.core.search import (
    Candidates,
    Failure,
    Measured,
    Reference,
    Search,
    cheapest_above,
    samples_per_dollar,
)

STARTS = 3  # random tests before the Gaussian process begins, as in CherryPick
LEAST_TESTS, LEAST_GAIN = 6, 0.10  # CherryPick stops when the expected improvement is below


class Step(NamedTuple):
    """The next test, and whether the policy would rather stop."""

    index: int
    stop: bool = False
    expected_loss: float = math.nan
    stops: bool = False  # whether the policy has a rule to stop by


class Question(NamedTuple):
    """What a policy may know: the candidates, the rule, and the workloads of other groups."""

    offers: Offers
    least: float | None
    others: Sequence[Task]
    workload: str = ""

    def draw(self, seed: int) -> np.random.Generator:
        """Randomness of its own for each workload and seed."""
        return np.random.default_rng([seed, zlib.crc32(self.workload.encode())])

    def value(self, index: int, throughput: float) -> float:
        """Of a test's throughput, what is maximised; 0 for a failed test."""
        fails = math.isnan(throughput) or (self.least is not None and throughput < self.least)
        per_dollar = 3600 / float(self.offers.price[index])
        return 0.0 if fails else per_dollar * (throughput if self.least is None else 1.0)


Policy = Callable[[Question, int], Generator[Step, float, None]]


def _in_order(order: Iterable[int]) -> Generator[Step, float, None]:
    for index in order:
        yield Step(int(index))


def random(question: Question, seed: int) -> Generator[Step, float, None]:
    """Any candidate not tested yet."""
    yield from _in_order(question.draw(seed).permutation(len(question.offers.price)))


def cheapest(question: Question, seed: int) -> Generator[Step, float, None]:
    """By price per hour, the lowest first."""
    yield from _in_order(np.argsort(question.offers.price, kind="stable"))


def dearest(question: Question, seed: int) -> Generator[Step, float, None]:
    """By price per hour, the highest first."""
    yield from _in_order(np.argsort(-question.offers.price, kind="stable"))


def one_per_accelerator(question: Question, seed: int) -> Generator[Step, float, None]:
    """The cheapest machine of each accelerator model, the cheapest first; then by price."""
    order = np.argsort(question.offers.price, kind="stable")
    models = [question.offers.rows[i].get("accelerator") or "" for i in order]
    first = [models.index(model) for model in dict.fromkeys(models)]
    yield from _in_order(np.concatenate([order[first], np.delete(order, first)]))


def others_order(question: Question, seed: int) -> Generator[Step, float, None]:
    """By the mean over the other workloads of value over best; then by price."""
    place = {name: i for i, name in enumerate(question.offers.names)}
    total = np.zeros(len(place))
    for other in question.others:
        if other.offers is question.offers:
            total += other.quality
        else:
            for name, quality in zip(other.offers.names, other.quality, strict=True):
                if name in place:
                    total[place[name]] += quality
    yield from _in_order(np.lexsort((question.offers.price, -total)))


def gaussian_process(question: Question, seed: int) -> Generator[Step, float, None]:
    """Expected improvement after three random tests, as in CherryPick (NSDI'17): Matérn 5/2."""
    features = scaled(question.offers)
    draw = question.draw(seed)
    tested: list[int] = []
    values: list[float] = []
    starts = draw.permutation(len(features))[:STARTS]
    for count in range(len(features)):
        gain = 0.0
        if count < STARTS:
            index, stop = int(starts[count]), False
        else:
            expected = expected_improvement(features, tested, np.array(values))
            expected[tested] = -np.inf
            index = int(np.argmax(expected))
            gain = float(expected[index]) / (max(values) or math.inf)
            stop = count >= LEAST_TESTS and max(values) > 0 and gain < LEAST_GAIN
        throughput = yield Step(index, stop, gain, stops=True)
        tested.append(index)
        values.append(question.value(index, throughput))


def scaled(offers: Offers) -> Floats:
    """The numbers of the offers file as features of shape (offers, features), of variance 1 each.

    Of what was tried (numbers, logarithms, texts as one column for each value), logarithms of the
    numbers alone serve the process best.
    """
    columns: list[Floats] = []
    for name in offers.rows[0]:
        with contextlib.suppress(ValueError):
            given = [float(row[name] or 0) for row in offers.rows]
            columns.append(np.log1p(np.array(given)))
    table = np.stack(columns, axis=1)
    spread = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0))[:, spread > 0] / spread[spread > 0])


def expected_improvement(features: Floats, tested: Sequence[int], values: Floats) -> Floats:
    """Of every candidate, over the best value so far, in the values' unit."""
    centre, spread = values.mean(), values.std() or 1.0
    mean, deviation = predicted(features, tested, (values - centre) / spread)
    best = (values.max() - centre) / spread
    z = (mean - best) / deviation
    erf = np.frompyfunc(math.erf, 1, 1)
    below = 0.5 * (1 + np.asarray(erf(z / math.sqrt(2)), dtype=float))
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)
    return np.asarray(spread * deviation * (z * below + density))


def predicted(features: Floats, tested: Sequence[int], y: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of a Gaussian process; its length maximises the likelihood."""
    near = distances(features, features[list(tested)])
    between = near[list(tested)]
    found: tuple[float, Any] = (-math.inf, None)
    for length in math.sqrt(features.shape[1]) * np.array([0.1, 0.2, 0.4, 0.8, 1.6, 3.2]):
        for noise in (1e-4, 1e-2, 1e-1):
            kernel = matern(between / length) + noise * np.eye(len(y))
            factor = np.linalg.cholesky(kernel)
            solved = np.linalg.solve(factor, y)
            fit = -0.5 * solved @ solved - np.log(np.diag(factor)).sum()
            if fit > found[0]:
                found = (fit, (length, factor, solved))
    length, factor, solved = found[1]
    across = np.linalg.solve(factor, matern(near / length).T)
    left = np.maximum(1 - (across * across).sum(axis=0), 1e-9)
    return across.T @ solved, np.sqrt(left)


def distances(a: Floats, b: Floats) -> Floats:
    """Euclidean, of shape (len(a), len(b))."""
    square = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * a @ b.T
    return np.sqrt(np.maximum(square, 0.0))


def matern(r: Floats) -> Floats:
    """The Matérn kernel of smoothness 5/2 at distance r over the length."""
    scaled_r = math.sqrt(5) * r
    return np.asarray((1 + scaled_r + scaled_r * scaled_r / 3) * np.exp(-scaled_r))


def underdog(question: Question, seed: int) -> Generator[Step, float, None]:
    """Ours, as the product asks it."""
    search = Search(
        as_candidates(question.offers),
        samples_per_dollar if question.least is None else cheapest_above(question.least),
        references=[_reference(other, question.offers) for other in question.others],
        seed=seed,
    )
    for count in range(len(question.offers.price)):
        stopping = search.stop() if count else None
        index = search.ask()[0].index
        if stopping is None:
            throughput = yield Step(index, stops=True)
        else:
            throughput = yield Step(index, stopping.stop, stopping.expected_loss, stops=True)
        failed = math.isnan(throughput)
        search.tell(index, Failure() if failed else Measured(throughput))


def as_candidates(offers: Offers) -> Candidates:
    """The offers with all their facts."""
    return Candidates(offers.names, offers.price, offers.numbers, offers.texts)


def _reference(other: Task, mine: Offers) -> Reference:
    failed = np.isnan(other.throughput)
    same = other.offers is mine
    candidates = None if same else as_candidates(other.offers)
    return Reference(other.workload, other.throughput, failed, candidates, other.group)


POLICIES: dict[str, Policy] = {
    "underdog": underdog,
    "random": random,
    "cheapest": cheapest,
    "dearest": dearest,
    "one per accelerator": one_per_accelerator,
    "gaussian process": gaussian_process,
    "order of others": others_order,
}
