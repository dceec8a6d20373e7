"""Builds of frameworks: which accelerators the recorded version of a framework has code for.

A framework that is published for CUDA holds machine code for a range of compute capabilities, and
the range moves with its version and with the toolkit of the build.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, NamedTuple

from underdog.core import support
from underdog.core.constraints import Constraint, text
from underdog.core.evidence import Evidence
from underdog.core.support import Need, on_stack
from underdog.core.versions import is_newer, release
from underdog.model import Trial

RECORDED = "recorded-software"
NAMES = {"torch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
Span = tuple[float, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """Versions of a framework built with toolkits in a range, and the span that they reach."""

    framework: str
    since: str
    below: str | None
    cuda: str | None
    cuda_below: str | None
    span: Span
    source: str


class Recorded(NamedTuple):
    """The framework of trials: its version, and the CUDA toolkit of its build where it says so."""

    framework: str
    version: str
    cuda: str | None

    @property
    def words(self) -> str:
        """``PyTorch 2.6.0, built for CUDA 12.4``."""
        built = f", built for CUDA {self.cuda}" if self.cuda else ""
        return f"{NAMES.get(self.framework, self.framework)} {self.version}{built}"


def builds_of(table: Mapping[str, Any]) -> tuple[Build, ...]:
    """The builds of ``data/support.toml``."""
    return tuple(
        Build(
            framework=row["framework"],
            since=row["since"],
            below=row.get("below"),
            cuda=row.get("cuda"),
            cuda_below=row.get("cuda_below"),
            span=(row["from"], row.get("to", inf)),
            source=row["source"],
        )
        for row in table["build"]
    )


def recorded(trials: Iterable[Trial]) -> list[Recorded]:
    """The frameworks with which the trials that count ran, each version once."""
    found: dict[Recorded, None] = {}
    for trial in trials:
        software = trial.software
        name = (software.framework or "").lower().replace("pytorch", "torch")
        if trial.status == "ok" and name and software.framework_version:
            version, _, local = software.framework_version.partition("+")
            cuda = re.fullmatch(r"cu(\d+)(\d)", local)
            found[Recorded(name, version, f"{cuda[1]}.{cuda[2]}" if cuda else None)] = None
    return list(found)


def spans(one: Recorded, builds: Sequence[Build]) -> list[Span] | None:
    """The compute capabilities that a recorded framework has code for; None where it is unknown."""
    if release(one.version) is None:
        return None
    found = [
        build.span
        for build in builds
        if build.framework == one.framework
        and _within(one.version, build.since, build.below)
        and (one.cuda is None or _within(one.cuda, build.cuda, build.cuda_below))
    ]
    return found or None


def _within(version: str, first: str | None, below: str | None) -> bool:
    return not (first and is_newer(first, version)) and (below is None or is_newer(below, version))


def unreached_sql(trials: Iterable[Trial], builds: Sequence[Build]) -> str | None:
    """SQL for the machines for which no recorded build has code; None where that is unknown."""
    found: list[Span] = []
    for one in recorded(trials):
        reached = spans(one, builds)
        if reached is None:
            return None
        found += reached
    if not found:
        return None
    inside = " OR ".join(
        f"(compute_capability >= {low - 0.01!r}"
        + (f" AND compute_capability <= {high + 0.01!r})" if high != inf else ")")
        for low, high in found
    )
    return f"({on_stack('cuda')} AND compute_capability IS NOT NULL AND NOT ({inside}))"


def needed(
    needs: Sequence[Need], pinned: Sequence[Build], evidence: Sequence[Evidence]
) -> list[Constraint]:
    """What needs do not reach, and what the recorded ones of the pinned builds have no code for."""
    trials = [trial for found in evidence for trial in found.trials]
    return [*(support.constraint(need) for need in needs), *_recorded(trials, pinned)]


def _recorded(trials: Sequence[Trial], builds: Sequence[Build]) -> list[Constraint]:
    """Nothing where it is unknown what the recorded software has code for."""
    out = unreached_sql(trials, builds)
    if out is None:
        return []
    words = " and ".join(one.words for one in recorded(trials))
    reason = (
        f"{text(f'{words} has no code for compute capability ')} || "
        "printf('%.1f', compute_capability) || ' of ' || accelerator"
    )
    return [Constraint(f"needs {RECORDED}", f"{words} has code for the accelerator", out, reason)]


def remedy(one: Recorded, capability: float, builds: Sequence[Build]) -> str:
    """What reaches a compute capability: another build of the version, else the nearest version."""
    name = NAMES.get(one.framework, one.framework)
    found = [
        build
        for build in builds
        if build.framework == one.framework and build.span[0] <= capability <= build.span[1]
    ]
    same = [build for build in found if _within(one.version, build.since, build.below)]
    newer = [build for build in found if is_newer(build.since, one.version)]
    if same:
        return f"{name} {one.version}{_toolkits(same)} reaches it."
    if newer:
        first = min(newer, key=lambda build: release(build.since) or ())
        return f"{name} {first.since} or newer{_toolkits(newer)} reaches it."
    if found:
        last = max(found, key=lambda build: release(build.below or "") or ())
        return f"{name} before {last.below}{_toolkits([last])} reaches it."
    return "No published build is known to reach it."


def _toolkits(builds: Sequence[Build]) -> str:
    """The toolkits of builds in words: ``, built for CUDA 12.1 or newer but before 12.8,``."""
    firsts = [build.cuda for build in builds if build.cuda]
    if len(firsts) < len(builds):
        return ""
    ends = [build.cuda_below for build in builds if build.cuda_below]
    below = ""
    if len(ends) == len(builds):
        below = f" but before {max(ends, key=lambda end: release(end) or ())}"
    first = min(firsts, key=lambda first: release(first) or ())
    return f", built for CUDA {first} or newer{below},"


def too_old(need: Need, trials: Iterable[Trial]) -> list[str]:
    """What of the recorded software is older than a need asks for anywhere, in words."""
    least: dict[str, str] = {}
    for row in need.on:
        for name, asked in row.minimum.items():
            if name not in least or is_newer(least[name], asked):
                least[name] = asked
    found: dict[str, None] = {}
    for one in recorded(trials):
        have = {one.framework: one.version, "cuda": one.cuda or ""}
        for name, asked in least.items():
            if is_newer(asked, have.get(name, "")):
                called = {"cuda": "CUDA"}.get(name, NAMES.get(name, name))
                found[f"{need.title} needs {called} {asked}; the trials ran {have[name]}."] = None
    return list(found)
