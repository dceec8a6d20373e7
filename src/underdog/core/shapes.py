"""The distinct kinds of machine among the offers, and what is known or predicted of each.

Hardware is looked at once per kind of machine, not per offer: a few thousand against a million.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from underdog.core.evidence import Evidence, Shape
from underdog.core.predict import WORDS, Reference, Transfer, predict
from underdog.core.roofline import NUMBERS, TEXTS, Floats, Hardware
from underdog.core.transfer_evidence import Carried
from underdog.model import Trial

# Several machines on one job: linear scaling is the upper end of the interval, this efficiency
# per machine the lower one, and the middle of the two the value.
LEAST_EFFICIENCY = 0.6


def query() -> str:
    """The query for the distinct shapes with their hardware, in the order of their names."""
    facts = ", ".join(f'max("{name}") AS "{name}"' for name in (*NUMBERS, *TEXTS))
    return (
        f"SELECT provider, instance_type, nodes, {facts} FROM candidates "
        "GROUP BY provider, instance_type, nodes ORDER BY provider, instance_type, nodes"
    )


@dataclass(frozen=True, slots=True)
class Shapes:
    """The kinds of machine: their names and their hardware, index by index."""

    names: list[Shape]
    hardware: Hardware

    @classmethod
    def of(cls, columns: Mapping[str, NDArray[Any]]) -> Shapes:
        """From the columns of ``query``, masked where unknown."""
        keys = (columns[name].tolist() for name in ("provider", "instance_type", "nodes"))
        names = [Shape(p, t, int(n)) for p, t, n in zip(*keys, strict=True)]
        numbers: dict[str, Floats] = {
            n: np.ma.filled(np.ma.asarray(columns[n], dtype=float), np.nan) for n in NUMBERS
        }
        texts = {
            n: np.array(np.ma.asarray(columns[n], dtype=object).tolist(), dtype=object)
            for n in TEXTS
        }
        return cls(names, Hardware(numbers, texts))


@dataclass(frozen=True, slots=True)
class Rates:
    """Samples per second of every shape, shape (n,), NaN where unknown.

    ``measured`` tells the two apart, ``notes`` says where a prediction comes from and what went
    wrong with trials that do not count; ``power_w`` is what was measured.
    """

    value: Floats
    low: Floats
    high: Floats
    measured: NDArray[np.bool_]
    power_w: Floats
    notes: list[str]


def rates(
    shapes: Shapes,
    evidence: Sequence[Evidence],
    unlisted: Mapping[Shape, Mapping[str, Any]],
    carried: Mapping[Shape, Carried] | None = None,
) -> Rates:
    """What was measured of each shape, else what is predicted.

    Args:
        evidence: of one workload.
        unlisted: hardware of measured shapes that are not among ``shapes``.
        carried: what other workloads say; it counts where its interval is the narrower one.
    """
    index = {name: i for i, name in enumerate(shapes.names)}
    known = [found for found in evidence if found.estimate is not None]
    rows = [_hardware_row(shapes, index, found.shape, unlisted) for found in known]
    prediction = predict(shapes.hardware, Hardware.of(rows), [_reference(f) for f in known])
    value, low, high = prediction.value, prediction.low, prediction.high
    measured, power = np.zeros(len(index), dtype=bool), np.full(len(index), np.nan)
    notes = [_note(known, kind, ref) for kind, ref in _pairs(prediction)]
    for shape, told in (carried or {}).items():
        place, estimate = index.get(shape), told.estimate
        # an unknown interval compares as no narrower
        if place is not None and not estimate.high / estimate.low >= high[place] / low[place]:
            value[place], low[place], high[place] = estimate.value, estimate.low, estimate.high
            notes[place] = f"; {told.origin}"
    for found in evidence:
        i = index.get(found.shape)
        if i is None:
            continue
        if found.faults and found.estimate is None:
            notes[i] += f"; it was tried, but {found.faults[-1]}"
        if found.estimate is not None:
            value[i], low[i], high[i] = _ends(found)
            measured[i], notes[i] = True, ""
            power[i] = np.nan if found.power_w is None else found.power_w
    return Rates(value, low, high, measured, power, notes)


def _pairs(prediction: Any) -> list[tuple[int, int]]:
    pairs = zip(prediction.transfer.tolist(), prediction.reference.tolist(), strict=True)
    return list(pairs)


def _note(known: Sequence[Evidence], kind: int, reference: int) -> str:
    if reference < 0:
        return ""
    return f"; from {known[reference].shape.instance_type}: {WORDS[Transfer(kind)]}"


def _ends(found: Evidence) -> tuple[float, float, float]:
    assert found.estimate is not None
    return found.estimate.value, found.estimate.low, found.estimate.high


def _hardware_row(
    shapes: Shapes,
    index: Mapping[Shape, int],
    shape: Shape,
    unlisted: Mapping[Shape, Mapping[str, Any]],
) -> dict[str, Any]:
    i = index.get(shape)
    if i is None:
        return dict(unlisted.get(shape, {}))
    hardware = shapes.hardware
    row: dict[str, Any] = {name: values[i] for name, values in hardware.numbers.items()}
    return row | {name: values[i] for name, values in hardware.texts.items()}


def _reference(found: Evidence) -> Reference:
    assert found.estimate is not None
    trial = found.trials[-1]
    accelerated = trial.profile is not None and bool(trial.profile.uses_accelerator)
    # where the processor itself does the training, its computation is no hold-up of the host
    hold_ups = ("data", "cpu", "launch") if accelerated else ("data",)
    return Reference(found.estimate, trial.profile, _used(trial), trial.bound_by in hold_ups)


def _used(trial: Trial) -> int | None:
    if trial.profile is not None and trial.profile.accelerators_used:
        return trial.profile.accelerators_used
    ranks = trial.measurement.ranks if trial.measurement else 1
    return ranks if ranks > 1 else None


def columns_of_rates(
    shapes: Shapes, found: Rates, machines: Sequence[int]
) -> dict[str, NDArray[Any]]:
    """The columns of the table ``rates``: every shape at every number of machines.

    A shape that is a cluster already is taken as it is. A number of machines that was measured
    as a cluster counts as measured.
    """
    nodes = np.array([name.nodes for name in shapes.names], dtype=float)
    alone = nodes == 1
    parts = [np.flatnonzero(alone | (count == machines[0])) for count in machines]
    shape = np.concatenate(parts)
    count = np.repeat(np.array(machines, dtype=float), [len(part) for part in parts])
    count = np.where(alone[shape], count, 1.0)
    ends = {"rate": found.value, "rate_low": found.low, "rate_high": found.high}
    scales = {"rate": (1 + LEAST_EFFICIENCY) / 2, "rate_low": LEAST_EFFICIENCY, "rate_high": 1.0}
    columns: dict[str, NDArray[Any]] = {
        name: values[shape] * np.where(count > 1, count * scales[name], 1.0)
        for name, values in ends.items()
    }
    measured = found.measured[shape] & (count == 1)
    for row, cluster in _measured_clusters(shapes, found, shape, count):
        measured[row] = True
        for name, values in ends.items():
            columns[name][row] = values[cluster]
    names = np.array([(n.provider, n.instance_type) for n in shapes.names], dtype=object)
    names = names.reshape(-1, 2)
    source = np.where(measured, "measured", "predicted").astype(object)
    source[np.isnan(columns["rate"])] = None
    return columns | {
        "provider": names[shape, 0],
        "instance_type": names[shape, 1],
        "base_nodes": nodes[shape],
        "shape": shape,
        "machines": count,
        "source": source,
        "measured_power_w": found.power_w[shape],
    }


def _measured_clusters(
    shapes: Shapes, found: Rates, shape: NDArray[np.int64], count: Floats
) -> list[tuple[int, int]]:
    """Rows whose number of machines was measured as a cluster, with the shape of that."""
    clusters = {n: i for i, n in enumerate(shapes.names) if found.measured[i] and n.nodes > 1}
    if not clusters:
        return []
    pairs = []
    for row, (i, machines) in enumerate(zip(shape.tolist(), count.tolist(), strict=True)):
        name = shapes.names[i]
        cluster = clusters.get(Shape(name.provider, name.instance_type, int(machines)))
        if cluster is not None and name.nodes == 1:
            pairs.append((row, cluster))
    return pairs
