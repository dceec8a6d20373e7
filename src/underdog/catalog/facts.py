"""What is known of accelerators, processors, machines and regions: tables in ``underdog/data``."""

from __future__ import annotations

import functools
import importlib.resources
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from underdog.units import GIB, MIB

_PARTS = (1 / 12, 1 / 8, 1 / 6, 1 / 4, 1 / 3, 1 / 2)
FORMATS = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
# The mediums between accelerators. The number of NVLink and NVSwitch is NVLink's generation: direct
# (bridges, a mesh) as nvlink, through switches, every pair at full rate, as nvswitch.
LINKS = (
    *("pcie-3", "pcie-4", "pcie-5"),
    *("nvlink-1", "nvlink-2", "nvlink-3", "nvlink-4", "nvlink-5"),
    *("nvswitch-2", "nvswitch-3", "nvswitch-4", "nvswitch-5"),
    *("infinity-fabric", "xe-link", "neuronlink", "ici", "roce"),
)
# How a machine reaches the memory of another, or what comes nearest to it on that cloud.
RDMA = (
    *("efa", "infiniband", "gpudirect-rdma", "gpudirect-tcpxo", "gpudirect-tcpx"),
    *("fast-socket", "cloud-rdma"),
)


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
    """One processor family; see ``data/processors.toml``.

    A family whose hosts differ has a model and what all of them have, and no rate.
    """

    model: str
    arch: str
    extensions: tuple[str, ...]
    vector_bits: int | None = None
    flops_per_cycle: int | None = None
    ghz: float | None = None
    socket_cores: int | None = None
    socket_gb_per_s: float | None = None
    threads_per_core: int = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Network:
    """The network of a machine; ``rdma`` is of ``RDMA``."""

    gbps: float | None = None
    rdma: str | None = None
    rdma_gbps: float | None = None


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
    spaced = re.sub(r"[-_ ]+(vws|oam)$", "", re.sub(r"[_/]", " ", name.lower()))
    makers = r"\b(nvidia|amd|tesla|grid|geforce|aws|google|instinct|gpu)\b"
    return re.sub(r"[^a-z0-9]", "", re.sub(makers, " ", spaced))


def accelerator_named(name: str, memory_gib: float | None = None) -> Named | None:
    """The accelerator that a cloud, a driver or a person means by a name; None where unknown.

    Args:
        name: such as ``NVIDIA A100-SXM4-80GB``, ``Tesla T4``, ``nvidia-l4``, of a virtual one,
            ``NVIDIA A10-8Q`` (8 GiB of an A10), or of a part, ``H100 MIG 3g.40gb``.
        memory_gib: of one, which tells models of one name apart (``V100`` with 16 or 32 GB).
    """
    cut = re.fullmatch(r"(.+?)[-_ ]+(?:MIG[-_ ]+)?(\d)g\.(\d+)gb(?:\+\S+)?", name, re.IGNORECASE)
    if cut:
        return _cut(cut[1], int(cut[2]), float(cut[3]))
    part = re.fullmatch(r"(.+)-(\d+)[QCBA]", name)
    if part:
        whole = accelerator_named(part[1])
        if whole is None:
            return None
        share = float(part[2]) / accelerators()[whole.key].memory_gib
        return Named(whole.key, min(share, 1.0))
    keys = _aliases().get(_plain(name), [])
    if len(keys) <= 1 or not memory_gib:
        only = keys if len(keys) == 1 else _exactly(name, keys)
        return Named(only[0]) if len(only) == 1 else None
    nearest = min(keys, key=lambda key: abs(accelerators()[key].memory_gib - memory_gib))
    # the same size under three names of units differs by 8 %; another model differs by more
    close = abs(accelerators()[nearest].memory_gib - memory_gib) <= 0.15 * memory_gib
    return Named(nearest) if close else None


def _exactly(name: str, keys: list[str]) -> list[str]:
    """Of models that share a name, the one that has it as its key, or those that spell it so."""
    rows = table("accelerators.toml")
    same = [key for key in keys if _plain(key) == _plain(name)]
    return same or [key for key in keys if name.lower() in map(str.lower, rows[key]["aliases"])]


def _cut(name: str, slices: int, gb: float) -> Named | None:
    """A MIG instance: its memory is a number of eighths of the whole, which tells the model."""
    least = {1: 1, 2: 2, 3: 4, 4: 4, 7: 8}.get(slices)
    if least is None:
        return None
    for eighths in (least, 2 * least, 4 * least):
        whole = accelerator_named(name, gb * 8 / eighths)
        if whole is not None and round(8 * gb / accelerators()[whole.key].memory_gib) == eighths:
            return Named(whole.key, min(eighths / 8, 1.0))
    return None


def slice_named(name: str) -> tuple[str, int] | None:
    """The chip and the number of chips of a TPU slice such as ``v5litepod-8`` or ``tpu-v4-32``.

    The number in the name is of cores up to v5p, of which a chip has two, and of chips in v5e and
    v6e (Google Cloud TPU documentation).
    """
    found = re.fullmatch(r"(?:tpu-)?(v\d[a-z]*)-(\d+)", name.lower())
    named = found and accelerator_named(f"TPU-{found[1]}")
    if not found or not named or not int(found[2]):
        return None
    per_chip = 1 if named.key in ("TPU-v5e", "TPU-v6e", "TPU-v7") else 2
    return named.key, max(int(found[2]) // per_chip, 1)


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
    return {
        key: Processor(**{**row, "extensions": tuple(row["extensions"])})
        for key, row in table("processors.toml")["processor"].items()
    }


@functools.cache
def processor_of_family(provider: str) -> dict[str, str]:
    """The processor key of each family of AWS or Google Cloud; a mixed one where hosts differ."""
    rows = table("processors.toml").get(provider, {}) if provider in _FAMILY else {}
    return {family: key for key, families in rows.items() for family in families.split()}


# what stands before the size in the name of a type
_FAMILY = {"aws": r"(?:ml\.)?([a-z0-9-]+)\..+", "gcp": r"([a-z0-9]+)-.+"}


@functools.cache
def processor_of(provider: str, instance_type: str) -> str | None:
    """The processor key of a type; None where the provider does not tell."""
    if provider == "azure":
        name = re.sub(r"(?<=[A-Z])\d+(-\d+)?", "", _azure_size(instance_type), count=1)
        rules = table("processors.toml")["azure"].items()
        return next((key for key, pattern in rules if re.fullmatch(pattern, name)), None)
    family = re.fullmatch(_FAMILY.get(provider, "(?!)"), instance_type)
    return processor_of_family(provider).get(family[1]) if family else None


def _azure_size(instance_type: str) -> str:
    return re.sub(r"^(Standard|Basic)_|_Promo$", "", instance_type)


@functools.cache
def whole_core_families(provider: str) -> frozenset[str]:
    """The families of AWS or Google Cloud whose vCPU is a whole core."""
    rows = table("processors.toml")["whole_cores"] if provider in _FAMILY else {}
    return frozenset(rows.get(provider, "").split())


@functools.cache
def whole_cores(provider: str, instance_type: str) -> bool:
    """Whether a vCPU of a type is a whole core though its processor has two threads to a core."""
    if provider == "azure":
        pattern = table("processors.toml")["whole_cores"]["azure"]
        return re.fullmatch(pattern, _azure_size(instance_type)) is not None
    family = re.fullmatch(_FAMILY.get(provider, "(?!)"), instance_type)
    return family is not None and family[1] in whole_core_families(provider)


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


@functools.cache
def _rule(kind: str, provider: str, instance_type: str) -> dict[str, Any]:
    rules = (r for r in table("machines.toml")[kind] if r["provider"] == provider)
    bare = instance_type.removeprefix("ml.")
    return next((r for r in rules if re.fullmatch(r["pattern"], bare)), {})


def machine_link(
    provider: str, instance_type: str, accelerator: str | None, count: float | None
) -> tuple[str, float] | None:
    """The medium between the accelerators of a machine, of ``LINKS``, and GB/s of each, both ways.

    None for a machine with one or a part of one, which has nothing to link, and where it is
    unknown.
    """
    if count is None or count <= 1:
        return None
    rule = _rule("link", provider, instance_type)
    if rule:
        return rule["link"], float(rule["gb_per_s"])
    known = accelerators().get(accelerator or "")
    if known is None or known.link is None or known.link_gb_per_s is None:
        return None
    return known.link, known.link_gb_per_s


def machine_network(provider: str, instance_type: str) -> Network | None:
    """The network of a type, where the table has it; see ``data/machines.toml``."""
    rule = _rule("network", provider, instance_type)
    fields = ("gbps", "rdma", "rdma_gbps")
    return Network(**{name: rule.get(name) for name in fields}) if rule else None


def machine_disk_gb_per_s(provider: str, instance_type: str) -> float | None:
    """GB/s of a sequential read from all local disks of a type, where the table has it."""
    found: float | None = _rule("disk", provider, instance_type).get("gb_per_s")
    return found


def machine_ghz(provider: str, instance_type: str) -> float | None:
    """The sustained all-core clock of a type, where it is not that of the processor's entry."""
    family = re.fullmatch(_FAMILY.get(provider, "(?!)"), instance_type)
    clocks: dict[str, float] = table("processors.toml")["clock"].get(provider, {})
    return clocks.get(family[1]) if family else None
