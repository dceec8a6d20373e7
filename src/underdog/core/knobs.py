"""Knobs of a workload, searched machine by machine: the cheap rule first, never the whole grid.

The largest batch that fits, then its neighbours, one knob at a time. What was found on one machine
is where the next one begins, so that a dear machine gets the best knobs of a cheap one first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

OUT_OF_MEMORY = "out_of_memory"
Values = Mapping[str, Sequence[str]]
_BATCH = ("batch_size", "batch", "batchsize", "bs", "micro_batch", "micro_batch_size")


@dataclass(frozen=True, slots=True)
class Tried:
    """One setting that was tried on a machine; ``rate`` is None where it gave none."""

    setting: Mapping[str, str]
    rate: float | None
    status: str = "ok"


def batch_knob(values: Values) -> str | None:
    """The knob that is the batch: by its name, and with numbers for values."""
    for name in _BATCH:
        for knob in values:
            if knob.lower().endswith(name) and _ordered(values[knob]):
                return knob
    return None


def first_setting(
    values: Values, elsewhere: Sequence[Tried] = (), room: float = 1.0
) -> dict[str, str]:
    """Where a machine begins: with the best of another one, else the largest batch.

    Of the other knobs the first value that the user gave counts as the usual one.

    Args:
        elsewhere: what was tried on the other machine. Where its memory held a larger batch up,
            a machine with more memory begins with the batch that should fit there.
        room: memory over that of the other machine.
    """
    batch = batch_knob(values)
    measured = [one for one in elsewhere if one.rate is not None]
    if measured:
        best = dict(max(measured, key=lambda one: one.rate or 0.0).setting)
        if batch is not None and any(one.status == OUT_OF_MEMORY for one in elsewhere):
            fits = float(best[batch]) * max(room, 1.0)
            best[batch] = max((v for v in values[batch] if float(v) <= fits), key=float)
        return {knob: best[knob] for knob in values}
    return {
        knob: max(given, key=float) if knob == batch else given[0] for knob, given in values.items()
    }


def to_fit(values: Values, tried: Sequence[Tried]) -> dict[str, str] | None:
    """The next smaller batch where all that was tried on a machine ran out of memory, else None."""
    batch = batch_knob(values)
    if batch is None or not tried or any(one.status != OUT_OF_MEMORY for one in tried):
        return None
    least = min(tried, key=lambda one: float(one.setting[batch]))
    smaller = [v for v in values[batch] if float(v) < float(least.setting[batch])]
    return {**least.setting, batch: max(smaller, key=float)} if smaller else None


def to_improve(
    values: Values, tried: Sequence[Tried], most: int | None = None
) -> dict[str, str] | None:
    """A neighbour of the best setting of a machine that was not tried there, else None.

    Args:
        tried: on this machine.
        most: settings to try on it in all; without it as many as there are values of all knobs,
            which a grid soon exceeds.
    """
    most = most if most is not None else 1 + sum(len(given) - 1 for given in values.values())
    measured = [one for one in tried if one.rate is not None]
    if not measured or len(tried) >= most:
        return None
    best = max(measured, key=lambda one: one.rate or 0.0)
    for setting in neighbours(values, best.setting):
        known = any(dict(one.setting) == setting for one in tried)
        if not known and not _cannot_fit(values, setting, tried):
            return setting
    return None


def to_work(values: Values, tried: Sequence[Tried]) -> dict[str, str] | None:
    """Another setting where none that was tried on a machine works, else None.

    A setting may fail for its own reason, as a number format that the machine does not have. As
    many are tried as there are places next to one setting.
    """
    if not tried or any(one.rate is not None for one in tried) or len(tried) > 2 * len(values):
        return None
    nearest = min(tried, key=lambda one: (one.status == OUT_OF_MEMORY, sorted(one.setting.items())))
    for setting in neighbours(values, nearest.setting):
        known = any(dict(one.setting) == setting for one in tried)
        if not known and not _cannot_fit(values, setting, tried):
            return setting
    return None


def neighbours(values: Values, setting: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Settings that differ in one knob: by one place for numbers, by any value for words."""
    for knob, given in values.items():
        here = setting.get(knob)
        if here is not None and here in given and _ordered(given):
            ranked = sorted(given, key=float, reverse=True)
            at = ranked.index(here)
            near = ranked[max(at - 1, 0) : at] + ranked[at + 1 : at + 2]
        else:
            near = [value for value in given if value != here]
        for value in near:
            yield {**setting, knob: value}


def _cannot_fit(values: Values, setting: Mapping[str, str], tried: Sequence[Tried]) -> bool:
    """Whether a batch no larger ran out of memory with all else equal."""
    batch = batch_knob(values)
    if batch is None:
        return False
    return any(
        one.status == OUT_OF_MEMORY
        and float(one.setting[batch]) <= float(setting[batch])
        and all(one.setting[knob] == setting[knob] for knob in values if knob != batch)
        for one in tried
    )


def _ordered(given: Sequence[str]) -> bool:
    try:
        return all(float(value) == float(value) for value in given)
    except ValueError:
        return False
