"""No record is lost: by kill -9 at any moment, by several writers at once, by a full disk."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from underdog.errors import StoreError
from underdog.store import open_store, schema
from underdog.store.engine import BUSY_SECONDS, make_engine, reading, writing
from underdog.store.owner import current_owner
from underdog.testing.store import bare_trial

# Saves trials for ever; says the id of each on stdout when it is saved. Every third stays running.
SAVER = """
import sys
from underdog.store import open_store
from underdog.store.owner import current_owner
from underdog.testing.store import bare_trial

store = open_store(sys.argv[1])
print("open", flush=True)
number = 0
while True:
    number += 1
    status = "running" if number % 3 == 0 else "ok"
    trials = [bare_trial("w", status=status, owner=current_owner(), reason="x" * 3000)]
    trials += [bare_trial("w", knobs={"batch": trials[0].id}) for _ in range(number % 5)]
    store.save(*trials)
    print(trials[0].id, status, len(trials), flush=True)
"""

WRITER = """
import sys
from underdog.store import open_store
from underdog.testing.store import bare_trial

for number in range(int(sys.argv[3])):
    with open_store(sys.argv[1]) as store:
        store.save(bare_trial("w", id=f"{sys.argv[2]}-{number}"))
"""


def start(script: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_kill_at_any_moment_loses_nothing_that_was_saved(url: str) -> None:
    chance = random.Random(8)
    saved: dict[str, tuple[str, int]] = {}
    rounds = 0
    while rounds < 12 or len(saved) <= 50:  # a slow disk takes more rounds
        rounds += 1
        # several processes, so that the kill meets a transaction of some of them at any stage
        savers = [start(SAVER, url) for _ in range(2)]
        for saver in savers:
            assert saver.stdout is not None
            assert saver.stdout.readline() == "open\n"
        time.sleep(chance.uniform(0.005, 0.15))
        for saver in savers:
            saver.send_signal(signal.SIGKILL)
        for saver in savers:
            lines = saver.communicate()[0].splitlines(keepends=True)
            told = [line.split() for line in lines if line.endswith("\n")]
            saved |= {id: (status, int(count)) for id, status, count in told}
        with open_store(url) as store:
            found = {trial.id: trial for trial in store.trials(workload="w")}
        assert saved.keys() <= found.keys()
        beside: dict[str, int] = {}
        for trial in found.values():
            assert trial.status in ("ok", "interrupted")
            assert (trial.status == "interrupted") == bool(trial.reason and "ended" in trial.reason)
            if "batch" in trial.knobs:
                beside[trial.knobs["batch"]] = beside.get(trial.knobs["batch"], 0) + 1
        for id, (status, count) in saved.items():
            assert found[id].status == ("interrupted" if status == "running" else "ok")
            assert beside.get(id, 0) == count - 1, "a batch was torn"


@pytest.mark.slow
@pytest.mark.parametrize("writers", [2, 8])
def test_processes_that_write_at_once_lose_nothing(url: str, writers: int) -> None:
    # the store does not exist yet: they also make it at once
    started = [start(WRITER, url, str(number), "10") for number in range(writers)]
    assert [process.wait(timeout=120) for process in started] == [0] * writers
    for process in started:
        process.communicate()
    with open_store(url) as store:
        found = {trial.id for trial in store.trials()}
    assert found == {f"{writer}-{number}" for writer in range(writers) for number in range(10)}


def test_a_full_disk_is_told_and_loses_nothing(tmp_path: Path) -> None:
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root may mount a small file system")
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("mounting is not allowed here")
    try:
        path = str(small / "store.sqlite3")
        first = bare_trial("w")
        with open_store(path) as store:
            store.save(first)
            with pytest.raises(StoreError, match="the disk is full") as raised:
                store.save(*[bare_trial("w", reason="x" * 50_000) for _ in range(40)])
            assert path in str(raised.value)
            assert store.trials() == [first]
            store.save(bare_trial("w"))
        with open_store(path) as store:
            assert len(store.trials()) == 2
    finally:
        subprocess.run(["umount", small], check=True)


def test_a_file_that_may_not_grow_is_told_and_loses_nothing(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")
    first = bare_trial("w")
    with open_store(path) as store:
        store.save(first)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with open_store(path) as store, pytest.raises(StoreError, match="cannot be written"):
            store.save(*[bare_trial("w", reason="x" * 50_000) for _ in range(40)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with open_store(path) as store:
        assert store.trials() == [first]


def test_an_update_does_not_wait_for_another_writer(url: str) -> None:
    running = bare_trial("w", status="running", owner=current_owner())
    later = replace(running, dollars=1.0)
    with open_store(url) as store:
        store.save(running)
        engine = make_engine(url if "://" in url else f"sqlite:///{url}")
        with writing(engine) as other:
            other.execute(schema.trials.update().values(saved_at=1.0))
            began = time.monotonic()
            with pytest.raises(StoreError, match="cannot be written"):
                store.update(later)
            assert time.monotonic() - began < BUSY_SECONDS / 2
        assert store.trials() == [running]
        assert store.update(later)
        assert store.trials() == [later]


def test_what_was_saved_is_on_the_disk_before_save_returns(tmp_path: Path) -> None:
    import sqlite3

    with reading(make_engine(f"sqlite:///{tmp_path}/store.sqlite3")) as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 3
    assert sqlite3.sqlite_version_info >= (3, 24)  # insert or replace by id
