"""Exporters: trials in the formats of other tools. One file per format, found by its name.

An exporter of yours is a module with ``export(trials, target)`` under the entry-point group
``underdog.exporters``; ``ENDINGS`` are the file endings that stand for it, and ``FOLDER = True``
says that its target is a folder, ``WHOLE = True`` that it holds timelines too.
``underdog.testing.exporter`` checks one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from underdog import plugins
from underdog.errors import UsageError
from underdog.model import Trial

PACKAGE, GROUP = "underdog.report.exporters", "underdog.exporters"
WRITTEN = "trials written"  # of which an exporter says how many


def names() -> list[str]:
    """The formats that there are."""
    return plugins.names(PACKAGE, GROUP)


def export(trials: Sequence[Trial], target: Path, form: str | None = None) -> None:
    """Write trials to a file or a folder in a format.

    A file is replaced at the end, not before. A folder is added to: a trial that is there already
    is not there twice.

    Args:
        form: the format's name; by default the file's ending tells it.

    Raises:
        UsageError: there is no such format, the ending tells none, or the target cannot be written.
        MissingPackageError: the format's package is not installed.
    """
    module: Any = plugins.load(PACKAGE, GROUP, form or _by_ending(target))
    try:
        if getattr(module, "FOLDER", False):
            target.mkdir(parents=True, exist_ok=True)
            module.export(trials, target)
        else:
            _replace(module, trials, target)
    except OSError as error:
        raise UsageError(f"'{target}' cannot be written: {error.strerror or error}.") from None


def keeps_all(target: Path, form: str | None = None) -> bool:
    """Whether a format holds all that is known of a trial, its timeline too; else as ``export``."""
    module: Any = plugins.load(PACKAGE, GROUP, form or _by_ending(target))
    return bool(getattr(module, "WHOLE", False))


def _by_ending(target: Path) -> str:
    endings: dict[str, str] = {}
    for name in names():
        module = plugins.load(PACKAGE, GROUP, name)
        endings |= dict.fromkeys(getattr(module, "ENDINGS", ()), name)
    if target.suffix not in endings:
        known = ", ".join(sorted(endings))
        raise UsageError(
            f"The ending of '{target}' tells no format; these do: {known}.",
            f"Name the format: --format {' | '.join(names())}",
        )
    return endings[target.suffix]


def _replace(module: Any, trials: Sequence[Trial], target: Path) -> None:
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        module.export(trials, beside)
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
