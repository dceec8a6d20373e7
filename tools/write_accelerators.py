"""Write docs/reference/accelerators.md from the tables of facts. A test holds the two together."""

from __future__ import annotations

import textwrap
from pathlib import Path

from underdog.catalog.facts import (
    FORMATS,
    LINKS,
    RDMA,
    AcceleratorFacts,
    accelerators,
    processors,
)

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "accelerators.md"

INTRODUCTION = """\
# Accelerators

What underdog knows of each model: the figures of its maker's datasheet, and what the driver
reports. The table is `src/underdog/data/accelerators.toml`, which names the source of every entry.

- **Memory** is the nominal size as people name it. **Usable** is what the driver reports, in GiB;
  of a model that is sold with ECC on and off, the two figures stand side by side (on / off).
- **Rates** are peak and dense: a figure that a datasheet gives with sparsity is halved. Of GeForce
  cards, which halve it, fp16 and bf16 are with accumulation in float32. A blank is a format that
  the hardware does not support, or a rate that is not published.
- A board with several chips stands by the chip, as the clouds sell it.

"""

MACHINES = """\
## Between the accelerators of a machine

The column `accelerator_link` of an [offer](columns.md) is of this machine, not of the model: a
machine with one accelerator, or a part of one, has none. Where pairs of accelerators differ, it is
the slowest medium that reaches all of them. `accelerator_link_gb_per_s` is of each accelerator,
both ways. The values are:

{links}

The number of `nvlink` (bridges or a mesh) and of `nvswitch` (through switches, every pair at full
rate) is the generation of NVLink.

## Between machines

The column `network_rdma` says how machines reach each other's memory, and `network_rdma_gbps` with
what bandwidth:

{rdma}

`fast-socket`, `gpudirect-tcpx` and `gpudirect-tcpxo` are not remote memory access in the strict
sense, but what comes nearest to it on those machines.

## Processors

`cpu_extensions` holds what all hosts of the type have:

{extensions}

A type whose hosts differ (`e2` and `n1` of Google Cloud, the older sizes of Azure) has the
extensions that all of them have, and no `cpu_fp32_tflops` where their vector units differ in width.
"""


def number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def usable(facts: AcceleratorFacts) -> str:
    found = [f"{v:.1f}" for v in (facts.usable_gib, facts.usable_gib_ecc_off) if v is not None]
    return " / ".join(found)


def row(facts: AcceleratorFacts) -> str:
    cells = [
        f"`{facts.key}`",
        facts.name,
        number(facts.memory_gib),
        usable(facts),
        number(facts.gb_per_s),
        *(number(facts.tflops.get(name)) for name in FORMATS),
        facts.link or "",
        number(facts.link_gb_per_s),
        number(facts.power_w),
        "" if facts.compute_capability is None else str(facts.compute_capability),
        ", ".join(facts.software),
    ]
    return "| " + " | ".join(cells) + " |"


def page() -> str:
    """The whole page."""
    heads = ["accelerator", "is", "memory GB", "usable GiB", "GB/s", *FORMATS]
    heads += ["link", "link GB/s", "W", "capability", "software"]
    table = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    table += [row(facts) for facts in accelerators().values()]
    extensions = {name: None for cpu in processors().values() for name in cpu.extensions}
    machines = MACHINES.format(
        links=listed(LINKS), rdma=listed(RDMA), extensions=listed(tuple(extensions))
    )
    return INTRODUCTION + "\n".join(table) + "\n\n" + machines


def listed(names: tuple[str, ...]) -> str:
    return textwrap.fill(", ".join(f"`{name}`" for name in names) + ".", 100)


if __name__ == "__main__":
    PAGE.write_text(page())
