"""Making the tables and bringing older ones up to date. Alembic is loaded only where there is work.

A new store gets the newest tables in one go; a test holds them equal to what the migrations make.
"""

from __future__ import annotations

from enum import Enum, auto
from pathlib import Path

import sqlalchemy as sa

from underdog.errors import StoreError
from underdog.store import schema


class State(Enum):
    """What a database holds, as seen from this version."""

    EMPTY = auto()
    CURRENT = auto()
    OTHER_REVISION = auto()
    FOREIGN = auto()  # a SQLite file of another program


def state(connection: sa.Connection) -> State:
    """Look, change nothing."""
    inspector = sa.inspect(connection)
    if inspector.has_table(schema.version.name):
        found = connection.execute(sa.select(schema.version.c.version_num)).scalar()
        return State.CURRENT if found == schema.HEAD else State.OTHER_REVISION
    if connection.dialect.name == "sqlite" and inspector.get_table_names():
        return State.FOREIGN
    return State.EMPTY


def bring_to_head(connection: sa.Connection, name: str) -> None:
    """Make the tables or migrate them, inside the caller's transaction.

    Raises:
        StoreError: the file is another program's, or the tables are of a newer underdog.
    """
    found = state(connection)  # again: another process may have been faster
    if found is State.FOREIGN:
        raise StoreError(
            f"The store '{name}' is a database of another program.",
            "Name another file with --store; this one was not changed.",
        )
    if found is State.EMPTY:
        schema.metadata.create_all(connection)
        schema.version.create(connection)
        connection.execute(schema.version.insert().values(version_num=schema.HEAD))
    elif found is State.OTHER_REVISION:
        _migrate(connection, name)


def _migrate(connection: sa.Connection, name: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, "head")
    except CommandError as error:
        raise StoreError(
            f"The store '{name}' was written by a newer underdog ({error}).",
            "pip install --upgrade underdog; nothing was changed.",
        ) from None
