"""How far off predictions between machines are, on public measurements, and what they cost.

    python benchmarks/predict.py --data ../shared/data/predict

Reads ``profet.csv.gz`` (CNN training, ddps-lab/profet, MIT) and ``timm.csv.gz`` (vision inference,
pytorch-image-models, Apache-2.0) in that folder and ``../search/llm_three_clouds`` beside it
(llama.cpp, Spare Cores, CC BY-SA 4.0). What is predicted is left out as a whole:

- networks of ``profet``, and families of models of ``timm``: the same machines, another workload
- accelerator models of ``llm_three_clouds``, and instance families and processor models of it: the
  same workload, another machine

Baselines in the same run: one constant ratio, a straight line through the logs, and a random
forest where scikit-learn is installed. Beside the error of the time (over the true one) stand the
share of true values in the 90 % interval, the factor from the value to its upper end (the
median), and the loss of choosing by the prediction: against the best, the value of the machine that
is predicted best, and the better one of the two predicted best. ``--sensitivity`` shows the errors
with every weight of the method halved and doubled.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import predict_baselines as baselines
import predict_data as data
from numpy.typing import NDArray

from underdog.core.transfer import extrapolate, transfer
from underdog.core.transfer_process import WEIGHTS, Weights

Floats = NDArray[np.float64]
# USD per hour on demand, us-east-1, of the AWS price list
PRICES = {"g3s.xlarge": 0.75, "g4dn.xlarge": 0.526, "p2.xlarge": 0.9, "p3.2xlarge": 3.06}
FOLDS = 5
LEAST_OFFERS = 20  # of a workload that is predicted on other machines
OURS = "transfer"


class Options(NamedTuple):
    """How it is run."""

    seed: int
    weights: Weights = WEIGHTS
    compare: bool = True


class Line(NamedTuple):
    """What one way to predict reached: true values, predictions and ends of intervals."""

    true: Floats
    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def empty(cls, true: Floats) -> Line:
        return cls(true, *(np.full(len(true), np.nan) for _ in range(3)))

    @property
    def errors(self) -> Floats:
        """Of the seconds of a sample, over the true ones."""
        known = ~np.isnan(self.value + self.true)
        return np.abs(self.true[known] / self.value[known] - 1)

    @property
    def held(self) -> float:
        known = ~np.isnan(self.low + self.true)
        inside = (self.low <= self.true) & (self.true <= self.high)
        return float(inside[known].mean()) if known.any() else float("nan")

    def text(self) -> str:
        errors = self.errors
        if not len(errors):
            return "nothing predicted"
        made = f"{len(errors):>9,}{errors.mean():>9.1%}{np.median(errors):>9.1%}"
        if np.isnan(self.low).all():
            return made
        return f"{made}{self.held:>9.1%}{np.nanmedian(self.high / self.value):>8.2f}"


Lines = dict[str, Line]


def show(name: str, text: str) -> None:
    print(f"  {name:<52}{text}", flush=True)


def title(text: str) -> None:
    print(f"\n{text}")
    show("", f"{'n':>9}{'mean':>9}{'median':>9}{'held':>9}{'factor':>8}")


def joined(lines: Sequence[Line]) -> Line:
    return Line(*(np.concatenate(parts) for parts in zip(*lines, strict=True)))


def folds(groups: Sequence[str], count: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Masks of what is left out: whole groups."""
    order = np.random.default_rng(seed).permutation(np.unique(groups))
    for part in np.array_split(order, min(count, len(order))):
        yield np.isin(groups, part)


def on_machine(
    found: data.Set, sources: Sequence[int], goal: int, count: int, options: Options
) -> Lines:
    """Every row predicted on one machine from others, with its group left out."""
    runs = found.runs
    known = ~np.isnan(runs.rates[:, [*sources, goal]]).any(1)
    true = np.where(known, runs.rates[:, goal], np.nan)
    methods = baselines.methods() if options.compare and len(sources) == 1 else {}
    lines = {name: Line.empty(true) for name in (OURS, *methods)}
    hidden = np.isin(np.arange(runs.rates.shape[1]), sources, invert=True)
    seconds = -np.log(runs.rates[:, sources[0]]) + np.log(np.nan_to_num(runs.batch, nan=1.0))
    about = np.log(np.column_stack([runs.batch, runs.size, runs.work]))
    features = np.column_stack([seconds, about])
    ratio = np.log(runs.rates[:, goal] / runs.rates[:, sources[0]])
    for out in folds(found.groups, count, options.seed):
        rows, rest = known & out, known & ~out
        if not rows.any():
            continue
        targets = runs.take(rows)
        targets = replace(targets, rates=np.where(hidden, np.nan, targets.rates))
        made = transfer(runs.take(~out), targets, goal, weights=options.weights)
        for end in ("value", "low", "high"):
            getattr(lines[OURS], end)[rows] = getattr(made, end)
        for name, method in methods.items():
            guess = method(features[rest], ratio[rest], features[rows])
            lines[name].value[rows] = runs.rates[rows, sources[0]] * np.exp(guess)
    return lines


def loss_of_choosing(
    found: data.Set, sources: Sequence[int], goals: dict[int, Line], price: Floats
) -> str:
    """Of choosing one machine for each row that was measured on all: see the top of this file."""
    worth = found.runs.rates / price
    guess = worth.copy()
    for goal, line in goals.items():
        guess[:, goal] = line.value / price[goal]
    whole = ~np.isnan(worth[:, [*sources, *goals]] + guess[:, [*sources, *goals]]).any(1)
    columns = [*sources, *goals]
    return losses(worth[whole][:, columns], guess[whole][:, columns])


def losses(worth: Floats, guess: Floats) -> str:
    """Mean loss over rows against the best column, by the best guess and by the best two."""
    order, best = np.argsort(-guess, axis=1), worth.max(1)
    taken = np.take_along_axis(worth, order, 1)
    alone = 1 - taken[:, 0] / best
    two = 1 - taken[:, :2].max(1) / best
    text = [f"{part.mean():.1%} (worst {part.max():.0%})" for part in (alone, two)]
    return f"loss {text[0]} by prediction, {text[1]} with its top two measured"


def report_networks(folder: Path, options: Options) -> None:
    found = data.networks(folder)
    price = np.array([PRICES.get(name, 1.0) for name in found.machines])
    count = len(found.machines)
    for several, bar in ((1, "12 %"), (2, "8 %")):
        title(f"profet: networks left out, {several} measured instance type(s); bar: {bar} mean")
        whole: dict[str, list[Line]] = {}
        for sources in itertools.combinations(range(count), several):
            goals = {}
            for goal in sorted(set(range(count)) - set(sources)):
                lines = on_machine(found, sources, goal, count=10**6, options=options)
                goals[goal] = lines[OURS]
                text = " + ".join(found.machines[i] for i in sources)
                show(f"{text} -> {found.machines[goal]}", lines[OURS].text())
                for name, line in lines.items():
                    whole.setdefault(name, []).append(line)
            show("the fastest", loss_of_choosing(found, sources, goals, np.ones(count)))
            show("samples per dollar", loss_of_choosing(found, sources, goals, price))
        summary(whole)


def report_families(folder: Path, options: Options) -> None:
    found = data.families(folder)
    title("timm: families left out, one measured GPU; bar: 6 % mean")
    whole: dict[str, list[Line]] = {}
    by_source: dict[int, dict[int, Line]] = {}
    for one, other in data.pairs(found.machines):
        source, goal = found.machines.index(one), found.machines.index(other)
        lines = on_machine(found, [source], goal, FOLDS, options)
        if one.split()[-1] == other.split()[-1]:
            by_source.setdefault(source, {})[goal] = lines[OURS]
        for name, line in lines.items():
            show(f"{one} -> {other}" if name == OURS else f"    {name}", line.text())
            whole.setdefault(name, []).append(line)
    for source, goals in by_source.items():
        text = loss_of_choosing(found, [source], goals, np.ones(len(found.machines)))
        show(f"the fastest, from {found.machines[source]}", text)
    summary(whole)


def summary(whole: dict[str, list[Line]]) -> None:
    """The mean over pairs of machines, and all intervals together."""
    for name, lines in whole.items():
        means = np.mean([line.errors.mean() for line in lines if len(line.errors)])
        show(f"all: {name}", f"{joined(lines).text()}   mean of the pairs {means:.1%}")
    if OURS in whole and "random forest" not in whole and len(whole) > 1:
        show("all: random forest", "not installed (scikit-learn)")


def report_offers(folder: Path, options: Options) -> None:
    for accelerated, whole, bar in (
        (True, "chip", "accelerator models left out; bar: 20 % median"),
        (False, "family", "CPU types, instance families left out; bar: 8 % median"),
        (False, "chip", "CPU types, processor models left out (no bar)"),
    ):
        title(f"llm_three_clouds: {bar}")
        found = data.offers(folder, accelerated=accelerated, whole=whole)
        lines: dict[str, list[Line]] = {}
        worth, guess = [], []
        for workload, rates in sorted(found.rates.items()):
            if np.sum(~np.isnan(rates)) < LEAST_OFFERS:
                continue
            made = off_machines(found, rates, options)
            for name, line in made.items():
                lines.setdefault(name, []).append(line)
            known = ~np.isnan(rates) & ~np.isnan(made[OURS].value) & ~np.isnan(found.price)
            worth.append((rates / found.price)[known])
            guess.append((made[OURS].value / found.price)[known])
            if options.compare and accelerated:
                show(workload, made[OURS].text())
        for name, parts in lines.items():
            show(f"all: {name}", joined(parts).text())
        show("samples per dollar", losses(padded(worth), padded(guess)))


def padded(rows: list[Floats]) -> Floats:
    """Rows of different length as one array; what is missing is never the best."""
    found = np.full((len(rows), max(len(row) for row in rows)), -1.0)
    for i, row in enumerate(rows):
        found[i, : len(row)] = row
    return found


def off_machines(found: data.Offers, rates: Floats, options: Options) -> Lines:
    """Every offer predicted from the others, with its unit left out."""
    methods = {k: m for k, m in baselines.methods().items() if k == "random forest"}
    methods = methods if options.compare else {}
    lines = {name: Line.empty(rates) for name in (OURS, *methods)}
    units = [str(unit) for unit in found.machines.units]
    measured = ~np.isnan(rates)
    every = 10**6 if len(set(units)) < 20 else FOLDS
    for out in folds(units, every, options.seed):
        rows, rest = measured & out, measured & ~out
        if not rows.any() or not rest.any():
            continue
        known, new = found.machines.take(rest), found.machines.take(rows)
        made = extrapolate(known, rates[rest], new, weights=options.weights)
        for end in ("value", "low", "high"):
            getattr(lines[OURS], end)[rows] = getattr(made, end)
        for name, method in methods.items():
            guess = method(known.features, np.log(rates[rest]), new.features)
            lines[name].value[rows] = np.exp(guess)
    return lines


def sensitivity(folder: Path, options: Options) -> None:
    """The mean errors with each weight halved and doubled."""
    networks, families = data.networks(folder), data.families(folder)
    clouds = folder / ".." / "search" / "llm_three_clouds"
    chips = data.offers(clouds, accelerated=True, whole="chip") if clouds.is_dir() else None
    pairs = [p for p in data.pairs(families.machines) if p[0].split()[-1] == p[1].split()[-1]]
    count = len(networks.machines)
    print(f"\n  {'weight':<24}{'profet, 1':>12}{'profet, 2':>12}{'timm':>12}{'GPU types':>12}")
    changes = [(None, 1.0)] + [(f.name, k) for f in fields(Weights) for k in (0.5, 2.0)]
    for name, factor in changes:
        weights = WEIGHTS
        if name is not None:
            weights = replace(WEIGHTS, **{name: factor * getattr(WEIGHTS, name)})
        asked = Options(options.seed, weights, compare=False)
        cells = []
        for several in (1, 2):
            made = [
                on_machine(networks, sources, goal, 10**6, asked)[OURS].errors.mean()
                for sources in itertools.combinations(range(count), several)
                for goal in set(range(count)) - set(sources)
            ]
            cells.append(np.mean(made))
        made = []
        for one, other in pairs[:2]:
            source, goal = families.machines.index(one), families.machines.index(other)
            made.append(on_machine(families, [source], goal, 4, asked)[OURS].errors.mean())
        cells.append(np.mean(made) if made else np.nan)
        lines = [
            off_machines(chips, rates, asked)[OURS]
            for rates in (chips.rates.values() if chips else ())
            if np.sum(~np.isnan(rates)) >= LEAST_OFFERS
        ]
        cells.append(np.median(joined(lines).errors) if lines else np.nan)
        said = "as they are" if name is None else f"{name} x {factor}"
        print(f"  {said:<24}" + "".join(f"{cell:>12.1%}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(__file__).parents[2] / "shared" / "data" / "predict"
    parser.add_argument(
        "--data", type=Path, default=beside, help="[default: ../shared/data/predict]"
    )
    parser.add_argument("--only", choices=("profet", "timm", "llm"), help="one of the sets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sensitivity", action="store_true", help="with other weights instead")
    asked = parser.parse_args()
    if not asked.data.is_dir():
        print(f"skipped: there is no folder '{asked.data}'; give one with --data")
        return
    options, began = Options(asked.seed), time.perf_counter()
    clouds = asked.data / ".." / "search" / "llm_three_clouds"
    if asked.sensitivity:
        sensitivity(asked.data, options)
        return
    reports = (
        ("profet", asked.data / "profet.csv.gz", report_networks, asked.data),
        ("timm", asked.data / "timm.csv.gz", report_families, asked.data),
        ("llm", clouds, report_offers, clouds),
    )
    for name, needed, report, folder in reports:
        if asked.only not in (None, name):
            continue
        if needed.exists():
            report(folder, options)
        else:
            print(f"skipped: there is no '{needed}'")
    print(f"\n{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
