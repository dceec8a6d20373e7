"""Where trials and decisions live: one URL, SQLite by default, PostgreSQL by URL.

A store of another kind is a module with ``open_store(url) -> Store`` under the entry-point group
``underdog.stores``, named like the scheme of its URL; ``underdog.testing.store`` checks it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from underdog import config, plugins
from underdog.core.attempts import Attempt
from underdog.errors import StoreError, did_you_mean
from underdog.model import Decision, Trial

Record = Trial | Decision | Attempt

BUILT_IN = ("postgresql", "sqlite")
_ALIASES = {"postgres": "postgresql"}


@dataclass(frozen=True, slots=True)
class Tally:
    """How many trials of a workload and a study have a status, and when the last one started."""

    workload: str
    status: str
    count: int
    last_started_at: str  # as the trial has it
    study: str | None = None  # None: trials of no study


class Attempts(Protocol):
    """What a store keeps of the attempts to get machines."""

    def attempts(
        self,
        *,
        provider: str | None = None,
        instance_type: str | None = None,
        since: float | None = None,
        limit: int | None = None,
    ) -> list[Attempt]:
        """The attempts that match all that is given, in the order in which they were first saved.

        ``since`` is in seconds since 1970; ``limit`` keeps the last ones.
        """


class Trials(Protocol):
    """What a store keeps of trials."""

    def trials(
        self,
        *,
        workload: str | None = None,
        id: str | Collection[str] | None = None,
        status: str | None = None,
        study: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        timeline: bool = False,
    ) -> list[Trial]:
        """The trials that match all that is given, in the order in which they were first saved.

        ``offset`` leaves out so many of the last ones, and ``limit`` keeps the last of the rest:
        the second page of 50 is ``limit=50, offset=50``. Without ``timeline`` that of every trial
        is None, which is quicker.
        """

    def tally(self) -> list[Tally]:
        """All trials, counted by workload, status and study, in the order of these."""

    def update(self, trial: Trial) -> bool:
        """Replace a trial by what is known of it while it runs; False where it runs no more.

        It does nothing to a trial that is not there or that has ended: what was saved at the end,
        by whomever, stands. It does not wait for other writers, and a machine that fails may lose
        it.

        Raises:
            StoreError: besides, the store is busy.
        """


class Store(Attempts, Trials, Protocol):
    """Trials, decisions and attempts, kept.

    Every method raises StoreError where it cannot do its work.
    """

    def save(self, *records: Record) -> None:
        """Insert the records, or replace those of the same id, all or none.

        When this returns, they are on the disk: no end of the process or the machine loses them.
        A trial that is saved without a timeline keeps the one that is there.

        Raises:
            StoreError: besides, a record that cannot be kept as it is, such as one with NaN.
        """

    def save_all(self, records: Iterable[Record]) -> int:
        """Like ``save`` for many records, read one by one; returns how many there were.

        Where ``records`` itself raises, nothing of it is kept.
        """

    def decisions(
        self,
        *,
        workload: str | None = None,
        id: str | Collection[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[Decision]:
        """The decisions that match all that is given, in the order of their first saving.

        ``limit`` and ``offset`` are as those of ``trials``.
        """

    def close(self) -> None:
        """Let go of all connections; a second call does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def open_store(url: str | None = None, *, read_only: bool = False) -> Store:
    """Open the store at ``url`` (a path is a SQLite file), making it where there is none.

    Trials in flight whose process is gone are marked as interrupted on the way. Without ``url``,
    ``$UNDERDOG_STORE`` counts, else the user's data folder. What is opened ``read_only`` is not
    changed in any way: those trials are only told as interrupted, and where there is no store yet,
    an empty one is given that is kept nowhere. (A store of another kind is opened as it opens.)

    Raises:
        StoreError: there is no such kind of store, or it cannot be opened or is not ours.
        MissingPackageError: the database's driver is not installed.
    """
    url = config.store_url(url)
    scheme = url.partition("://")[0].partition("+")[0].lower()
    scheme = _ALIASES.get(scheme, scheme)
    # our own are opened without a search for plug-ins, which reads every installed package
    if scheme in BUILT_IN:
        if read_only:
            from underdog.store import readonly

            return readonly.open_store(url)
        from underdog.store import sql

        return sql.open_store(url)
    known = plugins.names("underdog.store.kinds", "underdog.stores")
    if scheme not in known:
        raise StoreError(
            f"There is no kind of store '{scheme}' to open.",
            did_you_mean(scheme, {*BUILT_IN, *known}),
        )
    opened: Store = plugins.load("underdog.store.kinds", "underdog.stores", scheme).open_store(url)
    return opened
