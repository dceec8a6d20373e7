"""A new store is made in one go, an older one is brought up to date: both end the same."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import underdog.store
from underdog.errors import MissingPackageError, StoreError
from underdog.store import document, open_store, schema
from underdog.store.engine import make_engine, reading, writing
from underdog.testing.store import bare_trial, check_store, full_timeline, full_trial

SCRIPTS = Path(underdog.store.__file__).parent / "migrations"


def engine_of(url: str) -> sa.Engine:
    return make_engine(url if "://" in url else f"sqlite:///{url}")


def tables(url: str) -> dict[str, Any]:
    """Everything about our tables that a database tells."""
    with reading(engine_of(url)) as connection:
        inspector = sa.inspect(connection)
        return {
            name: (
                [(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(name)],
                inspector.get_pk_constraint(name)["constrained_columns"],
                sorted((i["column_names"], i["unique"]) for i in inspector.get_indexes(name)),
                [u["column_names"] for u in inspector.get_unique_constraints(name)],
            )
            for name in sorted(inspector.get_table_names())
        }


def make_by_migrations(url: str) -> None:
    """As an older underdog would have left it: the table of revisions, and nothing done yet."""
    with writing(engine_of(url)) as connection:
        schema.version.create(connection)
    open_store(url).close()


def test_the_newest_migration_is_the_revision_that_we_write() -> None:
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    assert ScriptDirectory.from_config(config).get_heads() == [schema.HEAD]


def test_migrations_make_the_tables_that_a_new_store_gets(url: str) -> None:
    make_by_migrations(url)
    migrated = tables(url)
    with reading(engine_of(url)) as connection:
        context = MigrationContext.configure(
            connection, opts={"version_table": schema.version.name}
        )
        assert compare_metadata(context, schema.metadata) == []
        assert context.get_current_revision() == schema.HEAD
    with writing(engine_of(url)) as connection:
        schema.metadata.drop_all(connection)
        schema.version.drop(connection)
    open_store(url).close()
    assert tables(url) == migrated


def test_a_migrated_store_keeps_the_promises(url: str) -> None:
    make_by_migrations(url)
    check_store(lambda: open_store(url))


def as_of(url: str, revision: str) -> None:
    """The tables as that revision left them."""
    config = Config()
    config.set_main_option("script_location", str(SCRIPTS))
    with writing(engine_of(url)) as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def test_a_store_of_before_timelines_keeps_its_trials(url: str) -> None:
    asked = full_trial("w")
    odd = bare_trial("null \x00 \udcff", study="half \ud83d")
    kept = [asked, odd, *(bare_trial("w", study=f"s{n % 2}") for n in range(600))]
    as_of(url, "0002")
    insert = sa.text(
        "INSERT INTO underdog_trials (id, workload, status, started_at, saved_at, document) "
        "VALUES (:id, :workload, :status, :started_at, 0, :document)"
    )
    keys = ("id", "workload", "status", "started_at")
    rows = [
        {name: document.key(getattr(one, name)) for name in keys}
        | {"document": document.encode(one)}
        for one in kept
    ]
    rows.insert(7, {**rows[0], "id": "damaged", "workload": "d", "document": '{"study": 7}'})
    with writing(engine_of(url)) as connection:
        connection.execute(insert, rows)
    with open_store(url) as store:
        assert store.trials(workload="w", timeline=True) == [asked, *kept[2:]]
        assert store.trials(study=odd.study) == [odd]
        assert store.trials(study="s1") == [one for one in kept if one.study == "s1"]
        told = dataclasses.replace(asked, timeline=full_timeline())
        store.save(told)
        assert store.trials(id=asked.id, timeline=True) == [told]
        assert sum(one.count for one in store.tally()) == len(rows)


def test_a_database_of_other_programs_is_shared(postgresql_url: str) -> None:
    with writing(engine_of(postgresql_url)) as connection:
        connection.execute(sa.text("CREATE TABLE trials (number integer)"))
        connection.execute(sa.text("CREATE TABLE alembic_version (version_num text)"))
        connection.execute(sa.text("INSERT INTO alembic_version VALUES ('theirs')"))
    check_store(lambda: open_store(postgresql_url))
    with reading(engine_of(postgresql_url)) as connection:
        assert connection.execute(sa.text("SELECT * FROM alembic_version")).scalar() == "theirs"


def test_opening_loads_no_alembic_and_the_package_loads_no_sqlalchemy(tmp_path: Path) -> None:
    script = """
import sys
import underdog.store, underdog.store.owner, underdog.store.document
assert "sqlalchemy" not in sys.modules
with underdog.store.open_store(sys.argv[1]) as store:
    store.trials()
assert "sqlalchemy" in sys.modules
assert not {"alembic", "psycopg"} & set(sys.modules)
"""
    for _ in range(2):  # new, then there
        subprocess.run([sys.executable, "-c", script, str(tmp_path / "s.sqlite3")], check=True)


def test_opening_is_quick(tmp_path: Path) -> None:
    def seconds(path: Path) -> float:
        # processor time: the load of other programs and the disk's own pace are not ours
        began = time.process_time()
        open_store(str(path)).close()
        return time.process_time() - began

    seconds(tmp_path / "warm")
    made = min(seconds(tmp_path / f"{number}.sqlite3") for number in range(5))
    opened = min(seconds(tmp_path / "0.sqlite3") for _ in range(5))
    assert made < 0.1, f"{made * 1e3:.1f} ms"
    assert opened < 0.03, f"{opened * 1e3:.1f} ms"


def test_a_server_that_is_away_is_told() -> None:
    with pytest.raises(StoreError) as raised:
        open_store("postgresql://me:secret@127.0.0.1:1/db")
    assert "postgresql://me:***@127.0.0.1:1/db" in raised.value.message
    assert "secret" not in str(raised.value)


def test_a_database_that_is_not_there_is_told(postgresql_server: str) -> None:
    with pytest.raises(StoreError, match='database "absent" does not exist'):
        open_store(f"{postgresql_server}/absent")


def test_who_may_only_read_a_database_reads(postgresql_url: str) -> None:
    gone = {"host": "h", "pid": 1}
    with open_store(postgresql_url) as store:
        store.save(bare_trial("w", status="running", owner=gone))
    with writing(engine_of(postgresql_url)) as connection:
        connection.execute(schema.trials.update().values(saved_at=0))
        connection.execute(sa.text("CREATE ROLE reader LOGIN"))
        connection.execute(sa.text("GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"))
    try:
        with open_store(postgresql_url.replace("tester@", "reader@")) as store:
            assert [trial.status for trial in store.trials()] == ["running"]
            with pytest.raises(StoreError, match="cannot be written: permission denied"):
                store.save(bare_trial("w"))
    finally:
        with writing(engine_of(postgresql_url)) as connection:
            connection.execute(sa.text("DROP OWNED BY reader"))
            connection.execute(sa.text("DROP ROLE reader"))


def test_a_missing_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingPackageError) as raised:
        open_store("postgresql://127.0.0.1/db")
    assert raised.value.hint == "pip install 'underdog[postgresql]'"
