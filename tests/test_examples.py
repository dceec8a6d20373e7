"""Every example runs; the docs say that they do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from underdog.core.study import read_study
from underdog.verbs import places

ROOT = Path(__file__).parent.parent
STUDIES = sorted((ROOT / "examples").rglob("study*.toml"))
MACHINES = ROOT / "examples" / "machines.toml"


def underdog(folder: Path, *args: str) -> str:
    """Standard output of a command that is run at the root, with a store of its own."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {
        **os.environ,
        "PATH": path,
        "UNDERDOG_STORE": str(folder / "store.sqlite3"),
        "XDG_DATA_HOME": str(folder / "data"),
    }
    done = subprocess.run(
        [sys.executable, "-m", "underdog", *args],
        cwd=ROOT,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_are_examples() -> None:
    assert len(STUDIES) >= 2


def test_the_machines_can_be_reached_as_they_say() -> None:
    for name, runner in (("half", "local"), ("lab-a100", "ssh"), ("cluster-h100", "slurm")):
        assert places.find(name, offers=MACHINES).runner == runner


@pytest.mark.parametrize("study", STUDIES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_a_study_is_one(study: Path) -> None:
    _, problems = read_study(study.read_text(), {}, ["local", "replay"])
    assert problems == []


def test_the_replay_runs_without_a_machine(tmp_path: Path) -> None:
    found = json.loads(underdog(tmp_path, "explore", "examples/replay/study.toml", "--json"))
    assert found["best"] is not None
    assert 1 <= len(found["tests"]) <= 8
    assert found["spent"] <= 0.5


@pytest.mark.slow
@pytest.mark.frameworks
def test_the_study_of_this_machine_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    command = ["explore", "examples/study.toml", "--max-trials", "1", "--json"]
    found = json.loads(underdog(tmp_path, *command))
    assert found["best_rate"]["value"] > 0
    assert found["tests"][0]["knobs"]["batch"] == "32"
