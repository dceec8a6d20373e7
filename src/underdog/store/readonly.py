"""A store that is only read: nothing is made, brought up to date or marked in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from underdog.core.cut_off import cut_off
from underdog.errors import StoreError
from underdog.model import Trial
from underdog.store import Record, migrate, schema
from underdog.store.engine import display, make_engine, reading, told
from underdog.store.owner import death
from underdog.store.sql import SqlStore

_ASKS = {
    "sqlite": "PRAGMA query_only = ON",
    "postgresql": "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
}


def open_store(url: str) -> SqlStore:
    """The store at a URL of SQLite or PostgreSQL, only to be read; empty where there is none yet.

    Raises:
        StoreError: it cannot be opened, is not ours, or is of another version of underdog.
        MissingPackageError: psycopg is not installed.
    """
    if url.lower().startswith("sqlite") and not _exists(Path(url.partition("://")[2][1:])):
        return nothing()
    engine = make_engine(url)
    if engine.dialect.name == "sqlite":
        sa.event.listen(engine, "do_connect", _to_what_is_there)

    @sa.event.listens_for(engine, "connect")
    def only_read(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(_ASKS[engine.dialect.name])
        cursor.close()
        connection.commit()

    store = ReadOnly(engine)
    try:
        return store if store.ready() else nothing()
    except BaseException:
        store.close()
        raise


def nothing() -> SqlStore:
    """A store with no records, kept nowhere; ``provisional`` says so."""
    engine = sa.create_engine(
        "sqlite://", poolclass=StaticPool, connect_args={"check_same_thread": False}
    )
    schema.metadata.create_all(engine)
    return ReadOnly(engine, provisional=True)


class ReadOnly(SqlStore):
    """A store whose trials are told as they are now: one whose process is gone was interrupted.

    ``provisional`` tells that there is nothing yet at its URL, and that it may be opened again.
    """

    def __init__(self, engine: sa.Engine, provisional: bool = False) -> None:
        super().__init__(engine)
        self.provisional = provisional

    def save_all(self, records: Iterable[Record]) -> int:
        raise StoreError(f"The store '{display(self._engine)}' was opened to be read only.")

    def trials(self, **asked: Any) -> list[Trial]:
        return [_as_it_is(trial) for trial in super().trials(**asked)]

    def ready(self) -> bool:
        """Whether its tables are those that this version reads; False where it has none yet.

        Raises:
            StoreError: it is of another program, or of another version of underdog.
        """
        with told(self._engine, "opened"), reading(self._engine) as connection:
            found = migrate.state(connection)
        name = display(self._engine)
        if found is migrate.State.FOREIGN:
            raise StoreError(
                f"The store '{name}' is a database of another program.",
                "Name another file with --store; this one was not changed.",
            )
        if found is migrate.State.OTHER_REVISION:
            raise StoreError(
                f"The store '{name}' is of another version of underdog, and is only read here.",
                "Any other command brings an older one up to date: underdog trials",
            )
        return found is migrate.State.CURRENT


def _to_what_is_there(_: Any, __: Any, arguments: list[Any], options: dict[str, Any]) -> None:
    """Connect to a file that may have been moved away since: SQLite would make an empty one."""
    path = Path(arguments[0])
    if not _exists(path):
        raise StoreError(
            f"The store '{path}' is not there any more.",
            "Move it back, or start again with --store.",
        )
    # not mode=ro: what a killed writer left half done is to be rolled back before it is read
    arguments[0] = f"{path.as_uri()}?mode=rw"
    options["uri"] = True


def _exists(path: Path) -> bool:
    try:
        return path.exists() and path.stat().st_size > 0
    except (OSError, ValueError):
        return True  # opening it tells what is wrong


def _as_it_is(trial: Trial) -> Trial:
    if trial.status != "running" or trial.handle is not None:
        return trial
    reason = death(trial.owner)
    return cut_off(trial, reason) if reason else trial
