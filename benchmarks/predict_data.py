"""The public measurements that ``benchmarks/predict.py`` predicts, as arrays."""

from __future__ import annotations

import csv
import gzip
import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from underdog.catalog.facts import accelerator_named, accelerators
from underdog.core.transfer import Machines
from underdog.core.transfer_features import Runs

Floats = NDArray[np.float64]
_ALIASES = {"RTXPRO6000-MaxQ": "RTXPRO6000"}


@dataclass(frozen=True, slots=True)
class Set:
    """Runs on machines: their names, and the name of every group."""

    runs: Runs
    machines: list[str]
    groups: list[str]


@dataclass(frozen=True, slots=True)
class Offers:
    """Offers with their facts, and the rates of every workload: NaN where it did not run."""

    names: list[str]
    price: Floats
    machines: Machines
    rates: dict[str, Floats]


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file, packed or not."""
    packed = path.suffix == ".gz"
    with gzip.open(path, "rt", newline="") if packed else path.open(newline="") as file:
        return list(csv.DictReader(file))


def labels(names: list[str]) -> NDArray[np.int64]:
    """A number for each name, equal for equal names."""
    return np.unique(names, return_inverse=True)[1].astype(np.int64)


def networks(folder: Path) -> Set:
    """Training of CNNs (PROFET): a row is a network, an image size and a batch size."""
    found: dict[tuple[str, float, float], dict[str, list[float]]] = {}
    for row in rows_of(folder / "profet.csv.gz"):
        key = (row["model"], float(row["image_px"]), float(row["batch_size"]))
        seconds = found.setdefault(key, defaultdict(list))[row["instance_type"]]
        seconds.append(float(row["batch_seconds"]))
    keys, machines = sorted(found), sorted({name for by in found.values() for name in by})
    rates = np.array(
        [[k[2] / np.median(found[k].get(name, [np.nan])) for name in machines] for k in keys]
    )
    group = [key[0] for key in keys]
    batch = np.array([key[2] for key in keys])
    pixels = np.array([key[1] ** 2 for key in keys])
    return Set(Runs.of(rates, labels(group), batch=batch, size=pixels), machines, group)


def families(folder: Path) -> Set:
    """Inference of vision models (timm): a row is a model and an image size.

    A machine is an accelerator with a version of PyTorch; a family the letters that a model's name
    begins with.
    """
    rates: dict[tuple[str, float], dict[str, float]] = defaultdict(dict)
    work: dict[tuple[str, float], list[float]] = {}
    costs = ("gmacs", "activations_millions", "parameters_millions")
    for row in rows_of(folder / "timm.csv.gz"):
        if row["samples_per_second"] and all(row[cost] for cost in costs):
            key = (row["model"], float(row["image_px"]))
            machine = f"{row['accelerator']} {row['torch']}"
            rates[key][machine] = float(row["samples_per_second"])
            work[key] = [float(row[cost]) for cost in costs]
    keys, machines = sorted(rates), sorted({name for by in rates.values() for name in by})
    table = np.array([[rates[key].get(name, np.nan) for name in machines] for key in keys])
    group = [re.split(r"[._\d]", key[0])[0] for key in keys]
    series = labels([key[0] for key in keys])
    amounts = np.array([work[key] for key in keys])
    return Set(Runs.of(table, labels(group), series=series, work=amounts), machines, group)


def pairs(machines: list[str]) -> list[tuple[str, str]]:
    """For each two accelerators the newest version that both have, else the newest of each."""
    versions: dict[str, list[str]] = defaultdict(list)
    for name in machines:
        chip, _, version = name.partition(" ")
        versions[chip].append(version)
    found = []
    for one in sorted(versions):
        for other in sorted(versions):
            both = sorted(set(versions[one]) & set(versions[other]))
            mine = both[-1] if both else sorted(versions[one])[-1]
            theirs = both[-1] if both else sorted(versions[other])[-1]
            if one != other:
                found.append((f"{one} {mine}", f"{other} {theirs}"))
    return found


def offers(folder: Path, *, accelerated: bool, whole: str) -> Offers:
    """Machines of three clouds with the rates of llama.cpp: those with an accelerator, or without.

    ``whole`` says what is left out as a whole: ``chip`` (accelerator or processor model) or
    ``family`` (of instances of one cloud).
    """
    rows = [
        row for row in rows_of(folder / "offers.csv.gz") if bool(row["accelerator"]) is accelerated
    ]
    facts = _accelerator_facts(rows) if accelerated else _processor_facts(rows)
    rows = [row for row, known in zip(rows, facts, strict=True) if known is not None]
    known = [fact for fact in facts if fact is not None]
    chips = [chip_of(row) for row in rows]
    units = chips if whole == "chip" else [_family(row) for row in rows]
    features, shape = (np.array([fact[part] for fact in known]) for part in (0, 1))
    machines = Machines(features=features, shape=shape, groups=labels(chips), units=labels(units))
    names = [row["offer"] for row in rows]
    place = {name: i for i, name in enumerate(names)}
    rates: dict[str, Floats] = defaultdict(lambda: np.full(len(names), np.nan))
    for row in rows_of(folder / "trials.csv.gz"):
        if row["offer"] in place and row["throughput"]:
            rates[row["workload"]][place[row["offer"]]] = float(row["throughput"])
    price = np.array([_log(row["price_per_hour"]) for row in rows])
    return Offers(names, np.exp(price), machines, dict(rates))


def chip_of(row: dict[str, str]) -> str:
    """The accelerator model, else the processor model, else all that is known of the processor."""
    unnamed = f"{row['provider']} {row['cpu_manufacturer']}"
    return row["accelerator"] or row["cpu_model"] or unnamed


def _family(row: dict[str, str]) -> str:
    kind = row["instance_type"]
    if row["provider"] == "aws":
        name = kind.partition(".")[0]
    elif row["provider"] == "azure":
        name = re.sub(r"\d+", "", kind.removeprefix("Standard_"), count=1)
    else:
        name = "-".join(kind.split("-")[:2])
    return f"{row['provider']}/{name}"


Facts = tuple[list[float], list[float]]


def _accelerator_facts(rows: list[dict[str, str]]) -> list[Facts | None]:
    """Bandwidth and peak of the part of a chip that a machine has, and how many; of the chip."""
    memory: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if float(row["accelerator_count"]):
            each = float(row["accelerator_memory_gib_total"]) / float(row["accelerator_count"])
            memory[row["accelerator"]].append(each)
    found: list[Facts | None] = []
    for row in rows:
        chip, count = row["accelerator"], float(row["accelerator_count"])
        total = float(row["accelerator_memory_gib_total"] or "nan")
        # the data counts a part of an accelerator as 0; its memory tells how much of one it is
        part = 1.0 if count or not memory[chip] else total / float(np.median(memory[chip]))
        named = accelerator_named(_ALIASES.get(chip, chip), total / count if count else None)
        facts = accelerators()[named.key] if named else None
        if facts is None or facts.gb_per_s is None or "fp32" not in facts.tflops:
            found.append(None)
            continue
        chip_facts = [float(np.log(facts.gb_per_s)), float(np.log(facts.tflops["fp32"]))]
        own = [value + float(np.log(part)) for value in chip_facts]
        found.append(([*own, float(np.log(max(count, 1.0)))], chip_facts))
    return found


def _processor_facts(rows: list[dict[str, str]]) -> list[Facts | None]:
    """Threads, clock, cache and kind of the processor; of its model."""
    found: list[Facts | None] = []
    for row in rows:
        clock = _log(row["cpu_ghz"])
        kind = [
            float(row["arch"] == "arm64"),
            float(row["avx512"] == "True"),
            float(row["amx"] == "True"),
        ]
        sold = [
            float(row["cpu_allocation"] == "dedicated"),
            float(row["cpu_manufacturer"] == "AMD"),
        ]
        own = [_log(row["vcpus"]), clock, _log(row["cpu_l3_mib"]), *kind, *sold]
        found.append((own, [clock, *kind]))
    return found


def _log(text: str) -> float:
    return float(np.log(float(text))) if text else float("nan")
