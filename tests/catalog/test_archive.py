"""The archive of snapshots: by day and hash, whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from underdog.catalog import archive, snapshot
from underdog.core.table import connect, schema
from underdog.errors import CatalogError

DAYS = ("2026-09-01", "2026-10-01", "2026-11-30")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A data folder, and a bundled snapshot of the first day of August."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(snapshot, "bundled_path", lambda: tmp_path / "bundled.parquet")
    one_offer(tmp_path / "bundled.parquet", "2026-08-01", 0.5)
    snapshot._bundled.cache_clear()
    yield tmp_path
    snapshot._bundled.cache_clear()


def one_offer(path: Path, day: str, price: float) -> str:
    connection = connect()
    connection.execute(f"CREATE TABLE offers ({schema()})")
    connection.execute(
        "INSERT INTO offers (provider, region, instance_type, purchase, price_per_hour) "
        f"VALUES ('aws', 'r', 't', 'on-demand', {price})"
    )
    return snapshot.save(connection, path, date=day, sources=[{"provider": "aws"}], left_out=[])


def add(day: str, price: float = 1.0) -> archive.Entry:
    """A snapshot of one offer."""

    with archive.locked():
        moment = datetime.fromisoformat(f"{day}T12:00:00+00:00")
        return archive.add(lambda path: one_offer(path, day, price), moment)


def price(as_of: str | None = None) -> float:
    (row,) = archive.load(as_of).table.select()
    return float(row["price_per_hour"])


def test_without_an_archive_the_bundled_one_is_used() -> None:
    assert archive.load().hash == snapshot.load().hash
    assert [entry.bundled for entry in archive.entries()] == [True]


def test_the_newest_is_used_and_each_is_found_again() -> None:
    made = [add(day, price=number) for number, day in enumerate(DAYS, start=1)]
    assert price() == 3
    assert [entry.day for entry in archive.entries()] == ["2026-08-01", *DAYS]
    assert price("2026-10-01") == price("2026-11-29") == 2
    assert price("2099-01-01") == 3
    assert [price(entry.hash[:8]) for entry in made] == [1, 2, 3]
    assert archive.load("2026-08-15").hash == snapshot.load().hash
    assert archive.load("bundled").hash == snapshot.load().hash
    assert archive.load(snapshot.load().hash).rows == snapshot.load().rows


def test_a_bundled_one_that_is_newer_is_used() -> None:
    add("2026-07-01")
    assert archive.load().hash == snapshot.load().hash


@pytest.mark.parametrize(
    ("as_of", "said"),
    [
        ("2020-01-01", "no snapshot of '2020-01-01' or before.*\n.*oldest is of 2026-08-01"),
        ("abcdef", "no snapshot with the hash 'abcdef'"),
        ("yesterday", "neither a day such as"),
        ("2026-13-01", "neither a day such as"),
        ("", "neither a day such as"),
        ("abc", "neither a day such as"),
    ],
)
def test_what_names_no_snapshot_is_told(as_of: str, said: str) -> None:
    with pytest.raises(CatalogError, match=said):
        archive.load(as_of)


def test_a_broken_snapshot_is_told_and_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    add(DAYS[0], price=1)
    damaged, cut, unsaid = add(DAYS[1]), add(DAYS[1], price=5), add(DAYS[2])
    damaged.path.write_bytes(b"PAR1")
    cut.path.unlink()
    unsaid.path.with_suffix(".json").write_text("{")
    assert price() == 1
    assert len(caplog.messages) == 3
    assert all("passed over" in message for message in caplog.messages)
    problems = [entry.problem is not None for entry in archive.entries()]
    assert sum(problems) == 2  # damage within the offers shows only when they are read
    with pytest.raises(CatalogError, match="damaged"):
        archive.load(damaged.hash)


def test_a_file_that_is_no_snapshot_is_no_matter() -> None:
    archive.folder().mkdir(parents=True)
    (archive.folder() / "notes.json").write_text("{")
    (archive.folder() / "20261130T120000000000Z-abc.json").write_text("{")
    assert len(archive.entries()) == 1


def test_a_full_disk_leaves_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    add(DAYS[0])
    before = sorted(archive.folder().iterdir())

    def full(*args: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CatalogError, match="No space left on device"):
        add(DAYS[1], price=2)
    assert sorted(archive.folder().iterdir()) == before
    assert price() == 1


FULL = """
import resource, signal, sys
from datetime import datetime, UTC
from underdog.catalog import archive, snapshot
from underdog.core.table import connect, schema
from underdog.errors import CatalogError

def write(path):
    connection = connect()
    connection.execute(f"CREATE TABLE offers ({schema()})")
    connection.execute("INSERT INTO offers (provider, instance_type) "
        "SELECT 'aws', md5(i::VARCHAR) FROM range(10000) AS t(i)")
    return snapshot.save(connection, path, date="2026-11-30", sources=[], left_out=[])

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    with archive.locked():
        archive.add(write, datetime.now(UTC))
except CatalogError as error:
    print(error)
"""


def test_a_file_that_cannot_be_written_in_full_is_told() -> None:
    found = subprocess.run([sys.executable, "-c", FULL], capture_output=True, text=True, check=True)
    assert "cannot be added to" in found.stdout
    assert len(archive.entries()) == 1
    assert [file.name for file in archive.folder().iterdir()] == [".lock"]


def test_a_folder_that_cannot_be_written_is_told(data: Path) -> None:
    (data / "underdog").write_text("a file where a folder should be")
    with pytest.raises(CatalogError, match="cannot be opened"):
        add(DAYS[0])
    assert archive.load().hash == snapshot.load().hash


def test_several_at_once_lose_nothing() -> None:
    def work(worker: int) -> None:
        for number in range(3):
            add(DAYS[2], price=worker * 10 + number + 1)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(work, range(3)))
    found = [entry for entry in archive.entries() if not entry.bundled]
    assert len({entry.hash for entry in found}) == 9
    assert all(archive.load(entry.hash).rows == 1 for entry in found)


KILLED = """
import sys, time
from pathlib import Path
from datetime import datetime, UTC
from underdog.catalog import archive

def write(path):
    path.write_bytes(b"half")
    print("half", flush=True)
    time.sleep(60)

with archive.locked():
    archive.add(write, datetime.now(UTC))
"""


def test_a_refresh_that_is_killed_leaves_the_last_good_one() -> None:
    add(DAYS[0], price=1)
    child = subprocess.Popen([sys.executable, "-c", KILLED], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"half\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    assert price() == 1
    began = time.monotonic()
    add(DAYS[1], price=2)  # the lock went with the process, and what it left is cleared away
    assert time.monotonic() - began < 5
    assert price() == 2
    assert not [p for p in archive.folder().iterdir() if p.name.startswith(".new-")]


def test_the_moment_is_kept_in_utc() -> None:
    made = add("2026-11-30")
    assert made.made == "2026-11-30T12:00:00.000000Z"
    assert datetime.fromisoformat(made.made).tzinfo == UTC


def test_letters_that_stand_for_several_are_told() -> None:
    made = [add(DAYS[2], price=number) for number in range(1, 4)]
    for entry, letters in zip(made[1:], ("abcd11111111", "abcd22222222"), strict=True):
        name = entry.path.name.replace(entry.hash[:12], letters)
        entry.path.with_suffix(".json").rename(archive.folder() / name.replace("parquet", "json"))
        entry.path.rename(archive.folder() / name)
    with pytest.raises(CatalogError, match="several snapshots: abcd11111111, abcd22222222"):
        archive.load("abcd")
    with pytest.raises(CatalogError, match="no snapshot with the hash 'abcd1'"):
        archive.load("abcd1")  # named so, but its manifest says another
    assert archive.load(made[0].hash).rows == 1
