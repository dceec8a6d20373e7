"""One flat row of a trial, with a type for each column: what tables of other tools hold."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from underdog.model import Trial
from underdog.report.trials import machine_name

Value = str | float | int | None

# texts first, then numbers; knobs, phases and usage follow under their own names
TEXTS = (
    "id", "workload", "offer", "status", "reason", "started_at", "ended_at", "runner", "command",
    "provider", "region", "zone", "instance_type", "purchase", "arch", "accelerator", "bound_by",
    "caveats", "price_unknown_reason", "price_source", "price_date", "cpu_model", "framework",
    "framework_version", "python", "driver", "commit", "number_format", "source", "study",
)  # fmt: skip
NUMBERS = (
    "samples_per_second", "samples_per_second_low", "samples_per_second_high",
    "samples_per_second_with_pauses", "samples_per_dollar", "step_seconds", "steps", "samples",
    "batch_size", "ranks", "warmup_seconds", "seconds", "price_per_hour", "dollars", "nodes",
    "vcpus", "memory_gib", "accelerator_count", "accelerator_memory_gib", "flops_per_sample",
    "parameters", "exit_code",
)  # fmt: skip


def row_of(trial: Trial) -> dict[str, Value]:
    """The row of a trial: every name of ``TEXTS`` and ``NUMBERS``, then what is its own.

    A number is finite or None: None is unknown. Texts are ``plain``.
    """
    found = _about(trial) | _measured(trial) | _machine(trial)
    row: dict[str, Value] = {name: _text(found.get(name)) for name in TEXTS}
    row |= {name: _finite(found.get(name)) for name in NUMBERS}
    row |= {f"knob_{plain(name)}": plain(value) for name, value in sorted(trial.knobs.items())}
    for kind, values in (
        ("phase", trial.phases),
        ("usage", trial.usage),
        ("peak_memory_gib", trial.peak_memory_gib),
    ):
        row |= {f"{kind}_{plain(name)}": _finite(v) for name, v in sorted(values.items())}
    return row


def plain(text: str) -> str:
    """A text as files and networks take it: halves of surrogate pairs are spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()


def columns_of(rows: Sequence[dict[str, Value]]) -> list[str]:
    """All names of the rows, those that all have first."""
    return list(dict.fromkeys([*TEXTS, *NUMBERS, *sorted({n for row in rows for n in row})]))


def _about(trial: Trial) -> dict[str, Any]:
    software, price = trial.software, trial.price
    return {
        **{name: getattr(trial, name) for name in ("id", "workload", "status", "reason")},
        "offer": machine_name(trial),
        "started_at": trial.started_at or None,
        "ended_at": trial.ended_at,
        "runner": trial.runner,
        "command": " ".join(trial.command) or None,
        "bound_by": trial.bound_by,
        "caveats": " ".join(dict.fromkeys(c.code for c in trial.caveats)) or None,
        "price_unknown_reason": price.unknown_reason,
        "price_source": price.source or None,
        "price_date": price.date or None,
        "cpu_model": trial.machine.cpu_model,
        "framework": software.framework,
        "framework_version": software.framework_version,
        "python": software.python,
        "driver": software.driver,
        "commit": software.commit,
        "number_format": trial.profile.number_format if trial.profile else None,
        "source": trial.source,
        "study": trial.study,
        "exit_code": trial.exit_code,
        "dollars": trial.dollars,
        "price_per_hour": price.per_hour,
    }


def _measured(trial: Trial) -> dict[str, Any]:
    measured, profile = trial.measurement, trial.profile
    found: dict[str, Any] = {}
    if profile is not None:
        found |= {n: getattr(profile, n) for n in ("flops_per_sample", "parameters")}
    if measured is None:
        return found
    names = ("steps", "samples", "batch_size", "ranks", "warmup_seconds", "seconds")
    found |= {name: getattr(measured, name) for name in names}
    found["samples_per_second_with_pauses"] = measured.samples_per_second_with_pauses
    step, rate = measured.step_seconds, measured.samples_per_second
    if step is not None:
        found["step_seconds"] = step.value
    if rate is not None:
        found["samples_per_second"] = rate.value
        found["samples_per_second_low"], found["samples_per_second_high"] = rate.low, rate.high
        if trial.price.per_hour:
            found["samples_per_dollar"] = rate.value * 3600 / trial.price.per_hour
    return found


def _machine(trial: Trial) -> dict[str, Any]:
    offer, machine = trial.offer, trial.machine
    shared = ("provider", "region", "zone", "instance_type", "purchase", "arch", "vcpus")
    found = {name: getattr(machine, name) for name in (*shared, "memory_gib")}
    if machine.accelerators:
        first = machine.accelerators[0]
        found |= {"accelerator": first.name, "accelerator_memory_gib": first.memory_gib}
        found["accelerator_count"] = len(machine.accelerators)
    if offer is not None:
        more = (*shared, "memory_gib", "nodes", "accelerator", "accelerator_count")
        told = {name: getattr(offer, name) for name in (*more, "accelerator_memory_gib")}
        found |= {name: value for name, value in told.items() if value is not None}
    return found


def _text(value: Any) -> str | None:
    return None if value is None else plain(str(value))


def _finite(value: Any) -> float | int | None:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if isinstance(value, int | float) else None
