"""The tables of facts: whole, plausible, and found by the names that clouds and drivers use."""

from __future__ import annotations

import pytest

from underdog.catalog.facts import (
    FORMATS,
    accelerator_named,
    accelerators,
    carbon,
    processor_of_family,
    processors,
    sustained_share,
    whole_core_families,
)


@pytest.mark.parametrize("key", sorted(accelerators()))
def test_every_accelerator_is_whole(key: str) -> None:
    facts = accelerators()[key]
    assert facts.source
    assert facts.software
    assert facts.memory_gib > 0
    assert set(facts.tflops) <= set(FORMATS)
    assert all(rate > 0 for rate in facts.tflops.values())
    assert (facts.link is None) == (facts.link_gb_per_s is None)
    # nominal GB is 7 % less in GiB, and a driver keeps a little for itself
    if facts.usable_gib is not None:
        assert 0.88 * facts.memory_gib < facts.usable_gib < 1.03 * facts.memory_gib
    if "cuda" in facts.software:
        assert facts.compute_capability is not None


@pytest.mark.parametrize("key", sorted(accelerators()))
def test_narrower_formats_are_not_slower(key: str) -> None:
    rates = accelerators()[key].tflops
    order = [rates[name] for name in ("fp32", "tf32", "bf16", "fp8") if name in rates]
    assert order == sorted(order)
    # a figure with sparsity would stand at twice its neighbour's
    if "bf16" in rates and "tf32" in rates and key != "MI300X":
        assert rates["bf16"] <= 2.1 * rates["tf32"] or "neuron" in accelerators()[key].software


@pytest.mark.parametrize(
    ("name", "memory", "key", "fraction"),
    [
        ("NVIDIA A100-SXM4-80GB", None, "A100-80GB", 1),
        ("NVIDIA A100 80GB PCIe", None, "A100-80GB-PCIe", 1),
        ("A100", 40, "A100-40GB", 1),
        ("A100", 80, "A100-80GB", 1),
        ("V100", 32, "V100-32GB", 1),
        ("Tesla T4", None, "T4", 1),
        ("nvidia-h200-141gb", 0, "H200", 1),
        ("nvidia-h100-80gb", 0, "H100", 1),
        ("nvidia-l4", 0, "L4", 1),
        ("GB202", None, "RTX-PRO-6000", 1),
        ("RTX PRO Server 6000", 96, "RTX-PRO-6000", 1),
        ("NVIDIA A10-8Q", None, "A10", 1 / 3),
        ("GRID T4-4Q", None, "T4", 1 / 4),
        ("NVIDIA L4-3Q", None, "L4", 1 / 8),
        ("T4g", None, "T4G", 1),
    ],
)
def test_names_are_known(name: str, memory: float | None, key: str, fraction: float) -> None:
    found = accelerator_named(name, memory)
    assert found is not None
    assert found.key == key
    assert found.fraction == pytest.approx(fraction)


@pytest.mark.parametrize(
    ("name", "memory"), [("NVIDIA", 141), ("V100", None), ("A100", 24), ("", None), ("X-1Q", None)]
)
def test_what_a_name_does_not_tell_is_unknown(name: str, memory: float | None) -> None:
    assert accelerator_named(name, memory) is None


def test_capabilities_that_sources_get_wrong() -> None:
    known = {key: facts.compute_capability for key, facts in accelerators().items()}
    assert known["L4"] == 8.9
    assert known["B200"] == 10.0
    assert known["B300"] == 10.3
    assert known["RTX-PRO-6000"] == 12.0


def test_memory_that_sources_get_wrong() -> None:
    memory = {key: facts.memory_gib for key, facts in accelerators().items()}
    assert memory["MI325X"] == 256
    assert memory["MI300X"] == 192
    assert memory["H200"] == 141


def test_two_true_memories_stand_side_by_side() -> None:
    t4 = accelerators()["T4"]
    assert (t4.memory_gib, t4.usable_gib, t4.usable_gib_ecc_off) == (16, 15, 16)


@pytest.mark.parametrize("provider", ["aws", "gcp"])
def test_families_name_known_processors(provider: str) -> None:
    assert set(processor_of_family(provider).values()) <= set(processors())
    assert whole_core_families(provider)


@pytest.mark.parametrize("key", sorted(processors()))
def test_every_processor_is_plausible(key: str) -> None:
    processor = processors()[key]
    assert 1.5 < processor.ghz < 5
    lanes = processor.vector_bits // 32
    # a multiply-add counts two, and no core has more than four vector units
    assert lanes <= processor.flops_per_cycle <= 8 * lanes
    assert 1 < processor.socket_gb_per_s / processor.socket_cores < 12


def test_carbon_is_a_share_of_coal() -> None:
    for provider in ("aws", "azure", "gcp"):
        assert carbon(provider)
        assert all(0 < value < 1.1 for value in carbon(provider).values())


@pytest.mark.parametrize(
    ("provider", "instance_type", "share"),
    [
        ("gcp", "e2-micro", 0.125),
        ("gcp", "f1-micro", 0.2),
        ("aws", "t4g.2xlarge", 0.4),
        ("aws", "c7i-flex.large", 0.4),
        ("azure", "Standard_B2als_v2", 0.3),
        ("azure", "Standard_B16ms", 0.168),
        ("gcp", "e2-standard-2", 1.0),
        ("aws", "m7i.large", 1.0),
        ("azure", "Standard_D2s_v5", 1.0),
    ],
)
def test_a_bursting_type_sustains_a_share_of_its_vcpus(
    provider: str, instance_type: str, share: float
) -> None:
    assert sustained_share(provider, instance_type) == share
