"""Stores that the pages are tested with, an application over each, and a server of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from underdog.verbs.serving import Reader
from underdog.web.access import access
from underdog.web.app import application
from web.serving import Served, serving
from web.stores import ORIGIN, fill


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Trials of every status, names of every script, markup, a study and decisions."""
    folder = tmp_path_factory.mktemp("web")
    path = folder / "store.sqlite3"
    fill(path, folder / "offers.csv")
    return str(path)


@pytest.fixture(scope="session")
def reader(store: str) -> Iterator[Reader]:
    made = Reader(store)
    yield made
    made.close()


@pytest.fixture(scope="session")
def client(reader: Reader) -> TestClient:
    """Who looks at that store."""
    return client_of(reader)


@pytest.fixture
def empty(tmp_path: Path) -> TestClient:
    """Who looks where there is no store yet."""
    return client_of(Reader(str(tmp_path / "none.sqlite3")))


def client_of(reader: Reader, **given: bool) -> TestClient:
    app = application(reader, access("127.0.0.1", 80, **given))
    return TestClient(app, base_url=ORIGIN, follow_redirects=False)


@pytest.fixture(scope="session")
def clients() -> Callable[..., TestClient]:
    return client_of


@pytest.fixture(scope="session")
def served(store: str) -> Iterator[Served]:
    """``underdog serve`` over that store, in a process of its own."""
    with serving("--store", store) as found:
        yield found
