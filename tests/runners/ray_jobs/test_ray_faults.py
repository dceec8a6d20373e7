"""Whatever is killed or full: no trial of Ray is lost in silence or started twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from carried_jobs import LONG, alive, ended, job, made, started, trial, until
from two_nodes import Cluster

from underdog.errors import RunnerError

pytestmark = pytest.mark.slow

SUBMITS = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from carried_jobs import job, made
folder = Path(sys.argv[2])
target = {"address": sys.argv[3], "cpus": 1}
runner = made("ray", folder)
print(runner.submit(runner.render(job(folder, target, id=folder.name))), flush=True)
time.sleep(100)
"""


def test_killed_underdog_finds_its_job_again(cluster: Cluster, tmp_path: Path) -> None:
    words = [str(Path(__file__).parents[1]), str(tmp_path), cluster.address]
    us = [sys.executable, "-c", SUBMITS, *words]
    with subprocess.Popen(us, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        handle = process.stdout.readline().strip()
        process.send_signal(signal.SIGKILL)
    runner = made("ray", tmp_path)
    again = job(tmp_path, cluster.target(), id=tmp_path.name)
    assert runner.submit(runner.render(again)) == handle  # it was not written down: asked again
    ended(runner, handle)
    assert trial(runner, handle).status == "ok"
    assert trial(made("ray", tmp_path), handle) == trial(runner, handle)
    assert len(started(tmp_path)) == 1


def above(pid: int, *words: str) -> psutil.Process:
    """The nearest process above whose command line holds all the words."""
    for process in psutil.Process(pid).parents():
        if all(word in " ".join(process.cmdline()) for word in words):
            return process
    raise AssertionError(f"nothing above {pid} is {words}")


def test_a_killed_job_is_lost_and_nothing_of_it_goes_on(cluster: Cluster, tmp_path: Path) -> None:
    killed = (
        (("-m underdog measure", "-E -P"), "was killed"),
        (("job.sh",), "was killed"),
        (("ray::", "Supervisor"), "died"),
    )
    runner = made("ray", tmp_path)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    target = cluster.target(cpus=0.5, scratch=str(scratch))
    jobs = []
    for number, (words, said) in enumerate(killed):
        folder = tmp_path / str(number)
        folder.mkdir()
        request = runner.render(job(folder, target, LONG))
        jobs.append((folder, words, said, runner.submit(request)))
    for folder, words, _, _ in jobs:
        until(lambda: started(folder))  # noqa: B023
        above(started(folder)[0], *words).kill()
    for folder, _, said, handle in jobs:
        ended(runner, handle)
        with pytest.raises(RunnerError, match=said):
            runner.collect(handle)
        until(lambda: not alive(started(folder)[0]))  # noqa: B023
    until(lambda: list(scratch.iterdir()) == [])


def test_a_node_that_dies_takes_its_job_along_and_that_is_told(
    cluster: Cluster, tmp_path: Path
) -> None:
    runner = made("ray", tmp_path)
    target = cluster.target(cpus=0, resources={"doomed": 1})
    handle = runner.submit(runner.render(job(tmp_path, target, LONG, seconds=600.0)))
    until(lambda: started(tmp_path))
    (pid,) = started(tmp_path)
    cluster.doomed.kill()
    until(lambda: runner.status(handle).ended, 240)  # Ray's own time to take a node for dead
    # Ray kills the processes there one by one: now and then its supervisor still sees the command
    # end before it dies itself, and reports that instead of its own death
    with pytest.raises(RunnerError, match=r"is lost: .*(died|its command ended)"):
        made("ray", tmp_path).collect(handle)
    until(lambda: not alive(pid))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


FILLS = """
import os, time
with open("filling", "wb") as file:
    try:
        while True:
            file.write(b"x" * 4096)
            file.flush()
    except OSError:
        pass
for step in range(40):
    time.sleep(0.005)
    print("samples=8", flush=True)
"""


def test_a_full_disk_is_told(cluster: Cluster, tmp_path: Path, small_disk: Path) -> None:
    (tmp_path / "fills.py").write_text(FILLS)
    runner = made("ray", tmp_path)
    command = (sys.executable, str(tmp_path / "fills.py"))
    given = job(tmp_path, cluster.target(scratch=str(small_disk)), command=command)
    handle = runner.submit(runner.render(given))
    ended(runner, handle)
    with pytest.raises(RunnerError, match="the disk of its node is full"):
        runner.collect(handle)
    assert list(small_disk.iterdir()) == []  # nothing is left there
