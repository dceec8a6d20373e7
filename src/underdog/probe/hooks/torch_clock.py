"""The phases of a step on the processor's clock: disjoint, for an inner one stops the outer."""

from __future__ import annotations

import time
from typing import Any

DATA, TRANSFER, FORWARD, BACKWARD, OPTIMIZER, COMMUNICATION, PAUSE, OTHER = range(8)
WRITTEN = 6  # the first six are what a step record holds

# What may open inside what. A forward inside backward is recomputation and stays backward; one
# inside a data loader is a transformation of the data.
_PARENTS = {
    DATA: (OTHER, OPTIMIZER),
    TRANSFER: (OTHER, FORWARD),
    FORWARD: (OTHER, OPTIMIZER),
    BACKWARD: (OTHER, OPTIMIZER),
    OPTIMIZER: (OTHER, BACKWARD),
    COMMUNICATION: (OTHER, FORWARD, OPTIMIZER),
    PAUSE: (OTHER, FORWARD, BACKWARD, OPTIMIZER, DATA),
}
OPENS = [tuple(parent in _PARENTS.get(kind, ()) for parent in range(8)) for kind in range(8)]


class PhaseClock:
    """A stack of open phases; time goes to the innermost. It is told the times.

    ``device`` is a ``DeviceTimeline`` where the work runs on an accelerator.
    """

    def __init__(self) -> None:
        self.device: Any | None = None
        self.reset()

    def reset(self) -> None:
        """No phase is open and no time was spent."""
        self.seconds: list[float] = [0.0] * 8
        self.stack: list[int] = [OTHER]
        self._since = time.perf_counter()
        self.entered = self._since  # when the innermost phase, if nothing opened in it

    def enter(self, kind: int, now: float, mark: Any = None) -> None:
        """Open a phase."""
        self.seconds[self.stack[-1]] += now - self._since
        self._since = self.entered = now
        self.stack.append(kind)
        if self.device is not None:
            self.device.switch(kind, mark)

    def leave(self, now: float, mark: Any = None) -> None:
        """Close the innermost phase."""
        stack = self.stack
        self.seconds[stack[-1]] += now - self._since
        self._since = now
        if len(stack) > 1:
            del stack[-1]
        if self.device is not None:
            self.device.switch(stack[-1], mark)

    def abandon(self, now: float) -> None:
        """Close all that is open."""
        while len(self.stack) > 1:
            self.leave(now)

    def clear(self, now: float) -> None:
        """What was spent up to now belongs to no phase; what is open goes on."""
        self.seconds = [0.0] * 8
        self._since = now

    def add(self, kind: int, seconds: float) -> None:
        """Time of a phase that was taken away with others."""
        self.seconds[kind] += seconds

    def take(self) -> tuple[float, ...]:
        """The seconds of the six written phases since the last call."""
        taken = tuple(self.seconds[:WRITTEN])
        self.seconds = [0.0] * 8
        return taken

    def copy(self) -> tuple[list[float], int]:
        """What was spent so far, to come back to."""
        return self.seconds[:], 0 if self.device is None else self.device.position()

    def restore(self, copy: tuple[list[float], int]) -> None:
        """What was spent since the copy belongs to no phase."""
        self.seconds = copy[0][:]
        if self.device is not None:
            self.device.leave_out(copy[1])
