"""What a machine has beyond its parts: processor, links, network, disks, and the ratio of rates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.catalog.facts import (
    LINKS,
    RDMA,
    machine_disk_gb_per_s,
    machine_ghz,
    machine_link,
    machine_network,
    processor_of,
    processor_of_family,
    processors,
    table,
    whole_core_families,
    whole_cores,
)
from underdog.catalog.hardware import Hardware, offer_row
from underdog.core.columns import OFFER_COLUMNS
from underdog.model import Price

UNKNOWN = Price(unknown_reason="not asked for")


def row(provider: str, instance_type: str, hardware: Hardware) -> dict[str, object]:
    return offer_row(provider, "here", instance_type, "on-demand", hardware, price=UNKNOWN)


@pytest.mark.parametrize("provider", ["aws", "gcp"])
def test_families_name_known_processors(provider: str) -> None:
    assert set(processor_of_family(provider).values()) <= set(processors())
    assert whole_core_families(provider)
    assert set(table("processors.toml")["azure"]) <= set(processors())


@pytest.mark.parametrize("key", sorted(processors()))
def test_every_processor_is_plausible(key: str) -> None:
    processor = processors()[key]
    assert processor.extensions
    assert ("neon" in processor.extensions) == (processor.arch == "arm64")
    rates = (processor.vector_bits, processor.flops_per_cycle, processor.ghz)
    if None in rates:  # hosts that differ
        assert rates == (None, None, None)
        return
    assert processor.ghz is not None
    assert 1.5 < processor.ghz < 5
    assert processor.vector_bits is not None
    assert processor.flops_per_cycle is not None
    lanes = processor.vector_bits // 32
    # a multiply-add counts two, and no core has more than four vector units
    assert lanes <= processor.flops_per_cycle <= 8 * lanes
    assert (processor.vector_bits == 512) == ("avx512" in processor.extensions)
    assert processor.socket_gb_per_s is not None
    assert processor.socket_cores is not None
    most = 20 if "HBM" in processor.model else 12
    assert 1 < processor.socket_gb_per_s / processor.socket_cores < most


@pytest.mark.parametrize(
    ("provider", "instance_type", "key"),
    [
        ("aws", "m9g.large", "graviton5"),
        ("aws", "c8i-flex.large", "granite-rapids"),
        ("aws", "ml.g5.xlarge", "rome"),
        ("aws", "mac2.metal", None),
        ("gcp", "c4-standard-8", "emerald-or-granite-rapids"),
        ("gcp", "e2-standard-2", "mixed-e2"),
        ("gcp", "c4d-standard-2", "turin"),
        ("gcp", "custom", None),
        ("azure", "Standard_HB368-144rs_v5", "genoa-hbm"),
        ("azure", "Standard_M176bds_4_v4", "granite-rapids"),
        ("azure", "Standard_D2s_v3", "mixed-intel"),
        ("azure", "Standard_GS5-8", "haswell"),
        ("azure", "Standard_ND96isrf_H100_v5", "sapphire-rapids"),
        ("azure", "Standard_ND128isrG5_GB300_v6", "grace"),
        ("lambda", "gpu_1x_a10", None),
    ],
)
def test_a_type_has_the_processor_of_its_family(
    provider: str, instance_type: str, key: str | None
) -> None:
    assert processor_of(provider, instance_type) == key


@pytest.mark.parametrize(
    ("provider", "instance_type", "whole"),
    [
        ("azure", "Standard_NC24ads_A100_v4", True),
        ("azure", "Standard_NC80adis_H100_v5", True),
        ("azure", "Standard_NC4as_T4_v3", True),
        ("azure", "Standard_ND96isr_H100_v5", True),
        ("azure", "Standard_NV36ads_A10_v5", False),
        ("azure", "Standard_D2s_v5", False),
        ("aws", "m7a.large", True),
        ("aws", "m7i.large", False),
        ("gcp", "t2d-standard-1", True),
        ("vast", "1x-RTX_4090", False),
    ],
)
def test_a_vcpu_is_a_core_or_a_thread(provider: str, instance_type: str, whole: bool) -> None:
    assert whole_cores(provider, instance_type) is whole


def test_hosts_that_differ_have_no_rate_and_what_all_of_them_have() -> None:
    e2 = row("gcp", "e2-standard-2", Hardware(vcpus=2))
    assert e2["cpu_fp32_tflops"] is None
    assert e2["vector_bits"] is None
    assert e2["cpu_extensions"] == "avx,avx2"
    c4 = row("gcp", "c4-standard-2", Hardware(vcpus=2))
    assert c4["cpu_fp32_tflops"] == pytest.approx(3.1 * 64 / 1000)
    assert "amx" in str(c4["cpu_extensions"])


@pytest.mark.parametrize(
    ("provider", "instance_type", "accelerator", "count", "link"),
    [
        ("aws", "p3.2xlarge", "V100-16GB", 1, None),
        ("aws", "p3.8xlarge", "V100-16GB", 4, ("nvlink-2", 200)),
        ("aws", "p3.16xlarge", "V100-16GB", 8, ("nvlink-2", 300)),
        ("aws", "p4d.24xlarge", "A100-40GB", 8, ("nvswitch-3", 600)),
        ("aws", "p5.4xlarge", "H100", 1, None),
        ("aws", "p5.48xlarge", "H100", 8, ("nvswitch-4", 900)),
        ("aws", "ml.p3.8xlarge", "V100-16GB", 4, ("nvlink-2", 200)),
        ("aws", "g5.12xlarge", "A10G", 4, ("pcie-4", 64)),
        ("aws", "g4dn.12xlarge", "T4", 4, ("pcie-3", 32)),
        ("aws", "g6f.large", "L4", 0.125, None),
        ("aws", "g7e.48xlarge", "RTX-PRO-6000", 8, ("pcie-5", 128)),
        ("aws", "trn1.32xlarge", "Trainium", 16, ("neuronlink", 384)),
        ("aws", "trn1n.32xlarge", "Trainium", 16, ("neuronlink", 768)),
        ("aws", "inf2.48xlarge", "Inferentia2", 12, ("neuronlink", 192)),
        ("gcp", "g2-standard-96", "L4", 8, ("pcie-3", 32)),
        ("gcp", "ct5p-hightpu-4t", "TPU-v5p", 4, ("ici", 1200)),
        ("azure", "Standard_NC48ads_A100_v4", "A100-80GB-PCIe", 2, ("nvlink-3", 600)),
        ("azure", "Standard_NC96ads_A100_v4", "A100-80GB-PCIe", 4, ("pcie-4", 64)),
        ("azure", "Standard_ND96isr_MI300X_v5", "MI300X", 8, ("infinity-fabric", 896)),
        ("lambda", "gpu_8x_h100_sxm5", "H100", 8, ("nvswitch-4", 900)),
        ("somebody", "8x-unknown", "SomeChip", 8, None),
        ("somebody", "unknown-number", "H100", None, None),
    ],
)
def test_the_link_is_that_of_the_machine(
    provider: str,
    instance_type: str,
    accelerator: str,
    count: float | None,
    link: tuple[str, float] | None,
) -> None:
    assert machine_link(provider, instance_type, accelerator, count) == link
    made = row(provider, instance_type, Hardware(accelerator=accelerator, accelerator_count=count))
    shown = (made["accelerator_link"], made["accelerator_link_gb_per_s"])
    assert shown == (link or (None, None))


def test_rules_name_what_is_in_the_closed_lists() -> None:
    rules = table("machines.toml")
    assert {rule["link"] for rule in rules["link"]} <= set(LINKS)
    assert {rule["rdma"] for rule in rules["network"] if "rdma" in rule} <= set(RDMA)
    assert all(rule["gbps"] >= rule.get("rdma_gbps", 0) > -1 for rule in rules["network"])
    assert all(0.1 < rule["gb_per_s"] < 100 for rule in rules["disk"])


def test_the_network_of_a_type() -> None:
    mega = machine_network("gcp", "a3-megagpu-8g")
    assert mega is not None
    assert (mega.gbps, mega.rdma, mega.rdma_gbps) == (1800, "gpudirect-tcpxo", 1600)
    assert machine_network("gcp", "n2-standard-2") is None
    assert machine_network("aws", "a3-megagpu-8g") is None


def test_the_rate_of_the_disks_of_a_type() -> None:
    assert machine_disk_gb_per_s("gcp", "a3-highgpu-8g") == 6.24
    assert machine_disk_gb_per_s("aws", "p4d.24xlarge") == 16
    assert machine_disk_gb_per_s("gcp", "a2-highgpu-1g") is None


def test_the_clock_is_that_of_the_series_where_it_is_known() -> None:
    assert machine_ghz("gcp", "c2-standard-4") == 3.8
    assert machine_ghz("aws", "c5.large") is None
    c2 = row("gcp", "c2-standard-4", Hardware(vcpus=4))
    assert c2["cpu_ghz"] == 3.8
    assert c2["cpu_fp32_tflops"] == pytest.approx(2 * 3.8 * 64 / 1000)
    said = row("gcp", "c2-standard-4", Hardware(vcpus=4, cpu_ghz=3.0))
    assert said["cpu_ghz"] == 3.0


@given(
    st.sampled_from(["aws", "azure", "gcp", "ovh", ""]),
    st.text() | st.from_regex(r"[a-zA-Z0-9_.-]*", fullmatch=True),
)
def test_no_name_of_a_type_breaks_a_machine(provider: str, instance_type: str) -> None:
    several = Hardware(vcpus=8, accelerator="A100-80GB", accelerator_count=2)
    made = row(provider, instance_type, several)
    assert set(made) == {column.name for column in OFFER_COLUMNS}
    assert made["accelerator_link"] in LINKS


def test_what_the_source_says_of_a_machine_stands() -> None:
    said = Hardware(
        processor="milan",
        accelerator="H100",
        accelerator_count=8,
        accelerator_link="pcie-5",
        network_gbps=100,
        network_rdma="infiniband",
        local_disk_gb=0,
    )
    made = row("gcp", "a3-megagpu-8g", said)
    assert made["cpu_model"] == "AMD Milan (Zen 3)"
    assert (made["accelerator_link"], made["accelerator_link_gb_per_s"]) == ("pcie-5", None)
    assert (made["network_gbps"], made["network_rdma"]) == (100, "infiniband")
    assert made["network_rdma_gbps"] is None
    assert made["local_disk_gb"] == 0


def test_the_ratio_is_of_the_vcpus_over_all_accelerators() -> None:
    one = row("aws", "g5.xlarge", Hardware(vcpus=4, accelerator="A10G", accelerator_count=1))
    four = row("aws", "g5.12xlarge", Hardware(vcpus=48, accelerator="A10G", accelerator_count=4))
    part = row("aws", "g6f.large", Hardware(vcpus=2, accelerator="L4", accelerator_count=0.125))
    assert one["cpu_accelerator_ratio"] == pytest.approx(2 * 2.8 * 32 / 1000 / 70, rel=0.01)
    assert four["cpu_accelerator_ratio"] == pytest.approx(24 * 2.8 * 32 / 1000 / 280, rel=0.01)
    assert part["cpu_accelerator_ratio"] == pytest.approx(2.9 * 32 / 1000 / (121 / 8), rel=0.01)
    without = row("aws", "m7i.large", Hardware(vcpus=2))
    unknown = row("aws", "p9.large", Hardware(vcpus=2, accelerator="X", accelerator_count=1))
    for made in (without, unknown):
        assert made["cpu_accelerator_ratio"] is None


def test_an_offer_has_the_columns_and_no_others() -> None:
    made = row("gcp", "a2-highgpu-1g", Hardware(accelerator="A100-40GB", accelerator_count=1))
    assert set(made) == {column.name for column in OFFER_COLUMNS}
