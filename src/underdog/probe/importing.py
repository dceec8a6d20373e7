"""Acting on an import at the moment it happens, invisible to all others.

The finder stands first on ``sys.meta_path``, answers only for the names it watches, lets the
finders behind it find them, and runs the callback after the module's own code has run.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as type checkers know it; the module typing is slow to load
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Callback = Callable[[Any], None]


class ImportWatcher:
    """A meta-path finder that calls back after the import of the modules it watches."""

    def __init__(self) -> None:
        self.watched: dict[str, list[Callback]] = {}

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec that the other finders give, its loader told to call back."""
        callbacks = self.watched.pop(name, None)
        if callbacks is None:
            return None
        spec = None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is not self and find is not None:
                spec = find(name, path, target)
                if spec is not None:
                    break
        if spec is None or not _call_after(spec.loader, callbacks):
            self.watched[name] = callbacks  # not found now; a later import may find it
        return spec


def _call_after(loader: Any, callbacks: list[Callback]) -> bool:
    """Shadow ``exec_module`` of this one loader for this one import."""
    execute = getattr(loader, "exec_module", None)
    if execute is None:
        return False

    def exec_module(module: Any) -> None:
        del loader.exec_module
        execute(module)
        for callback in callbacks:
            _guarded(callback, module)

    try:
        loader.exec_module = exec_module
    except AttributeError:  # a built-in or frozen module's loader
        return False
    return True


def _guarded(callback: Callback, module: Any) -> None:
    try:
        callback(module)
    except Exception as error:
        sys.stderr.write(
            f"underdog: the probe cannot observe '{module.__name__}' ({error!r}); "
            "the run goes on without.\n"
        )


def when_imported(name: str, callback: Callback) -> None:
    """Call back with the module once it is imported, at once if it is already.

    Args:
        name: full module name.
        callback: what it raises is told on stderr and goes no further.
    """
    module: Any | None = sys.modules.get(name)
    if module is not None and not getattr(
        getattr(module, "__spec__", None), "_initializing", False
    ):
        _guarded(callback, module)
        return
    _watcher().watched.setdefault(name, []).append(callback)


def _watcher() -> ImportWatcher:
    for finder in sys.meta_path:
        if isinstance(finder, ImportWatcher):
            return finder
    watcher = ImportWatcher()
    sys.meta_path.insert(0, watcher)
    return watcher
