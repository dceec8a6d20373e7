"""The outside half of measuring: launch, sample the machine, collect."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """``underdog.measure`` names this package and the verb of the public API alike.

    Importing any module of the package binds the name to the package, so the package passes a
    call on to the verb; else ``underdog.measure(…)`` would work once and never again.
    """

    def __call__(self, *args: Any, **options: Any) -> Any:
        return importlib.import_module("underdog.verbs.measure").measure(*args, **options)


sys.modules[__name__].__class__ = _Package
