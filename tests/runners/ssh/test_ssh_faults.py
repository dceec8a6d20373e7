"""What goes wrong around a job that ssh carries: nothing is lost, doubled, or left running."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from carried_jobs import (
    LONG,
    alive,
    ended,
    fill,
    full_disk,
    handle_of_a_killed_process,
    job,
    made,
    measuring,
    started,
    trial,
    until,
    waiting_job,
)
from ssh_server import Server

from underdog.errors import RunnerError, UnderdogError
from underdog.runners import _ssh_client

pytestmark = pytest.mark.slow


def first_process(server: Server, handle: str) -> psutil.Process:
    (folder,) = [path for path in server.jobs.iterdir() if path.name in handle]
    return psutil.Process(int((folder / "pid").read_text().split()[0]))


def test_after_underdog_was_killed_a_job_is_found_and_not_started_again(
    server: Server, tmp_path: Path
) -> None:
    handle = handle_of_a_killed_process("ssh", tmp_path, server.target(), "trial-1")
    runner = made("ssh", tmp_path)
    measuring(runner, handle)
    # had it been killed before it wrote the handle down, it would submit the same trial again
    same = job(tmp_path, server.target(), LONG, id="trial-1")
    assert runner.submit(runner.render(same)) == handle
    runner.cancel(handle)
    ended(runner, handle)
    assert trial(runner, handle) == trial(made("ssh", tmp_path), handle)
    (script,) = started(tmp_path)
    assert not alive(script)


@pytest.mark.parametrize("which", ["its shell", "the measurement"])
def test_a_job_that_is_killed_there_is_lost_and_leaves_nothing(
    which: str, server: Server, tmp_path: Path
) -> None:
    runner = made("ssh", tmp_path)
    handle = runner.submit(runner.render(job(tmp_path, server.target(), LONG)))
    until(lambda: started(tmp_path))
    shell = first_process(server, handle)
    tree = shell.children(recursive=True)
    (measurement,) = [p for p in tree if p.cmdline()[1:4] == ["-E", "-P", "-m"]]
    (shell if which == "its shell" else measurement).kill()
    ended(runner, handle)
    for _ in range(2):
        with pytest.raises(RunnerError, match="is lost"):
            runner.collect(handle)
    _, left = psutil.wait_procs([shell, *tree], timeout=30)
    assert left == []
    assert not alive(started(tmp_path)[0])


def test_another_process_of_the_same_number_is_left_alone(server: Server, tmp_path: Path) -> None:
    runner = made("ssh", tmp_path)
    handle = runner.submit(runner.render(job(tmp_path, server.target(python="/no/python"))))
    ended(runner, handle)
    (folder,) = [path for path in server.jobs.iterdir() if path.name in handle]
    _, began, boot = (folder / "pid").read_text().split()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        (folder / "pid").write_text(f"{other.pid} {began} {boot}\n")
        runner.cancel(handle)
        with pytest.raises(RunnerError):
            runner.collect(handle)
        assert other.poll() is None
        other.kill()


def test_a_full_disk_is_said(server: Server, tmp_path: Path) -> None:
    runner = made("ssh", tmp_path)
    with full_disk(tmp_path / "small") as jobs:
        target = server.target(jobs=str(jobs))
        handle = runner.submit(runner.render(waiting_job(tmp_path, target, tmp_path / "full")))
        until(lambda: started(tmp_path))
        fill(jobs)
        (tmp_path / "full").touch()
        ended(runner, handle)
        with pytest.raises(RunnerError, match="the disk is full"):
            runner.collect(handle)
        fill(jobs)
        with pytest.raises(RunnerError, match="disk is full"):
            runner.submit(runner.render(job(tmp_path, target)))
    assert [pid for pid in started(tmp_path) if alive(pid)] == []
    assert len(started(tmp_path)) == 1


def test_a_submission_that_is_cut_off_is_made_again_and_runs_once(
    server: Server, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    with (folder / "a-large-file").open("wb") as file:
        file.truncate(60_000_000)
    carried = job(tmp_path, server.target(jobs=str(tmp_path / "jobs")), folder=folder, id="cut")
    cuts: list[int] = []

    def cut() -> None:
        until(lambda: list((tmp_path / "jobs").glob("*/files/*")))
        cuts.append(server.cut())

    saboteur = threading.Thread(target=cut)
    saboteur.start()
    runner = made("ssh", tmp_path)
    handle = runner.submit(runner.render(carried))
    saboteur.join()
    assert cuts[0] >= 1
    ended(runner, handle)
    assert trial(runner, handle).status == "ok"
    assert len(started(tmp_path)) == 1


def test_a_job_goes_on_while_its_machine_cannot_be_reached(server: Server, tmp_path: Path) -> None:
    runner = made("ssh", tmp_path)
    handle = runner.submit(runner.render(job(tmp_path, server.target())))
    server.stop()
    try:
        for ask in (runner.cancel, made("ssh", tmp_path).status, runner.collect):
            with pytest.raises(RunnerError, match=r"cannot be reached[\s\S]*goes on without us"):
                ask(handle)
    finally:
        server.start()
    ended(runner, handle)
    assert trial(runner, handle).status == "ok"
    assert len(started(tmp_path)) == 1


def test_a_job_whose_folder_was_removed_is_lost(server: Server, tmp_path: Path) -> None:
    runner = made("ssh", tmp_path)
    jobs = tmp_path / "jobs"
    target = server.target(jobs=str(jobs), python="/no/python")
    handle = runner.submit(runner.render(job(tmp_path, target)))
    until(lambda: list(jobs.glob("*/exit")))
    for path in jobs.iterdir():
        path.rename(tmp_path / "elsewhere")
    assert runner.status(handle).ended
    runner.cancel(handle)
    with pytest.raises(RunnerError, match="there is no folder"):
        runner.collect(handle)


@pytest.fixture
def broken(server: Server, request: pytest.FixtureRequest) -> Iterator[dict[str, object]]:
    more = {
        "no such host": {"host": "no-such-host.invalid"},
        "nothing listens": {"port": 1},
        "another key": {"identity": str(server.folder / "other")},
        "a bad option": {"options": ["NoSuchOption=1"]},
        "no configuration": {"config": "/no/such/config"},
    }.get(request.param, {})
    if request.param == "a host key that has changed":
        server.know("other")
    if request.param == "an unknown host key":
        (server.folder / "known").write_text("")
    yield server.target(**more)
    server.know("host")


@pytest.mark.parametrize(
    ("broken", "said", "hint"),
    [
        ("no such host", "There is no host 'no-such-host.invalid'", "Host of ~/.ssh/config"),
        ("nothing listens", "cannot be reached", "ssh root@127.0.0.1 true"),
        ("another key", "refused the login", "ssh-copy-id"),
        ("a bad option", "options given", "man ssh_config"),
        ("no configuration", "options given", "man ssh_config"),
        ("a host key that has changed", "not the one that is known", "ssh-keygen -R 127.0.0.1"),
        ("an unknown host key", "is not known here", "ssh root@127.0.0.1"),
    ],
    indirect=["broken"],
)
def test_what_stands_in_the_way_is_named_with_the_next_command(
    broken: dict[str, object], said: str, hint: str, tmp_path: Path
) -> None:
    runner = made("ssh", tmp_path)
    with pytest.raises(RunnerError) as caught:
        runner.submit(runner.render(job(tmp_path, broken)))
    assert said in caught.value.message
    assert hint in (caught.value.hint or "")


def test_without_ssh_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    runner = made("ssh", tmp_path)
    with pytest.raises(RunnerError, match="has no 'ssh'"):
        runner.submit(runner.render(job(tmp_path, {"host": "a"})))


def test_a_machine_that_does_not_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_ssh_client, "LONGEST", 0.3)
    target = _ssh_client.Connection(host="a", options=("ProxyCommand=sleep 60",))
    with pytest.raises(RunnerError, match="did not answer"):
        target.run("true")


@pytest.mark.parametrize("handle", ["", "local", '{"host": "a"}', '{"host": "-x", "job": "/"}'])
def test_a_handle_of_something_else_is_refused(handle: str, tmp_path: Path) -> None:
    for ask in (made("ssh", tmp_path).status, made("ssh", tmp_path).collect):
        with pytest.raises(UnderdogError, match="names no job of ssh"):
            ask(handle)
