"""A store that is looked at is not changed, and is told as it is now."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from underdog.errors import StoreError
from underdog.store import open_store, schema
from underdog.store.owner import current_owner
from underdog.verbs.serving import Reader
from web.stores import many, running


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite3"


def of_a_process_that_is_gone() -> dict[str, object]:
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return {**current_owner(), "pid": done.pid, "pid_start": 1}


def test_all_pages_change_nothing(path: Path, client: TestClient, clients: object) -> None:
    gone = of_a_process_that_is_gone()
    with open_store(str(path)) as store:
        store.save(*many(30), running(owner=gone))
    before, listed = digest(path), set(os.listdir(path.parent))
    own = clients(Reader(str(path)))  # type: ignore[operator]
    for page in ("/", "/live", "/studies", "/decisions", "/trials", "/catalog", "/compare"):
        assert own.get(page).status_code == 200
    for name in ("/trials/trial-000001", "/trials/trial-running", "/workloads/workload-1"):
        assert own.get(name).status_code == 200
    assert digest(path) == before
    assert set(os.listdir(path.parent)) == listed


def test_a_trial_whose_process_is_gone_is_told_as_interrupted(path: Path) -> None:
    gone, here = of_a_process_that_is_gone(), current_owner()
    with open_store(str(path)) as store:
        store.save(running(owner=gone), running(owner=here, id="trial-here"))
    found = Reader(str(path))
    assert [one.id for one in found.now().trials] == ["trial-here"]
    told = found.trial("trial-running")
    assert (told.status, told.running) == ("interrupted", False)
    with open_store(str(path)) as store:  # and this one marks it
        assert store.trials(id="trial-running")[0].status == "interrupted"


def test_a_store_that_comes_later_is_seen(path: Path) -> None:
    found = Reader(str(path))
    assert found.trials().total == 0
    assert not path.exists()
    with open_store(str(path)) as store:
        store.save(running(owner=current_owner()))
    assert found.trials().total == 1


def test_what_is_no_store_of_ours_is_told(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(StoreError, match="not a SQLite database"):
        open_store(str(path), read_only=True)
    assert path.read_bytes() == b"no database at all" * 100


def test_a_store_of_another_version_is_told(path: Path) -> None:
    import sqlite3

    with open_store(str(path)) as store:
        store.save(running())
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {schema.version.name} SET version_num = '0001'")
    connection.close()
    with pytest.raises(StoreError, match="another version"):
        open_store(str(path), read_only=True)


def test_many_who_look_ask_the_store_once_a_second(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(str(path)) as store:
        store.save(running(owner=current_owner()))
    found, asked = Reader(str(path)), []
    real, clock = found.store().trials, [1000.0]
    monkeypatch.setattr("underdog.verbs.serving.time.time", lambda: clock[0])
    monkeypatch.setattr(
        found.store(), "trials", lambda **given: asked.append(given) or real(**given)
    )
    with ThreadPoolExecutor(8) as others:
        first = list(others.map(lambda _: found.now(), range(40)))
    assert len(asked) == 1
    assert len({now.number for now in first}) == 1
    clock[0] += 1
    found.now()
    assert len(asked) == 2
    with open_store(str(path)) as store:
        store.update(replace(running(owner=current_owner()), dollars=1.0))
    clock[0] += 1
    assert found.now().number == first[0].number + 1


def test_the_history_of_a_workload_is_made_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(str(path)) as store:
        store.save_all(many(40))
    found = Reader(str(path))
    first = found.history("workload-1")
    assert found.history("workload-1") is first
    with open_store(str(path)) as store:
        store.save(replace(running(id="late", status="ok"), workload="workload-1"))
    again = found.history("workload-1")
    assert len(again.points) == len(first.points) + 1
