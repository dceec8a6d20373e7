"""The runner of Ray against a real cluster whose jobs run on another node than its dashboard."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

import pytest
from carried_jobs import LONG, alive, ended, job, keeps, made, same_rate, started, trial, until
from two_nodes import Cluster

from underdog.errors import RefusedError, RunnerError
from underdog.runners import ray
from underdog.testing.runner import RunnerChecks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", RunnerChecks.names())
def test_it_keeps(name: str, cluster: Cluster, tmp_path: Path) -> None:
    keeps(name, "ray", tmp_path, cluster.target())


CARRIED = """
import os, sys
from pathlib import Path
seen = [os.environ["SAID"], os.environ.get("CUDA_VISIBLE_DEVICES"), Path("link").read_text()]
seen += [os.environ["OMP_NUM_THREADS"], *sorted(p.name for p in Path().iterdir())]
Path(sys.argv[1]).write_text(" ".join(map(str, seen)))
for step in range(100):
    print("samples=8", flush=True)
"""


def test_files_go_along_to_the_node_that_has_what_is_asked_for(
    cluster: Cluster, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "go.py").write_text(CARRIED)
    (folder / "data").write_text("data")
    (folder / "link").symlink_to("data")
    (folder / ".gitignore").write_text("huge.bin\n")
    (folder / "huge.bin").write_text("x" * 1000)
    subprocess.run(["git", "-C", str(folder), "init"], check=True, capture_output=True)
    target = cluster.target(
        cpus=2, gpus=1, labels={"pool": "tests"}, shell_setup=["export SAID=it", "echo noise"]
    )
    given = dataclasses.replace(
        job(tmp_path, target),
        folder=folder,
        command=(sys.executable, "go.py", str(tmp_path / "seen")),
    )
    runner = made("ray", tmp_path)
    handle = runner.submit(runner.render(given))
    ended(runner, handle)
    assert trial(runner, handle).status == "ok"
    said = (tmp_path / "seen").read_text().split()
    assert said[0] == "it"
    assert said[1] in ("0", "1")  # the one accelerator that Ray keeps for it
    assert said[2:] == ["data", "2", ".gitignore", "data", "go.py", "link"]


def test_what_no_node_has_is_refused_at_once(cluster: Cluster, tmp_path: Path) -> None:
    runner = made("ray", tmp_path)
    until(lambda: _is_fixed(cluster), 60)  # Ray reports its nodes every few seconds
    for wanted, said in (
        ({"cpus": 64}, r"CPU=64; the most of each on its \d nodes is CPU=2"),
        ({"accelerator_type": "H100"}, "accelerator_type:H100=0.001"),
        ({"labels": {"pool": "other"}}, "the labels"),
    ):
        with pytest.raises(RefusedError, match=said) as refused:
            runner.submit(runner.render(job(tmp_path, cluster.target(**wanted))))
        assert refused.value.kind == "not_offered"
    assert started(tmp_path) == []


def rays(handle: str) -> object:
    """What Ray itself says of a job."""
    asked, name = ray._found(handle)
    return (asked.job(name) or {}).get("status")


def _is_fixed(cluster: Cluster) -> bool:
    asked = ray.Cluster(cluster.address)
    return asked.is_fixed(asked.nodes() or [])


def test_a_job_that_waits_says_why_and_ends_without_having_begun(
    cluster: Cluster, tmp_path: Path
) -> None:
    runner = made("ray", tmp_path)
    whole = cluster.target(resources={"worker": 2})
    first = runner.submit(runner.render(job(tmp_path, whole, LONG)))
    until(lambda: runner.status(first).look)
    waits = tmp_path / "waits"
    waits.mkdir()
    impatient = runner.submit(runner.render(job(waits, whole | {"patience": 2})))
    given_up = runner.submit(runner.render(job(waits, whole)))
    assert "waiting for resources" in str(runner.status(given_up).waiting)
    runner.cancel(given_up)
    assert runner.status(given_up).ended
    assert trial(runner, given_up).status == "interrupted"
    ended(runner, impatient)
    with pytest.raises(RefusedError, match="It waited for") as refused:
        runner.collect(impatient)
    assert refused.value.kind == "no_capacity"
    runner.cancel(first)
    for handle in (impatient, given_up):  # Ray has them still, and ends them as they get a node
        until(lambda: rays(handle) not in ("PENDING", "RUNNING"), 240)  # noqa: B023
        assert rays(handle) == "STOPPED"
    assert not any(alive(pid) for pid in started(waits))


def test_the_longest_time_is_held_there(cluster: Cluster, tmp_path: Path) -> None:
    runner = made("ray", tmp_path)
    dear = job(tmp_path, cluster.target(), LONG, price=3600.0, dollars=20.0)
    assert dear.longest == 20
    handle = runner.submit(runner.render(dear))
    ended(runner, handle)
    assert "longest time" in str(trial(runner, handle).reason)


def test_it_measures_what_local_measures(cluster: Cluster, tmp_path: Path) -> None:
    same_rate("ray", tmp_path, cluster.target())


def test_a_job_that_the_cluster_does_not_know_is_lost(cluster: Cluster, tmp_path: Path) -> None:
    runner = made("ray", tmp_path)
    handle = f"ray:{cluster.address}:underdog-gone"
    assert runner.status(handle).ended
    runner.cancel(handle)
    with pytest.raises(RunnerError, match="does not know it"):
        runner.collect(handle)


def test_a_command_that_cannot_start_is_told_in_its_words(cluster: Cluster, tmp_path: Path) -> None:
    runner = made("ray", tmp_path)
    wrong = job(tmp_path, cluster.target(), command=("no-such-program",))
    handle = runner.submit(runner.render(wrong))
    ended(runner, handle)
    with pytest.raises(RunnerError, match="The program 'no-such-program' was not found"):
        runner.collect(handle)
