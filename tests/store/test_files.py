"""What may lie where a SQLite store should: one message each, and the file as it was."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from underdog.errors import StoreError, UnderdogError
from underdog.store import open_store
from underdog.testing.store import bare_trial


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(50_000))


def little_garbage(path: Path) -> None:
    path.write_bytes(b"x")


def text(path: Path) -> None:
    path.write_text("provider,region\naws,us-east-1\n" * 100)


def half(path: Path) -> None:
    filled(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def only_a_header(path: Path) -> None:
    filled(path)
    path.write_bytes(path.read_bytes()[:100])


def hole(path: Path) -> None:
    filled(path)
    content = bytearray(path.read_bytes())
    content[4096 : len(content)] = bytes(len(content) - 4096)
    path.write_bytes(content)


def newer(path: Path) -> None:
    filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE underdog_version SET version_num = '9999'")
        connection.execute("ALTER TABLE underdog_trials ADD COLUMN mood TEXT")
    connection.close()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    connection.close()


def filled(path: Path) -> None:
    with open_store(str(path)) as store:
        store.save(*[bare_trial("w", reason="x" * 2000) for _ in range(50)])


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (garbage, "it is not a SQLite database"),
        (little_garbage, "it is not a SQLite database"),
        (text, "it is not a SQLite database"),
        (half, "damaged or cut short"),
        (only_a_header, "damaged or cut short|not a SQLite database"),
        (hole, "damaged or cut short"),
        (newer, "written by a newer underdog .*9999"),
        (foreign, "a database of another program"),
    ],
)
def test_what_is_no_store_is_told_and_left_alone(
    spoil: Callable[[Path], None], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "store.sqlite3"
    spoil(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=told) as raised:
        open_store(str(path))
    assert str(path) in raised.value.message
    assert raised.value.hint
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]
    done = subprocess.run(
        [sys.executable, "-m", "underdog", "trials", "--store", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("underdog: The store")
    assert path.read_bytes() == before


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        open_store(str(tmp_path))


def test_a_file_where_a_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"cannot be opened: (File exists|Not a directory)"):
        open_store(str(tmp_path / "file" / "store.sqlite3"))


@pytest.mark.parametrize("given", ["sqlite://", "sqlite:///"])
def test_a_url_without_a_file(given: str) -> None:
    with pytest.raises(StoreError, match="names no file"):
        open_store(given)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    path.touch()
    with open_store(str(path)) as store:
        store.save(bare_trial("w"))
        assert len(store.trials()) == 1


@pytest.mark.parametrize("name", ["a b?c=d#e%20f.db", "ünïcode 🐕.sqlite3", "sub/folder/new.db"])
def test_any_file_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    with open_store(str(path)) as store:
        store.save(bare_trial("w"))
    assert path.exists()


def test_the_environment_names_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERDOG_STORE", str(tmp_path / "here.db"))
    with open_store() as store:
        store.save(bare_trial("w"))
    assert (tmp_path / "here.db").exists()
    monkeypatch.delenv("UNDERDOG_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    open_store().close()
    assert (tmp_path / "data" / "underdog" / "store.sqlite3").exists()


READER = """
import os, sys, tempfile
from underdog.errors import StoreError
from underdog.store import open_store
from underdog.testing.store import bare_trial

# once as who we are: what is imported on use may lie where others may not read
with tempfile.TemporaryDirectory() as folder, open_store(folder + "/store") as store:
    store.save(bare_trial("w"))
    store.trials()
if os.geteuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
try:
    store = open_store(sys.argv[1])
    print(len(store.trials()), store.trials()[-1].status)
    store.save(bare_trial("w"))
except StoreError as error:
    print(error)
"""


def read_only(path: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", READER, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_a_store_that_may_only_be_read_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    path = folder / "store.sqlite3"
    gone = {"host": "h", "pid": 1}
    with open_store(str(path)) as store:
        store.save(bare_trial("w"), bare_trial("w", status="running", owner=gone))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE underdog_trials SET saved_at = 0")  # long silent
    connection.close()
    let_others_in(path)
    before = path.read_bytes()
    lines = read_only(path)
    assert lines[0] == "2 running", "who may not write cannot mark it"
    assert "cannot be written: it may only be read" in lines[1]
    assert path.read_bytes() == before


def test_a_new_store_in_a_folder_that_may_only_be_read(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    let_others_in(path)
    lines = read_only(path)
    assert "cannot be opened: the file or its folder may not be read or written" in lines[0]
    assert not path.exists()


def let_others_in(path: Path) -> None:
    """Everybody may read the file and its folder; where root runs the tests, nobody may write."""
    for folder in path.parents:
        if folder != Path("/tmp") and folder.stat().st_uid == os.geteuid() and folder != Path("/"):
            folder.chmod(0o555 if folder == path.parent else folder.stat().st_mode | 0o055)
    if path.exists():
        path.chmod(0o444)


def test_a_store_held_by_another_for_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("underdog.store.engine.BUSY_SECONDS", 0.2)
    path = tmp_path / "store.sqlite3"
    with open_store(str(path)) as store:
        other = sqlite3.connect(path)
        other.execute("BEGIN IMMEDIATE")
        assert store.trials() == [], "reading goes on beside a writer"
        with pytest.raises(StoreError, match="another process has held it"):
            store.save(bare_trial("w"))
        other.rollback()
        other.close()
        store.save(bare_trial("w"))


def test_a_document_that_was_spoiled_is_told(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    with open_store(str(path)) as store:
        store.save(bare_trial("w"))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE underdog_trials SET document = '{\"id\": 1}'")
    connection.close()
    with open_store(str(path)) as store, pytest.raises(StoreError, match="cannot be read"):
        store.trials()


def test_fields_of_a_newer_underdog_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    trial = bare_trial("w")
    with open_store(str(path)) as store:
        store.save(trial)
        with sqlite3.connect(path) as connection:
            connection.execute(
                "UPDATE underdog_trials SET document = json_set(document, '$.mood', 'good')"
            )
        connection.close()
        assert store.trials() == [trial]


def test_every_error_of_a_store_ends_with_status_2() -> None:
    assert issubclass(StoreError, UnderdogError)
    assert StoreError.exit_code == 2
