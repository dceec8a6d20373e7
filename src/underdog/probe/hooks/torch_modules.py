"""Finding the outermost modules, so that only their calls cost anything.

For the first steps every module's call is seen, through ``Module.__call__``. The class of a
module that was called outermost then gets a ``__call__`` of its own, and all others are as they
were. A step with a backward but no forward starts the search again. While torch.compile traces,
nothing is in its way.
"""

from __future__ import annotations

import functools
from typing import Any

from .torch_clock import FORWARD

SEARCH_STEPS = 3  # with no new class, and the search ends


class ModuleWatch:
    """Puts the tap's ``call`` around outermost module calls, and takes it away again."""

    def __init__(self, module_class: Any, tap: Any) -> None:
        self._base = module_class
        self._tap = tap
        self.pristine = module_class.__call__
        self._classes: list[Any] = []
        self._quiet_steps = 0
        self._searching = False
        self._tracing = 0
        self._define()
        self.search()

    def _define(self) -> None:
        tap, base, found, pristine = self._tap, self._base, self._found, self.pristine

        def searched(module: Any, *args: Any, **kwargs: Any) -> Any:
            if not tap.opens(FORWARD):
                return pristine(module, *args, **kwargs)
            found(type(module))
            return tap.call(module, pristine, args, kwargs)

        def watched(module: Any, *args: Any, **kwargs: Any) -> Any:
            return tap.call(module, base.__call__, args, kwargs)

        self.searched, self._watched = searched, watched

    def search(self) -> None:
        """See every module's call."""
        self._quiet_steps = 0
        if not self._searching and self._base.__call__ is self.pristine:
            self._searching = True
            self._base.__call__ = self.searched

    def _stop_searching(self) -> None:
        # another tool that has put its own call over ours keeps it
        if self._base.__call__ is self.searched:
            self._base.__call__ = self.pristine
            self._searching = False

    def _found(self, cls: Any) -> None:
        if cls is self._base or any(cls is known for known, _, _ in self._classes):
            return
        self._quiet_steps = 0
        # what the class is called by now: its own, or one that it inherits from another than Module
        present = cls.__call__
        plain = present in (self.searched, self.pristine, self._watched)
        ours = self._watched if plain else self._around(present)
        own = cls.__dict__.get("__call__")
        self._classes.append((cls, own, ours))
        cls.__call__ = ours

    def _around(self, own: Any) -> Any:
        """The watch over a class whose call is not that of Module."""
        tap = self._tap

        @functools.wraps(own)
        def watched(module: Any, *args: Any, **kwargs: Any) -> Any:
            return tap.call(module, own, args, kwargs)

        return watched

    def after_step(self, seen_forward: bool) -> None:
        """Narrow the search or widen it, by whether the step showed a forward."""
        if not seen_forward:
            self.search()
        elif self._searching:
            self._quiet_steps += 1
            if self._quiet_steps >= SEARCH_STEPS:
                self._stop_searching()

    def tracing(self, begins: bool) -> None:
        """torch.compile begins or ends to trace: it must see the classes as they were."""
        self._tracing += 1 if begins else -1
        if begins and self._tracing == 1:
            self._resume = self._searching
            self._stop_searching()
            for cls, own, ours in self._classes:
                if cls.__dict__.get("__call__") is ours:
                    _give_call(cls, own)
        elif not begins and self._tracing == 0:
            for cls, own, ours in self._classes:
                if cls.__dict__.get("__call__") is own:
                    _give_call(cls, ours)
            if self._resume:
                self.search()


def _give_call(cls: Any, call: Any) -> None:
    if call is None:
        del cls.__call__
    else:
        cls.__call__ = call
