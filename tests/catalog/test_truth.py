"""The tables and the bundled snapshot against what was measured, where that is at hand."""

from __future__ import annotations

import collections
import csv
import gzip
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from underdog.catalog import snapshot
from underdog.catalog.facts import accelerator_named, accelerators

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"

# Faults of the source: Axion machines and the oldest types as another architecture, and a
# constrained size with the vCPUs of the whole.
WRONG_ARCH = ("c4a-", "n4a-", "c3.large", "t2.")
WRONG = {("Standard_M64-32bds_1_v3", "vcpus")}
# A guest of NVIDIA's virtual GPU software of branch 470 sees its share less what the host's driver
# keeps of it; guests of later branches see all of the share.
KEPT_BY_HOST_MIB = {"NVIDIA A10-2Q": 159, "NVIDIA A10-4Q": 164, "NVIDIA A10-8Q": 172}

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="needs the folder shared/data beside the checkout"
)


def read(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def measured_hosts() -> Iterator[dict[str, str]]:
    yield from read(DATA / "search" / "llm_three_clouds" / "offers.csv.gz")


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, str], dict[str, Any]]:
    return {(r["provider"], r["instance_type"]): r for r in snapshot.load().table.select()}


def test_every_name_of_the_driver_stands_for_a_model_with_its_memory() -> None:
    wrong: list[tuple[Any, ...]] = []
    for row in read(DATA / "catalog" / "gpu_truth.csv.gz"):
        name, mib = row["gpu_product_name"], float(row["vram_mib_each"])
        named = accelerator_named(name)
        if named is None:
            wrong.append((name, "unknown"))
            continue
        model = accelerators()[named.key]
        # the driver says "Disabled" only where ECC can be on; both states are sold
        states = [model.usable_gib, model.usable_gib_ecc_off]
        if named.fraction < 1:
            states = [model.memory_gib * named.fraction - KEPT_BY_HOST_MIB.get(name, 0) / 1024]
        if not any(gib == pytest.approx(mib / 1024, abs=0.001) for gib in states if gib):
            wrong.append((name, mib, states))
    assert wrong == []


def test_accelerators_of_machines_are_what_the_driver_says(
    known: dict[Any, dict[str, Any]],
) -> None:
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
            and offer["accelerator_usable_gib"] == pytest.approx(usable, abs=0.001)
        )
        if not same:
            wrong.append((row["instance_type"], row["gpu_product_name"]))
    assert wrong == []
    assert checked >= 90


def test_hosts_are_what_was_measured(known: dict[Any, dict[str, Any]]) -> None:
    checked, wrong = 0, []
    for row in measured_hosts():
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


@pytest.mark.parametrize("extension", ["avx512", "amx"])
def test_extensions_are_what_the_processor_says(
    known: dict[Any, dict[str, Any]], extension: str
) -> None:
    """A family whose hosts differ promises what all of them have."""
    checked, wrong = 0, []
    for row in measured_hosts():
        offer = known[row["provider"], row["instance_type"]]
        if not row["cpu_model"] or row["arch"] != "x86_64" or offer["cpu_extensions"] is None:
            continue
        checked += 1
        promised = extension in offer["cpu_extensions"].split(",")
        differs = "as the host has it" in offer["cpu_model"]
        has = row[extension] == "True"
        if promised > has or (promised < has and not differs):
            wrong.append((row["instance_type"], offer["cpu_model"], row["cpu_model"]))
    assert wrong == []
    assert checked > 1500


def test_no_price_is_dropped_in_silence() -> None:
    names = collections.defaultdict(set)
    rows: collections.Counter[str] = collections.Counter()
    for row in read(DATA / "catalog" / "prices.csv.gz"):
        names[row["vendor"]].add(row["instance"])
        rows[row["vendor"]] += 1
    kept = "SELECT provider, count(*) FROM offers WHERE purchase = 'on-demand' "
    kept += "AND region <> 'unknown' GROUP BY provider"
    found = collections.Counter(dict(snapshot.load().table.run(kept).fetchall()))
    for one in snapshot.load().left_out:
        if names[one["provider"]].issuperset(one["names"]):
            found[one["provider"]] += one["rows"]
    assert {provider: found[provider] for provider in rows} == dict(rows)


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
    assert built.rows == bundled.rows
    other = f"FROM '{built.path}' EXCEPT ALL FROM '{bundled.path}'"
    assert duckdb.connect().execute(other).fetchall() == []
