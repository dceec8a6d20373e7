"""Scripts that write records as the probe does, and ``underdog measure`` over them."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from underdog.store import open_store

# A script that writes records as the probe does, with steps of 2 ms and 8 samples.
TRAIN = """
import json, os, sys, time
folder = os.environ["UNDERDOG_RECORDS"]
records = open(f"{folder}/{os.getpid()}-1.jsonl", "a", buffering=1)
def record(**fields): records.write(json.dumps(fields) + "\\n")
record(kind="process", pid=os.getpid(), rank=None, world_size=None, framework="torch",
       framework_version="2.0", python="3.11")
last = time.perf_counter()
def step(seconds=0.002, samples=8):
    global last
    time.sleep(seconds)
    now = time.perf_counter()
    try:
        records.write(json.dumps([last, now, samples, 0, 0, .0005, .0005, .0005, 0, 0]) + "\\n")
    except OSError:
        pass
    last = now
"""


def script(home: Path, code: str, name: str = "train.py") -> str:
    path = home / name
    path.write_text(TRAIN + textwrap.dedent(code))
    return str(path)


def command_line(*args: str) -> list[str]:
    return [sys.executable, "-m", "underdog", "measure", *args]


def underdog(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"stdin": subprocess.DEVNULL, "timeout": 90, **options}
    return subprocess.run(
        command_line(*args), capture_output=True, text=True, check=False, **options
    )


def python(path: str, *args: str) -> list[str]:
    return ["--", sys.executable, path, *args]


def stored(home: Path) -> list[Any]:
    with open_store(str(home / "store.sqlite3")) as store:
        return store.trials()


def wait_for(condition: Callable[[], object], limit: float = 20) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)


def tree(process: subprocess.Popen[Any]) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).children(recursive=True)
    return []


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def start(*args: str, **options: Any) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(command_line(*args), text=True, **{**pipes, **options})
