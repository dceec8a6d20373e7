"""Accelerators in the catalog: real answers that tools get wrong, G1 to G19, and their kinds."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from offers_and_trials import chosen, offer, trial
from provider_answers import (
    Row,
    ec2_gpu,
    ec2_machine,
    ec2_product,
    ec2_type,
    gce_type,
    gpu_info,
    meter,
    parsed,
    sky,
)

from underdog.catalog import quality
from underdog.catalog.facts import accelerator_named, accelerators
from underdog.core.columns import BY_NAME
from underdog.core.expression import parse
from underdog.core.table import Table

MIB = 1 / 1024

# family on EC2: name in the API, MiB of one as the API writes it, and the model
EC2 = {
    "g4dn": ("T4", 16384, "T4"),
    "g5": ("A10G", 24576, "A10G"),
    "g6": ("L4", 22888, "L4"),
    "g6e": ("L40S", 45776, "L40S"),
    "p4d": ("A100", 40960, "A100-40GB"),
    "p4de": ("A100", 81920, "A100-80GB"),
    "p5": ("H100", 81920, "H100"),
    "p5e": ("H200", 144384, "H200"),
    "p5en": ("NVIDIA", 144384, "H200"),
}


def accelerator(row: Row) -> tuple[Any, ...]:
    return tuple(row[f"accelerator{end}"] for end in ("", "_count", "_memory_gib"))


def rules(rows: list[Row], **given: Any) -> list[str]:
    return [one.rule for one in quality.check(rows, **given)]


def test_g1_the_total_given_as_the_memory_of_each() -> None:
    row = ec2_machine("g6e.12xlarge", ec2_gpu("L40S", 4, 183105))
    assert accelerator(row) == ("L40S", 4, 48)
    assert row["accelerator_memory_gib_total"] == 192
    assert row["accelerator_memory_source_gib"] == pytest.approx(183105 * MIB, abs=0.001)
    assert row["accelerator_usable_gib"] == pytest.approx(46068 * MIB, abs=0.001)


def test_g2_of_eight_l4_the_total_of_other_machines() -> None:
    row = ec2_machine("g6.48xlarge", ec2_gpu("L4", 8, 183105))
    assert accelerator(row) == ("L4", 8, 24)
    assert row["accelerator_memory_gib_total"] == 192


def test_g3_the_memory_of_an_l4_in_three_units() -> None:
    row = ec2_machine("g6.xlarge", ec2_gpu("L4", 1, 22888))
    assert accelerator(row) == ("L4", 1, 24)
    assert row["accelerator_usable_gib"] == pytest.approx(23034 * MIB, abs=0.001)
    assert row["accelerator_memory_source_gib"] == pytest.approx(22888 * MIB, abs=0.001)


@pytest.mark.parametrize("count", [4, 8])
@pytest.mark.parametrize("total", [False, True])
def test_g4_total_or_each_is_one_meaning(count: int, total: bool) -> None:
    mib = 22888 * (count if total else 1)
    rows, _ = sky(
        "runpod",
        {
            "InstanceType": f"{count}x_L4",
            "AcceleratorName": "L4",
            "AcceleratorCount": count,
            "GpuInfo": gpu_info("L4", count, mib, mib),
        },
    )
    assert accelerator(rows[0]) == ("L4", count, 24)
    assert rows[0]["accelerator_memory_gib_total"] == 24 * count


@pytest.mark.parametrize("family", EC2)
@pytest.mark.parametrize("count", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("total", [False, True])
def test_g1_to_g5_whatever_the_api_means_by_memory(family: str, count: int, total: bool) -> None:
    said, mib, model = EC2[family]
    given = mib * count if total else mib
    row = ec2_machine(f"{family}.12xlarge", ec2_gpu(said, count, given))
    assert accelerator(row) == (model, count, accelerators()[model].memory_gib)
    assert row["accelerator_memory_gib_total"] == count * accelerators()[model].memory_gib


def test_g5_a_maker_is_no_model() -> None:
    row = ec2_machine("p5en.48xlarge", ec2_gpu("NVIDIA", 8, 144384))
    assert accelerator(row) == ("H200", 8, 141)


@pytest.mark.parametrize("count", [0, 1])
@pytest.mark.parametrize(
    ("name", "mib", "part", "gib"),
    [
        ("g6f.large", 2861, 1 / 8, 3),
        ("g6f.large", 3072, 1 / 8, 3),
        ("g6f.2xlarge", 5722, 1 / 4, 6),
        ("g6f.4xlarge", 11444, 1 / 2, 12),
        ("gr6f.4xlarge", 12288, 1 / 2, 12),
    ],
)
def test_g6_a_part_of_an_accelerator(
    name: str, mib: int, part: float, gib: float, count: int
) -> None:
    row = ec2_machine(name, ec2_gpu("L4", count, mib))
    assert accelerator(row) == ("L4", part, gib)
    assert row["accelerator_usable_gib"] == gib


@pytest.mark.parametrize(
    ("size", "part", "gib"), [(6, 1 / 6, 4), (12, 1 / 3, 8), (18, 1 / 2, 12), (36, 1, 24)]
)
def test_g7_a_part_of_an_a10_on_azure(size: int, part: float, gib: float) -> None:
    (row,), _ = parsed("azure", retail=[meter(f"Standard_NV{size}ads_A10_v5", 0.454)])
    assert accelerator(row) == ("A10", pytest.approx(part), pytest.approx(gib))


@pytest.mark.parametrize(
    ("name", "gpu", "count", "model", "gib"),
    [
        ("a3-ultragpu-8g", "nvidia-h200-141gb", 8, "H200", 141),
        ("a3-highgpu-8g", "nvidia-h100-80gb", 8, "H100", 80),
        ("g2-standard-4", "nvidia-l4", 1, "L4", 24),
        ("a2-ultragpu-2g", "nvidia-a100-80gb", 2, "A100-80GB", 80),
        ("a2-highgpu-1g", "nvidia-tesla-a100", 1, "A100-40GB", 40),
        ("a4-highgpu-8g", "nvidia-b200", 8, "B200", 180),
        ("g4-standard-48", "nvidia-rtx-pro-6000", 1, "RTX-PRO-6000", 96),
    ],
)
def test_g8_accelerators_that_google_gives_no_memory_for(
    name: str, gpu: str, count: int, model: str, gib: float
) -> None:
    rows, left = parsed("gcp", machine_types=[gce_type(name, 8, 64, gpu, count)])
    assert left == []
    assert {accelerator(row) for row in rows} == {(model, count, gib)}


def test_g9_a_chip_is_no_card() -> None:
    row = ec2_machine("g7e.2xlarge", ec2_gpu("GB202", 1, 98304))
    assert accelerator(row) == ("RTX-PRO-6000", 1, 96)
    assert row["compute_capability"] == 12.0
    assert row["accelerator_usable_gib"] == pytest.approx(97887 * MIB, abs=0.001)


@pytest.mark.parametrize(
    ("model", "capability"),
    [
        *(("K80", 3.7), ("P100", 6.0), ("P4", 6.1), ("V100-16GB", 7.0), ("T4", 7.5)),
        *(("A100-80GB", 8.0), ("A10G", 8.6), ("L4", 8.9), ("L40S", 8.9), ("RTX-4090", 8.9)),
        *(("H100", 9.0), ("H200", 9.0), ("B200", 10.0), ("GB200", 10.0), ("B300", 10.3)),
        *(("GB300", 10.3), ("RTX-PRO-6000", 12.0), ("RTX-5090", 12.0), ("MI300X", None)),
    ],
)
def test_g10_compute_capability(model: str, capability: float | None) -> None:
    assert accelerators()[model].compute_capability == capability


def test_g11_memory_of_instinct_accelerators() -> None:
    assert accelerators()["MI325X"].memory_gib == 256
    (row,), _ = parsed("azure", retail=[meter("Standard_ND96isr_MI300X_v5", 48.0)])
    assert accelerator(row) == ("MI300X", 8, 192)


def test_g12_accelerators_without_a_name() -> None:
    rows, left = parsed("aws", instance_types=[ec2_type("zz9.large", ec2_gpu("", 2, 81920))])
    (row,) = (row for row in rows if row["instance_type"] == "zz9.large")
    assert row["accelerator_count"] is None  # neither two of nothing nor none
    assert "name" in left[0].reason
    _, left = sky("vast", {"InstanceType": "2x", "AcceleratorCount": 2})
    assert [one.reason for one in left] == ["an accelerator without a name"]
    assert "nameless_accelerator" in rules([offer(accelerator=None, accelerator_count=2)])


@pytest.mark.parametrize(("model", "on", "off"), [("L40S", 46068, 49140), ("T4", 15360, 16384)])
def test_g13_both_memories_of_a_card_are_true(model: str, on: int, off: int) -> None:
    facts = accelerators()[model]
    assert facts.usable_gib == pytest.approx(on * MIB)
    assert facts.usable_gib_ecc_off == pytest.approx(off * MIB)
    for mib in (on, off):
        row = offer(
            accelerator=model,
            accelerator_memory_gib=facts.memory_gib,
            accelerator_usable_gib=mib * MIB,
        )
        assert not {"accelerator_memory_differs", "total_memory_differs"} & set(rules([row]))


def test_g13_a_job_fits_by_what_is_usable() -> None:
    t4 = {"accelerator": "T4", "accelerator_memory_gib": 16}
    with_ecc = offer("g4dn.xlarge", **t4, accelerator_usable_gib=15.0)
    without = offer("ecs.gn6i", **t4, accelerator_usable_gib=16.0)
    job = trial("ecs.gn6i", peak_memory_gib={"accelerator": 15.5})
    verdicts = {line["offer"]: line for line in chosen([with_ecc, without], [job]).ledger()}
    out = verdicts["aws/us-east-1/g4dn.xlarge/on-demand"]
    assert (out["verdict"], out["cause"]) == ("excluded", "memory")
    assert verdicts["aws/us-east-1/ecs.gn6i/on-demand"]["verdict"] == "best"


@pytest.mark.parametrize(
    ("said", "model", "part"),
    [
        ("NVIDIA A10-8Q", "A10", 1 / 3),
        ("GRID T4-4Q", "T4", 1 / 4),
        ("NVIDIA L4-3Q", "L4", 1 / 8),
        ("NVIDIA A10", "A10", 1),
        ("Tesla T4", "T4", 1),
    ],
)
def test_g14_a_virtual_gpu_is_a_part_of_a_model(said: str, model: str, part: float) -> None:
    found = accelerator_named(said)
    assert found is not None
    assert (found.key, found.fraction) == (model, pytest.approx(part))


@pytest.mark.parametrize("device", [("K80", 16, 12288), ("K80", 8, 24576), None])
def test_g15_a_k80_is_two_chips(device: tuple[str, int, int] | None) -> None:
    gpus = [ec2_gpu(*device)] if device else []
    row = ec2_machine("p2.16xlarge", *gpus)
    assert accelerator(row) == ("K80", 16, 12)
    assert row["accelerator_usable_gib"] == pytest.approx(11441 * MIB, abs=0.001)


def test_g16_a_total_that_is_that_of_one() -> None:
    rows, _ = sky(
        "lambda",
        {
            "InstanceType": "gpu_8x_v100",
            "AcceleratorName": "V100",
            "AcceleratorCount": 8.0,
            "Price": 6.32,
            "GpuInfo": gpu_info("V100", 8.0, 16384, 16384),
        },
    )
    row = rows[0]
    assert accelerator(row) == ("V100-16GB", 8, 16)
    assert row["accelerator_memory_gib_total"] == 128
    assert row["caveats"] == "total_memory_differs"
    kept, left = quality.apply(rows, quality.check(rows))
    assert left == []
    assert "total_memory_differs" in kept[0]["caveats"]


def test_g17_the_memory_of_the_accelerator_in_the_column_of_the_host() -> None:
    pod = {
        "InstanceType": "1x_A100-80GB_SECURE",
        "AcceleratorName": "A100-80GB",
        "AcceleratorCount": 1,
        "GpuInfo": gpu_info("A100", 1, 81920, 81920),
        "Price": 1.39,
    }
    for memory, doubted in ((80, True), (117, False)):
        rows, _ = sky("runpod", {**pod, "MemoryGiB": memory})
        assert rows[0]["memory_gib"] == memory
        assert ("host_memory_is_accelerators" in rules(rows)) == doubted


@pytest.mark.parametrize(("gib", "what"), [(45097156608, 42), (68719476736, 64)])
def test_g18_bytes_in_a_column_of_gib(gib: int, what: float) -> None:
    rows, left = sky("nebius", {"InstanceType": "gpu-l40s", "MemoryGiB": gib})
    assert [row["memory_gib"] for row in rows if row["purchase"] == "on-demand"] == [what]
    assert left == []
    assert "memory_unit" in rules([offer(memory_gib=float(gib))])


@pytest.mark.parametrize("mib", [43008, 131072, 4096])
def test_g18_mib_in_a_column_of_gib(mib: float) -> None:
    assert "memory_unit" in rules([offer(vcpus=8, memory_gib=mib)])


def test_g19_what_people_call_a_24_gb_card() -> None:
    families = {"g6.xlarge": "L4", "g5.xlarge": "A10G", "g4dn.xlarge": "T4"}
    items = [
        ec2_type(name, ec2_gpu(EC2[name.split(".")[0]][0], 1, EC2[name.split(".")[0]][1]))
        for name in families
    ]
    prices = [ec2_product(name, "1.0") for name in families]
    rows, _ = parsed("aws", instance_types=items, products=prices)
    rows = [row for row in rows if row["region"] == "us-east-1"]
    table = Table.from_arrays({name: [row[name] for row in rows] for name in BY_NAME})
    for size, wanted in ((24, {"g6.xlarge", "g5.xlarge"}), (16, set(families))):
        found = table.select(parse(f"accelerator_memory_gib >= {size}", BY_NAME))
        assert {row["instance_type"] for row in found} == wanted
    assert all(row["accelerator_usable_gib"] < row["accelerator_memory_gib"] for row in rows)


def test_no_case_is_left_out() -> None:
    names = [name for name in globals() if name.startswith("test_g")]
    covered = set(itertools.chain(*(range(*_span(name)) for name in names)))
    assert covered == set(range(1, 20))


def _span(name: str) -> tuple[int, int]:
    parts = name.split("_")
    first = int(parts[1].removeprefix("g"))
    last = int(parts[3].removeprefix("g")) if parts[2] == "to" else first
    return first, last + 1
