"""Check: has the throughput per dollar of a workload fallen against a baseline?"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from underdog.core.regression import Change, Reading, judge, machine_of, reading
from underdog.errors import UsageError, did_you_mean
from underdog.model import Trial
from underdog.store import Store, open_store

FORMAT = 1


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The file: readings by the name of their workload."""

    format: int = FORMAT
    readings: dict[str, Reading] = {}


@dataclass(frozen=True, kw_only=True, slots=True)
class Checked:
    """A workload's baseline, what is now, and the change."""

    before: Reading
    after: Reading
    change: Change


def check(
    baseline: str | Path,
    *,
    drop: float = 0.05,
    workloads: Sequence[str] = (),
    runs: int = 1,
    store: str | None = None,
) -> list[Checked]:
    """Compare the latest trials with a baseline file.

    Args:
        baseline: the file that ``update`` wrote.
        drop: the fall of samples per dollar that is allowed, as a share.
        workloads: those to check; all of the file without.
        runs: how many of the latest trials are pooled.
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder.

    Raises:
        UsageError: the file cannot be read, names no such workload, or nothing comparable was
            measured; all problems together. Or the drop is no share between 0 and 1.
    """
    if not 0 < drop < 1:
        meant = f" Did you mean {drop:g}%?" if 1 <= drop < 100 else ""
        raise UsageError(f"--drop must be a share such as 5%, not {drop:g}.{meant}")
    kept = read(Path(baseline)).readings
    if not kept:
        raise UsageError(
            f"The baseline '{baseline}' holds no workload, so there is nothing to check.",
            f"Write one from the latest trial: underdog check {baseline} --update",
        )
    unknown = [name for name in workloads if name not in kept]
    problems = [f"The baseline has no workload '{n}'. {did_you_mean(n, kept)}" for n in unknown]
    found = []
    with open_store(store) as opened:
        for name in workloads or kept:
            if name in unknown:
                continue
            try:
                after = latest(opened, name, runs, like=kept[name])
            except UsageError as error:
                problems.append(str(error))
                continue
            change = judge(kept[name], after, drop)
            found.append(Checked(before=kept[name], after=after, change=change))
    if problems:
        raise UsageError("\n".join(problems))
    return found


def update(
    baseline: str | Path,
    *,
    workloads: Sequence[str] = (),
    runs: int = 1,
    store: str | None = None,
) -> list[Reading]:
    """Write the latest trials into a baseline file; other workloads in it stay.

    Raises:
        UsageError: nothing was measured, or the file cannot be read or written.
    """
    path = Path(baseline)
    kept = dict(read(path).readings) if path.exists() else {}
    with open_store(store) as opened:
        names = list(workloads or kept) or [_newest(opened)]
        made = [latest(opened, name, runs) for name in names]
    kept |= {one.workload: one for one in made}
    _write(path, Baseline(readings=dict(sorted(kept.items()))))
    return made


def read(path: Path) -> Baseline:
    """The baseline of a file.

    Raises:
        UsageError: it cannot be read, or is no baseline.
    """
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Baseline)
    except OSError as error:
        raise UsageError(
            f"Cannot read the baseline '{path}': {error.strerror}.",
            f"Write one from the latest trial: underdog check {path} --update",
        ) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"'{path}' is no baseline: {error}.") from error
    if found.format != FORMAT:
        raise UsageError(
            f"The baseline '{path}' has the format {found.format}, and this version of underdog "
            f"reads {FORMAT}.",
            "pip install --upgrade underdog",
        )
    faulty = [n for n, one in found.readings.items() if not _sound(one)]
    if faulty:
        raise UsageError(f"The baseline '{path}' has no positive throughput of '{faulty[0]}'.")
    return found


def latest(store: Store, workload: str, runs: int, like: Reading | None = None) -> Reading:
    """The reading of the latest trials of a workload.

    Args:
        like: a reading whose knobs and machine they must have.

    Raises:
        UsageError: there is none.
    """
    trials = [t for t in store.trials(workload=workload, status="ok") if _has_rate(t)]
    if not trials:
        raise UsageError(
            f"No trial of the workload '{workload}' with a throughput is in the store.",
            "Measure it: underdog measure -- python train.py",
        )
    knobs = trials[-1].knobs if like is None else like.knobs
    machine = machine_of(trials[-1]) if like is None else like.machine
    alike = [t for t in trials if t.knobs == knobs and machine_of(t) == machine]
    if not alike:
        other = trials[-1]
        raise UsageError(
            f"'{workload}' was last measured on {machine_of(other)} with {other.knobs or 'no'} "
            f"knobs, and its baseline is of {machine} with {knobs or 'no'} knobs.",
            "Make a baseline for this machine: underdog check FILE --update",
        )
    return reading(alike[-runs:])


def _has_rate(trial: Trial) -> bool:
    return trial.measurement is not None and trial.measurement.samples_per_second is not None


def _sound(one: Reading) -> bool:
    rate, price = one.samples_per_second, one.price_per_hour
    return 0 < rate.low <= rate.value <= rate.high and (price is None or price > 0)


def _newest(store: Store) -> str:
    trials = [t for t in store.trials(status="ok") if _has_rate(t)]
    if not trials:
        raise UsageError(
            "Nothing has been measured yet, so there is no baseline to write.",
            "Measure a workload: underdog measure -- python train.py",
        )
    return max(trials, key=lambda t: t.started_at).workload


def _write(path: Path, baseline: Baseline) -> None:
    """Whole or not at all: a full disk leaves the old baseline."""
    text = msgspec.json.format(msgspec.json.encode(baseline), indent=1) + b"\n"
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except OSError:
            os.unlink(name)
            raise
    except OSError as error:
        raise UsageError(f"Cannot write the baseline '{path}': {error.strerror}.") from error
