"""What a search is told and what it answers: candidates, references, outcomes, suggestions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from underdog.errors import UsageError

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.int64]

# value = utility(throughput, price): throughput (..., n) of 1/s, price (n,) of USD/h (NaN unknown);
# the value (..., n) is the higher the better, NaN or -inf where the candidate does not hold.
Utility = Callable[[Floats, Floats], Floats]
FailureKind = Literal["out_of_memory", "no_capacity", "timeout", "failed"]
FAILURES: tuple[FailureKind, ...] = ("out_of_memory", "no_capacity", "timeout", "failed")


@dataclass(frozen=True, slots=True)
class Candidates:
    """n offers with what is known of them before any test.

    Attributes:
        names: n distinct names.
        price_per_hour: (n,), USD per hour of the whole offer (all its nodes); NaN = unknown.
        numbers: facts by column name (``vcpus``, ``memory_gib``, ``nodes``, ...), each (n,), of
            one node; NaN = unknown. Any subset; unknown names are used too.
        texts: facts by column name (``provider``, ``arch``, ``accelerator``, ...), n values each;
            None or '' = unknown (for ``accelerator``: none).

    Raises:
        UsageError: lengths differ, names repeat, or a price or a number is infinite or negative.
    """

    names: Sequence[str]
    price_per_hour: Floats
    numbers: Mapping[str, Floats] = field(default_factory=dict)
    texts: Mapping[str, Sequence[str | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.names)
        if not count:
            raise UsageError("A search needs at least one candidate, and there is none.")
        if len(set(self.names)) != count:
            raise UsageError("The names of the candidates are not distinct.")
        columns = {"price_per_hour": self.price_per_hour} | dict(self.numbers)
        wrong = [name for name, values in columns.items() if np.shape(values) != (count,)]
        wrong += [name for name, values in self.texts.items() if len(values) != count]
        if wrong:
            raise UsageError(f"Not {count} values, one for each candidate: {', '.join(wrong)}.")
        for name, values in columns.items():
            numbers = np.asarray(values, dtype=float)
            bad = np.isinf(numbers) | (numbers < 0)
            if name == "price_per_hour":
                bad |= numbers == 0
            if bad.any():
                at = int(np.flatnonzero(bad)[0])
                raise UsageError(
                    f"'{name}' of candidate '{self.names[at]}' is {numbers[at]:g}, and it must be "
                    "positive and finite, or NaN where it is unknown."
                )

    def __len__(self) -> int:
        return len(self.names)

    def take(self, rows: Integers) -> Candidates:
        """Some of them, in that order."""
        return Candidates(
            [self.names[i] for i in rows],
            np.asarray(self.price_per_hour, dtype=float)[rows],
            {name: np.asarray(v, dtype=float)[rows] for name, v in self.numbers.items()},
            {name: [texts[i] for i in rows] for name, texts in self.texts.items()},
        )


@dataclass(frozen=True, slots=True)
class Reference:
    """What another workload did, on these candidates or on others.

    Attributes:
        workload: its name.
        throughput: (m,), 1/s; NaN where it was not measured or failed.
        failed: (m,), where it was tried and failed; None = nowhere.
        candidates: the m offers; None = those of the search, in their order. Offers of another
            table are matched by their names, then by their facts.
        group: workloads of one group are variants of one job, and count as one; '' = its own.

    Raises:
        UsageError: lengths differ, or a throughput is infinite, zero or negative.
    """

    workload: str
    throughput: Floats
    failed: Flags | None = None
    candidates: Candidates | None = None
    group: str = ""

    def __post_init__(self) -> None:
        rates = np.asarray(self.throughput, dtype=float)
        if rates.ndim != 1 or (self.failed is not None and np.shape(self.failed) != rates.shape):
            raise UsageError(f"The lengths of reference '{self.workload}' do not agree.")
        if self.candidates is not None and len(self.candidates) != len(rates):
            raise UsageError(
                f"Reference '{self.workload}' has {len(rates)} throughputs for "
                f"{len(self.candidates)} candidates."
            )
        if (np.isinf(rates) | (rates <= 0)).any():
            raise UsageError(
                f"A throughput of reference '{self.workload}' is not positive and finite; where "
                "it is unknown it is NaN."
            )


@dataclass(frozen=True, slots=True)
class Prediction:
    """A prediction made elsewhere (the roofline) for each candidate.

    Attributes:
        log_throughput: (n,), natural logarithm of 1/s; NaN where nothing is predicted.
    """

    log_throughput: Floats


@dataclass(frozen=True, slots=True)
class Measured:
    """A test that gave a throughput.

    Attributes:
        throughput: 1/s.
        relative_sd: its standard deviation as a share of it; 0 where it is not known.
    """

    throughput: float
    relative_sd: float = 0.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.throughput) and self.throughput > 0):
            raise UsageError(
                f"A measured throughput must be positive and finite, not '{self.throughput}'.",
                "Tell a test without a throughput as a Failure.",
            )
        if not (np.isfinite(self.relative_sd) and self.relative_sd >= 0):
            raise UsageError(
                f"A relative standard deviation must be 0 or more, not '{self.relative_sd}'."
            )


@dataclass(frozen=True, slots=True)
class Failure:
    """A test that gave none. ``no_capacity`` says nothing of the workload."""

    kind: FailureKind = "failed"

    def __post_init__(self) -> None:
        if self.kind not in FAILURES:
            raise UsageError(f"'{self.kind}' is no kind of failure: {', '.join(FAILURES)}.")


Outcome = Measured | Failure


@dataclass(frozen=True, slots=True)
class Settings:
    """What holds for every search alike.

    Attributes:
        test_seconds: of one test, for its price.
        stop_loss: stop where the expected loss of stopping is under this share of the best.
        stop_loss_high: and its 90th percentile under this one.
        fewest_tests: that gave a throughput, before the search may stop by itself.
    """

    test_seconds: float = 120.0
    stop_loss: float = 0.01
    stop_loss_high: float = 0.04
    fewest_tests: int = 3


@dataclass(frozen=True, slots=True)
class Suggestion:
    """The next test.

    Attributes:
        index, name: of the candidate.
        reason: one sentence.
        value, low, high: expected value of the utility if it does not fail, and its 90 % interval.
        expected_gain: over the best found so far, as a share of the best there is, failures
            counted as none; while nothing holds yet, the share that it is expected to reach.
        chance_of_failure: 0 to 1.
        dollars: of the test; NaN where the price is unknown.
    """

    index: int
    name: str
    reason: str
    value: float
    low: float
    high: float
    expected_gain: float
    chance_of_failure: float
    dollars: float


@dataclass(frozen=True, slots=True)
class Stopping:
    """Whether to stop, and what stopping now may lose as a share of the best value there is.

    ``expected_loss`` and ``high_loss`` (90th percentile) are 1 where nothing holds yet.
    """

    stop: bool
    expected_loss: float
    high_loss: float
    reason: str


@dataclass(frozen=True, slots=True)
class Beliefs:
    """What is believed of every candidate; each (n,).

    ``reference_throughput`` is what references and prediction alone say (NaN without
    references); ``measured`` what tests said (NaN without one), and the rest both together:
    median and 90 % interval. A value is -inf where the utility does not hold there.
    ``reference_weights`` say how much each reference explains of what was measured, by workload;
    their sum is at most 1.
    """

    throughput: Floats
    throughput_low: Floats
    throughput_high: Floats
    value: Floats
    value_low: Floats
    value_high: Floats
    chance_of_failure: Floats
    reference_throughput: Floats
    measured: Floats
    failed: Flags
    reference_weights: Mapping[str, float]
