"""Plug-ins: a file of ours, found by its name and imported on use, or an outsider's entry point.

A plug-in of kind ``hooks`` named ``torch`` is the module ``underdog.probe.hooks.torch``, or an
entry point ``torch`` in the group ``underdog.hooks``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import pkgutil
from functools import cache
from types import ModuleType

from underdog.errors import UsageError, did_you_mean


@cache  # to look through all that is installed takes tens of milliseconds
def _entries(group: str) -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(importlib.metadata.entry_points(group=group))


def names(package: str, group: str) -> list[str]:
    """All names of one kind, ours and outsiders'."""
    spec = importlib.util.find_spec(package)
    folders = list(spec.submodule_search_locations or []) if spec else []
    ours = {m.name for m in pkgutil.iter_modules(folders) if not m.name.startswith("_")}
    return sorted(ours | {entry.name for entry in _entries(group)})


def load(package: str, group: str, name: str) -> ModuleType:
    """The plug-in of that name.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    known = names(package, group)
    if name not in known:
        kind = package.rsplit(".", 1)[-1]
        raise UsageError(f"There is no '{name}' among the {kind}.", did_you_mean(name, known))
    for entry in _entries(group):
        if entry.name == name:
            loaded = entry.load()
            if isinstance(loaded, ModuleType):
                return loaded
    return importlib.import_module(f"{package}.{name}")
