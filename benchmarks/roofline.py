"""How often the interval of a prediction holds the truth, on public measurements.

    python benchmarks/roofline.py --data ../shared/data

Every machine of a workload predicts every other one, by what differs between the two. Reads
``search/llm_three_clouds`` (llama.cpp on three clouds, Spare Cores, CC BY-SA 4.0),
``predict/profet.csv.gz`` (CNN training, ddps-lab/profet, MIT) and ``predict/timm.csv.gz`` (vision
inference with FLOPs and activations, pytorch-image-models, Apache-2.0). Prints for each kind of
transfer the number of pairs, the median error, the share inside the nominal 95 % interval (target:
85 to 97 %), and the half-width that would hold 95 %, beside the one that ``WIDTHS`` has.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import math
import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from underdog.catalog.facts import accelerator_named, accelerators
from underdog.catalog.hardware import fact_columns
from underdog.core.predict import WIDTHS, Reference, Transfer, predict
from underdog.core.roofline import Hardware
from underdog.model import Estimate, Profile

REFERENCES = 40  # per workload, drawn at random
Group = tuple[str, list[dict[str, Any]], list[float], list[Profile | None]]
_MEMORY = {"K80": None, "M60": None, "T4": None, "V100": 16.0}  # GB, where one name has two sizes
_ALIASES = {"RTXPRO6000-MaxQ": "RTXPRO6000"}


def rows_of(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def accelerator(name: str, memory: float | None = None) -> dict[str, Any] | None:
    """The columns of an accelerator by its name in the data; None where it is not in our table."""
    named = accelerator_named(_ALIASES.get(name, name), memory)
    if named is None:
        return None
    return {"accelerator": named.key, **fact_columns(accelerators()[named.key])}


def machine(row: dict[str, str]) -> dict[str, Any] | None:
    """A machine of three clouds; None for a part of an accelerator, which the data counts as 0."""
    vcpus, arch = float(row["vcpus"]), row["arch"]
    made: dict[str, Any] = {"vcpus": vcpus, "arch": arch, "cpu_model": row["cpu_model"] or None}
    if row["cpu_ghz"]:
        vector = 16 if arch == "arm64" else 64 if row["avx512"] == "True" else 32
        cores = vcpus if arch == "arm64" else vcpus / 2
        made["cpu_fp32_tflops"] = cores * float(row["cpu_ghz"]) * vector / 1000
    made["accelerator_count"] = float(row["accelerator_count"])
    if row["accelerator"]:
        count = made["accelerator_count"]
        if not count:
            return None
        found = accelerator(row["accelerator"], float(row["accelerator_memory_gib_total"]) / count)
        return found and made | found
    return made


def three_clouds(data: Path) -> Iterator[Group]:
    folder = data / "search" / "llm_three_clouds"
    machines = {row["offer"]: machine(row) for row in rows_of(folder / "offers.csv.gz")}
    by_workload: dict[str, list[tuple[dict[str, Any], float]]] = defaultdict(list)
    for row in rows_of(folder / "trials.csv.gz"):
        found = machines[row["offer"]]
        if found is not None:
            by_workload[row["workload"]].append((found, float(row["throughput"])))
    for workload, pairs in by_workload.items():
        rows, rates = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        yield workload, rows, rates, [None] * len(rows)


def cnn_training(data: Path) -> Iterator[Group]:
    runs: dict[tuple[str, str, str, str], list[float]] = defaultdict(list)
    for row in rows_of(data / "predict" / "profet.csv.gz"):
        key = (row["model"], row["image_px"], row["batch_size"], row["accelerator"])
        runs[key].append(float(row["batch_seconds"]))
    chips = {name: accelerator(name, memory) for name, memory in _MEMORY.items()}
    rates = {key: 1 / float(np.median(seconds)) for key, seconds in runs.items()}
    yield from by_job({key: (rate, chips[key[-1]], None) for key, rate in rates.items()})


def vision_inference(data: Path) -> Iterator[Group]:
    found: dict[tuple[str, ...], tuple[float, dict[str, Any] | None, Profile | None]] = {}
    for row in rows_of(data / "predict" / "timm.csv.gz"):
        if not (row["samples_per_second"] and row["gmacs"] and row["activations_millions"]):
            continue
        profile = Profile(
            flops_per_sample=2e9 * float(row["gmacs"]),
            # each activation is written once and read once, 2 bytes each in half precision
            memory_traffic_bytes_per_sample=4e6 * float(row["activations_millions"]),
            number_format="float16",
        )
        key = (row["model"], row["image_px"], row["torch"], row["accelerator"])
        found[key] = (float(row["samples_per_second"]), accelerator(row["accelerator"]), profile)
    yield from by_job(found)


def by_job(
    found: dict[Any, tuple[float, dict[str, Any] | None, Profile | None]],
) -> Iterator[Group]:
    jobs: dict[tuple[str, ...], list[tuple[float, dict[str, Any], Profile | None]]] = defaultdict(
        list
    )
    for key, (rate, columns, profile) in found.items():
        if columns is not None:
            jobs[key[:-1]].append((rate, columns | {"accelerator_count": 1}, profile))
    for key, entries in jobs.items():
        rates, rows, profiles = (list(part) for part in zip(*entries, strict=True))
        yield "/".join(key), rows, rates, profiles


def errors(groups: Iterator[Group], seed: int) -> dict[str, list[tuple[float, bool]]]:
    """By kind of transfer: log(true / predicted), and whether the interval holds the truth."""
    draw, found = random.Random(seed), defaultdict(list)
    for _, rows, rates, profiles in groups:
        hardware, true = Hardware.of(rows), np.array(rates)
        for i in draw.sample(range(len(rows)), min(REFERENCES, len(rows))):
            estimate = Estimate(value=rates[i], low=rates[i], high=rates[i], n=1)
            made = predict(hardware, hardware.take([i]), [Reference(estimate, profiles[i])])
            counts = hardware.numbers["accelerator_count"]
            for j in np.flatnonzero(~np.isnan(made.value)):
                if j == i:
                    continue
                name = Transfer(made.transfer[j]).name
                both = rows[i]["accelerator_count"] and counts[j]
                if both and counts[i] != counts[j]:
                    name += ", another count"
                inside = bool(made.low[j] <= true[j] <= made.high[j])
                found[name].append((math.log(true[j] / made.value[j]), inside))
    return found


def report(title: str, found: dict[str, list[tuple[float, bool]]], profiled: bool) -> None:
    print(f"\n{title}")
    titles = f"{'transfer':<44}{'pairs':>9}{'median error':>14}{'bias':>8}"
    print(f"{titles}{'held':>8}{'needed':>8}{'width':>7}")
    for name, pairs in sorted(found.items()):
        size = np.abs([error for error, _ in pairs])
        bias = np.median([error for error, _ in pairs])
        held = np.mean([inside for _, inside in pairs])
        width = WIDTHS[Transfer[name.partition(",")[0]]][int(profiled)]
        middle = math.expm1(np.median(size))
        print(
            f"{name:<44}{len(pairs):>9,}{middle:>13.0%} {bias:>8.2f}{held:>7.1%} "
            f"{np.quantile(size, 0.95):>7.2f}{width:>7.2f}"
        )
    inside = [held for pairs in found.values() for _, held in pairs]
    print(f"{'all':<44}{len(inside):>9,}{'':>22}{np.mean(inside):>8.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    beside = Path(__file__).parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=beside, help="[default: ../shared/data]")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if not options.data.is_dir():
        print(f"skipped: there is no folder '{options.data}'; give one with --data")
        return
    for title, read, profiled in (
        ("llama.cpp on three clouds, no profile", three_clouds, False),
        ("CNN training, no profile", cnn_training, False),
        ("vision inference, with a profile", vision_inference, True),
    ):
        report(title, errors(read(options.data), options.seed), profiled)


if __name__ == "__main__":
    main()
