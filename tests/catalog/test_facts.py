"""The tables of facts: whole, plausible, and found by the names that clouds and drivers use."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.catalog.facts import (
    FORMATS,
    LINKS,
    AcceleratorFacts,
    accelerator_named,
    accelerators,
    carbon,
    slice_named,
    sustained_share,
    table,
)
from underdog.units import GIB

ROOT = Path(__file__).parents[2]
NVIDIA = [key for key, facts in accelerators().items() if facts.compute_capability]
TENSOR = [key for key in NVIDIA if "bf16" in accelerators()[key].tflops]
# GB10 and Thor are for desks and robots, and their makers give few rates.
FP8_IS_NOT_TWICE = {"Thor", "GB10"}


@pytest.mark.parametrize("key", sorted(accelerators()))
def test_every_accelerator_is_whole(key: str) -> None:
    facts = accelerators()[key]
    assert facts.source
    assert facts.software
    assert facts.memory_gib > 0
    assert set(facts.tflops) <= set(FORMATS)
    assert all(rate > 0 for rate in facts.tflops.values())
    assert facts.link is None or facts.link in LINKS
    assert (facts.link is None) == (facts.link_gb_per_s is None)
    assert facts.power_w is None or 30 < facts.power_w <= 1400
    assert facts.gb_per_s is None or 30 < facts.gb_per_s <= 8000
    if "cuda" in facts.software:
        assert facts.compute_capability is not None


@pytest.mark.parametrize("key", sorted(accelerators()))
def test_usable_memory_is_a_little_less_than_nominal(key: str) -> None:
    facts = accelerators()[key]
    for usable in (facts.usable_gib, facts.usable_gib_ecc_off):
        if usable is not None:
            assert 0.85 < usable / facts.memory_gib <= 1.01
    if facts.usable_gib_ecc_off is not None:
        assert facts.usable_gib is not None
        assert facts.usable_gib < facts.usable_gib_ecc_off


def test_there_are_enough_of_them() -> None:
    known = set(accelerators())
    assert len(known) >= 60
    assert {"K80", "B300", "GB200", "GB300", "V520"} <= known
    assert {"MI100", "MI210", "MI250X", "MI300X", "MI325X", "MI350X", "MI355X"} <= known
    assert {f"TPU-{v}" for v in ("v2", "v3", "v4", "v5e", "v5p", "v6e", "v7")} <= known
    assert {"Trainium", "Trainium2", "Trainium3", "Inferentia", "Inferentia2"} <= known
    assert {"Gaudi", "Gaudi2", "Gaudi3", "GTX-1080-Ti", "RTX-3090", "RTX-4090", "RTX-5090"} <= known


@pytest.mark.parametrize("key", sorted(accelerators()))
def test_narrower_formats_are_not_slower(key: str) -> None:
    rates = accelerators()[key].tflops
    order = [rates[name] for name in ("fp32", "tf32", "bf16", "fp8", "fp4") if name in rates]
    assert order == sorted(order)


def ratio(facts: AcceleratorFacts, over: str, under: str) -> float | None:
    rates = facts.tflops
    return rates[over] / rates[under] if over in rates and under in rates else None


@pytest.mark.parametrize("key", TENSOR)
def test_tensor_rates_keep_the_ratios_of_their_generation(key: str) -> None:
    """A figure with sparsity would stand at twice what its neighbours say."""
    facts = accelerators()[key]
    assert ratio(facts, "bf16", "fp16") == 1
    assert ratio(facts, "fp16", "tf32") == pytest.approx(2, rel=0.03)
    eight_bits = (2, 4) if facts.compute_capability in (8.6, 8.9, 12.0) else (2,)
    if facts.compute_capability != 10.3:  # Blackwell Ultra gave up int8 for fp4
        int8 = ratio(facts, "int8", "fp16")
        assert int8 is None or any(int8 == pytest.approx(n, rel=0.03) for n in eight_bits)
    fp8, fp4 = ratio(facts, "fp8", "fp16"), ratio(facts, "fp4", "fp8")
    assert fp8 is None or fp8 == pytest.approx(2, rel=0.03)
    assert fp4 is None or fp4 == pytest.approx(
        {10.0: 2, 10.3: 3}.get(facts.compute_capability or 0, fp4)
    )
    assert (fp8 is not None) == ((facts.compute_capability or 0) >= 8.9)
    assert (fp4 is not None) == ((facts.compute_capability or 0) >= 10)


@pytest.mark.parametrize("key", NVIDIA)
def test_vector_rates_keep_the_ratios_of_their_generation(key: str) -> None:
    facts = accelerators()[key]
    capability, cut = facts.compute_capability or 0, key in ("H20", "H800")
    fp16, fp64 = ratio(facts, "fp16", "fp32"), ratio(facts, "fp64", "fp32")
    if capability in (7.0, 7.5) and fp16 is not None:
        assert any(fp16 == pytest.approx(n, rel=0.08) for n in (4, 8))
    if capability == 6.0:
        assert fp16 == pytest.approx(2, rel=0.02)
    if capability in (8.0, 9.0) and not cut:  # tensor cores have fp64 at the rate of fp32
        assert fp64 == pytest.approx(1, rel=0.02)
    if capability in (6.0, 7.0, 10.0):
        assert fp64 == pytest.approx(0.5, rel=0.02)
    if capability in (5.2, 6.1, 7.5, 10.3) and fp64 is not None:
        assert fp64 < 0.04


def test_chips_of_one_die_have_one_capability() -> None:
    known = {key: facts.compute_capability for key, facts in accelerators().items()}
    assert (known["L4"], known["L40S"], known["RTX-4090"]) == (8.9, 8.9, 8.9)
    assert (known["B200"], known["GB200"]) == (10.0, 10.0)
    assert (known["B300"], known["GB300"]) == (10.3, 10.3)
    assert (known["RTX-PRO-6000"], known["RTX-5090"]) == (12.0, 12.0)
    assert (known["GB10"], known["Thor"]) == (12.1, 11.0)
    assert (known["H100"], known["GH200"], known["A100-80GB"], known["A10G"]) == (
        9.0,
        9.0,
        8.0,
        8.6,
    )


@pytest.mark.parametrize(
    ("name", "memory", "key", "fraction"),
    [
        # the driver
        ("NVIDIA A100-SXM4-80GB", None, "A100-80GB", 1),
        ("NVIDIA A100 80GB PCIe", None, "A100-80GB-PCIe", 1),
        ("NVIDIA H100 80GB HBM3", None, "H100", 1),
        ("NVIDIA B300 SXM6 AC", None, "B300", 1),
        ("NVIDIA GH200 480GB", None, "GH200", 1),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", None, "RTX-4070-Ti-Super", 1),
        ("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", None, "RTX-PRO-6000-Max-Q", 1),
        ("Tesla T4", None, "T4", 1),
        ("Quadro RTX 5000", None, "RTX-5000", 1),
        ("AMD Instinct MI300X OAM", None, "MI300X", 1),
        # EC2
        ("T4g", None, "T4G", 1),
        ("GB202", None, "RTX-PRO-6000", 1),
        ("RTX PRO Server 6000", 96, "RTX-PRO-6000", 1),
        ("RTX PRO 4500", 32, "RTX-PRO-4500", 1),
        ("Radeon Pro V520", None, "V520", 1),
        ("Gaudi HL-205", None, "Gaudi", 1),
        # Google Cloud
        ("nvidia-h200-141gb", 0, "H200", 1),
        ("nvidia-h100-80gb", 0, "H100", 1),
        ("nvidia-h100-mega-80gb", 0, "H100", 1),
        ("nvidia-tesla-a100", None, "A100-40GB", 1),
        ("nvidia-a100-80gb", None, "A100-80GB", 1),
        ("nvidia-tesla-t4-vws", None, "T4", 1),
        ("nvidia-tesla-v100", 16, "V100-16GB", 1),
        ("nvidia-rtx-pro-6000", None, "RTX-PRO-6000", 1),
        ("nvidia-l4", 0, "L4", 1),
        ("ct5lp", None, "TPU-v5e", 1),
        # SkyPilot
        ("A100-80GB-SXM", None, "A100-80GB", 1),
        ("H100-SXM", None, "H100", 1),
        ("RTX6000-Ada", None, "RTX-6000-Ada", 1),
        ("RTX6000", 24, "RTX-6000", 1),
        ("RTXPRO6000", None, "RTX-PRO-6000", 1),
        ("tpu-v6e", None, "TPU-v6e", 1),
        # Lambda, RunPod, Vast
        ("H100 (80 GB SXM5)", None, "H100", 1),
        ("H100 (80 GB PCIe)", None, "H100-PCIe", 1),
        ("A100 (40 GB PCIe)", None, "A100-40GB-PCIe", 1),
        ("A6000 (48 GB)", None, "RTX-A6000", 1),
        ("H100_NVL", None, "H100-NVL", 1),
        ("A100_SXM4", 80, "A100-80GB", 1),
        ("RTX_4090", None, "RTX-4090", 1),
        ("RTX_4070S_Ti", None, "RTX-4070-Ti-Super", 1),
        ("Q_RTX_8000", None, "RTX-8000", 1),
        ("GTX_1080_Ti", None, "GTX-1080-Ti", 1),
        ("RTX_PRO_6000_WS", None, "RTX-PRO-6000-WS", 1),
        # one name of several models
        ("A100", 40, "A100-40GB", 1),
        ("A100", 80, "A100-80GB", 1),
        ("V100", 32, "V100-32GB", 1),
        ("H100", None, "H100", 1),
        ("H100", 94, "H100-NVL", 1),
        ("RTX 4060 Ti", 16, "RTX-4060-Ti-16GB", 1),
        ("RTX 6000", 48, "RTX-6000-Ada", 1),
        # parts
        ("NVIDIA A10-8Q", None, "A10", 1 / 3),
        ("NVIDIA A10-4Q", None, "A10", 1 / 6),
        ("GRID T4-4Q", None, "T4", 1 / 4),
        ("NVIDIA L4-3Q", None, "L4", 1 / 8),
        ("NVIDIA A16-16Q", None, "A16", 1),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None, "A100-40GB", 1 / 8),
        ("NVIDIA A100-SXM4-80GB MIG 1g.10gb", None, "A100-80GB", 1 / 8),
        ("NVIDIA A100-SXM4-80GB MIG 1g.20gb", None, "A100-80GB", 1 / 4),
        ("H100 MIG 3g.40gb", None, "H100", 1 / 2),
        ("A100 MIG 2g.10gb", None, "A100-40GB", 1 / 4),
        ("NVIDIA H200 MIG 1g.18gb+me", None, "H200", 1 / 8),
        ("NVIDIA B200 MIG 7g.180gb", None, "B200", 1),
        ("NVIDIA A30 MIG 1g.6gb", None, "A30", 1 / 4),
    ],
)
def test_names_are_known(name: str, memory: float | None, key: str, fraction: float) -> None:
    found = accelerator_named(name, memory)
    assert found is not None
    assert found.key == key
    assert found.fraction == pytest.approx(fraction)


@pytest.mark.parametrize(
    ("name", "memory"),
    [
        ("NVIDIA", 141),
        ("V100", None),
        ("A100", 24),
        ("", None),
        ("X-1Q", None),
        ("A100 MIG 5g.20gb", None),
        ("X MIG 1g.5gb", None),
        ("MIG 1g.5gb", None),
    ],
)
def test_what_a_name_does_not_tell_is_unknown(name: str, memory: float | None) -> None:
    assert accelerator_named(name, memory) is None


@given(st.text(max_size=40), st.none() | st.floats(allow_nan=True, allow_infinity=True))
def test_no_name_breaks_the_look_up(name: str, memory: float | None) -> None:
    found = accelerator_named(name, memory)
    assert found is None or 0 < found.fraction <= 1
    slice_named(name)


def test_models_of_one_name_differ_in_memory() -> None:
    rows = table("accelerators.toml")
    by_name: dict[str, list[str]] = {}
    for key, row in rows.items():
        for alias in {"".join(filter(str.isalnum, a.lower())) for a in row["aliases"]}:
            by_name.setdefault(alias, []).append(key)
    for alias, keys in by_name.items():
        for one, other in itertools.combinations(keys, 2):
            sizes = sorted(rows[key]["memory_gib"] for key in (one, other))
            assert sizes[1] / sizes[0] > 1.15, (alias, one, other)


@pytest.mark.parametrize("key", sorted(accelerators()))
def test_a_model_is_found_by_its_own_names_in_any_unit(key: str) -> None:
    facts, names = accelerators()[key], table("accelerators.toml")[key]["aliases"]
    sizes = [facts.memory_gib, facts.memory_gib * 1e9 / GIB, facts.usable_gib or facts.memory_gib]
    for name, size in itertools.product([key, facts.name, *names], sizes):
        found = accelerator_named(name, size)
        if name == facts.name and found is None:  # a name in full words is for people
            continue
        assert found is not None
        assert (found.key, found.fraction) == (key, 1), (name, size)


@pytest.mark.parametrize(
    ("name", "key", "chips"),
    [
        ("tpu-v2-8", "TPU-v2", 4),
        ("v3-8", "TPU-v3", 4),
        ("v4-32", "TPU-v4", 16),
        ("tpu-v5litepod-8", "TPU-v5e", 8),
        ("tpu-v5p-8", "TPU-v5p", 4),
        ("tpu-v6e-1", "TPU-v6e", 1),
    ],
)
def test_a_slice_is_a_number_of_chips(name: str, key: str, chips: int) -> None:
    assert slice_named(name) == (key, chips)


@pytest.mark.parametrize("name", ["tpu-v9-8", "v4", "v4-0", "L4", ""])
def test_what_is_no_slice_is_none(name: str) -> None:
    assert slice_named(name) is None


def test_memory_that_sources_get_wrong() -> None:
    memory = {key: facts.memory_gib for key, facts in accelerators().items()}
    assert memory["MI325X"] == 256
    assert memory["MI300X"] == 192
    assert memory["H200"] == 141


def test_two_true_memories_stand_side_by_side() -> None:
    t4, l40s = accelerators()["T4"], accelerators()["L40S"]
    assert (t4.memory_gib, t4.usable_gib, t4.usable_gib_ecc_off) == (16, 15, 16)
    assert l40s.usable_gib == pytest.approx(46068 / 1024)
    assert l40s.usable_gib_ecc_off == pytest.approx(49140 / 1024)


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


def test_the_page_of_accelerators_is_what_the_table_says() -> None:
    spec = importlib.util.spec_from_file_location("page", ROOT / "tools" / "write_accelerators.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page()
