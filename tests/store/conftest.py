"""Stores to test: a SQLite file, and a database on a PostgreSQL server of our own."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest


def postgresql_programs() -> Path | None:
    """The folder of the newest server's programs."""

    def version(folder: Path) -> float:
        try:
            return float(folder.parent.name)
        except ValueError:
            return 0.0

    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=version)
    found = [folder for folder in found if (folder / "initdb").exists()]
    on_path = shutil.which("initdb")
    return found[-1] if found else Path(on_path).resolve().parent if on_path else None


def ordinary_user() -> str | None:
    """Whom a server runs as: itself refuses root. None is whoever runs the tests."""
    if os.geteuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


def as_user(user: str | None, command: list[str | Path]) -> None:
    before = ["runuser", "-u", user, "--"] if user else []
    done = subprocess.run(
        [*before, *map(str, command)],
        cwd="/",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
    return port


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    """The URL of a running server, without a database."""
    programs = postgresql_programs()
    if programs is None:
        pytest.skip("no PostgreSQL server is installed: apt-get install postgresql")
    pytest.importorskip("psycopg")
    user = ordinary_user()
    folder = Path(tempfile.mkdtemp(prefix="underdog-postgresql-", dir="/tmp"))
    data = folder / "data"
    try:
        if user:
            shutil.chown(folder, user)
        initdb = [programs / "initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8"]
        as_user(user, [*initdb, "--no-sync", "--locale=C"])
        port = free_port()  # as late as may be: others take free ports too
        settings = f"-F -p {port} -c listen_addresses=127.0.0.1 -k {folder}"
        pg_ctl = [programs / "pg_ctl", "-D", data, "-w", "-t", "60"]
        as_user(user, [*pg_ctl, "-l", folder / "log", "-o", settings, "start"])
        try:
            yield f"postgresql://tester@127.0.0.1:{port}"
        finally:
            as_user(user, [*pg_ctl, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def postgresql_url(postgresql_server: str) -> Iterator[str]:
    """An empty database of its own."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(f"{postgresql_server}/postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    yield f"{postgresql_server}/{name}"
    with psycopg.connect(f"{postgresql_server}/postgres", autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new store of each kind."""
    if request.param == "sqlite":
        return str(tmp_path / "store.sqlite3")
    found: str = request.getfixturevalue("postgresql_url")
    return found
