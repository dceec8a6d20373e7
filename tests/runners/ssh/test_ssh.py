"""The runner of ssh against a real OpenSSH server: what it carries, brings back, and says."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from carried_jobs import LONG, alive, ended, job, keeps, made, measuring, started, trial, until
from ssh_server import Server

from underdog import runners
from underdog.errors import RunnerError, UsageError
from underdog.runners._remote import TOO_LONG
from underdog.testing.runner import RunnerChecks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", RunnerChecks.names())
def test_it_keeps(name: str, server: Server, tmp_path: Path) -> None:
    keeps(name, "ssh", tmp_path, server.target())


def test_rendering_shows_what_is_run_and_connects_to_nothing(tmp_path: Path) -> None:
    target = {"host": "me@nowhere.invalid", "port": 2222, "shell_setup": ["module load cuda"]}
    lines = made("ssh", tmp_path).render(job(tmp_path, target, folder=tmp_path)).lines
    assert lines[0].startswith("ssh ")
    assert lines[0].endswith("-p 2222 -- me@nowhere.invalid")
    assert any("module load cuda" in line for line in lines)
    assert any(str(tmp_path) in line and line.startswith("# with") for line in lines)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({}, "missing required field `host`"),
        ({"host": "-oProxyCommand=true"}, "host"),
        ({"host": "a", "port": 70000}, "port"),
        ({"host": "a", "prot": 22}, "prot"),
    ],
)
def test_a_target_with_faults_is_named(
    target: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        made("ssh", tmp_path).render(job(tmp_path, target))


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


CARRIED = """
import os, sys
from pathlib import Path
Path(sys.argv[1]).write_text(" ".join(sorted(p.name for p in Path().iterdir())))
print(os.environ["SAID"], Path("link").read_text())
for step in range(100):
    print("samples=8", flush=True)
"""


def test_files_go_along_and_the_users_own_setting_up_comes_first(
    server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "go.py").write_text(CARRIED)
    (folder / "it's data").write_text("data")
    (folder / "link").symlink_to("it's data")
    (folder / ".gitignore").write_text("huge.bin\n")
    (folder / "huge.bin").write_text("x" * 1000)
    git(folder, "init")
    git(folder, "add", "go.py", "link")
    (folder / "deleted").write_text("")
    git(folder, "add", "deleted")
    (folder / "deleted").unlink()
    made_job = dataclasses.replace(
        job(tmp_path, server.target(shell_setup=["export SAID='a b'", "echo noise"])),
        folder=folder,
        command=(sys.executable, "go.py", str(tmp_path / "listing")),
        pattern=r"samples=(?P<samples>\d+)",
    )
    runner = made("ssh", tmp_path)
    handle = runner.submit(runner.render(made_job))
    ended(runner, handle)
    found = trial(runner, handle)
    assert found.status in ("ok", "no_steps"), found.reason
    assert (tmp_path / "listing").read_text() == ".gitignore go.py it's data link"
    (kept,) = [path for path in server.jobs.iterdir() if path.name in handle]
    assert not (kept / "files").exists()  # what was carried is not left there


def test_what_a_whole_run_wrote_is_fetched_by_the_command_that_is_told(
    server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "go.py").write_text(
        "open('model.bin', 'w').write('weights')\nprint('samples=8', flush=True)\n"
    )
    told = {"folder": folder, "command": (sys.executable, "go.py"), "whole": True}
    runner = made("ssh", tmp_path)
    handle = runner.submit(runner.render(job(tmp_path, server.target(), **told)))
    ended(runner, handle)
    runner.collect(handle)
    fetched = tmp_path / "fetched"
    fetched.mkdir()
    command = runners.files("ssh", handle)
    subprocess.run(["sh", "-c", str(command)], cwd=fetched, check=True, capture_output=True)
    assert (fetched / "files" / "model.bin").read_text() == "weights"
    assert runners.files("local", "any") is None


def test_a_folder_that_is_there_already_is_worked_in(server: Server, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    (there / "link").write_text("in place")
    (tmp_path / "go.py").write_text(CARRIED)
    runner = made("ssh", tmp_path)
    target = server.target(folder=str(there), shell_setup=["export SAID=x"])
    command = (sys.executable, str(tmp_path / "go.py"), str(tmp_path / "listing"))
    made_job = dataclasses.replace(
        job(tmp_path, target), folder=tmp_path / "missing", command=command
    )
    handle = runner.submit(runner.render(made_job))
    ended(runner, handle)
    trial(runner, handle)
    assert (tmp_path / "listing").read_text() == "link"


def test_a_job_ends_when_its_dollars_are_spent(server: Server, tmp_path: Path) -> None:
    runner = made("ssh", tmp_path)
    capped = job(tmp_path, server.target(), LONG, price=1800.0, dollars=4.0)
    assert capped.longest == 8
    handle = runner.submit(runner.render(capped))
    ended(runner, handle)
    try:
        said = trial(runner, handle).reason or ""
    except RunnerError as error:  # on a slow machine it had not begun by then
        said = error.message
    assert TOO_LONG in said
    assert not any(alive(pid) for pid in started(tmp_path))


def test_it_measures_what_is_measured_here(server: Server, tmp_path: Path) -> None:
    from carried_jobs import same_rate

    same_rate("ssh", tmp_path, server.target())


def test_a_job_that_cannot_begin_there_says_why(server: Server, tmp_path: Path) -> None:
    runner = made("ssh", tmp_path)
    target = server.target(python="/no/such/python")
    handle = runner.submit(runner.render(job(tmp_path, target)))
    ended(runner, handle)
    with pytest.raises(RunnerError, match="/no/such/python"):
        runner.collect(handle)
    assert started(tmp_path) == []


def test_the_users_configuration_is_heeded_whatever_their_login_prints(
    server: Server, tmp_path: Path
) -> None:
    own = Server(tmp_path / "own")
    own.folder.mkdir()
    own.prepare()
    own.start('\nForceCommand echo "Welcome!"; eval "$SSH_ORIGINAL_COMMAND"')
    config = tmp_path / "config"
    options = "".join(f"  {o.replace('=', ' ')}\n" for o in own.target()["options"])  # type: ignore[attr-defined]
    config.write_text(
        f"Host box\n  HostName 127.0.0.1\n  User root\n  Port {own.port}\n"
        f"  IdentityFile {own.folder}/user\n  RemoteCommand top\n{options}"
    )
    try:
        runner = made("ssh", tmp_path)
        target = {"host": "box", "config": str(config)}
        handle = runner.submit(runner.render(job(tmp_path, target, LONG)))
        measuring(runner, handle)
        runner.cancel(handle)
        ended(runner, handle)
        assert trial(runner, handle).status == "interrupted"
    finally:
        own.stop()


def test_underdog_is_installed_where_there_is_none(server: Server, tmp_path: Path) -> None:
    runner = made("ssh", tmp_path)
    target = {k: v for k, v in server.target().items() if k != "python"}
    bare = dataclasses.replace(job(tmp_path, {}), target=target)
    handle = runner.submit(runner.render(bare))
    assert "set up" in (runner.status(handle).waiting or "")
    until(lambda: runner.status(handle).ended, 280)
    assert trial(runner, handle).status == "ok"
    environments = [p for p in server.jobs.parent.iterdir() if p.is_symlink()]
    assert len(environments) == 1
