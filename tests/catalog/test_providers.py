"""Parsing the providers' tables, with the faults that they are known to have."""

from __future__ import annotations

from typing import Any

import pytest

from underdog.catalog.hardware import Hardware
from underdog.catalog.providers import aws, azure, gcp
from underdog.catalog.sources import LeftOut, Raw

API = [
    "instance_type",
    "vcpus",
    "memory_gib",
    "arch",
    "cpu_ghz",
    "api_accelerator",
    "api_accelerator_count",
    "api_accelerator_memory_mib",
    "network",
    "local_disk_gb",
]


def api(name: str, accelerator: str = "", count: str = "", mib: str = "") -> dict[str, str]:
    values = [name, "8", "32.0", "x86_64", "3.4", accelerator, count, mib, "10 Gigabit", "0"]
    return dict(zip(API, values, strict=True))


def price(region: str, name: str, amount: str, spot: str = "") -> dict[str, str]:
    return {
        "region": region,
        "instance": name,
        "usd_per_hour_ondemand": amount,
        "usd_per_hour_spot": spot,
    }


def parsed(module: Any, prices: list[dict[str, str]], types: Any = ()) -> tuple[list[Any], ...]:
    raw = Raw(prices=prices, types=types, source="a table", date="2026-07-20")
    found = list(module.parse(raw))
    rows = [one for one in found if not isinstance(one, LeftOut)]
    return rows, [one for one in found if isinstance(one, LeftOut)]


@pytest.mark.parametrize(
    ("name", "accelerator", "count", "mib", "want"),
    [
        ("g6e.12xlarge", "L40S", "4", "183105", ("L40S", 4, 48, 44.988)),  # the total given as each
        ("g6.48xlarge", "L4", "8", "183105", ("L4", 8, 24, 22.494)),
        ("g6.xlarge", "L4", "1", "22888", ("L4", 1, 24, 22.494)),
        ("p5en.48xlarge", "NVIDIA", "8", "144384", ("H200", 8, 141, 140.401)),
        ("g6f.large", "L4", "1", "3072", ("L4", 0.125, 3, 3)),
        ("g6f.large", "L4", "0", "2861", ("L4", 0.125, 3, 3)),
        ("g6f.2xlarge", "L4", "0", "5722", ("L4", 0.25, 6, 6)),
        ("g6f.4xlarge", "L4", "0", "11444", ("L4", 0.5, 12, 12)),
        ("gr6f.4xlarge", "L4", "0", "11444", ("L4", 0.5, 12, 12)),
        ("g7e.2xlarge", "GB202", "1", "98304", ("RTX-PRO-6000", 1, 96, 95.593)),
        ("p2.16xlarge", "K80", "8", "24576", ("K80", 16, 12, 11.173)),
        ("p3dn.24xlarge", "V100", "8", "32768", ("V100-32GB", 8, 32, 32)),
        ("p4de.24xlarge", "A100", "8", "81920", ("A100-80GB", 8, 80, 80)),
        ("trn2.48xlarge", "Trainium2", "16", "524288", ("Trainium2", 16, 96, None)),
        ("c5.large", "", "", "", (None, 0, None, None)),
    ],
)
def test_faults_of_the_ec2_api(
    name: str, accelerator: str, count: str, mib: str, want: tuple[Any, ...]
) -> None:
    rows, left = parsed(aws, [price("us-east-1", name, "1")], [api(name, accelerator, count, mib)])
    row = next(row for row in rows if row["instance_type"] == name)
    keys = ("accelerator", "accelerator_count", "accelerator_memory_gib", "accelerator_usable_gib")
    assert tuple(row[key] for key in keys) == want
    assert left == []
    if want[1]:
        assert row["accelerator_memory_gib_total"] == want[2] * max(want[1], 1)


def test_an_accelerator_without_a_name_is_told_and_unknown() -> None:
    rows, left = parsed(aws, [price("us-east-1", "zz9.large", "1")], [api("zz9.large", "", "2")])
    row = next(row for row in rows if row["instance_type"] == "zz9.large")
    assert row["accelerator_count"] is None
    assert "without a known name" in left[0].reason


def test_capacity_blocks_are_reservations_of_unknown_price() -> None:
    rows, _ = parsed(aws, [], [api("p5e.48xlarge", "H200", "8", "144384"), api("r9g.large")])
    found = {row["instance_type"]: row for row in rows}
    block = found["p5e.48xlarge"]
    assert (block["purchase"], block["price_per_hour"]) == ("reserved", None)
    assert "capacity blocks" in block["price_unknown_reason"]
    assert "no price" in found["r9g.large"]["price_unknown_reason"]


@pytest.mark.parametrize("text", ["", "0", "0.0", "-1", "nan", "inf", "x"])
@pytest.mark.parametrize("module", [aws, azure, gcp])
def test_no_price_is_unknown_with_a_reason(module: Any, text: str) -> None:
    rows, _ = parsed(module, [price("here", "Standard_D2_v5", text, text)])
    rows = [row for row in rows if row["region"] == "here"]
    assert rows
    assert all(row["price_per_hour"] is None and row["price_unknown_reason"] for row in rows)


@pytest.mark.parametrize("module", [aws, azure, gcp])
def test_of_two_prices_the_lower_is_kept(module: Any) -> None:
    both = [price("here", "Standard_D2_v5", text) for text in ("0.178", "0.086", "0")]
    rows, left = parsed(module, both)
    kept = [row for row in rows if row["region"] == "here" and row["purchase"] == "on-demand"]
    assert [row["price_per_hour"] for row in kept] == [0.086]
    assert [one.reason for one in left] == ["two prices stand for one type; the lower is kept"] * 2


def test_spot_is_an_offer_of_its_own() -> None:
    prices = [price("us-central1", "n2-standard-2", "0.44", "0.49"), price("a", "b", "1")]
    rows, _ = parsed(gcp, prices)
    found = {(row["region"], row["purchase"]): row["price_per_hour"] for row in rows}
    assert found == {
        ("us-central1", "on-demand"): 0.44,
        ("us-central1", "spot"): 0.49,
        ("a", "on-demand"): 1,
        ("a", "spot"): None,
    }


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("a2-highgpu-8g", ("A100-40GB", 8)),
        ("a2-ultragpu-1g", ("A100-80GB", 1)),
        ("a3-edgegpu-8g-nolssd", ("H100", 8)),
        ("a3-ultragpu-8g", ("H200", 8)),
        ("g2-standard-24", ("L4", 2)),
        ("g2-standard-32", ("L4", 1)),
        ("g4-standard-12", ("RTX-PRO-6000", 0.25)),
        ("g4-standard-384", ("RTX-PRO-6000", 8)),
        ("ct5lp-hightpu-8t", ("TPU-v5e", 8)),
        ("n2-standard-8", (None, 0)),
        ("g1-small", (None, 0)),
        ("a2-highgpu-x", (None, None)),
        ("g2-standard-5", (None, None)),
    ],
)
def test_accelerators_in_google_names(name: str, want: tuple[Any, ...]) -> None:
    assert gcp.accelerator_of(name) == want


@pytest.mark.parametrize(
    ("name", "vcpus", "memory", "arch"),
    [
        ("Standard_D4s_v5", 4, 16, "x86_64"),
        ("Standard_D8als_v6", 8, 16, "x86_64"),
        ("Standard_D8pls_v5", 8, 16, "arm64"),
        ("Standard_E32-8ads_v5", 8, 256, "x86_64"),
        ("Standard_E64-16s_v3", 16, 432, "x86_64"),
        ("Standard_E20_v4", 20, 160, "x86_64"),
        ("Standard_DS12-2_v2", 2, 28, "x86_64"),
        ("Standard_DS5_v2", 16, 56, "x86_64"),
        ("Standard_D14_v2_Promo", 16, 112, "x86_64"),
        ("Basic_A3", 4, 7, "x86_64"),
        ("Standard_GS4-4", 4, 224, "x86_64"),
        ("Standard_M128-32ms", 32, 3892, "x86_64"),
        ("Standard_M176s-44_4_v3", 44, 3892, "x86_64"),
        ("Standard_HB120-16rs_v3", 16, 448, "x86_64"),
        ("Standard_DC8s_v3", 8, 64, "x86_64"),
        ("Standard_B1ls", 1, 0.5, "x86_64"),
        ("Standard_FX48mds", 48, 1008, "x86_64"),
        ("Standard_E96ps_v5", 96, None, "arm64"),
        ("Standard_D372s_v7", 372, None, "x86_64"),
        ("Standard_SQLG7_NVME", None, None, None),
    ],
)
def test_the_grammar_of_azure_names(
    name: str, vcpus: float | None, memory: float | None, arch: str | None
) -> None:
    found = azure.machine(name)
    assert (found.vcpus, found.memory_gib, found.arch) == (vcpus, memory, arch)


@pytest.mark.parametrize(
    ("name", "accelerator", "count", "memory"),
    [
        ("Standard_NV6ads_A10_v5", "A10", 1 / 6, 4),
        ("Standard_NV12ads_A10_v5", "A10", 1 / 3, 8),
        ("Standard_NV18ads_A10_v5", "A10", 1 / 2, 12),
        ("Standard_NC40ads_H100_v5", "H100-NVL", 1, 94),
        ("Standard_ND96isr_MI300X_v5", "MI300X", 8, 192),
        ("Standard_NC24r_Promo", "K80", 4, 12),
    ],
)
def test_accelerators_of_azure(name: str, accelerator: str, count: float, memory: float) -> None:
    rows, _ = parsed(azure, [price("eastus", name, "1")])
    row = rows[0]
    assert (row["accelerator"], row["accelerator_count"]) == (accelerator, count)
    assert row["accelerator_memory_gib"] == pytest.approx(memory)


def test_an_azure_size_with_an_unknown_accelerator_is_not_one_without() -> None:
    unknown = azure.machine("Standard_NC8ads_A10_v4")
    assert (unknown.accelerator, unknown.accelerator_count) == (None, None)
    assert unknown.vcpus == 8


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ARM_SKU_NAME_PLACEHOLDER", "placeholder"),
        ("Dsv3_Type2", "dedicated host"),
        ("DCsv2 Type 1", "dedicated host"),
        ("Ebdsv5-Type1", "dedicated host"),
        ("Standard_E16ds_v4_ADHType1", "dedicated host"),
        ("Standard_D2_v5 Win", "Windows"),
        ("L192isv4", "not the name"),
    ],
)
def test_what_is_no_azure_size_is_left_out_with_the_reason(name: str, reason: str) -> None:
    rows, left = parsed(azure, [price("eastus", name, "1")])
    assert rows == []
    assert reason in left[0].reason


def test_blanks_around_an_azure_name_are_cut() -> None:
    rows, _ = parsed(azure, [price("eastus", "Standard_NM16ads_MA35D  ", "1")])
    assert rows[0]["instance_type"] == "Standard_NM16ads_MA35D"


@pytest.mark.parametrize(
    ("text", "gbps"),
    [("25 Gigabit", 25), ("4x 100 Gigabit", 400), ("Up to 10 Gigabit", None), ("High", None)],
)
def test_a_burst_is_no_bandwidth(text: str, gbps: float | None) -> None:
    assert aws.network_gbps(text) == gbps


def test_processor_rate_is_cores_times_clock_times_width() -> None:
    from underdog.catalog.hardware import processor_columns

    two_threads = processor_columns(Hardware(vcpus=8, processor="ice-lake", cpu_ghz=3.5))
    assert two_threads["cpu_fp32_tflops"] == pytest.approx(4 * 3.5 * 64 / 1000)
    whole = processor_columns(Hardware(vcpus=8, processor="genoa", cpu_ghz=3.7, whole_cores=True))
    assert whole["cpu_fp32_tflops"] == pytest.approx(8 * 3.7 * 32 / 1000)
    assert processor_columns(Hardware(vcpus=8)) == {"arch": None, "cpu_ghz": None}
