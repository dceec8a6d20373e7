"""underdog: find the machine on which a deep-learning workload runs best, by measuring it.

Every public name is imported on first use, so that ``import underdog`` costs next to nothing
and ``underdog.track`` can stand in a training script.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from underdog.probe.tracking import track
    from underdog.verbs.catalog import refresh
    from underdog.verbs.check import check
    from underdog.verbs.choose import choose
    from underdog.verbs.explore import explore
    from underdog.verbs.measure import measure
    from underdog.verbs.offers import offers
    from underdog.verbs.trials import import_trials, trials
    from underdog.verbs.watch import watch

# public name -> the module that holds it
_PUBLIC = {
    "check": "underdog.verbs.check",
    "choose": "underdog.verbs.choose",
    "explore": "underdog.verbs.explore",
    "import_trials": "underdog.verbs.trials",
    "measure": "underdog.verbs.measure",
    "offers": "underdog.verbs.offers",
    "refresh": "underdog.verbs.catalog",
    "track": "underdog.probe.tracking",
    "trials": "underdog.verbs.trials",
    "watch": "underdog.verbs.watch",
}

__all__ = [
    "__version__",
    "check",
    "choose",
    "explore",
    "import_trials",
    "measure",
    "offers",
    "refresh",
    "track",
    "trials",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        return getattr(importlib.import_module(_PUBLIC[name]), name)
    raise AttributeError(f"module 'underdog' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
