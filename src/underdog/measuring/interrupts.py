"""The user's Ctrl-C and the signals by which a system asks a program to end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

WATCHED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Counts those signals inside its ``with`` block, instead of letting them end this process.

    Only the main thread may catch signals; in another one nothing is caught and the count stays
    at 0. A signal that was ignored before (``nohup``) stays ignored.
    """

    def __init__(self) -> None:
        self.count = 0
        self.polite = True  # the last one was SIGINT, which a script may answer in its own time
        self._before: dict[signal.Signals, Callable[..., Any] | int | None] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            for number in WATCHED:
                if signal.getsignal(number) != signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.polite = number == signal.SIGINT
