"""What goes wrong around a job of Slurm: nothing is lost, doubled, or left running."""

from __future__ import annotations

import contextlib
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
from slurm_cluster import ALONE, Cluster

from underdog.errors import RunnerError

pytestmark = pytest.mark.slow


def number(handle: str) -> str:
    return handle.split('"')[3]


def gone(pids: list[int]) -> None:
    until(lambda: not any(alive(pid) for pid in pids))


def test_after_underdog_was_killed_a_job_is_found_and_not_started_again(
    cluster: Cluster, tmp_path: Path
) -> None:
    handle = handle_of_a_killed_process("slurm", tmp_path, cluster.target(), "trial-1")
    runner = made("slurm", tmp_path)
    # had it been killed before it wrote the handle down, it would submit the same trial again
    same = job(tmp_path, cluster.target(), LONG, id="trial-1")
    assert runner.submit(runner.render(same)) == handle
    measuring(runner, handle)
    assert runner.submit(runner.render(same)) == handle
    runner.cancel(handle)
    ended(runner, handle)
    assert trial(runner, handle) == trial(made("slurm", tmp_path), handle)
    assert len(started(tmp_path)) == 1
    gone(started(tmp_path))


@pytest.mark.parametrize("which", ["its shell", "the measurement"])
def test_a_job_that_is_killed_there_is_lost_and_leaves_nothing(
    which: str, cluster: Cluster, tmp_path: Path
) -> None:
    runner = made("slurm", tmp_path)
    handle = runner.submit(runner.render(job(tmp_path, cluster.target(), LONG)))
    until(lambda: started(tmp_path))
    above = psutil.Process(started(tmp_path)[0]).parents()
    names = {"its shell": ["sh", "./job.sh"], "the measurement": ["-E", "-P", "-m"]}
    victim = next(p for p in above if names[which] in (p.cmdline()[:2], p.cmdline()[1:4]))
    victim.kill()
    ended(runner, handle)
    for reader in (runner, made("slurm", tmp_path)):
        with pytest.raises(RunnerError, match="is lost on n"):
            reader.collect(handle)
    gone(started(tmp_path))


def test_a_job_whose_node_goes_down_is_lost_and_stays_so(cluster: Cluster, tmp_path: Path) -> None:
    runner = made("slurm", tmp_path)
    weak = job(tmp_path, cluster.target(partition="weak"), LONG)
    handle = runner.submit(runner.render(weak))
    until(lambda: started(tmp_path))
    cluster.kill_node("n4")
    ended(runner, handle)
    with pytest.raises(RunnerError, match=r"on n4: its node failed or went down \(NODE_FAIL\)"):
        runner.collect(handle)
    cluster.start_node("n4")  # the controller now has it end what it still runs
    gone(started(tmp_path))
    with pytest.raises(RunnerError, match="NODE_FAIL"):
        made("slurm", tmp_path).collect(handle)
    assert len(started(tmp_path)) == 1
    until(lambda: cluster.ask("sinfo", "-h", "-n", "n4", "-o", "%T").strip() == "idle")


def test_a_job_that_is_put_back_into_the_queue_does_not_run_twice(
    cluster: Cluster, tmp_path: Path
) -> None:
    runner = made("slurm", tmp_path)
    handle = runner.submit(runner.render(job(tmp_path, cluster.target(), LONG)))
    until(lambda: started(tmp_path))
    cluster.ask("scontrol", "requeue", number(handle))  # which Slurm does not do: it may not
    assert cluster.ask("squeue", "-h", "-j", number(handle), "-o", "%T").strip() == "RUNNING"
    cluster.ask("scontrol", "update", f"JobId={number(handle)}", "Requeue=1")
    cluster.ask("scontrol", "requeue", number(handle))
    gone(started(tmp_path))
    ended(runner, handle)
    assert len(started(tmp_path)) == 1
    with contextlib.suppress(RunnerError):  # it may still have said how far it came
        assert trial(runner, handle).status == "interrupted"
    until(lambda: not cluster.ask("squeue", "-h", "-j", number(handle), "-o", "%T"))
    assert len(started(tmp_path)) == 1


def test_a_full_disk_is_said(cluster: Cluster, tmp_path: Path) -> None:
    runner = made("slurm", tmp_path)
    with full_disk(tmp_path / "small") as jobs:
        target = cluster.target(jobs=str(jobs))
        handle = runner.submit(runner.render(waiting_job(tmp_path, target, tmp_path / "full")))
        until(lambda: started(tmp_path))
        fill(jobs)
        (tmp_path / "full").touch()
        ended(runner, handle)
        with pytest.raises(RunnerError, match="is full"):
            runner.collect(handle)
        with pytest.raises(RunnerError, match="cannot be written: No space left"):
            runner.submit(runner.render(job(tmp_path, target)))
    gone(started(tmp_path))
    assert len(started(tmp_path)) == 1


def test_a_node_that_does_not_share_the_files_is_named(cluster: Cluster, tmp_path: Path) -> None:
    runner = made("slurm", tmp_path)
    handle = runner.submit(runner.render(job(tmp_path, cluster.target(partition="alone"))))
    ended(runner, handle)
    with pytest.raises(RunnerError, match=f"the node on {ALONE} does not see") as caught:
        runner.collect(handle)
    assert "jobs = " in (caught.value.hint or "")


def test_a_controller_that_does_not_answer_is_said(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = made("slurm", tmp_path)
    handle = runner.submit(runner.render(job(tmp_path, cluster.target())))
    wrong = tmp_path / "slurm.conf"
    other = cluster.config.read_text().replace(
        "SlurmctldPort=", "MessageTimeout=2\nSlurmctldPort=1 #"
    )
    wrong.write_text(other)
    monkeypatch.setenv("SLURM_CONF", str(wrong))
    with pytest.raises(RunnerError, match="Slurm cannot be reached") as caught:
        runner.status(handle)
    assert "scontrol ping" in (caught.value.hint or "")
    monkeypatch.setenv("SLURM_CONF", str(cluster.config))
    ended(runner, handle)
    assert trial(runner, handle).status == "ok"
