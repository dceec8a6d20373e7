"""When a step ends: whose optimizer leads, and what to do where there is none."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .torch_samples import Taken

if TYPE_CHECKING:  # not evaluated: Python 3.8 could not
    Cut = tuple[float, Taken, tuple[float, ...], bool]  # end, samples, phases, skipped


class StepLeader:
    """Tells the end of a step from the optimizers that step.

    With several optimizers (a GAN), one cycle is one step, from one step of the leader to the
    next. The leader is the one that stepped first; another that steps twice with no step of the
    leader in between leads from then on, for the leader was replaced or is the rarer one.

    Args:
        cut: the samples and phases since the last cut.
        emit: writes one step.
    """

    def __init__(self, cut: Callable[[], tuple[Taken, tuple[float, ...]]], emit: Any) -> None:
        self._cut = cut
        self._emit = emit
        self.reset()

    def reset(self) -> None:
        """No optimizer has stepped."""
        self._leader: Any = None
        self._in_row = 0  # steps of the leader with no other's in between
        self._others: list[int] = []  # that stepped since the leader did
        self._followers: set[int] = set()  # after which the leader went on
        self._kept: Cut | None = None  # a step of another that may turn out to be a step

    def stepped(self, optimizer: Any, end: float, skipped: bool = False) -> None:
        """An optimizer has stepped, or a gradient scaler skipped it."""
        leader = self._leader() if self._leader is not None else None
        if leader is optimizer:
            self._in_row = 1 if self._others else self._in_row + 1
            self._followers.update(self._others)
            self._lead(end, skipped, merge=True)
        elif leader is None:
            self._follow(optimizer, 1)
            self._lead(end, skipped, merge=False)
        elif id(optimizer) in self._others:
            self._follow(optimizer, 2 if self._kept is not None else 1)
            self._lead(end, skipped, merge=False)
        else:
            alone = self._in_row > 1 and not self._others
            if alone and id(optimizer) not in self._followers:
                self._kept = (end, *self._cut(), skipped)
            self._others.append(id(optimizer))

    def finish(self) -> None:
        """No more steps will come: one that was kept was one."""
        if self._kept is not None:
            self._emit(*self._kept)
            self._kept = None

    def _follow(self, optimizer: Any, in_row: int) -> None:
        self._leader = weakref.ref(optimizer)
        self._in_row = in_row

    def _lead(self, end: float, skipped: bool, merge: bool) -> None:
        taken, phases = self._cut()
        if self._kept is not None and merge:
            taken = _merged(self._kept[1], taken)
            phases = tuple(a + b for a, b in zip(self._kept[2], phases))  # noqa: B905 - newer syntax
            self._kept = None
        self.finish()
        self._others = []
        self._emit(end, taken, phases, skipped)


def _merged(first: Taken, second: Taken) -> Taken:
    told = [t for t in (first, second) if t.from_loader] or [first, second]
    known = [t.samples for t in told if t.samples is not None]
    return Taken(sum(known) if known else None, told[0].from_loader)
