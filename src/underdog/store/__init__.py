"""Where trials and decisions live: one URL, SQLite by default, PostgreSQL by URL.

A store of another kind is a module with ``open_store(url) -> Store`` under the entry-point group
``underdog.stores``, named like the scheme of its URL; ``underdog.testing.store`` checks it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import TracebackType
from typing import Protocol, Self

from underdog import config, plugins
from underdog.core.attempts import Attempt
from underdog.errors import StoreError, did_you_mean
from underdog.model import Decision, Trial

Record = Trial | Decision | Attempt

BUILT_IN = ("postgresql", "sqlite")
_ALIASES = {"postgres": "postgresql"}


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


class Store(Attempts, Protocol):
    """Trials, decisions and attempts, kept.

    Every method raises StoreError where it cannot do its work.
    """

    def save(self, *records: Record) -> None:
        """Insert the records, or replace those of the same id, all or none.

        When this returns, they are on the disk: no end of the process or the machine loses them.

        Raises:
            StoreError: besides, a record that cannot be kept as it is, such as one with NaN.
        """

    def save_all(self, records: Iterable[Record]) -> int:
        """Like ``save`` for many records, read one by one; returns how many there were.

        Where ``records`` itself raises, nothing of it is kept.
        """

    def trials(
        self,
        *,
        workload: str | None = None,
        id: str | Collection[str] | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> list[Trial]:
        """The trials that match all that is given, in the order in which they were first saved.

        ``limit`` keeps the last ones.
        """

    def decisions(self, *, workload: str | None = None, id: str | None = None) -> list[Decision]:
        """The decisions that match all that is given, in the order of their first saving."""

    def close(self) -> None:
        """Let go of all connections; a second call does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


def open_store(url: str | None = None) -> Store:
    """Open the store at ``url`` (a path is a SQLite file), making it where there is none.

    Trials in flight whose process is gone are marked as interrupted on the way. Without ``url``,
    ``$UNDERDOG_STORE`` counts, else the user's data folder.

    Raises:
        StoreError: there is no such kind of store, or it cannot be opened or is not ours.
        MissingPackageError: the database's driver is not installed.
    """
    url = config.store_url(url)
    scheme = url.partition("://")[0].partition("+")[0].lower()
    scheme = _ALIASES.get(scheme, scheme)
    # our own are opened without a search for plug-ins, which reads every installed package
    if scheme in BUILT_IN:
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
