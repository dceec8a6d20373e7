"""Azure: the hardware of a size by its name and the table of the rest."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path
from typing import Any

import pytest

from underdog.catalog.facts import accelerators, processors, table
from underdog.catalog.hardware import Hardware, accelerator_columns
from underdog.catalog.providers import azure

RECORDED = Path(__file__).parents[2] / ".." / "shared" / "data" / "catalog"


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
        ("Standard_HB176-24rs_v4", 24, 768, "x86_64"),
        ("Standard_DC8s_v3", 8, 64, "x86_64"),
        ("Standard_B1ls", 1, 0.5, "x86_64"),
        ("Standard_FX48mds", 48, 1008, "x86_64"),
        ("Standard_EC32as_v5", 32, 192, "x86_64"),
        ("Standard_E372ids_v7", 372, 2832, "x86_64"),
        ("Standard_M832ids-208_16_v3", 208, 15200, "x86_64"),
        ("Standard_D372s_v7", 372, 1488, "x86_64"),
        ("Standard_E96ps_v5", 96, None, "arm64"),
        ("Standard_D372is_v7", 372, None, "x86_64"),
        ("Standard_SQLG7_NVME", None, None, None),
    ],
)
def test_the_grammar_of_names(
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
        ("Standard_NV36ads_A10_v5", "A10", 1, 24),
        ("Standard_NV4as_v4", "MI25", 1 / 8, 2),
        ("Standard_NV4ads_V710_v5", "V710", 1 / 6, 28 / 6),
        ("Standard_NC40ads_H100_v5", "H100-NVL", 1, 94),
        ("Standard_ND96isr_H200_v5", "H200", 8, 141),
        ("Standard_ND96isr_MI300X_v5", "MI300X", 8, 192),
        ("Standard_ND128isr_NDR_GB200_v6", "GB200", 4, None),
        ("Standard_ND128isrG5_GB300_v6", "GB300", 4, None),
        ("Standard_NC256ds_xl_RTXPRO6000BSE_v6", "RTX-PRO-6000", 2, 96),
        ("Standard_NC24rs_v2", "P100", 4, 16),
        ("Standard_ND24rs", "P40", 4, 24),
        ("Standard_NC24r_Promo", "K80", 4, 12),
        ("Standard_NP10s", "FPGA-U250", 1, 64),
    ],
)
def test_accelerators(name: str, accelerator: str, count: float, memory: float | None) -> None:
    found = azure.machine(name)
    assert (found.accelerator, found.accelerator_count) == (accelerator, pytest.approx(count))
    each = accelerator_columns(found)["accelerator_memory_gib"]
    assert memory is None or each == pytest.approx(memory, abs=0.01)


def test_a_size_with_an_unknown_accelerator_is_not_one_without() -> None:
    unknown = azure.machine("Standard_NC8ads_A10_v4")
    assert (unknown.accelerator, unknown.accelerator_count) == (None, None)
    assert unknown.vcpus == 8


@pytest.mark.parametrize(
    ("name", "gbps", "rdma"),
    [
        ("Standard_ND96isr_H100_v5", 80, 3200),
        ("Standard_ND96is_H100_v5", None, None),
        ("Standard_ND96asr_v4", 24, 1600),
        ("Standard_ND40rs_v2", 24, 100),
        ("Standard_ND128isr_NDR_GB200_v6", 160, 1600),
        ("Standard_ND128isr_GB300_v6", 160, 3200),
        ("Standard_NC24rs_v3", None, 56),
        ("Standard_NC24s_v3", None, None),
        ("Standard_HB368-48rs_v5", 180, 800),
        ("Standard_HX176rs", 80, 400),
        ("Standard_HC44rs", 40, 100),
        ("Standard_H16mr", None, 56),
        ("Standard_H16m", None, None),
        ("Standard_D2s_v5", 12.5, None),
        ("Standard_E96ds_v5", 35, None),
        ("Standard_E96-24ads_v5", 40, None),  # a constrained size keeps the card of the whole
        ("Standard_D96pls_v6", 60, None),
        ("Standard_E372ids_v7", 400, None),
        ("Standard_D372s_v7", 200, None),
        ("Standard_F64ams_v7", 75, None),
        ("Standard_F72s_v2", 30, None),
        ("Standard_D3_v2", None, None),
    ],
)
def test_the_network(name: str, gbps: float | None, rdma: float | None) -> None:
    found = azure.machine(name)
    kind = "infiniband" if rdma else None
    assert (found.network_gbps, found.network_rdma_gbps, found.network_rdma) == (gbps, rdma, kind)


@pytest.mark.parametrize(
    ("name", "gib", "kind", "gb_per_s"),
    [
        ("Standard_D2ds_v5", 75, "ssd", 0.125),
        ("Standard_D96ads_v5", 3600, "ssd", 4),
        ("Standard_D96ads_v6", 6 * 880, "nvme", 8.64),
        ("Standard_E160ads_v7", 4 * 2200, "nvme", 22.4),
        ("Standard_F80ads_v7", 4 * 2200, "nvme", 22.4),
        ("Standard_E32-8ds_v5", 1200, "ssd", 2),
        ("Standard_D16pds_v6", 880, "nvme", None),
        ("Standard_NC4as_T4_v3", 176, "ssd", None),
        ("Standard_D2s_v5", 0, None, None),
        ("Standard_DC8s_v3", 0, None, None),
        ("Standard_D2_v2", 100, None, None),
        ("Standard_L8s_v3", None, None, None),
    ],
)
def test_the_local_disk(
    name: str, gib: float | None, kind: str | None, gb_per_s: float | None
) -> None:
    found = azure.machine(name)
    gb = None if gib is None else pytest.approx(gib * 2**30 / 1e9, abs=0.06)
    assert (found.local_disk_gb, found.local_disk_kind) == (gb, kind)
    assert found.local_disk_gb_per_s == gb_per_s


def test_disks_are_in_gb() -> None:
    assert azure.machine("Standard_NC24ads_A100_v4").local_disk_gb == 960
    assert azure.machine("Standard_HB120-16rs_v3").local_disk_gb == 1920
    assert azure.machine("Standard_ND96isr_H100_v5").local_disk_gb == 28_000


def test_the_table_names_known_parts() -> None:
    for name, row in table("azure.toml")["accelerated"].items():
        size = azure.size_of(f"Standard_{name}")
        assert size is not None, name
        assert size.whole == name
        assert row["chip"] in accelerators(), name
        assert row["cpu"] in processors(), name


def recorded(file: str, key: str) -> list[dict[str, str]]:
    path = RECORDED / file
    if not path.exists():
        pytest.skip("there is no `shared` folder beside the checkout")
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        return [row for row in csv.DictReader(lines) if row[key] == "azure"]


def test_the_sizes_that_are_recorded_have_the_hardware_that_is() -> None:
    for row in recorded("instance_types.csv.gz", "provider"):
        found = azure.machine(row["instance_type"])
        constrained = "-" in row["instance_type"]
        assert constrained or found.vcpus == float(row["vcpus"])
        assert found.memory_gib == float(row["memory_gib"])
        assert found.accelerator_count == float(row["api_accelerator_count"] or 0)


def known(found: Hardware) -> bool:
    return found.vcpus is not None and found.memory_gib is not None


def test_all_series_with_accelerators_and_most_others_are_known() -> None:
    names = {row["instance"].strip() for row in recorded("prices.csv.gz", "vendor")}
    sizes = [name for name in sorted(names) if azure.not_a_size(name) is None]
    unknown: list[Any] = [name for name in sizes if not known(azure.machine(name))]
    assert len(sizes) == 1774
    assert len(unknown) <= 83
    without = {name for name in sizes if azure.machine(name).accelerator_count is None}
    # A10 of the fourth version, parts of an RTX PRO 6000, and sizes that no page has
    documented = [n for n in without if "_A10_v4" not in n and "RTXPRO6000" not in n]
    assert all(not n.startswith(("Standard_NV", "Standard_NG", "Standard_NP")) for n in documented)
    assert math.isclose(
        sum(known(azure.machine(n)) for n in sizes) / len(sizes), 0.953, abs_tol=0.01
    )
