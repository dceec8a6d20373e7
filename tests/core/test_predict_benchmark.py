"""The benchmark of predictions runs on any folder of its format, and knows what it measures."""

from __future__ import annotations

import csv
import gzip
import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TYPES = {"one": (1.0, 4.0), "two": (2.0, 2.5), "three": (5.0, 3.0)}  # speed, launch in ms


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("predict")
    # the forest takes longer than all else, and is not what is tested
    monkeypatch.setattr(module.baselines, "forest_is_installed", lambda: False)
    return module


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def networks() -> list[dict[str, Any]]:
    draw = np.random.default_rng(0)
    rows = []
    for number in range(6):
        work, launches = draw.lognormal(0, 1), draw.lognormal(0, 0.5)
        for pixels in (32, 64):
            for batch in (16, 64):
                for name, (speed, launch) in TYPES.items():
                    seconds = launches * launch / 1e3 + work * pixels**2 * batch / speed / 1e7
                    rows.append(
                        {
                            "instance_type": name,
                            "accelerator": name.upper(),
                            "model": f"net{number}",
                            "image_px": pixels,
                            "batch_size": batch,
                            "batch_seconds": seconds,
                        }
                    )
    return rows


def vision() -> list[dict[str, Any]]:
    draw = np.random.default_rng(1)
    rows = []
    for family in ("vit", "resnet", "swin", "convnext", "levit", "mixer"):
        for size in range(3):
            macs, activations = draw.lognormal(2, 1), draw.lognormal(3, 1)
            for name, (peak, bandwidth) in {"RTX4090": (80, 1.0), "RTX5090": (105, 1.8)}.items():
                seconds = macs / peak + activations / bandwidth / 50
                rows.append(
                    {
                        "accelerator": name,
                        "torch": "pt291",
                        "model": f"{family}{size}_tiny",
                        "image_px": 224,
                        "batch_size": 256,
                        "samples_per_second": 100 / seconds,
                        "parameters_millions": macs * 3,
                        "gmacs": macs,
                        "activations_millions": activations,
                    }
                )
    return rows


def clouds() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    chips = {"T4": 320, "A10G": 600, "L4": 300, "L40S": 864, "A100": 1555, "M60": 160}
    memory = {"T4": 16, "A10G": 24, "L4": 24, "L40S": 48, "A100": 40, "M60": 8}
    offers, trials = [], []
    plain = {"region": "r", "nodes": 1, "memory_gib": 16, "network_gbps": 10, "cpu_l3_mib": 32}
    kinds: list[tuple[str | None, int, str, float, float]] = [
        (chip, count, "8259CL", 2.5, rate) for chip, rate in chips.items() for count in (1, 2, 4, 8)
    ]
    kinds += [
        (None, cores, f"cpu{model}", 2 + model / 10, cores * (2 + model / 10))
        for model in range(5)
        for cores in (2, 4, 8, 16, 32)
    ]
    for place, (chip, count, processor, clock, rate) in enumerate(kinds):
        name = f"aws/f{place // 3}.{place}"
        offers.append(
            plain
            | {
                "offer": name,
                "provider": "aws",
                "instance_type": name.removeprefix("aws/"),
                "price_per_hour": 1 + place,
                "vcpus": 8 if chip else count,
                "arch": "x86_64",
                "cpu_manufacturer": "Intel",
                "cpu_model": processor,
                "cpu_ghz": clock,
                "cpu_allocation": "dedicated",
                "avx512": "True",
                "amx": "False",
                "accelerator": chip or "",
                "accelerator_count": count if chip else 0,
                "accelerator_memory_gib_total": memory[chip] * count if chip else "",
            }
        )
        trials.append(
            {"workload": "m/generate-16", "group": "m", "offer": name, "throughput": rate}
        )
    return offers, trials


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "predict" / "profet.csv.gz", networks())
    write(tmp_path / "predict" / "timm.csv.gz", vision())
    offers, trials = clouds()
    write(tmp_path / "search" / "llm_three_clouds" / "offers.csv.gz", offers)
    write(tmp_path / "search" / "llm_three_clouds" / "trials.csv.gz", trials)
    return tmp_path / "predict"


def run(benchmark: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> None:
    monkeypatch.setattr(sys, "argv", ["predict.py", *map(str, arguments)])
    benchmark.main()


def test_it_reports_every_set(
    benchmark: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(benchmark, monkeypatch, "--data", folder)
    said = capsys.readouterr().out
    for name in ("profet", "timm", "accelerator models", "instance families", "processor models"):
        assert name in said
    assert said.count("random forest") == said.count("not installed")
    ours, constant = (
        [float(n) for n in re.findall(rf"all: {name} .*mean of the pairs ([\d.]+)%", said)]
        for name in ("transfer", "constant ratio")
    )
    # launches and work are all that there is in this data
    assert ours[0] < constant[0] / 2
    assert "nothing predicted" not in said
    assert "nan" not in said


def test_it_says_where_there_is_no_data(
    benchmark: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(benchmark, monkeypatch, "--data", tmp_path / "none")
    assert "skipped: there is no folder" in capsys.readouterr().out
    run(benchmark, monkeypatch, "--data", tmp_path)
    assert capsys.readouterr().out.count("skipped") == 3


def test_groups_are_left_out_whole(benchmark: ModuleType, folder: Path) -> None:
    found = benchmark.data.families(folder)
    masks = list(benchmark.folds(found.groups, 4, seed=0))
    assert (sum(mask.astype(int) for mask in masks) == 1).all()
    groups = np.array(found.groups)
    for mask in masks:
        assert not set(groups[mask]) & set(groups[~mask])


def test_the_loss_of_choosing(benchmark: ModuleType) -> None:
    worth = np.array([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    guess = np.array([[1.0, 2.0, 3.0], [9.0, 3.0, 2.0]])
    said = benchmark.losses(worth, guess)
    assert said == (
        "loss 37.5% (worst 75%) by prediction, 25.0% (worst 50%) with its top two measured"
    )
