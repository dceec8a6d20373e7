"""What other workloads, measured on two machines, say of one that was measured on one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from underdog.core.evidence import Evidence, Shape, gather
from underdog.core.transfer import LEAST_GROUPS, transfer
from underdog.core.transfer_features import Runs
from underdog.core.transfer_process import Floats, Labels
from underdog.model import Estimate, Trial

# as the intervals of measurements
LEVEL = 0.95
# choosing is to stay fast: the machines that the most is known of
MOST_SOURCES = 2
MOST_TARGETS = 20


@dataclass(frozen=True, slots=True)
class Carried:
    """A predicted rate, and in words what it rests on."""

    estimate: Estimate
    origin: str


def carried(evidence: Sequence[Evidence], others: Iterable[Trial]) -> dict[Shape, Carried]:
    """What is predicted of the shapes that enough other workloads were measured on.

    Of each workload the best knobs on a shape count. Workloads whose names begin alike, up to the
    first ``/``, are one group: variants of one job tell nothing of how far off another job is.

    Args:
        evidence: of the workload that is to be predicted.
        others: trials; those of this workload are left aside.
    """
    mine = {found.shape: found for found in evidence if found.estimate is not None}
    names = {trial.workload for found in mine.values() for trial in found.trials}
    rows = _by_workload(trial for trial in others if trial.workload not in names)
    targets = _targets(mine, rows)
    if not targets:
        return {}
    sources = _most_known({shape: sum(shape in row for row in rows.values()) for shape in mine})
    known = {shape: mine[shape] for shape in sources[:MOST_SOURCES]}
    groups = [_group(name) for name in (*rows, min(names))]
    labels = np.unique(groups, return_inverse=True)[1].astype(np.int64)
    runs = _runs([*rows.values(), known], [*known, *targets], labels)
    others_runs, own = runs.take(np.arange(len(rows))), runs.take(np.array([len(rows)]))
    uncertain = max(_half(found.estimate) for found in known.values())
    made = {}
    for place, shape in enumerate(targets, start=len(known)):
        found = transfer(others_runs, own, place, level=LEVEL)
        value, high = float(found.value[0]), float(found.high[0])
        if np.isfinite(value):
            factor = float(np.exp(np.hypot(np.log(high / value), uncertain)))
            ends = {"low": value / factor, "high": value * factor}
            estimate = Estimate(value=value, **ends, n=found.references)
            made[shape] = Carried(estimate, _words(known, found.references))
    return made


def _by_workload(trials: Iterable[Trial]) -> dict[str, dict[Shape, Evidence]]:
    by_name: dict[str, list[Trial]] = {}
    for trial in trials:
        by_name.setdefault(trial.workload, []).append(trial)
    return {
        name: {found.shape: found for found in gather(tried) if found.estimate is not None}
        for name, tried in sorted(by_name.items())
    }


def _group(workload: str) -> str:
    return workload.partition("/")[0]


def _targets(
    mine: Mapping[Shape, Evidence], rows: Mapping[str, Mapping[Shape, Evidence]]
) -> list[Shape]:
    """The shapes that enough groups were measured on, together with one of those of this one."""
    groups: dict[Shape, set[str]] = {}
    for name, found in rows.items():
        if found.keys() & mine.keys():
            for shape in found.keys() - mine.keys():
                groups.setdefault(shape, set()).add(_group(name))
    enough = {s: len(seen) for s, seen in groups.items() if len(seen) >= LEAST_GROUPS}
    return _most_known(enough)[:MOST_TARGETS]


def _most_known(counts: Mapping[Shape, int]) -> list[Shape]:
    return sorted(counts, key=lambda shape: (-counts[shape], shape))


def _runs(
    rows: Sequence[Mapping[Shape, Evidence]], shapes: Sequence[Shape], groups: Labels
) -> Runs:
    table = [[_value(row.get(shape)) for shape in shapes] for row in rows]
    about = np.array([_profile(row) for row in rows]).reshape(len(rows), 3)
    rates: Floats = np.array(table).reshape(len(rows), len(shapes))
    return Runs.of(rates, groups, batch=about[:, 0], work=about[:, 1:])


def _value(found: Evidence | None) -> float:
    return float("nan") if found is None or found.estimate is None else found.estimate.value


def _profile(row: Mapping[Shape, Evidence]) -> list[float]:
    """Batch size, FLOP and bytes of a sample, of the first trial that tells; NaN where unknown."""
    profiles = [t.profile for found in row.values() for t in found.trials if t.profile is not None]
    names = ("batch_size", "flops_per_sample", "memory_traffic_bytes_per_sample")
    told = ([getattr(profile, name) for profile in profiles] for name in names)
    # an absent or empty figure tells nothing
    return [next((float(v) for v in values if v), float("nan")) for values in told]


def _half(estimate: Estimate | None) -> float:
    return 0.0 if estimate is None else float(np.log(estimate.high / estimate.low) / 2)


def _words(mine: Iterable[Shape], references: int) -> str:
    names = [shape.instance_type for shape in mine]
    said = " and ".join(names[:2]) + (f" and {len(names) - 2} more" if len(names) > 2 else "")
    return f"from {said}: by how {references} other workloads did on both"
