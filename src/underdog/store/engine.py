"""The engine behind a store: how SQLite and PostgreSQL are reached, and what their errors say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from underdog.errors import MissingPackageError, StoreError

BUSY_SECONDS = 60  # how long a writer waits for the others
HURRIED_SECONDS = 0.25  # and one that does without rather than wait
CONNECT_SECONDS = 10
_SMALLEST = 512  # bytes of the smallest SQLite database
_LOCK = 0x75_6E_64_65_72_64_6F_67  # "underdog": of those who make or change the tables

# what SQLite says -> what it means, and what to do
_SQLITE: tuple[tuple[str, str, str], ...] = (
    (
        "not a database",
        "it is not a SQLite database",
        "Name another file with --store; this one was not changed.",
    ),
    (
        "malformed",
        "the file is damaged or cut short",
        "Restore a copy of it, or save what is left: sqlite3 FILE .recover",
    ),
    ("readonly", "it may only be read", "Name another one with --store or UNDERDOG_STORE."),
    (
        "unable to open",
        "the file or its folder may not be read or written",
        "Name another one with --store or UNDERDOG_STORE.",
    ),
    (
        "locked",
        f"another process has held it for {BUSY_SECONDS} s",
        "Try again when that one is done.",
    ),
    ("disk is full", "the disk is full", "Free some space; what was saved before is still there."),
    (
        "disk i/o error",
        "the disk is full or does not answer",
        "Free some space, or see what the system's log says of that disk; "
        "what was saved before is still there.",
    ),
    (
        "locking protocol",
        "its file system cannot lock files",
        "Name a file on a local disk with --store or UNDERDOG_STORE.",
    ),
)


def make_engine(url: str) -> sa.Engine:
    """The engine for a URL of SQLite or PostgreSQL; connects to nothing yet.

    Raises:
        StoreError: the URL cannot be read, or names a folder.
        MissingPackageError: psycopg is not installed.
    """
    if url.lower().startswith("sqlite"):
        return _sqlite(url)
    rest = url.partition("://")[2]
    try:
        return sa.create_engine(
            f"postgresql+psycopg://{rest}",
            pool_pre_ping=True,  # a run of days outlives an idle connection
            connect_args={"connect_timeout": CONNECT_SECONDS},
        )
    except ModuleNotFoundError:
        raise MissingPackageError("A store in PostgreSQL", "psycopg", "postgresql") from None
    except (SQLAlchemyError, ValueError):
        raise StoreError(
            "The store's URL cannot be read.",
            "Write it like postgresql://user:password@host:5432/database",
        ) from None


def _not_ours(path: Path) -> StoreError:
    why, hint = next((why, hint) for part, why, hint in _SQLITE if part == "not a database")
    return StoreError(f"The store '{path}' cannot be opened: {why}.", hint)


def _sqlite(url: str) -> sa.Engine:
    name = url.partition("://")[2].removeprefix("/")
    if not name:
        raise StoreError(f"The store '{url}' names no file.", "Write it like sqlite:///store.db")
    path = Path(name).absolute()
    try:
        if path.is_dir():
            raise StoreError(
                f"The store '{path}' is a folder.",
                f"Name a file in it: --store {path}/store.sqlite3",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and 0 < path.stat().st_size < _SMALLEST:
            # SQLite would overwrite so small a file; reading it here would drop SQLite's own locks
            raise _not_ours(path)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise StoreError(
            f"The store '{path}' cannot be opened: {why}.",
            "Name another one with --store or UNDERDOG_STORE.",
        ) from None
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path)),
        poolclass=NullPool,  # a file kept open for days would hinder moving it
        connect_args={"timeout": BUSY_SECONDS},
    )

    # The rollback journal stays SQLite's default: unlike the write-ahead log it works in folders
    # that may only be read and needs no memory shared between processes.
    @sa.event.listens_for(engine, "connect")
    def durable(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # transactions are begun here, not guessed by the driver
        connection.execute("PRAGMA synchronous=EXTRA")
        connection.execute("PRAGMA cache_size=-65536")

    @sa.event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        options = connection.get_execution_options()
        if options.get("at_once"):
            connection.exec_driver_sql(f"PRAGMA busy_timeout={HURRIED_SECONDS * 1000:.0f}")
        if options.get("writes"):
            # the right to write first: two that read before they write would block each other
            connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


@contextmanager
def writing(
    engine: sa.Engine, alone: bool = False, at_once: bool = False
) -> Iterator[sa.Connection]:
    """A transaction: all of it or none.

    Args:
        alone: keep other changers of the tables out.
        at_once: fail where others write, instead of waiting for them.
    """
    with engine.execution_options(writes=True, at_once=at_once).begin() as connection:
        if at_once and engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {HURRIED_SECONDS * 1000:.0f}")
        if alone and engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        yield connection


@contextmanager
def reading(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection on which every query sees what was saved when it began."""
    if engine.dialect.name == "postgresql":
        engine = engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection


@contextmanager
def told(engine: sa.Engine, done: str) -> Iterator[None]:
    """Turn a database's errors into one message: the store cannot be ``done``, why, what to do."""
    try:
        yield
    except DBAPIError as error:
        lines = str(error.orig).strip().splitlines() or [type(error.orig).__name__]
        why, hint = meaning(engine, lines[0])
        raise StoreError(f"The store '{display(engine)}' cannot be {done}: {why}.", hint) from error
    except SQLAlchemyError as error:
        raise StoreError(f"The store '{display(engine)}' cannot be {done}: {error}.") from error


def meaning(engine: sa.Engine, said: str) -> tuple[str, str]:
    """What a database's message means, and what to do about it."""
    if engine.dialect.name == "sqlite":
        for part, why, hint in _SQLITE:
            if part in said.lower():
                return why, hint
        return said.rstrip("."), "Name another one with --store or UNDERDOG_STORE."
    return said.rstrip("."), "See that the server runs and the URL is right: psql URL"


def may_only_be_read(error: DBAPIError) -> bool:
    """Whether a write failed because the store gives the right to read only."""
    said = str(error.orig).lower()
    return any(part in said for part in ("readonly", "read-only", "permission denied"))


def display(engine: sa.Engine) -> str:
    """The store as messages name it: a file's path, or a URL without its password."""
    if engine.dialect.name == "sqlite":
        return str(engine.url.database)
    return engine.url.set(drivername="postgresql").render_as_string(hide_password=True)
