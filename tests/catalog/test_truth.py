"""The snapshot against what was measured on the machines, where that data is at hand."""

from __future__ import annotations

import csv
import gzip
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from underdog.catalog import snapshot
from underdog.catalog.facts import accelerator_named

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"

# Faults of the source: Axion machines and the oldest types as another architecture, and a
# constrained size with the vCPUs of the whole.
WRONG_ARCH = ("c4a-", "n4a-", "c3.large", "t2.")
WRONG = {("Standard_M64-32bds_1_v3", "vcpus")}

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="needs the folder shared/data beside the checkout"
)


def read(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, str], dict[str, Any]]:
    return {(r["provider"], r["instance_type"]): r for r in snapshot.load().table.select()}


def test_accelerators_are_what_the_driver_says(known: dict[Any, dict[str, Any]]) -> None:
    checked, wrong = 0, []
    for row in read(DATA / "catalog" / "gpu_truth.csv.gz"):
        offer = known.get((row["vendor"], row["instance_type"]))
        if offer is None:
            continue
        checked += 1
        named = accelerator_named(row["gpu_product_name"])
        assert named is not None
        usable = float(row["vram_mib_each"]) / 1024
        same = (
            offer["accelerator"] == named.key
            and offer["accelerator_count"] == pytest.approx(int(row["gpu_count"]) * named.fraction)
            and offer["accelerator_usable_gib"] == pytest.approx(usable, abs=0.01)
        )
        if not same:
            wrong.append((row["instance_type"], row["gpu_product_name"]))
    assert wrong == []
    assert checked >= 90


def test_hosts_are_what_was_measured(known: dict[Any, dict[str, Any]]) -> None:
    checked, wrong = 0, []
    for row in read(DATA / "search" / "llm_three_clouds" / "offers.csv.gz"):
        offer = known[row["provider"], row["instance_type"]]
        for name in ("vcpus", "memory_gib"):
            if offer[name] is not None and row[name] and (row["instance_type"], name) not in WRONG:
                checked += 1
                if offer[name] != pytest.approx(float(row[name]), rel=0.01):
                    wrong.append((row["instance_type"], name, offer[name], row[name]))
        if offer["arch"] != row["arch"] and not row["instance_type"].startswith(WRONG_ARCH):
            wrong.append((row["instance_type"], "arch", offer["arch"], row["arch"]))
    assert wrong == []
    assert checked > 4800


def test_vector_width_is_what_the_processor_says(known: dict[Any, dict[str, Any]]) -> None:
    wrong = []
    for row in read(DATA / "search" / "llm_three_clouds" / "offers.csv.gz"):
        bits = known[row["provider"], row["instance_type"]]["vector_bits"]
        measured = row["cpu_model"] != "" and row["arch"] == "x86_64"
        if measured and bits is not None and (bits == 512) != (row["avx512"] == "True"):
            wrong.append((row["instance_type"], bits, row["cpu_model"]))
    assert wrong == []


def test_no_price_is_dropped_in_silence() -> None:
    prices = list(read(DATA / "catalog" / "prices.csv.gz"))
    left = sum(one["rows"] for one in snapshot.load().left_out)
    row = (
        snapshot.load()
        .table.run(
            "SELECT count(*) FROM offers WHERE region <> 'unknown' AND purchase = 'on-demand'"
        )
        .fetchone()
    )
    assert row is not None
    assert row[0] + left == len(prices)


@pytest.mark.slow
def test_the_tables_give_the_bundled_snapshot(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("build", ROOT / "tools" / "build_snapshot.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    target = tmp_path / "built.parquet"
    module.build(DATA / "catalog", target)
    bundled, built = snapshot.load(), snapshot.load(target)
    assert built.left_out == bundled.left_out
    assert built.table.select() == bundled.table.select()
