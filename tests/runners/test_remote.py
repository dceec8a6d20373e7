"""The script that carries out a job on another machine, run by the shell of this one."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from carried_jobs import job
from hypothesis import given
from hypothesis import strategies as st

from underdog.model import Trial
from underdog.runners import _remote

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


@given(TEXT)
def test_a_path_is_one_word_and_a_tilde_the_home_folder(path: str) -> None:
    (word,) = shlex.split(_remote.shell_path(path))
    assert word == (f"$HOME/{path[2:]}" if path.startswith("~/") else path)


@given(TEXT)
def test_the_name_of_a_job_is_safe_as_a_path_and_the_same_each_time(name: str) -> None:
    made = job(Path("/tmp"), {}, id=name)
    found = _remote.job_name(made)
    assert found == _remote.job_name(made)
    assert set(found) & set("/ \n$'\"*") == set()
    assert found.startswith("underdog-")


def run(folder: Path, script: str) -> str:
    (folder / "job.sh").write_text(script)
    done = subprocess.run(
        ["sh", str(folder / "job.sh")], cwd="/", capture_output=True, text=True, check=False
    )
    return f"{done.returncode} {(folder / 'log.txt').read_text()}"


@pytest.mark.parametrize(
    ("folder", "setup", "said"),
    [
        (None, ["true", "no-such-command 'a'"], "'no-such-command 'a'' of shell_setup failed."),
        ("/no/such 'folder", [], "'/no/such 'folder' cannot be entered on this machine."),
        (None, ["seconds_up() { echo 99999999999; }"], "All the time that it may take went by"),
    ],
)
def test_what_stops_a_job_before_it_begins_is_in_its_log(
    folder: str | None, setup: list[str], said: str, tmp_path: Path
) -> None:
    found = run(tmp_path, _remote.job_script(job(tmp_path, {}), folder, sys.executable, setup))
    assert found.startswith("125 ")
    assert said in found
    assert not (tmp_path / "exit").exists()


def test_a_title_of_several_lines_stays_a_comment(tmp_path: Path) -> None:
    marked = job(tmp_path, {}, workload=f"w\ntouch {tmp_path}/ran\r\n")
    script = _remote.job_script(marked, "/no/such/folder", sys.executable)
    run(tmp_path, script)
    assert not (tmp_path / "ran").exists()


def test_a_trial_comes_back_whole_or_not_at_all() -> None:
    whole = _remote.cancelled_trial("w")
    assert _remote.brought_back(whole, "1\n") == whole
    assert _remote.brought_back(whole[:-1], "0") is None
    assert _remote.brought_back(b"", "0") is None
    late = _remote.brought_back(whole, "124\n")
    assert late is not None
    assert msgspec.json.decode(late, type=Trial).reason == _remote.TOO_LONG
