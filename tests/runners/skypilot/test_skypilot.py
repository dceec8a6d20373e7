"""The runner of SkyPilot against a cloud of folders: what it starts, brings back, and ends."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path

import msgspec
import psutil
import pytest
from carried_jobs import (
    LONG,
    SHORT,
    alive,
    ended,
    job,
    keeps,
    made,
    measuring,
    started,
    trial,
    until,
)
from folder_cloud import FolderCloud

from underdog.errors import MissingPackageError, RefusedError, RunnerError, UsageError
from underdog.model import Price
from underdog.runners import Job, Runner
from underdog.testing.runner import RunnerChecks
from underdog.units import GIB

SLURM = {"infra": "slurm/box", "cpus": 1}


def mine(at: Path, steps: int = SHORT, **more: object) -> Job:
    return job(at, SLURM, steps, **more)


def with_target(asked: Job, **more: object) -> Job:
    return dataclasses.replace(asked, target={**asked.target, **more})


@pytest.fixture
def runner(cloud: FolderCloud, tmp_path: Path) -> Runner:
    return made("skypilot", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", RunnerChecks.names())
def test_it_keeps(name: str, cloud: FolderCloud, tmp_path: Path) -> None:
    keeps(name, "skypilot", tmp_path, SLURM)
    assert not any(cloud.folder.iterdir())  # no machine is left


@pytest.mark.slow
def test_another_process_finds_the_job_and_the_machine_is_given_back(
    cloud: FolderCloud, tmp_path: Path
) -> None:
    first = made("skypilot", tmp_path)
    handle = first.submit(first.render(mine(tmp_path, LONG, id="T1")))
    measuring(made("skypilot", tmp_path), handle)
    with pytest.raises(RunnerError, match="has not ended"):
        made("skypilot", tmp_path).collect(handle)
    made("skypilot", tmp_path).cancel(handle)
    ended(made("skypilot", tmp_path), handle)
    found = trial(made("skypilot", tmp_path), handle)
    assert (found.status, found.workload) == ("interrupted", "tiny")
    assert found.measurement is not None
    assert not any(cloud.folder.iterdir())
    assert not any(alive(pid) for pid in started(tmp_path))
    assert trial(made("skypilot", tmp_path), handle) == found  # though its machine is gone
    assert made("skypilot", tmp_path).status(handle).ended


@pytest.mark.slow
def test_the_same_trial_is_not_started_twice(cloud: FolderCloud, tmp_path: Path) -> None:
    request = made("skypilot", tmp_path).render(mine(tmp_path, id="20261130T1-ab"))
    handles = [made("skypilot", tmp_path).submit(request) for _ in range(2)]
    assert handles[0] == handles[1]
    assert json.loads(handles[0])["cluster"] == "underdog-20261130t1-ab"
    ended(made("skypilot", tmp_path), handles[0])
    assert trial(made("skypilot", tmp_path), handles[0]).status == "ok"
    assert len(started(tmp_path)) == 1


@pytest.mark.slow
def test_where_the_machine_cannot_be_reached_the_log_brings_the_trial(
    cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    handle = runner.submit(runner.render(mine(tmp_path)))
    cloud.answers = False
    with pytest.raises(RunnerError, match="has not ended"):
        runner.collect(handle)
    ended(runner, handle)
    assert trial(runner, handle).status == "ok"


@pytest.mark.slow
def test_books_that_have_a_job_for_running_whose_machine_goes_down_are_asked_again(
    cloud: FolderCloud, runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = runner.submit(runner.render(mine(tmp_path, LONG)))
    measuring(runner, handle)
    cluster = json.loads(handle)["cluster"]
    process = psutil.Process(cloud.running[cluster].pid)
    for one in [*process.children(recursive=True), process]:
        with contextlib.suppress(psutil.NoSuchProcess):  # the tree ends itself meanwhile
            one.kill()
    ended(runner, handle)
    cloud.answers = False
    answers = [False, None, RuntimeError("Failed to get the job's status"), False]

    def told(self: FolderCloud, cluster: str, job: int) -> bool | None:
        answer = answers.pop(0)
        if not answers:
            cloud.vanish(cluster)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(FolderCloud, "job_ended", told)
    with pytest.raises(RunnerError, match="is lost"):
        runner.collect(handle)
    assert not answers


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["the measurement", "the job"])
def test_a_job_that_is_killed_there_is_lost_and_told(
    fault: str, cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    handle = runner.submit(runner.render(mine(tmp_path, LONG)))
    measuring(runner, handle)
    process = psutil.Process(cloud.running[json.loads(handle)["cluster"]].pid)
    tree = process.children(recursive=True)
    killed = [p for p in tree if "measure" in p.cmdline()] if fault == "the measurement" else tree
    for one in [*killed, process] if fault == "the job" else killed:
        with contextlib.suppress(psutil.NoSuchProcess):  # the tree ends itself meanwhile
            one.kill()
    ended(runner, handle)
    with pytest.raises(RunnerError, match="is lost"):
        runner.collect(handle)
    assert not any(cloud.folder.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("spot", [True, False])
def test_a_machine_that_is_taken_away(
    spot: bool, cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    asked = mine(tmp_path, LONG)
    offer = dataclasses.replace(asked.offer, purchase="spot" if spot else "on-demand")
    handle = runner.submit(runner.render(dataclasses.replace(asked, offer=offer)))
    measuring(runner, handle)
    cloud.vanish(json.loads(handle)["cluster"])
    ended(runner, handle)
    if spot:
        found = trial(runner, handle)
        assert (found.status, found.workload) == ("interrupted", "tiny")
        assert "was taken away" in (found.reason or "")
    else:
        with pytest.raises(RunnerError, match="there is no cluster"):
            runner.collect(handle)


def test_a_machine_that_is_going_down_gives_errors_of_all_kinds(
    cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    handle = runner.submit(runner.render(mine(tmp_path, LONG)))
    cloud.answers = False
    cloud.confused = RuntimeError("Failed to get job status. STEP 6.27 CANCELLED")  # recorded
    assert not runner.status(handle).ended
    cloud.confused = type("ApiServerConnectionError", (RuntimeError,), {})("no server")
    with pytest.raises(RunnerError, match="sky api info"):
        runner.status(handle)
    cloud.vanish(json.loads(handle)["cluster"])
    assert runner.status(handle).ended
    with pytest.raises(RunnerError, match="there is no cluster"):
        runner.collect(handle)


class ResourcesUnavailableError(Exception):
    """SkyPilot's."""

    def __init__(self, message: str, failover_history: list[Exception]) -> None:
        super().__init__(message)
        self.failover_history = failover_history


def test_no_machine_to_be_had_is_told_and_nothing_is_left(
    cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    words = "Failed to acquire resources in main for 1x Slurm(2CPU--0GB)."
    cloud.refuses = ResourcesUnavailableError("Failed to provision", [RuntimeError(words)])
    handle = runner.submit(runner.render(mine(tmp_path)))
    assert runner.status(handle).ended
    for _ in range(2):
        with pytest.raises(RefusedError, match="Failed to acquire resources in main") as caught:
            runner.collect(handle)
        assert caught.value.kind == "no_capacity"
    assert cloud.downs  # SkyPilot leaves what it could not set up
    assert not any(cloud.folder.iterdir())


def test_what_a_failed_launch_left_is_given_back_by_cancelling(
    cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    cloud.refuses = RuntimeError("Failed to run setup commands on an instance.")
    handle = runner.submit(runner.render(mine(tmp_path)))
    assert any(cloud.folder.iterdir())
    for _ in range(2):
        runner.cancel(handle)
    assert not any(cloud.folder.iterdir())
    with pytest.raises(RunnerError, match="Failed to run setup commands"):
        runner.collect(handle)


def test_a_launch_can_be_cancelled(cloud: FolderCloud, runner: Runner, tmp_path: Path) -> None:
    cloud.launches_slowly = True
    handle = runner.submit(runner.render(mine(tmp_path)))
    state = runner.status(handle)
    assert (state.ended, state.waiting) == (False, "Launching on Folder.")
    with pytest.raises(RunnerError, match="has not ended"):
        runner.collect(handle)
    for _ in range(2):
        runner.cancel(handle)
    assert runner.status(handle).ended
    found = trial(runner, handle)
    assert (found.status, found.workload) == ("interrupted", "tiny")
    assert not any(cloud.folder.iterdir())


@pytest.mark.slow
def test_a_machine_that_cannot_be_taken_down_is_told_with_the_trial(
    cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    handle = runner.submit(runner.render(mine(tmp_path)))
    ended(runner, handle)
    cloud.stays_up = True
    found = trial(runner, handle)
    assert found.measurement is not None
    assert [c.code for c in found.caveats if "sky down underdog-" in c.message] == ["machine_left"]
    cloud.stays_up = False
    again = trial(runner, handle)  # tries once more
    assert "machine_left" not in [c.code for c in again.caveats]
    assert not any(cloud.folder.iterdir())


def test_a_machine_that_cannot_be_taken_down_is_told_with_the_error(
    cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    cloud.refuses, cloud.stays_up = ResourcesUnavailableError("no", []), True
    handle = runner.submit(runner.render(mine(tmp_path)))
    with pytest.raises(RefusedError, match="It may cost money"):
        runner.collect(handle)
    cloud.stays_up = False
    with pytest.raises(RefusedError):
        runner.collect(handle)


@pytest.mark.slow
def test_the_longest_time_is_held_there(cloud: FolderCloud, runner: Runner, tmp_path: Path) -> None:
    asked = mine(tmp_path, LONG, dollars=15 / 3600)  # 15 s at 1 USD/h
    handle = runner.submit(runner.render(asked))
    ended(runner, handle)
    reason = trial(runner, handle).reason or ""
    assert "the longest time that it may take was over" in reason


def test_secrets_reach_the_job_and_no_record(
    cloud: FolderCloud, runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = with_target(mine(tmp_path), secrets=["MY_TOKEN"])
    monkeypatch.delenv("MY_TOKEN", raising=False)
    with pytest.raises(UsageError, match="MY_TOKEN"):
        runner.submit(runner.render(asked))
    monkeypatch.setenv("MY_TOKEN", "s3cr3t")
    request = runner.render(asked)
    handle = runner.submit(request)
    cluster = json.loads(handle)["cluster"]
    assert cloud.secrets == {"MY_TOKEN": "s3cr3t"}
    assert "s3cr3t" not in "\n".join([*request.lines, handle, str(cloud.tasks[cluster])])


def test_a_folder_that_is_too_large_is_not_carried(
    cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    with (folder / "big").open("wb") as file:
        file.truncate(3 * GIB)
    with pytest.raises(UsageError, match="3 GiB"):
        runner.submit(runner.render(mine(tmp_path, folder=folder)))


@pytest.mark.slow
def test_the_folder_is_carried_and_worked_in(
    cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    script = "for _ in range(60):\n    print('samples=8', flush=True)"
    (folder / "train.py").write_text(f"import time\n{script}; time.sleep(0.005)")
    handle = runner.submit(
        runner.render(mine(tmp_path, folder=folder, command=("python3", "train.py")))
    )
    ended(runner, handle)
    assert trial(runner, handle).measurement is not None


def test_a_handle_of_another_kind_is_refused(runner: Runner) -> None:
    for act in (runner.status, runner.collect, runner.cancel):
        with pytest.raises(RunnerError, match="names no job of SkyPilot"):
            act("ssh:me")


def test_without_skypilot_the_line_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sky", None)
    runner = made("skypilot", tmp_path)
    request = runner.render(mine(tmp_path))  # needs none
    with pytest.raises(MissingPackageError, match=r"pip install 'underdog\[skypilot\]'"):
        runner.submit(request)


def test_a_request_that_the_server_has_forgotten_is_found_by_its_cluster(
    cloud: FolderCloud, runner: Runner, tmp_path: Path
) -> None:
    handle = runner.submit(runner.render(mine(tmp_path)))
    cloud.requests.clear()
    until(lambda: runner.status(handle).ended)
    assert trial(runner, handle).measurement is not None
    gone = msgspec.json.decode(handle)
    gone["cluster"] = "underdog-never"
    with pytest.raises(RunnerError, match="there is no cluster"):
        runner.collect(msgspec.json.encode(gone).decode())


def test_the_price_is_the_jobs(cloud: FolderCloud, runner: Runner, tmp_path: Path) -> None:
    asked = mine(tmp_path, price=None)
    offer = dataclasses.replace(asked.offer, price=Price(unknown_reason="a cluster of ours"))
    lines = runner.render(dataclasses.replace(asked, offer=offer)).lines
    assert not any("--price" in line for line in lines)
