"""How far long work has come, told to whoever shows it; to nobody unless somebody asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Tell = Callable[[str, int, int | None], None]  # what is done, how much of it, of how much if known

EVERY = 200  # items between two words

_T = TypeVar("_T")
_tell: ContextVar[Tell | None] = ContextVar("tell", default=None)


@contextmanager
def telling(tell: Tell) -> Iterator[None]:
    """What is said inside the block goes to ``tell``."""
    before = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(before)


def say(what: str, done: int = 0, total: int | None = None) -> None:
    """Say how far it has come."""
    tell = _tell.get()
    if tell is not None:
        tell(what, done, total)


def track(
    items: Iterable[_T], what: str, total: int | None = None, every: int = EVERY
) -> Iterable[_T]:
    """The items; on the way it is said how many are done.

    Args:
        what: they are, in the plural.
        total: how many there are, where the items do not tell.
        every: says so after so many; 1 where each takes long.
    """
    if _tell.get() is None:
        return items
    return _tracked(items, what, total, every)


def _tracked(items: Iterable[_T], what: str, total: int | None, every: int) -> Iterator[_T]:
    if total is None and isinstance(items, Sized):
        total = len(items)
    say(what, 0, total)
    for done, item in enumerate(items):
        if done and done % every == 0:
            say(what, done, total)
        yield item
