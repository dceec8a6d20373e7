"""How often the 95 % interval holds the truth, and what bias the cut of the warm-up leaves.

    python benchmarks/intervals.py [--repeats 200] [--only coverage|warmup|sequential|speed]

All series are synthetic, with a known mean and from one seed, and go through the same
``throughput`` that a run goes through, the search for warm-up included. Steps take 0.1 s with a
standard deviation of 5 % unless a row says otherwise. A coverage from 200 repeats has itself a
standard error of 1.5 %: a cell at 92 or 98 % is no finding; --repeats 1000 tells more.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from underdog.core.series import PHASES, Series
from underdog.core.stats import Throughput, is_precise, throughput

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Floats]  # mean 0, standard deviation about 1

STEP = 0.1  # seconds
SPREAD = 0.05
SAMPLES = 32.0


def as_series(seconds: Floats, samples: Floats | float = SAMPLES) -> Series:
    """Steps one after the other, without pauses or phases."""
    end = np.cumsum(seconds)
    return Series(
        start=np.concatenate(([0.0], end[:-1])),
        end=end,
        samples=np.broadcast_to(np.asarray(samples, dtype=float), seconds.shape).copy(),
        phases=np.zeros((len(seconds), len(PHASES))),
        skipped=np.zeros(len(seconds), dtype=bool),
    )


# Noise: each is stationary from its first term on


def autoregressive(phi: float) -> Noise:
    """x_t = φ x_{t-1} + noise, standard deviation 1."""

    def make(rng: np.random.Generator, n: int) -> Floats:
        noise = rng.standard_normal(n) * math.sqrt(1 - phi**2)
        noise[0] = rng.standard_normal()
        series = np.empty(n)
        last = 0.0
        for i, term in enumerate(noise.tolist()):
            last = phi * last + term
            series[i] = last
        return series

    return make


def moving_average(length: int) -> Noise:
    """The mean of ``length`` neighbours of white noise."""

    def make(rng: np.random.Generator, n: int) -> Floats:
        white = rng.standard_normal(n + length - 1)
        return np.convolve(white, np.ones(length), "valid") / math.sqrt(length)

    return make


def slow_and_white(phi: float) -> Noise:
    """Half the variance a slow autoregression, half white: hard to tell from few steps."""

    def make(rng: np.random.Generator, n: int) -> Floats:
        return (autoregressive(phi)(rng, n) + rng.standard_normal(n)) / math.sqrt(2)

    return make


def lognormal(sigma: float) -> Noise:
    """Skewed to the right."""

    def make(rng: np.random.Generator, n: int) -> Floats:
        mean, spread = math.exp(sigma**2 / 2), math.sqrt(math.exp(sigma**2) - 1)
        return (np.exp(sigma * rng.standard_normal(n)) / mean - 1) / spread

    return make


def bimodal(rng: np.random.Generator, n: int) -> Floats:
    """One step in three is slow, at random."""
    return np.where(rng.random(n) < 1 / 3, math.sqrt(2), -math.sqrt(0.5))


def periodic(period: int) -> Noise:
    """Every so many steps one is slow (it logs), besides white noise."""

    def make(rng: np.random.Generator, n: int) -> Floats:
        slow = (np.arange(n) + rng.integers(period)) % period == 0
        return rng.standard_normal(n) + 20 * (slow - 1 / period)

    return make


def outliers(share: float) -> Noise:
    """Some steps take twice as long, at random, besides white noise."""

    def make(rng: np.random.Generator, n: int) -> Floats:
        return rng.standard_normal(n) + 20 * ((rng.random(n) < share) - share)

    return make


NOISES: dict[str, Noise] = {
    **{f"AR(1) φ={phi}": autoregressive(phi) for phi in (0.0, 0.3, 0.5, 0.7, 0.8, 0.9)},
    "AR(1) φ=-0.5": autoregressive(-0.5),
    "MA(5)": moving_average(5),
    "MA(20)": moving_average(20),
    "AR(1) φ=0.95": autoregressive(0.95),
    "AR(1) φ=0.9 + white": slow_and_white(0.9),
    "lognormal σ=0.5": lognormal(0.5),
    "lognormal σ=1": lognormal(1.0),
    "bimodal": bimodal,
    "every 20th slow": periodic(20),
    "every 100th slow": periodic(100),
    "1 % outliers": outliers(0.01),
}
# The last rows ask for more than can be: where no rare long step was seen, its share is not known.
LENGTHS = (50, 100, 200, 500, 1000, 5000)
# the band is asked for there: the whole of φ from 0 to 0.9, and what is no harder
BANDED = tuple(NOISES)[:9]


def seconds_of(noise: Noise, rng: np.random.Generator, n: int) -> Floats:
    """Step times around STEP."""
    return np.maximum(STEP * (1 + SPREAD * noise(rng, n)), STEP / 100)


def covers(result: Throughput, truth: float) -> bool:
    """Whether the interval of the rate holds the truth."""
    rate = result.samples_per_second
    return rate is not None and rate.low <= truth <= rate.high


def coverage(noise: Noise, n: int, repeats: int, seed: int = 1) -> tuple[float, float, float]:
    """Share of intervals that hold the truth, mean half-width over mean, share that warns."""
    rng = np.random.default_rng([seed, n])
    held, widths, warned = 0, [], 0
    for _ in range(repeats):
        result = throughput(as_series(seconds_of(noise, rng, n)))
        held += covers(result, SAMPLES / STEP)
        rate = result.samples_per_second
        assert rate is not None
        widths.append((rate.high - rate.low) / 2 / rate.value)
        warned += any(caveat.code == "too_few_steps" for caveat in result.caveats)
    return held / repeats, float(np.mean(widths)), warned / repeats


def varying_batches(n: int, repeats: int, phi: float = 0.7, seed: int = 2) -> float:
    """Coverage where batches have 16 to 64 samples and time goes with them, plus a fixed part."""
    rng = np.random.default_rng([seed, n])
    held = 0
    for _ in range(repeats):
        samples = rng.integers(16, 65, n).astype(float)
        seconds = 0.02 + 0.002 * samples * (1 + SPREAD * autoregressive(phi)(rng, n))
        held += covers(throughput(as_series(seconds, samples)), 40 / (0.02 + 0.002 * 40))
    return held / repeats


# Warm-up: the factor by which each of n steps is longer than a steady one


def spike(n: int, rng: np.random.Generator) -> Floats:
    """Compilation in the first step."""
    factor = np.ones(n)
    factor[0] = 1000
    return factor


def settling(share: float, height: float) -> Callable[[int, np.random.Generator], Floats]:
    """Exponential, with a time constant of a share of the run."""
    return lambda n, rng: 1 + height * np.exp(-np.arange(n) / (share * n))


def level(share: float, height: float) -> Callable[[int, np.random.Generator], Floats]:
    """Slower, or faster, by a fixed factor for a share of the run."""
    return lambda n, rng: np.where(np.arange(n) < share * n, 1 + height, 1.0)


def recompiled(n: int, rng: np.random.Generator) -> Floats:
    """A compilation in the first step and another at a third of the run."""
    factor = spike(n, rng)
    factor[n // 3] = 200
    return factor


def loader(n: int, rng: np.random.Generator) -> Floats:
    """Data-loader start: a few steps of random length, then two levels."""
    factor = np.ones(n)
    factor[:8] = 1 + rng.exponential(3, 8)
    factor[8 : n // 5] = 1.15
    return factor


TRANSIENTS: dict[str, Callable[[int, np.random.Generator], Floats]] = {
    "none": lambda n, rng: np.ones(n),
    "first step 1000×": spike,
    "settling, n/50, +300 %": settling(0.02, 3.0),
    "settling, n/20, +100 %": settling(0.05, 1.0),
    "settling, n/12, +50 %": settling(1 / 12, 0.5),
    "level +30 % for n/10": level(0.1, 0.3),
    "level +10 % for n/4": level(0.25, 0.1),
    "level +30 % for n/2": level(0.5, 0.3),
    "level -20 % for n/5": level(0.2, -0.2),
    "compiled again at n/3": recompiled,
    "loader start": loader,
}
GROUNDS: dict[str, Noise] = {
    "white": autoregressive(0.0),
    "AR(1) φ=0.7": autoregressive(0.7),
    "lognormal σ=0.5": lognormal(0.5),
    "bimodal": bimodal,
    "every 100th slow": periodic(100),
    "1 % outliers": outliers(0.01),
}


def warmup_bias(
    transient: str, ground: str, n: int, repeats: int, spread: float = SPREAD, seed: int = 3
) -> tuple[float, float]:
    """Mean over repeats of step time over the steady one, less 1; and the median of steps cut."""
    rng = np.random.default_rng([seed, n])
    errors, cuts = [], []
    for _ in range(repeats):
        steady = STEP * (1 + spread * GROUNDS[ground](rng, n))
        seconds = np.maximum(steady * TRANSIENTS[transient](n, rng), STEP / 100)
        result = throughput(as_series(seconds))
        assert result.step_seconds is not None
        # beside the mean of the same steps without transient: the chance of these steps cancels
        errors.append(result.step_seconds.value / float(steady.mean()) - 1)
        cuts.append(result.warmup_steps)
    return float(np.mean(errors)), float(np.median(cuts))


# Sequential stopping: look as the run grows, and stop when looks in a row agree


def growing(limit: int) -> Iterator[int]:
    """Lengths at which a run is looked at: every half second, and 5 % more steps at least."""
    n = 50.0
    while n <= limit:
        yield int(n)
        n = max(n + 0.5 / STEP, n * 1.05)


def stopped(seconds: Floats, precision: float, agreeing: int) -> Throughput:
    """The result at the moment where the run would have been ended."""
    in_a_row = 0
    for n in growing(len(seconds)):
        result = throughput(as_series(seconds[:n]))
        in_a_row = in_a_row + 1 if is_precise(result, precision) else 0
        if in_a_row >= agreeing:
            return result
    return throughput(as_series(seconds))


def sequential(
    noise: Noise, spread: float, repeats: int, agreeing: int = 3, seed: int = 4
) -> tuple[float, float, float]:
    """Coverage at the stop, mean steps at the stop, share whose error is within 2 %."""
    rng = np.random.default_rng(seed)
    held, steps, near = 0, [], 0
    for _ in range(repeats):
        seconds = np.maximum(STEP * (1 + spread * noise(rng, 1500)), STEP / 100)
        result = stopped(seconds, 0.02, agreeing)
        rate = result.samples_per_second
        assert rate is not None
        held += covers(result, SAMPLES / STEP)
        near += abs(rate.value * STEP / SAMPLES - 1) <= 0.02
        steps.append(result.steps)
    return held / repeats, float(np.mean(steps)), near / repeats


def print_coverage(repeats: int) -> None:
    """Coverage by noise and length."""
    print(f"Coverage of the 95 % interval, % of {repeats} (* too_few_steps in most)")
    print(f"{'':22}" + "".join(f"{n:>9}" for n in LENGTHS))
    in_band = cells = 0
    for seed, (name, noise) in enumerate(NOISES.items()):
        row = [coverage(noise, n, repeats if n < 5000 else repeats // 2, seed) for n in LENGTHS]
        marks = ["*" if warned > 0.5 else " " for _, _, warned in row]
        print(
            f"{name:22}"
            + "".join(f"{100 * c:8.1f}{m}" for (c, _, _), m in zip(row, marks, strict=True)),
            flush=True,
        )
        if name in BANDED:
            in_band += sum(0.93 <= c <= 0.97 for c, _, _ in row)
            cells += len(row)
    row2 = [varying_batches(n, repeats if n < 5000 else repeats // 2) for n in LENGTHS]
    print(f"{'batches of 16 to 64':22}" + "".join(f"{100 * c:8.1f} " for c in row2))
    print(f"{in_band} of {cells} cells of the first {len(BANDED)} rows lie in 93 to 97 %\n")


def print_warmup(repeats: int) -> None:
    """Bias of the mean after the cut, by shape."""
    print(f"Bias of the step time after the cut, % (mean of {repeats}), n = 300 and 1000")
    worst, total = 0.0, []
    print(f"{'':24}" + "".join(f"{name:>18}" for name in GROUNDS))
    for transient in TRANSIENTS:
        cells = []
        for ground in GROUNDS:
            both = [warmup_bias(transient, ground, n, repeats)[0] for n in (300, 1000)]
            cells.append(" ".join(f"{100 * bias:+.2f}" for bias in both))
            total += [abs(bias) for bias in both]
        print(f"{transient:24}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
    worst = max(total)
    print(f"worst {100 * worst:.2f} %, mean {100 * float(np.mean(total)):.2f} %\n")


def print_sequential(repeats: int) -> None:
    """Coverage where the run is ended as soon as it looks precise."""
    print(f"Ended at 2 %, three looks in a row: coverage and steps, of {repeats}")
    for name in ("AR(1) φ=0.0", "AR(1) φ=0.5", "AR(1) φ=0.9", "MA(20)", "lognormal σ=1"):
        for spread in (0.05, 0.1):
            held, steps, near = sequential(NOISES[name], spread, repeats)
            print(
                f"  {name:18} sd {spread:4.0%}: covers {held:6.1%}, {steps:6.0f} steps, "
                f"within 2 % {near:6.1%}",
                flush=True,
            )
    print()


def print_speed() -> None:
    """Seconds of one call."""
    rng = np.random.default_rng(5)
    for n in (1_000, 100_000):
        series = as_series(seconds_of(autoregressive(0.5), rng, n))
        took = []
        for _ in range(15):
            began = time.perf_counter()
            throughput(series)
            took.append(time.perf_counter() - began)
        print(f"{n:>7} steps: {1e3 * float(np.median(took)):.1f} ms, best {1e3 * min(took):.1f} ms")


def main() -> None:
    """All tables, or one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--only", choices=("coverage", "warmup", "sequential", "speed"))
    given = parser.parse_args()
    tables = {
        "coverage": lambda: print_coverage(given.repeats),
        "warmup": lambda: print_warmup(max(1, given.repeats // 10)),
        "sequential": lambda: print_sequential(max(1, given.repeats // 3)),
        "speed": print_speed,
    }
    began = time.perf_counter()
    for name, table in tables.items():
        if given.only in (None, name):
            table()
    print(f"in {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
