"""The facts of offers as coordinates, so that alike offers lie together."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from underdog.core.search_records import Candidates, Floats, Integers

PER_NODE = ("vcpus", "memory_gib", "accelerator_count", "accelerator_memory_gib_total")
# What the whole machine computes and moves: by its accelerators where it has any, else by its
# processor. Of accelerators the first rate that is known, in one format or another.
RESOURCES = {
    "compute": (("fp16_tflops", "bf16_tflops", "fp32_tflops"), "cpu_fp32_tflops"),
    "single-precision compute": (("fp32_tflops",), "cpu_fp32_tflops"),
    "bandwidth": (("accelerator_gb_per_s",), "cpu_memory_gb_per_s"),
}
RESOURCE_NAMES = {words + name for name in RESOURCES for words in ("", "all ")}
RATIOS = (
    ("memory_gib", "vcpus"),
    ("price_per_hour", "all vcpus"),
    ("price_per_hour", "all memory_gib"),
)


@dataclass(frozen=True, slots=True)
class Features:
    """N offers as points.

    Attributes:
        numbers: (N, F), logarithms in standard deviations; 0, the mean, where unknown. A column
            that says the same as another, or nothing, is left out.
        codes: (N, C), a number for each text.
        amounts: logarithms about their mean of the columns of ``numbers`` that are amounts, not
            ratios, each (N,).
        resources: the same of what whole machines compute and move; none where none has an
            accelerator, for then the amounts of the processor tell it.
        log_price: (N,), about its mean; 0 where unknown.
    """

    numbers: Floats
    codes: Integers
    amounts: Mapping[str, Floats]
    resources: Mapping[str, Floats]
    log_price: Floats

    def __len__(self) -> int:
        return len(self.numbers)


def encode(tables: Sequence[Candidates]) -> Features:
    """Features of the rows of several tables, one after the other: N rows in all."""
    count = sum(map(len, tables))
    columns = {name: _centred_logs(values) for name, values in _numbers(tables).items()}
    distinct: dict[str, Floats] = {}
    for name, (logs, spread) in columns.items():
        if spread > 0 and not any(np.allclose(logs, other) for other in distinct.values()):
            distinct[name] = logs
    scaled = [logs / columns[name][1] for name, logs in distinct.items()]
    resources = {name: logs for name, logs in distinct.items() if name in RESOURCE_NAMES}
    return Features(
        np.array(scaled, dtype=float).T.reshape(count, len(scaled)),
        _codes(tables).reshape(count, -1),
        {n: logs for n, logs in distinct.items() if " / " not in n and n not in resources},
        resources,
        columns["price_per_hour"][0],
    )


def _centred_logs(values: Floats) -> tuple[Floats, float]:
    """Logarithms about their mean, 0 where unknown, and their standard deviation."""
    known = np.isfinite(values)
    logs = np.zeros(len(values))
    if not known.any():
        return logs, 0.0
    # an amount that can be 0 (accelerators) counts from 1
    some = values[known]
    found = np.log1p(some) if (some == 0).any() else np.log(some)
    logs[known] = found - found.mean()
    spread = float(found.std())
    return logs, spread if spread > 1e-9 else 0.0


def _numbers(tables: Sequence[Candidates]) -> dict[str, Floats]:
    """The columns of all tables, those of all nodes together, and ratios."""
    names = sorted({name for table in tables for name in table.numbers})
    found = {
        name: np.concatenate([t.numbers.get(name, np.full(len(t), np.nan)) for t in tables])
        for name in names
    }
    found["price_per_hour"] = np.concatenate([table.price_per_hour for table in tables])
    nodes = found.get("nodes", np.ones(len(found["price_per_hour"])))
    nodes = np.where(np.isfinite(nodes), nodes, 1.0)
    for name in PER_NODE:
        if name in found:
            found[f"all {name}"] = found[name] * nodes
    found |= _resources(found, nodes)
    for above, below in RATIOS:
        if above in found and below in found:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio = found[above] / found[below]
            found[f"{above} / {below}"] = np.where(np.isfinite(ratio), ratio, np.nan)
    return found


def _resources(found: Mapping[str, Floats], nodes: Floats) -> dict[str, Floats]:
    """What machines compute and move, with all accelerators and with one; {} where none has any."""
    unknown = np.full(len(nodes), np.nan)
    count = np.nan_to_num(found.get("accelerator_count", unknown))
    result: dict[str, Floats] = {}
    if not (count > 0).any():
        return result
    for name, (rates, processor) in RESOURCES.items():
        each = unknown
        for rate in rates:
            each = np.where(np.isfinite(each), each, found.get(rate, unknown))
        for words, parts in (("all ", count), ("", np.minimum(count, 1.0))):
            own = found.get(processor, unknown)
            result[words + name] = np.where(count > 0, each * parts, own) * nodes
    return result


def _codes(tables: Sequence[Candidates]) -> Integers:
    """Texts as numbers, (N, C), those that are the same everywhere left out."""
    columns: list[Integers] = []
    for name in sorted({name for table in tables for name in table.texts}):
        texts = [t or "" for c in tables for t in c.texts.get(name, [None] * len(c))]
        words = [texts]
        if name == "instance_type":
            words.append([family(text) for text in texts])
        for labels in words:
            _, code = np.unique(labels, return_inverse=True)
            if code.max() > 0:
                columns.append(code.astype(np.int64))
    return np.array(columns, dtype=np.int64).T


def family(instance_type: str) -> str:
    """The name without its size: ``m5`` of ``m5.large``, ``n2-standard`` of ``n2-standard-8``."""
    if "." in instance_type:
        return instance_type.split(".")[0]
    if "-" in instance_type:
        return instance_type.rsplit("-", 1)[0]
    return re.sub(r"(?<=[A-Za-z])\d+(?=[a-z_])", "", instance_type, count=1)
