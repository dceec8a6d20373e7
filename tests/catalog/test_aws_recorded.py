"""The recorded tables of AWS become answers in AWS's own shapes, and those become offers."""

from __future__ import annotations

import csv
import gzip
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from underdog.catalog.providers import aws
from underdog.catalog.sources import LeftOut

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / ".." / "shared" / "data" / "catalog"


def tool() -> ModuleType:
    path = ROOT / "tools" / "recorded" / "aws.py"
    spec = importlib.util.spec_from_file_location("recorded_aws_of_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parsed(
    prices: list[dict[str, str]], types: list[dict[str, str]]
) -> tuple[list[dict[str, Any]], list[LeftOut]]:
    found = list(aws.parse(tool().recorded(prices, types, "a table", "2026-07-20")))
    rows = [one for one in found if not isinstance(one, LeftOut)]
    return rows, [one for one in found if isinstance(one, LeftOut)]


def api(name: str, accelerator: str = "", count: str = "", mib: str = "", **more: str) -> Any:
    return {
        "instance_type": name,
        "vcpus": "8",
        "memory_gib": "32.0",
        "arch": "x86_64",
        "cpu_ghz": "3.4",
        "api_accelerator": accelerator,
        "api_accelerator_count": count,
        "api_accelerator_memory_mib": mib,
        "network": "10 Gigabit",
        "efa_interfaces": "0",
        "local_disk_gb": "0",
        "spot": "True",
        **more,
    }


def price(name: str, amount: str, region: str = "us-east-1") -> dict[str, str]:
    return {"region": region, "instance": name, "usd_per_hour_ondemand": amount}


@pytest.mark.parametrize(
    ("name", "accelerator", "count", "mib", "want"),
    [
        ("g6e.12xlarge", "L40S", "4", "183105", ("L40S", 4, 48, 44.988)),
        ("g6.xlarge", "L4", "1", "22888", ("L4", 1, 24, 22.494)),
        ("p5en.48xlarge", "NVIDIA", "8", "144384", ("H200", 8, 141, 140.401)),
        ("g6f.2xlarge", "L4", "0", "5722", ("L4", 0.25, 6, 6)),
        ("inf1.24xlarge", "Inferentia", "16", "8192", ("Inferentia", 16, 8, None)),
        ("trn2.48xlarge", "Trainium2", "16", "524288", ("Trainium2", 16, 96, None)),
        ("dl2q.24xlarge", "Qualcomm AI100", "8", "16000", ("AI100", 8, 16, None)),
        ("f2.6xlarge", "", "", "", ("FPGA-VU47P", 1, 16, None)),
        ("c5.large", "", "", "", (None, 0, None, None)),
    ],
)
def test_accelerators(
    name: str, accelerator: str, count: str, mib: str, want: tuple[Any, ...]
) -> None:
    rows, left = parsed([price(name, "9")], [api(name, accelerator, count, mib)])
    row = next(row for row in rows if row["purchase"] == "on-demand")
    keys = ("accelerator", "accelerator_count", "accelerator_memory_gib", "accelerator_usable_gib")
    assert tuple(row[key] for key in keys) == want
    assert (row["price_per_hour"], row["price_source"]) == (9, "a table")
    assert left == []


def test_hosts_disks_and_networks() -> None:
    network = {"network": "100 Gigabit", "efa_interfaces": "1", "local_disk_gb": "1900"}
    rows, _ = parsed([], [api("m5dn.24xlarge", **network), api("d3.xlarge", local_disk_gb="5940")])
    found = {row["instance_type"]: row for row in rows}
    one = found["m5dn.24xlarge"]
    assert (one["vcpus"], one["memory_gib"], one["cpu_ghz"]) == (8, 32, 3.4)
    assert (one["network_rdma"], one["network_rdma_gbps"]) == ("efa", 100)
    assert (one["local_disk_gb"], one["local_disk_kind"]) == (1900, "nvme")
    assert found["d3.xlarge"]["local_disk_kind"] == "hdd"


def test_capacity_blocks_and_types_without_a_price() -> None:
    rows, _ = parsed([], [api("p5e.48xlarge", "H200", "8", "144384"), api("r9g.large")])
    found = {row["instance_type"]: row for row in rows}
    block = found["p5e.48xlarge"]
    assert (block["purchase"], block["term"]) == ("reserved", "capacity-block")
    assert "capacity blocks" in block["price_unknown_reason"]
    assert "no on-demand price" in found["r9g.large"]["price_unknown_reason"]


@pytest.mark.parametrize("amount", ["", "0", "0.0", "-1", "nan", "inf", "x"])
def test_no_price_is_unknown_with_a_reason(amount: str) -> None:
    (row,), _ = parsed([price("m5.large", amount)], [])
    assert row["price_per_hour"] is None
    assert row["price_unknown_reason"]


def test_of_two_prices_the_lower_is_kept() -> None:
    rows, left = parsed([price("m5.large", one) for one in ("0.178", "0.086", "0")], [])
    assert [row["price_per_hour"] for row in rows] == [0.086]
    assert len(left) == 2


@pytest.mark.skipif(not RECORDED.is_dir(), reason="needs the folder shared beside the checkout")
def test_every_recorded_row_is_an_offer() -> None:
    def rows_of(name: str, key: str) -> list[dict[str, str]]:
        with gzip.open(RECORDED / name, "rt", encoding="utf-8", newline="") as file:
            return [row for row in csv.DictReader(file) if row[key] == "aws"]

    prices = rows_of("prices.csv.gz", "vendor")
    types = rows_of("instance_types.csv.gz", "provider")
    rows, left = parsed(prices, types)
    priced = {row["instance_type"]: row for row in rows if row["price_per_hour"] is not None}
    assert len(priced) == len(prices) == 1367
    for row in prices:
        assert priced[row["instance"]]["price_per_hour"] == float(row["usd_per_hour_ondemand"])
        assert priced[row["instance"]]["vcpus"] is not None
        assert priced[row["instance"]]["accelerator_count"] is not None
    told = {row["instance_type"] for row in rows} | {one.instance_type for one in left}
    assert told >= {row["instance_type"] for row in types}
    assert {one.reason for one in left} == {"a Mac, which runs no Linux"}
