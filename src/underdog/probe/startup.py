"""Starting the probe in the user's process: wait for a framework, and nothing more."""

from __future__ import annotations

import os
import sys

from . import importing

TYPE_CHECKING = False  # as type checkers know it; the module typing is slow to load
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_recorder: Any | None = None


def start(folder: str) -> None:
    """Watch for the frameworks that there are hooks for, and serve ``import underdog``.

    Args:
        folder: where the records go.
    """
    hooks = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hooks")
    for file in os.listdir(hooks):
        name, ending = os.path.splitext(file)
        if ending == ".py" and "_" not in name:
            importing.when_imported(name, _attaching(name, folder))
    sys.meta_path.append(TrackFinder())


def recorder(folder: str | None = None) -> Any | None:
    """The one recorder of this process, made on first use; None where no records are wanted."""
    global _recorder
    folder = folder or os.environ.get("UNDERDOG_RECORDS")
    if _recorder is None and folder:
        import atexit

        from .recorder import Recorder

        _recorder = Recorder(
            folder, _samples_per_step(), worker="--multiprocessing-fork" in sys.argv
        )
        atexit.register(_recorder.end)
        os.register_at_fork(after_in_child=_recorder.after_fork)
    return _recorder


def _attaching(name: str, folder: str) -> Callable[[Any], None]:
    def attach(module: Any) -> None:
        import importlib

        hook = importlib.import_module(f"{__package__}.hooks.{name}")
        if getattr(hook, "WATCHES", None) == name:
            hook.attach(module, recorder(folder))

    return attach


def _samples_per_step() -> float | None:
    try:
        value = float(os.environ["UNDERDOG_SAMPLES_PER_STEP"])
    except (KeyError, ValueError):
        return None
    return value if 0 < value < float("inf") else None


class TrackFinder:
    """``import underdog`` gives ``track`` in an environment where underdog is not installed.

    It stands last on ``sys.meta_path``, so an installed underdog goes first.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """A module with ``track`` for the name ``underdog``, nothing for any other."""
        if name != "underdog":
            return None
        from importlib.machinery import ModuleSpec

        return ModuleSpec(name, self, origin="the probe of underdog")  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> None:
        """The default one."""

    def exec_module(self, module: Any) -> None:
        """Give it the one name that training scripts use."""
        from .tracking import track

        module.track = track
