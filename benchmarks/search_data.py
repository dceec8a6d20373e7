"""Recorded measurements as tasks for a search: the sets that ``benchmarks/search.py`` replays.

A set is a folder with ``offers.csv`` and ``trials.csv`` (or ``.csv.gz``) in the format of
``docs/reference/trials-format.md``. One task is one workload of it: its candidates, and what each
of them gave. An offer without a throughput is a failed test and stays a candidate.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from underdog.catalog import offers_file
from underdog.core.candidates import facts_of, reachable

TEST_HOURS = 2 / 60  # one test is two minutes of the offer
_WHOLE = ("nodes", "accelerator_count")
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Offers:
    """The candidates of a set: rows as the file has them, and facts as the product knows them."""

    rows: list[dict[str, str]]
    price: Floats  # USD per hour of all nodes
    numbers: dict[str, Floats]
    texts: dict[str, list[str | None]]

    def take(self, index: np.ndarray[Any, Any]) -> Offers:
        """Some of them."""
        return Offers(
            rows=[self.rows[i] for i in index],
            price=self.price[index],
            numbers={name: values[index] for name, values in self.numbers.items()},
            texts={name: [values[i] for i in index] for name, values in self.texts.items()},
        )

    @cached_property
    def names(self) -> list[str]:
        """Of each offer, as in the file."""
        return [row["offer"] for row in self.rows]


@dataclass(frozen=True)
class Task:
    """One workload of a set: find the candidate of the highest value.

    ``throughput`` is NaN where the test fails. With ``least``, only offers of at least that
    throughput count, and the cheapest of them is the best.
    """

    set: str
    workload: str
    group: str
    offers: Offers
    throughput: Floats
    least: float | None = None

    @cached_property
    def value(self) -> Floats:
        """What is maximised: samples per dollar, or hours per dollar of those fast enough."""
        per_dollar = 3600 / self.offers.price
        if self.least is None:
            return self.throughput * per_dollar
        return np.where(self.throughput >= self.least, per_dollar, np.nan)

    @cached_property
    def quality(self) -> Floats:
        """Of each candidate, its value over the best one; 0 for a failed test."""
        return np.nan_to_num(self.value / np.nanmax(self.value), nan=0.0)

    @cached_property
    def dollars(self) -> Floats:
        """Of one test on each candidate."""
        return self.offers.price * TEST_HOURS


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of ``path`` or of its gzipped twin."""
    packed = path.with_name(f"{path.name}.gz")
    if packed.exists():
        with gzip.open(packed, "rt", newline="") as file:
            return list(csv.DictReader(file))
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def has(folder: Path, name: str) -> Path | None:
    """The file of that name in the folder, gzipped or not."""
    found = [folder / name, folder / f"{name}.gz"]
    return next((path for path in found if path.exists()), None)


def read_offers(path: Path) -> Offers:
    """The offers of a file, with what the product knows of them by name."""
    rows = rows_of(path.with_name(path.name.removesuffix(".gz")))
    known = offers_file.load(path).table.run("SELECT * FROM offers ORDER BY rowid")
    names = [part[0] for part in known.description or ()]
    facts = [dict(zip(names, values, strict=True)) for values in known.fetchall()]
    numbers, texts = facts_of(facts, rows)
    price = np.array([float(row["price_per_hour"]) for row in rows])
    return Offers(rows, price, numbers, texts)


def read_set(folder: Path) -> dict[str, list[Task]]:
    """The tasks of a set, and of its AWS offers alone where it has several providers."""
    path = has(folder, "offers.csv")
    assert path is not None
    offers, trials = read_offers(path), rows_of(folder / "trials.csv")
    providers = [row.get("provider", "") for row in offers.rows]
    found: dict[str, list[Task]] = {}
    if len(set(providers)) > 1 and "aws" in providers:
        aws = offers.take(np.flatnonzero(np.array(providers) == "aws"))
        found[f"{folder.name}/aws"] = tasks = list(tasks_of(f"{folder.name}/aws", aws, trials))
        least = [limited(task, 10.0) for task in tasks if "generate" in task.workload]
        if least:
            found[f"{folder.name}/at least 10"] = [t for t in least if not np.isnan(t.value).all()]
    found[folder.name] = list(tasks_of(folder.name, offers, trials))
    return found


def limited(task: Task, least: float) -> Task:
    """The same workload, where the cheapest offer of at least that throughput is sought."""
    name = f"{task.set.partition('/')[0]}/at least {least:g}"
    return Task(name, task.workload, task.group, task.offers, task.throughput, least)


def tasks_of(name: str, offers: Offers, trials: list[dict[str, str]]) -> Iterator[Task]:
    """One task for each workload that any of the offers can do."""
    place = {offer: i for i, offer in enumerate(offers.names)}
    measured: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
    for row in trials:
        if row["offer"] in place:
            key = (row["workload"], row.get("group") or row["workload"])
            measured[key][row["offer"]] = float(row["throughput"] or "nan")
    never = set(place).difference(*measured.values())
    for (workload, group), mine in measured.items():
        candidates = reachable(mine, measured.values()) | never
        index = np.array(sorted(place[name] for name in candidates))
        throughput = np.array([mine.get(offers.names[i], np.nan) for i in index])
        if not np.isnan(throughput).all():
            whole = len(index) == len(place)
            yield Task(name, workload, group, offers if whole else offers.take(index), throughput)


def synthetic(tasks: list[Task], count: int, seed: int) -> list[Task]:
    """The same workloads on so many offers like theirs, each price a little off, to time by."""
    offers, draw = tasks[0].offers, np.random.default_rng(seed)
    index = draw.integers(len(offers.price), size=count)
    made = offers.take(index)
    price = made.price * draw.lognormal(0, 0.1, count)
    numbers = {
        name: values * draw.lognormal(0, 0.02, count) if name not in _WHOLE else values
        for name, values in made.numbers.items()
    }
    rows = [row | {"offer": f"{row['offer']}-{i}"} for i, row in enumerate(made.rows)]
    like = Offers(rows, price, numbers | {"price_per_hour": price}, made.texts)
    return [
        Task(task.set, task.workload, task.group, like, task.throughput[index]) for task in tasks
    ]
