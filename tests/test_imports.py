"""What is loaded when: nothing heavy before it is asked for."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

HEAVY = {"numpy", "duckdb", "sqlalchemy", "alembic", "rich", "msgspec", "psutil", "torch", "click"}


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in json.loads(done.stderr.splitlines()[-1])}


def test_import_underdog_loads_nothing_heavy() -> None:
    assert loaded_by("import underdog") & HEAVY == set()


def test_help_loads_nothing_heavy() -> None:
    assert loaded_by("from underdog.cli import main; main(['--help'])") & HEAVY == set()


def test_track_loads_nothing_heavy() -> None:
    assert loaded_by("import underdog; list(underdog.track([1, 2]))") & HEAVY == set()


def test_help_takes_at_most_four_times_an_empty_python() -> None:
    command = Path(sys.executable).with_name("underdog")
    seconds: dict[str, list[float]] = {"pass": [], "help": []}
    for _ in range(9):  # interleaved, so that a busy machine slows both
        for name, argv in (("pass", [sys.executable, "-c", "pass"]), ("help", [command, "--help"])):
            began = time.perf_counter()
            subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)
            seconds[name].append(time.perf_counter() - began)
    ratio = statistics.median(seconds["help"]) / statistics.median(seconds["pass"])
    assert ratio <= 4, f"{ratio:.1f} times"
