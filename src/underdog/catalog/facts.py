"""What is known of accelerators, processors and regions: the tables in ``underdog/data``."""

from __future__ import annotations

import functools
import importlib.resources
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from underdog.units import GIB, MIB

_PARTS = (1 / 12, 1 / 8, 1 / 6, 1 / 4, 1 / 3, 1 / 2)
FORMATS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "int8")


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceleratorFacts:
    """One accelerator model; rates are dense, in 10^12 operations per second."""

    key: str
    name: str
    memory_gib: float
    usable_gib: float | None = None
    usable_gib_ecc_off: float | None = None
    gb_per_s: float | None = None
    tflops: dict[str, float] = field(default_factory=dict)
    link: str | None = None
    link_gb_per_s: float | None = None
    power_w: float | None = None
    compute_capability: float | None = None
    software: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Processor:
    """One processor family; see ``data/processors.toml``."""

    model: str
    arch: str
    vector_bits: int
    flops_per_cycle: int
    ghz: float
    socket_cores: int
    socket_gb_per_s: float
    threads_per_core: int = 2


@dataclass(frozen=True, slots=True)
class Named:
    """What a name of an accelerator stands for: a model and, of a virtual one, the part of it."""

    key: str
    fraction: float = 1.0


@functools.cache
def table(name: str) -> dict[str, Any]:
    """A table of ``underdog/data`` by its file name."""
    text = importlib.resources.files("underdog.data").joinpath(name).read_text(encoding="utf-8")
    return tomllib.loads(text)


@functools.cache
def accelerators() -> dict[str, AcceleratorFacts]:
    """All accelerators by their short name: ``L4``, ``A100-80GB``, ``Trainium2``."""
    found = {}
    for key, row in table("accelerators.toml").items():
        fields = {k: v for k, v in row.items() if k not in ("aliases", "software")}
        usable, ecc_off = fields.pop("usable_mib", None), fields.pop("usable_mib_ecc_off", None)
        found[key] = AcceleratorFacts(
            key=key,
            usable_gib=usable and usable * MIB / GIB,
            usable_gib_ecc_off=ecc_off and ecc_off * MIB / GIB,
            software=tuple(row["software"]),
            **fields,
        )
    return found


@functools.cache
def _aliases() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, row in table("accelerators.toml").items():
        for alias in {_plain(text) for text in (key, *row["aliases"])}:
            found.setdefault(alias, []).append(key)
    return found


def _plain(name: str) -> str:
    bare = re.sub(r"\b(nvidia|amd|tesla|grid|geforce|aws)\b", " ", name.lower())
    return re.sub(r"[^a-z0-9]", "", bare)


def accelerator_named(name: str, memory_gib: float | None = None) -> Named | None:
    """The accelerator that a cloud, a driver or a person means by a name; None where unknown.

    Args:
        name: such as ``NVIDIA A100-SXM4-80GB``, ``Tesla T4``, ``nvidia-l4`` or, of a virtual one,
            ``NVIDIA A10-8Q`` (8 GiB of an A10).
        memory_gib: of one, which tells models of one name apart (``V100`` with 16 or 32 GB).
    """
    part = re.fullmatch(r"(.+)-(\d+)[QCBA]", name)
    if part:
        whole = accelerator_named(part[1])
        if whole is None:
            return None
        share = float(part[2]) / accelerators()[whole.key].memory_gib
        return Named(whole.key, min(share, 1.0))
    keys = _aliases().get(_plain(name), [])
    if len(keys) <= 1 or memory_gib is None:
        return Named(keys[0]) if len(keys) == 1 else None
    nearest = min(keys, key=lambda key: abs(accelerators()[key].memory_gib - memory_gib))
    # the same size under three names of units differs by 8 %; another model differs by more
    close = abs(accelerators()[nearest].memory_gib - memory_gib) <= 0.15 * memory_gib
    return Named(nearest) if close else None


def part_of(facts: AcceleratorFacts, gib: float) -> float | None:
    """The part of an accelerator that has so much memory, or None where it is a whole one.

    Sources give the memory of a part in GB, in GiB or as the driver reports it, so the nearest of
    the parts that clouds sell is meant.
    """
    share = gib / facts.memory_gib
    if share > 0.6:
        return None
    nearest = min(_PARTS, key=lambda part: abs(part - share))
    return nearest if abs(nearest - share) <= 0.12 * nearest else share


@functools.cache
def processors() -> dict[str, Processor]:
    """All processor families by key."""
    return {key: Processor(**row) for key, row in table("processors.toml")["processor"].items()}


@functools.cache
def processor_of_family(provider: str) -> dict[str, str]:
    """The processor key of each family of a provider, where all its machines have the same."""
    rows = table("processors.toml").get(provider, {})
    return {family: key for key, families in rows.items() for family in families.split()}


@functools.cache
def whole_core_families(provider: str) -> frozenset[str]:
    """The families whose vCPU is a whole core."""
    return frozenset(table("processors.toml")["whole_cores"].get(provider, "").split())


@functools.cache
def sustained_share(provider: str, instance_type: str) -> float:
    """The share of its vCPUs that a type may use without end: 1 unless it is a bursting one."""
    shares: dict[str, float] = table("processors.toml")["burst"].get(provider, {})
    found = (s for pattern, s in shares.items() if re.fullmatch(pattern, instance_type))
    return next(found, 1.0)


@functools.cache
def carbon(provider: str) -> dict[str, float]:
    """Carbon intensity of a provider's regions, kg CO2e per kWh."""
    found: dict[str, float] = table("regions.toml").get(provider, {})
    return found
