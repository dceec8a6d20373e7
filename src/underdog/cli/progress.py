"""Progress on stderr: a bar with rate and time left on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from underdog.cli.common import console
from underdog.progress import telling
from underdog.units import format_seconds

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

PLAIN_SECONDS = 10  # between two lines where there is no terminal
DELAY = 0.5  # seconds before a bar is drawn: what is quicker needs none
SETTLING = 0.5  # seconds before a rate is told


@contextmanager
def bars() -> Iterator[None]:
    """Show what is said of long work inside the block, on a terminal only."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    with Progress() as progress, telling(progress.tell):
        yield


class Progress:
    """One bar, of what was told last; or lines, where stderr is no terminal."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._last, self._first, self._what = 0.0, 0, ""
        self._terminal = console(stderr=True).is_terminal
        self._lock = threading.Lock()
        self._bar: Bar | None = None
        self._shown: dict[str, Any] = {}
        self._timer = threading.Timer(DELAY, self._open)
        self._timer.daemon = True

    def __enter__(self) -> Progress:
        if self._terminal:
            self._timer.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._shown = {}
            if self._bar is not None:
                self._bar.stop()
                self._bar = None

    def tell(self, what: str, done: int, total: int | None) -> None:
        """Something went on: how much of it is done, and of how much if known."""
        now, new = time.monotonic(), what != self._what
        if new:
            self._what, self._since, self._first = what, now, done
        if self._terminal:
            self._draw(done, total, now)
        elif new or now - self._last >= PLAIN_SECONDS:
            self._last = now
            click.echo(f"{what}, {_far(done, total)}" if done else what, err=True)

    def _draw(self, done: int, total: int | None, now: float) -> None:
        words = [_far(done, total)] if done else []
        elapsed = now - self._since
        if elapsed > SETTLING and done > self._first:
            rate = (done - self._first) / elapsed
            words.append(f"{_rate(rate)}/s")
            if total is not None and total > done:
                words.append(f"{format_seconds(max((total - done) / rate, 1.0))} left")
        shown: dict[str, Any] = {
            "completed": done,
            "total": total,
            "what": self._what,
            "far": ", ".join(words),
        }
        with self._lock:
            self._shown = shown
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], **shown)

    def _open(self) -> None:
        """Draw the bar: it took so long that there is something to see."""
        with self._lock:
            if self._shown:
                self._bar = _bar()
                self._bar.update(self._bar.task_ids[0], **self._shown)
            else:  # nothing was told yet
                self._timer = threading.Timer(DELAY, self._open)
                self._timer.daemon = True
                self._timer.start()


def _bar() -> Bar:
    from rich.progress import BarColumn, SpinnerColumn, TextColumn
    from rich.progress import Progress as Bar

    made = Bar(
        SpinnerColumn(),
        TextColumn("{task.fields[what]}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[far]}", markup=False),
        console=console(stderr=True),
        transient=True,
    )
    made.add_task("", total=None, what="", far="")
    made.start()
    return made


def _far(done: int, total: int | None) -> str:
    return f"{done:,}" if total is None else f"{done:,} of {total:,}"


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
