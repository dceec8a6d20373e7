"""Finding the outermost modules, so that only their calls cost anything.

For the first steps every module's call is seen, through ``Module.__call__``. The class of a
module that was called outermost then gets a ``__call__`` of its own, and all others are as they
were. A step with a backward but no forward starts the search again. While torch.compile traces,
nothing is in its way.
"""

from __future__ import annotations

from typing import Any

SEARCH_STEPS = 3  # with no new class, and the search ends


class ModuleWatch:
    """Puts the observer's ``call`` around outermost module calls, and takes it away again."""

    def __init__(self, module_class: Any, observer: Any) -> None:
        self._base = module_class
        self._observer = observer
        self.pristine = module_class.__call__
        self._classes: list[Any] = []
        self._quiet_steps = 0
        self._searching = False
        self._tracing = 0
        self._define()
        self.search()

    def _define(self) -> None:
        observer, base, watch = self._observer, self._base, self
        pristine = self.pristine

        def searched(module: Any, *args: Any, **kwargs: Any) -> Any:
            if observer.clock.opens(2) and type(module) not in watch._classes:
                watch._found(type(module))
                return observer.call(module, pristine, args, kwargs)
            return pristine(module, *args, **kwargs)

        def watched(module: Any, *args: Any, **kwargs: Any) -> Any:
            return observer.call(module, base.__call__, args, kwargs)

        self._searched, self._watched = searched, watched

    @property
    def functions(self) -> list[Any]:
        """What stands in for ``__call__``."""
        return [self._searched, self._watched]

    def search(self) -> None:
        """See every module's call."""
        self._quiet_steps = 0
        if not self._searching and self._base.__call__ is self.pristine:
            self._searching = True
            self._base.__call__ = self._searched

    def _stop_searching(self) -> None:
        # another tool that has put its own call over ours keeps it
        if self._base.__call__ is self._searched:
            self._base.__call__ = self.pristine
            self._searching = False

    def _found(self, cls: Any) -> None:
        self._quiet_steps = 0
        # a class with a call of its own is seen where that calls Module.__call__
        if cls.__call__ in (self._searched, self.pristine) and cls is not self._base:
            self._classes.append(cls)
            cls.__call__ = self._watched

    def after_step(self) -> None:
        """Narrow the search or widen it, by what the step showed."""
        if not self._observer.seen_forward:
            self.search()
        elif self._searching:
            self._quiet_steps += 1
            if self._quiet_steps >= SEARCH_STEPS:
                self._stop_searching()
        self._observer.seen_forward = False

    def tracing(self, begins: bool) -> None:
        """torch.compile begins or ends to trace: it must see the classes as they were."""
        self._tracing += 1 if begins else -1
        if begins and self._tracing == 1:
            self._resume = self._searching
            self._stop_searching()
            for cls in self._classes:
                if cls.__dict__.get("__call__") is self._watched:
                    del cls.__call__
        elif not begins and self._tracing == 0:
            for cls in self._classes:
                if "__call__" not in cls.__dict__:
                    cls.__call__ = self._watched
            if self._resume:
                self.search()
