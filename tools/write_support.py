"""Write docs/reference/support.md from the support matrix. A test holds the two together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from underdog.catalog.facts import accelerators, table
from underdog.catalog.support import builds
from underdog.core.builds import NAMES, Build
from underdog.core.support import KINDS
from underdog.report.support import said
from underdog.verbs.support import needs

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "support.md"

INTRODUCTION = """\
# The support matrix

Which number formats, attention kernels, compilers, libraries and frameworks reach which
accelerator, each with its source. The table is `src/underdog/data/support.toml`, whose head says
what each field is; rates, stacks and compute capabilities stand in
[accelerators.toml](accelerators.md) and are not repeated. Of {accelerators} accelerators,
{needs} needs, {rows} rows with a source and {builds} ranges of builds.

`underdog support` lists it, `underdog support NAME` says all about one, `underdog support
--accelerator NAME` what reaches an accelerator. `underdog choose --needs NAME` rules out the
machines that a need does not reach; the ledger has the reason.

- **Yes, no, unknown.** A machine is out only where a source says no, or where a source says what is
  reached and this is not among it. Where no source says anything the machine stays a candidate, and
  a caveat `support_unknown` says so.
- **A stack is a way in**: `cuda` by compute capability, `rocm` by the target of its compiler
  (`gfx942`), `xla` for TPUs, `neuron`, `habana` (SynapseAI), `xpu`, and `cpu` for a machine without
  accelerator. The first row that covers a machine counts. What no row of `cuda` covers is not
  reached; what no row of another stack covers is unknown.
- **`fp64`** asks for a real rate: at least an eighth of that of fp32. Consumer cards compute fp64
  at 1/32 or 1/64, and so do T4, A10, L4, L40S, B300 and the like: they are out, with the rate as
  the reason. `fp64-any` takes them too, and a caveat `support_limited` tells the rate. The rate is
  that of the datasheet, else that of the compute capability.
- **A service**: SageMaker's libraries are not to be had on the bare machine; they rule out every
  offer whose `service` is another.
- **The recorded software.** A framework that is published for CUDA has code for a range of compute
  capabilities. Where the version that the trials ran has none for a ranked machine, the caveat
  `software_does_not_reach` says which build has. `--needs recorded-software` rules such machines
  out. A version that the table of builds does not have says nothing.

"""

LIMITS = """
## What it does not say

Whether a need works with a given model, shape or other library; how fast it is; and what older
versions than the documented ones reached. Drivers and container images are not looked at. A row
says what its source says on the day it was read, November 2026.
"""


def row(need: dict[str, Any]) -> str:
    counts = {state: len(names) for state, names in need["accelerators"].items()}
    cells = [f"`{need['name']}`", need["title"], need["reaches"]]
    cells += [str(counts[state]) for state in ("yes", "no", "unknown")]
    return _line(cells)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _table(headings: list[str], rows: list[str]) -> list[str]:
    return [_line(headings), "|" + "---|" * len(headings), *rows, ""]


def build(one: Build) -> str:
    versions = f"{one.since} or newer" + (f", before {one.below}" if one.below else "")
    cuda = f"{one.cuda} or newer" if one.cuda else "any"
    cuda += f", before {one.cuda_below}" if one.cuda_below else ""
    low, high = one.span
    span = f"{low:.1f} and above" if high == float("inf") else f"{low:.1f} to {high:.1f}"
    return _line([NAMES[one.framework], versions, cuda, span, one.source])


def page() -> str:
    """The whole page."""
    found = needs()
    lines = []
    for kind in KINDS:
        rows = [row(need) for need in found if need["kind"] == kind]
        lines += [f"## {kind.capitalize()}", ""]
        lines += _table(["need", "is", "reaches", "yes", "no", "unknown"], rows)
    groups = [
        _line([f"`{k}`", ", ".join(v)]) for k, v in table("support.toml")["architecture"].items()
    ]
    lines += ["## Targets", "", *_table(["target", "accelerators"], groups)]
    heads = ["framework", "version", "built for CUDA", "compute capability", "source"]
    lines += ["## Builds", "", *_table(heads, [build(one) for one in builds()])]
    lines += ["## Sources", ""]
    for need in found:
        lines += [f"- `{need['name']}`", *(f"  - {said(reach)}" for reach in need["on"])]
    head = INTRODUCTION.format(
        accelerators=len(accelerators()),
        needs=len(found),
        rows=sum(len(need["on"]) for need in found),
        builds=len(builds()),
    )
    return head + "\n".join(lines) + "\n" + LIMITS


if __name__ == "__main__":
    PAGE.write_text(page())
