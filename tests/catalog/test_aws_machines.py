"""The hardware of AWS's types: the faults that the EC2 API has had, each with its kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from underdog.catalog.facts import accelerators
from underdog.catalog.providers import aws
from underdog.catalog.providers.aws.machines import network_gbps
from underdog.catalog.sources import LeftOut, Raw

SAMPLES = Path(__file__).parent / "samples"
TYPES = json.loads((SAMPLES / "aws_instance_types.json").read_text())


def parsed(types: list[Any], **documents: list[Any]) -> tuple[dict[str, Any], list[LeftOut]]:
    raw = Raw(
        provider="aws",
        documents={"instance_types": types, **documents},
        source="a recorded answer",
        date="2026-07-20",
    )
    found = list(aws.parse(raw))
    rows = {one["instance_type"]: one for one in found if not isinstance(one, LeftOut)}
    return rows, [one for one in found if isinstance(one, LeftOut)]


@pytest.fixture(scope="module")
def rows() -> dict[str, Any]:
    return parsed(TYPES)[0]


def gpu_type(
    name: str, accelerator: str, count: float | None, mib: float | None, **more: Any
) -> dict[str, Any]:
    gpu = {"Name": accelerator, "Count": count, "MemoryInfo": {"SizeInMiB": mib}, **more}
    return {"InstanceType": name, "GpuInfo": {"Gpus": [gpu]}}


ACCELERATORS = ("accelerator", "accelerator_count", "accelerator_memory_gib")


@pytest.mark.parametrize(
    ("name", "want", "usable", "said"),
    [
        ("g6e.12xlarge", ("L40S", 4, 48), 44.988, 178.813),  # G1: the total given as each
        ("g6.48xlarge", ("L4", 8, 24), 22.494, 178.813),  # G2: the total of eight as each
        ("g6.xlarge", ("L4", 1, 24), 22.494, 22.352),  # G3: 24 GB, whatever the units
        ("p5en.48xlarge", ("H200", 8, 141), 140.401, 141),  # G5: "NVIDIA" for a name
        ("g6f.large", ("L4", 0.125, 3), 3, 2.794),  # G6: a part with the count 0
        ("gr6f.4xlarge", ("L4", 0.5, 12), 12, 12),  # G6: a part with the count 1
        ("g7e.2xlarge", ("RTX-PRO-6000", 1, 96), 95.593, 96),  # G9: the chip's name
        ("p2.16xlarge", ("K80", 16, 12), 11.173, 12),  # G15
        ("gr6.4xlarge", ("L4", 1, 24), 22.494, 22.352),
        ("p4d.24xlarge", ("A100-40GB", 8, 40), 40, 40),
        ("g4ad.8xlarge", ("V520", 2, 8), None, 8),
        ("dl1.24xlarge", ("Gaudi", 8, 32), None, 32),
        ("dl2q.24xlarge", ("AI100", 8, 16), None, 15.625),
        ("inf2.xlarge", ("Inferentia2", 1, 32), None, 32),
        ("trn2.48xlarge", ("Trainium2", 16, 96), None, 512),  # neither of one nor of all
        ("trn2u.48xlarge", ("Trainium2", 16, 96), None, None),  # the API says none
        ("f2.6xlarge", ("FPGA-VU47P", 1, 16), None, 80),
        ("vt1.3xlarge", ("Alveo-U30", 1, 8), None, 24),
        ("c7g.large", (None, 0, None), None, None),
    ],
)
def test_accelerators_of_recorded_types(
    rows: dict[str, Any],
    name: str,
    want: tuple[Any, ...],
    usable: float | None,
    said: float | None,
) -> None:
    row = rows[name]
    assert tuple(row[key] for key in ACCELERATORS) == want
    assert row["accelerator_usable_gib"] == usable
    assert row["accelerator_memory_source_gib"] == said
    if want[1]:
        assert row["accelerator_memory_gib_total"] == want[2] * max(want[1], 1)


@pytest.mark.parametrize("form", ["each", "total", "nominal bytes", "nothing"])
@pytest.mark.parametrize("count", [1, 4, 8])
@pytest.mark.parametrize("nameless", [False, True])
@pytest.mark.parametrize(
    ("family", "name"),
    [
        ("g4dn", "T4"),
        ("g5", "A10G"),
        ("g6", "L4"),
        ("g6e", "L40S"),
        ("p3", "V100"),
        ("p3dn", "V100"),
        ("p4d", "A100"),
        ("p4de", "A100"),
        ("p5", "H100"),
        ("p5en", "H200"),
        ("p6-b200", "B200"),
    ],
)
def test_whatever_the_memory_means_the_machine_is_the_same(
    family: str, name: str, nameless: bool, count: int, form: str
) -> None:
    usual, _ = parsed([gpu_type(f"{family}.big", name, 8, None)])
    facts = accelerators()[usual[f"{family}.big"]["accelerator"]]
    mib = {
        "each": facts.memory_gib * 1024,
        "total": facts.memory_gib * 1024 * count,
        "nominal bytes": facts.memory_gib * 1e9 / 2**20,
        "nothing": None,
    }[form]
    said = "NVIDIA" if nameless else name
    rows, left = parsed([gpu_type(f"{family}.big", said, count, mib)])
    row = rows[f"{family}.big"]
    assert tuple(row[key] for key in ACCELERATORS) == (facts.key, count, facts.memory_gib)
    assert left == []


@pytest.mark.parametrize("part", [1 / 8, 1 / 6, 1 / 4, 1 / 3, 1 / 2])
@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize("said", ["GiB", "GB", "partition"])
@pytest.mark.parametrize("model", ["L4", "A10G", "RTX-PRO-6000"])
def test_a_part_is_a_part_whatever_its_count(
    model: str, said: str, count: int, part: float
) -> None:
    whole = accelerators()[model].memory_gib
    mib = whole * part * (1024 if said == "GiB" else 1e9 / 2**20)
    more = {"GpuPartitionSize": part, "LogicalGpuCount": 1} if said == "partition" else {}
    rows, _ = parsed([gpu_type("g9f.large", model, count, mib, **more)])
    assert tuple(rows["g9f.large"][key] for key in ACCELERATORS) == (
        model,
        pytest.approx(part),
        pytest.approx(whole * part, abs=0.001),
    )


def test_boards_of_two_chips_are_two_accelerators() -> None:
    rows, _ = parsed([gpu_type("p2.16xlarge", "K80", 8, 24576)])
    assert rows["p2.16xlarge"]["accelerator_count"] == 16


def test_whole_accelerators_have_a_partition_of_one() -> None:
    whole = gpu_type("g6.12xlarge", "L4", 4, 22888, GpuPartitionSize=1.0, LogicalGpuCount=4)
    assert parsed([whole])[0]["g6.12xlarge"]["accelerator_count"] == 4


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (gpu_type("zz9.large", "NVIDIA", 2, 4096), "without a known name"),
        (gpu_type("zz9.large", "", 2, None), "without a known name"),
        (gpu_type("g6.large", "L4", None, 22888), "without a count"),
        (gpu_type("g6f.large", "L4", 0, 3072, LogicalGpuCount=2), "several parts"),
        ({"InstanceType": "trn9.large"}, "no accelerator for a family that has one"),
        ({"InstanceType": "g5.3xlarge"}, "without a count"),
        (
            {"InstanceType": "g5.large", "GpuInfo": {"Gpus": [{"Name": "A10G"}, {"Name": "L4"}]}},
            "several models",
        ),
    ],
)
def test_an_accelerator_that_is_not_understood_is_told_and_unknown(
    item: dict[str, Any], reason: str
) -> None:
    item["VCpuInfo"] = {"DefaultVCpus": 8}
    rows, left = parsed([item])
    (row,) = rows.values()
    assert (row["accelerator"], row["accelerator_count"], row["vcpus"]) == (None, None, 8)
    assert reason in left[0].reason


@pytest.mark.parametrize(
    ("name", "gbps", "rdma", "rdma_gbps"),
    [
        ("p4d.24xlarge", 400, "efa", 400),
        ("p5en.48xlarge", 3200, "efa", 3200),
        ("g6e.48xlarge", 400, "efa", 400),  # each of its four cards is said to have all of it
        ("i7ie.48xlarge", 200, "efa", 100),  # one of its two cards can
        ("g6.xlarge", 2.5, None, None),  # what is above is a burst
        ("m5d.large", 0.75, None, None),
        ("dl1.24xlarge", 400, "efa", 400),
    ],
)
def test_networks(
    rows: dict[str, Any], name: str, gbps: float, rdma: str | None, rdma_gbps: float | None
) -> None:
    row = rows[name]
    assert row["network_gbps"] == gbps
    assert (row["network_rdma"], row["network_rdma_gbps"]) == (rdma, rdma_gbps)


@pytest.mark.parametrize(
    ("text", "gbps"),
    [
        ("25 Gigabit", 25),
        ("4x 100 Gigabit", 400),
        ("3.12 Gigabit", 3.12),
        ("Up to 10 Gigabit", None),
        ("High", None),
        ("0 Gigabit", None),
        ("1.2.3 Gigabit", None),
        ("", None),
    ],
)
def test_a_burst_is_no_bandwidth(text: str, gbps: float | None) -> None:
    assert network_gbps(text) == gbps


@pytest.mark.parametrize(
    ("name", "gb", "kind"),
    [
        ("m5d.large", 75, "nvme"),
        ("c3.large", 32, "ssd"),
        ("d3.xlarge", 5940, "hdd"),
        ("c7g.large", 0, None),
    ],
)
def test_local_disks(rows: dict[str, Any], name: str, gb: float, kind: str | None) -> None:
    assert (rows[name]["local_disk_gb"], rows[name]["local_disk_kind"]) == (gb, kind)


def test_hosts(rows: dict[str, Any]) -> None:
    keys = ("vcpus", "memory_gib", "arch", "cpu_ghz")
    assert tuple(rows["g5.xlarge"][key] for key in keys) == (4, 16, "x86_64", 3.3)
    assert tuple(rows["c7g.large"][key] for key in keys) == (2, 4, "arm64", 2.6)


def test_a_thread_is_half_a_core_unless_the_api_says_otherwise(rows: dict[str, Any]) -> None:
    def threads(count: int, vcpus: int = 8) -> float:
        item = {
            "InstanceType": "m5.2xlarge",
            "VCpuInfo": {"DefaultVCpus": vcpus, "DefaultThreadsPerCore": count},
        }
        found: float = parsed([item])[0]["m5.2xlarge"]["cpu_fp32_tflops"]
        return found / vcpus

    assert threads(1) == pytest.approx(2 * threads(2))
    # one vCPU has one thread of necessity
    assert threads(1, vcpus=1) == pytest.approx(threads(2), rel=0.01)


def test_a_mac_is_no_machine_for_this() -> None:
    rows, left = parsed(TYPES)
    assert "mac2.metal" not in rows
    assert [one.instance_type for one in left] == ["mac2.metal"]


def test_types_that_the_api_lists_no_more_are_known_by_name() -> None:
    def product(name: str) -> dict[str, Any]:
        attributes = {
            "instanceType": name,
            "regionCode": "us-east-1",
            "operatingSystem": "Linux",
            "tenancy": "Shared",
        }
        return {"product": {"attributes": attributes}}

    rows, _ = parsed([], products=[product("p3.8xlarge"), product("g2.8xlarge")])
    assert tuple(rows["p3.8xlarge"][key] for key in ACCELERATORS) == ("V100-16GB", 4, 16)
    assert rows["p3.8xlarge"]["memory_gib"] == 244
    assert tuple(rows["g2.8xlarge"][key] for key in ACCELERATORS) == ("K520", 4, 4)
    # and where it lists them, it goes first
    listed = [{"InstanceType": "p3.8xlarge", "MemoryInfo": {"SizeInMiB": 1024}}]
    again, _ = parsed(listed, products=[product("p3.8xlarge")])
    assert again["p3.8xlarge"]["memory_gib"] == 1
