"""Whether the process that carries a trial still lives."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from underdog.store import open_store
from underdog.store.owner import current_owner, death
from underdog.store.sql import SILENT_SECONDS
from underdog.testing.store import bare_trial

OWNER = """
import json
from underdog.store.owner import current_owner
print(json.dumps(current_owner()), flush=True)
input()
"""


def other_process() -> tuple[subprocess.Popen[str], dict[str, object]]:
    import json

    process = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, json.loads(process.stdout.readline())


def test_this_process_lives() -> None:
    owner = current_owner()
    assert owner["pid"] == os.getpid()
    assert None not in owner.values()
    assert death(owner) is None


def test_another_process_lives_until_it_ends() -> None:
    process, owner = other_process()
    assert owner["pid"] == process.pid
    assert owner["pid_start"] >= current_owner()["pid_start"]  # type: ignore[operator]
    assert death(owner) is None
    process.kill()
    deadline = time.monotonic() + 10
    while death(owner) is None and time.monotonic() < deadline:
        time.sleep(0.01)
    # nobody has asked for its exit status yet: the number is still taken, by a dead process
    assert os.path.exists(f"/proc/{process.pid}")
    assert str(process.pid) in (death(owner) or "")
    process.communicate()
    assert str(process.pid) in (death(owner) or "")


def test_a_number_that_was_given_to_another_process() -> None:
    owner = current_owner()
    assert "ended" in (death(owner | {"pid_start": owner["pid_start"] - 1}) or "")


def test_a_restarted_machine() -> None:
    assert "restarted" in (death(current_owner() | {"boot_id": "another"}) or "")


def test_what_cannot_be_seen_from_here_counts_as_living() -> None:
    owner = current_owner() | {"pid_start": -1}
    assert death(owner | {"host": "elsewhere"}) is None
    assert death(owner | {"pid_namespace": "pid:[1]"}) is None
    assert death({}) is None
    assert death({"host": owner["host"]}) is None


def test_a_process_of_another_user() -> None:
    owner = current_owner() | {"pid": 1}
    assert "ended" in (death(owner) or ""), "process 1 started at another time than we did"


def test_a_silent_trial_of_another_host_is_given_up_after_a_while(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")
    elsewhere = current_owner() | {"host": "elsewhere"}
    young, old = (bare_trial("w", status="running", owner=elsewhere) for _ in range(2))
    with open_store(path) as store:
        store.save(young, old)
    for trial, age in ((young, SILENT_SECONDS - 60), (old, SILENT_SECONDS + 60)):
        with sqlite3.connect(path) as connection:
            connection.execute(
                "UPDATE underdog_trials SET saved_at = ? WHERE id = ?",
                (time.time() - age, trial.id),
            )
        connection.close()
    with open_store(path) as store:
        assert store.trials(status="running") == [young]
        (ended,) = store.trials(status="interrupted")
    assert ended.id == old.id
    assert ended.reason == "nothing was heard of it for 7 days"


def test_a_trial_that_ends_after_it_was_given_up_counts(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")
    trial = bare_trial("w", status="running", owner=current_owner() | {"pid_start": -1})
    with open_store(path) as store:
        store.save(trial)
        with open_store(path) as other:
            assert other.trials()[0].status == "interrupted"
        done = bare_trial("w", id=trial.id)
        store.save(done)
        assert store.trials() == [done]
