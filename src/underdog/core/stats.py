"""Throughput and step time of a run, with intervals that are honest about correlated steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underdog.core import caveats as doubts
from underdog.core.caveats import caveat
from underdog.core.interval import ROUNDING, MeanError, mean_error
from underdog.core.series import PHASES, Series
from underdog.core.warmup import COMPILATION, find_warmup
from underdog.model import Caveat, Estimate, Measurement
from underdog.units import format_seconds

Floats = NDArray[np.float64]

OWN_PAUSES = ("profile",)  # what underdog itself adds; no rate counts it
# Below so many independent steps' worth, the interval holds the truth less often than it says.
FEWEST_EFFECTIVE = 5.0
FEWEST_STEPS = 20
KNOWN_SHARE = 0.95  # of steps whose samples must be known for a rate
MOST_SAMPLES = 1e15  # of a step: beyond, they were not counted
LONGEST = 1e9  # seconds of a step, thirty years: beyond, a clock is wrong
WIDEST = 100.0  # a bound is at most so many times off the mean: an interval stays finite
# Half-width over mean: offers differ by less than a tenth so often that a wider interval ranks few.
HIGH_VARIANCE = 0.10
STALL_SHARE = 0.01  # of the time, in steps of 20 medians or more: half the default precision
RECENT = 2000  # steps that are looked at for two kinds
MINOR_SHARE = 0.10  # of the steps are of the rarer kind; what is rarer still are outliers
MODE_RATIO = 1.2  # the slow kind takes so many times the quick one
# Standard deviations inside the kinds between their means: 2.7 for a normal distribution cut in
# two, 3.5 for a uniform one, so that one kind is not taken for two.
MODE_GAP = 4.5
PRECISE_STEPS, PRECISE_EFFECTIVE = 30, 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """What the steps of a job showed. Seconds; rates are per second and of the whole job.

    ``phases`` are shares of the step time after warm-up, pauses left out; they sum to 1.
    ``settled`` is False while the rate drifts or there are too few steps to see. ``effective`` is
    how many independent steps would tell the mean as well.
    """

    samples_per_second: Estimate | None = None
    samples_per_second_with_pauses: float | None = None
    steps_per_second: Estimate | None = None
    step_seconds: Estimate | None = None
    steps: int = 0
    samples: int | None = None
    skipped_steps: int = 0
    batch_size: float | None = None
    ranks: int = 1
    warmup_steps: int = 0
    warmup_seconds: float = 0.0
    pauses: dict[str, float] = field(default_factory=dict)
    pause_counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    settled: bool = False
    effective: float = 0.0
    caveats: list[Caveat] = field(default_factory=list)

    def measurement(self) -> Measurement:
        """The part that is stored and printed."""
        return Measurement(
            samples_per_second=self.samples_per_second,
            samples_per_second_with_pauses=self.samples_per_second_with_pauses,
            step_seconds=self.step_seconds,
            steps=self.steps,
            samples=self.samples,
            skipped_steps=self.skipped_steps,
            batch_size=self.batch_size,
            ranks=self.ranks,
            warmup_steps=self.warmup_steps,
            warmup_seconds=self.warmup_seconds,
            pauses=self.pauses,
            pause_counts=self.pause_counts,
            seconds=self.seconds,
        )


def throughput(series: Series) -> Throughput:
    """Throughput of a job after its warm-up; see ``underdog.core.series.combine``.

    The rate is Σ samples / Σ seconds, not a mean of rates. Its interval is that of the seconds
    beyond what the step's samples account for at that rate (the ratio estimator: Cochran, Sampling
    Techniques, ch. 6), which handles batches of different sizes. A number that cannot be told is
    None, and a caveat says why.
    """
    steps = len(series)
    if not steps:
        return Throughput(caveats=[caveat("too_few_steps", "No step was seen.")])
    told = (series.samples >= 0) & (series.samples < MOST_SAMPLES)
    series = (
        series if told.all() else replace(series, samples=np.where(told, series.samples, np.nan))
    )
    clean, found = usable(series)
    if not len(clean):
        found.append(caveat("too_few_steps", "No step was seen from its start to its end."))
        return Throughput(steps=steps, ranks=series.ranks, caveats=found)
    paused = clean.pause_seconds()
    training = clean.seconds - paused
    warmup = find_warmup(training)
    kept = clean.cut(warmup.steps)
    steady = training[warmup.steps :]
    rates, more = _rates(kept, steady)
    found += more + _doubts(kept, steady, paused[warmup.steps :], warmup.settled, rates)
    known = bool(np.isfinite(series.samples).all())
    sizes = kept.samples[np.isfinite(kept.samples)]
    lost = steps - len(clean)
    return Throughput(
        **rates,
        steps=steps,
        samples=round(float(series.samples.sum())) if known else None,
        skipped_steps=int(series.skipped.sum()),
        batch_size=float(np.median(sizes)) if len(sizes) else None,
        ranks=series.ranks,
        warmup_steps=warmup.steps + lost,
        warmup_seconds=float(clean.seconds[: warmup.steps].sum()),
        pauses=(pauses := _pauses(clean)),
        pause_counts={kind: clean.pause_count(kind) for kind in pauses},
        seconds=float(clean.end[-1] - clean.start[0]),
        phases=_phase_shares(kept, steady),
        settled=warmup.settled,
        caveats=found,
    )


def usable(series: Series) -> tuple[Series, list[Caveat]]:
    """The steps whose times can be: not backwards, and shorter than a life.

    A first step of no length is one whose start was not seen; it is left out without a word.
    """
    seconds = series.seconds
    good = (seconds >= 0) & (seconds < LONGEST)
    odd = ~good | (seconds == 0)
    good[0] &= seconds[0] != 0
    odd[0] &= seconds[0] != 0
    found = []
    if odd.any():
        found.append(
            caveat(
                "clock_problem",
                f"{int(odd.sum())} of {len(series)} steps took no time, ended before they "
                "began, or never ended.",
            )
        )
    return (series if good.all() else series.select(good)), found


def _rates(kept: Series, steady: Floats) -> tuple[dict[str, Any], list[Caveat]]:
    """The estimates of the kept steps by their name in ``Throughput``, and what they lack."""
    per_step, error = _rate(np.ones(len(kept)), steady)
    found: dict[str, Any] = {
        "steps_per_second": per_step,
        "step_seconds": _inverse(per_step) if per_step else None,
        "effective": error.effective if error else 0.0,
    }
    known = np.isfinite(kept.samples)
    if known.mean() < KNOWN_SHARE:
        said = f"The samples of {int((~known).sum())} of {len(kept)} steps are not known."
        return found, [caveat("samples_unknown", said)]
    samples, seconds = kept.samples[known], steady[known]
    found["samples_per_second"], error = _rate(samples, seconds)
    found["effective"] = error.effective if error else 0.0
    own = kept.pause_seconds(OWN_PAUSES)[known]
    elapsed = float((kept.seconds[known] - own).sum())
    if found["samples_per_second"] is not None and elapsed > 0:
        found["samples_per_second_with_pauses"] = _finite(float(samples.sum()) / elapsed)
    return found, []


def _rate(amount: Floats, seconds: Floats) -> tuple[Estimate | None, MeanError | None]:
    """Σ amount / Σ seconds; None for fewer than three steps or where a sum is not positive."""
    total, elapsed = float(amount.sum()), float(seconds.sum())
    if len(seconds) < 3 or not (0 < total < math.inf and 0 < elapsed < math.inf):
        return None, None
    beyond = seconds - amount * (elapsed / total)
    beyond[np.abs(beyond) < ROUNDING * float(seconds.max())] = 0.0
    error = mean_error(beyond)
    rate = _finite(total / elapsed)
    if error is None or rate is None:
        return None, error
    # exponential, so that a wide interval stays positive and turns over with the rate
    factor = math.exp(min(error.half_width * len(seconds) / elapsed, math.log(WIDEST)))
    high = _finite(rate * factor)
    return Estimate(value=rate, low=rate / factor, high=high or rate, n=len(seconds)), error


def _inverse(rate: Estimate) -> Estimate:
    return Estimate(value=1 / rate.value, low=1 / rate.high, high=1 / rate.low, n=rate.n)


def _finite(value: float) -> float | None:
    """The value where it and its inverse are numbers, else None."""
    return value if 1e-300 < value < 1e300 else None


def _pauses(series: Series) -> dict[str, float]:
    """Seconds by kind, those of underdog itself left out."""
    kinds = sorted({kind for kind, _, _ in series.pauses} - set(OWN_PAUSES))
    by_kind = {kind: float(series.pause_seconds([kind]).sum()) for kind in kinds}
    return {kind: seconds for kind, seconds in by_kind.items() if seconds > 0}


def _phase_shares(kept: Series, steady: Floats) -> dict[str, float]:
    """Shares of the step time; what no phase claims is ``other``. Empty where none was seen."""
    with np.errstate(invalid="ignore", over="ignore"):
        seconds = np.maximum(kept.phases.sum(axis=0), 0.0)
        if not 0 < float(seconds.sum()) < math.inf:
            return {}
    whole = max(float(steady.sum()), float(seconds.sum()))
    shares = {name: float(s) / whole for name, s in zip(PHASES, seconds, strict=True)}
    return shares | {"other": max(0.0, 1.0 - sum(shares.values()))}


def _doubts(
    kept: Series, steady: Floats, paused: Floats, settled: bool, rates: dict[str, Any]
) -> list[Caveat]:
    """What the steps themselves say against their mean."""
    rate = rates.get("samples_per_second") or rates["steps_per_second"]
    effective = rates["effective"]
    found = []
    if rate is None or rate.n < FEWEST_STEPS or effective < FEWEST_EFFECTIVE:
        found.append(
            caveat(
                "too_few_steps",
                f"{len(steady)} steps after warm-up tell as much as {effective:.0f} independent "
                "ones would; the interval may miss the true rate more often than it says.",
            )
        )
    if not settled and len(steady) >= FEWEST_STEPS:
        found.append(caveat("drifting", "The step time still rises or falls after warm-up."))
    if rate is not None and (width := (rate.high - rate.low) / 2 / rate.value) >= HIGH_VARIANCE:
        spread = float(steady.std() / steady.mean())
        found.append(
            caveat(
                "high_variance",
                f"The rate is known to ±{width:.0%} only: step times vary by {spread:.0%} "
                "(standard deviation over mean).",
            )
        )
    own = kept.pause_seconds(OWN_PAUSES)
    kinds = {kind for kind, _, _ in kept.pauses if kind not in OWN_PAUSES}
    more = [
        _stalls(steady),
        _bimodal(steady[-RECENT:]),
        doubts.pauses(float((paused - own).sum()), float(steady.sum()), kinds),
    ]
    return found + [one for one in more if one is not None]


def _stalls(steady: Floats) -> Caveat | None:
    """Steps as long as a compilation that nothing explains."""
    if not len(steady):
        return None
    if float(steady.max()) < COMPILATION * float(steady.min()):
        return None
    long = steady[steady >= COMPILATION * max(float(np.median(steady)), 1e-300)]
    share = float(long.sum()) / (float(steady.sum()) or 1.0)
    if share < STALL_SHARE:
        return None
    return caveat(
        "stalls",
        f"{len(long)} steps after warm-up took {COMPILATION:.0f} times the usual or longer, "
        f"{share:.0%} of the time; no pause that was recognised explains them.",
    )


def _bimodal(steady: Floats) -> Caveat | None:
    """Two kinds of steps, by the split with the least variance inside its halves (Otsu, 1979)."""
    logs = np.log(np.sort(steady[steady > 0]))
    size = len(logs)
    if size < FEWEST_STEPS:
        return None
    count = np.arange(1, size)
    sums = np.cumsum(logs)[:-1]
    below, above = sums / count, (logs.sum() - sums) / (size - count)
    split = int(np.argmax(count * (size - count) * (above - below) ** 2))
    gap = float(above[split] - below[split])
    quick, slow = logs[: split + 1], logs[split + 1 :]
    inside = math.sqrt((quick.var() * len(quick) + slow.var() * len(slow)) / size)
    minor = min(len(quick), len(slow)) / size
    if minor < MINOR_SHARE or gap < math.log(MODE_RATIO) or gap < MODE_GAP * inside:
        return None
    return caveat(
        "bimodal_steps",
        f"Steps come in two kinds: {len(quick) / size:.0%} of about "
        f"{format_seconds(math.exp(float(quick.mean())))} and {len(slow) / size:.0%} of about "
        f"{format_seconds(math.exp(float(slow.mean())))}.",
    )


def is_precise(result: Throughput, precision: float) -> bool:
    """Whether half the interval is within ``precision`` (a share) of the rate, and believable.

    To look often and stop at the first narrow interval favours runs of luck. So a minimum of
    steps and of independent steps' worth is asked for, and the caller asks for several looks in
    a row that agree.
    """
    estimate = result.samples_per_second or result.steps_per_second
    return (
        estimate is not None
        and result.settled
        and estimate.n >= PRECISE_STEPS
        and result.effective >= PRECISE_EFFECTIVE
        and (estimate.high - estimate.low) / 2 <= precision * estimate.value
    )
