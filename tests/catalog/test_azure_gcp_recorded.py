"""The recorded tables of Azure and Google Cloud, and what becomes of them."""

from __future__ import annotations

import csv
import gzip
import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from underdog.catalog.providers import azure, gcp
from underdog.catalog.sources import LeftOut

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / ".." / "shared" / "data" / "catalog"


def tool(provider: str) -> ModuleType:
    path = ROOT / "tools" / "recorded" / f"{provider}.py"
    spec = importlib.util.spec_from_file_location(f"recorded_{provider}_of_tests", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parsed(
    provider: str, module: Any, prices: list[dict[str, str]], types: list[dict[str, str]]
) -> tuple[list[dict[str, Any]], list[LeftOut]]:
    raw = tool(provider).recorded(prices, types, "a table", "2026-06-18")
    found = list(module.parse(raw))
    left = [one for one in found if isinstance(one, LeftOut)]
    return [one for one in found if not isinstance(one, LeftOut)], left


def price(region: str, name: str, amount: str, spot: str = "") -> dict[str, str]:
    return {
        "region": region,
        "instance": name,
        "usd_per_hour_ondemand": amount,
        "usd_per_hour_spot": spot,
    }


def test_a_row_of_azure() -> None:
    names = ("Standard_D2s_v5", "Standard_D4s_v5", "Dsv3_Type2", "Standard_D2_v5 Win")
    prices = [price("eastus", n, p) for n, p in zip(names, ("0.096", "", "4", "1"), strict=True)]
    rows, left = parsed("azure", azure, prices, [])
    assert [(r["instance_type"], r["price_per_hour"], r["vcpus"]) for r in rows] == [
        ("Standard_D2s_v5", 0.096, 2),
        ("Standard_D4s_v5", None, 4),
    ]
    assert {row["price_date"] for row in rows} == {"2026-06-18"}
    assert [one.reason for one in left] == [
        "a dedicated host, not a virtual machine",
        "a Windows price",
    ]


def test_a_row_of_google() -> None:
    kinds = [
        {"instance_type": "a2-highgpu-1g", "vcpus": "12", "memory_gib": "85.00"},
        {"instance_type": "n9-standard-2", "vcpus": "2", "memory_gib": "8.00"},
    ]
    rows, left = parsed("gcp", gcp, [price("us-central1", "a2-highgpu-1g", "3.673385")], kinds)
    assert left == []
    found = {(r["region"], r["instance_type"], r["purchase"]): r for r in rows}
    assert {key: row["price_per_hour"] for key, row in found.items()} == {
        ("us-central1", "a2-highgpu-1g", "on-demand"): 3.673385,
        ("us-central1", "a2-highgpu-1g", "spot"): None,
        ("unknown", "n9-standard-2", "on-demand"): None,
    }
    row = found["us-central1", "a2-highgpu-1g", "on-demand"]
    assert (row["vcpus"], row["memory_gib"], row["accelerator"]) == (12, 85, "A100-40GB")


def table(file: str, key: str, provider: str) -> list[dict[str, str]]:
    path = RECORDED / file
    if not path.exists():
        pytest.skip("there is no `shared` folder beside the checkout")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines) if row[key] == provider]


@pytest.mark.parametrize(
    ("provider", "module", "offers", "left"),
    [("azure", azure, 65_113, 2_559), ("gcp", gcp, 25_491, 0)],
)
def test_no_recorded_price_is_lost(provider: str, module: Any, offers: int, left: int) -> None:
    prices = table("prices.csv.gz", "vendor", provider)
    types = table("instance_types.csv.gz", "provider", provider)
    rows, out = parsed(provider, module, prices, types)
    assert (len(rows), len(out)) == (offers, left)
    found = {(r["region"], r["instance_type"], r["purchase"]): r["price_per_hour"] for r in rows}
    for row in prices:
        place = (row["region"], row["instance"].strip())
        for purchase, field in (("on-demand", "ondemand"), ("spot", "spot")):
            known = found.get((*place, purchase))
            amount = float(row[f"usd_per_hour_{field}"] or 0) or None
            assert (*place, purchase) not in found or known == amount
