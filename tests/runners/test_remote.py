"""The script that carries out a job on another machine, run by the shell of this one."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from carried_jobs import job, until
from hypothesis import given
from hypothesis import strategies as st

from underdog import runners
from underdog.core.figures import Figures
from underdog.errors import UsageError
from underdog.model import Estimate, Offer, Price, Timeline, Trial
from underdog.runners import Job, Setup, _remote

PROGRESS_SAID = (
    '{"elapsed": 2.5, "seconds": 2, "samples_per_second": '
    '{"value": 10, "low": 9, "high": 11, "n": 9}, "effective": 9, "settled": true}'
)
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


ASKED = """\
#!/bin/sh
trap 'echo >>{folder}/asked' TERM
: >{folder}/begun
while [ ! -e {folder}/release ]; do sleep 0.05; done
echo whole
"""


def test_a_job_that_is_asked_to_end_again_may_still_write_its_record(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(ASKED.format(folder=tmp_path))
    program.chmod(0o755)
    (tmp_path / "job.sh").write_text(_remote.job_script(job(tmp_path, {}), None, str(program)))
    with subprocess.Popen(["sh", str(tmp_path / "job.sh")]) as running:
        until((tmp_path / "begun").exists)
        running.terminate()
        until((tmp_path / "asked").exists)
        for _ in range(3):
            running.terminate()
        (tmp_path / "release").touch()
    assert (tmp_path / "asked").read_text() == "\n"
    assert (tmp_path / "trial.json").read_text() == "whole\n"
    assert (tmp_path / "exit").read_text() == "0\n"


def test_a_trial_comes_back_whole_or_not_at_all() -> None:
    whole = _remote.cancelled_trial("w")
    assert _remote.brought_back(whole, "1\n") == whole
    assert _remote.brought_back(whole[:-1], "0") is None
    assert _remote.brought_back(b"", "0") is None
    late = _remote.brought_back(whole, "124\n")
    assert late is not None
    assert msgspec.json.decode(late, type=Trial).reason == _remote.TOO_LONG


@pytest.mark.parametrize(
    "said",
    [
        "",
        "{}",
        "[]",
        "1",
        "null",
        "[" * 10_000,
        PROGRESS_SAID.replace("2.5", "-1"),
        PROGRESS_SAID.replace("2.5", "1e999"),
        PROGRESS_SAID.replace("2.5", '"x"'),
        PROGRESS_SAID.replace('"value": 10', '"value": 0'),
        PROGRESS_SAID.replace('"n": 9', '"m": 9'),
        PROGRESS_SAID[:-9],
        b"\xff\xfe",
    ],
)
def test_progress_of_another_machine_may_be_anything(said: str | bytes) -> None:
    assert _remote.look_of(said) is None


def test_progress_is_read() -> None:
    look = _remote.look_of(PROGRESS_SAID)
    assert look is not None
    assert (look.elapsed, look.rate) == (2.5, Estimate(value=10.0, low=9.0, high=11.0, n=9))


def test_figures_that_cannot_be_are_left_out_of_progress() -> None:
    def figures(told: dict[str, object]) -> Figures | None:
        look = _remote.look_of(json.dumps({**json.loads(PROGRESS_SAID), "figures": told}))
        assert look is not None
        assert look.rate is not None
        return look.figures

    told = {"phases": {"data": 0.25}, "usage": {"cores": None}, "timeline": {"steps": {}}}
    assert figures(told) == Figures(
        phases={"data": 0.25}, usage={"cores": None}, timeline=Timeline()
    )
    assert figures({"phases": {"data": 7.0}}) is None
    assert figures({"timeline": {"steps": {"seconds": [2.0, 1.0]}}}) is None
    assert (
        figures({"measurement": {"step_seconds": {"value": -1, "low": 1, "high": 1, "n": 1}}})
        is None
    )


def test_a_whole_run_is_held_to_what_the_user_said() -> None:
    offer = Offer(provider="p", region="r", instance_type="t", price=Price(per_hour=6.0))
    made = Job(workload="w", candidate="c", offer=offer, whole=True, seconds=60.0, price=6.0)
    assert made.longest == 60.0
    assert replace(made, dollars=0.05).longest == pytest.approx(30.0)
    assert replace(made, whole=False).longest > 900


def test_an_option_whose_value_the_handle_would_keep_is_refused(tmp_path: Path) -> None:
    target = {"host": "me@box", "options": ["SetEnv=TOKEN=hunter2"]}
    with pytest.raises(UsageError) as caught:
        runners.make("ssh", Setup(folder=tmp_path)).render(job(tmp_path, target))
    assert "'SetEnv'" in str(caught.value)
    assert "hunter2" not in str(caught.value)
