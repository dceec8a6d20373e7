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
_OPENS = [tuple(parent in _PARENTS.get(kind, ()) for parent in range(8)) for kind in range(8)]


class PhaseClock:
    """A stack of open phases; time goes to the innermost. For one thread.

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

    def opens(self, kind: int) -> bool:
        """Whether a phase of that kind counts as one where we are now."""
        return _OPENS[kind][self.stack[-1]]

    def enter(self, kind: int) -> float:
        """Open a phase; the time of now."""
        now = time.perf_counter()
        self.seconds[self.stack[-1]] += now - self._since
        self._since = now
        self.stack.append(kind)
        if self.device is not None:
            self.device.switch(kind)
        return now

    def leave(self) -> float:
        """Close the innermost phase; the time of now."""
        now = time.perf_counter()
        stack = self.stack
        self.seconds[stack[-1]] += now - self._since
        self._since = now
        if len(stack) > 1:
            stack.pop()
        if self.device is not None:
            self.device.switch(stack[-1])
        return now

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
        self._since = time.perf_counter()
        if self.device is not None:
            self.device.leave_out(copy[1])
