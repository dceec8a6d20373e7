"""Several jobs of Slurm at once: one array, and each task a trial of its own."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from carried_jobs import LONG, alive, ended, job, made, started, trial, until
from slurm_cluster import Cluster

from underdog import runners
from underdog.cli.group import run
from underdog.errors import RefusedError, RunnerError
from underdog.runners import Handle, Job, slurm
from underdog.store import open_store

slow = pytest.mark.slow


def grid(at: Path, target: dict[str, object], count: int) -> list[Job]:
    """Jobs that differ in nothing that ``sbatch`` is asked for, each with a folder of its own."""
    found = []
    for k in range(count):
        own = at / f"own-{k}"
        own.mkdir(exist_ok=True)
        name = f"{at.name}-{k}"  # the folder of the jobs is one for all tests
        found.append(job(own, target, LONG, id=name, workload=f"tiny-{k}"))
    return found


def handles(jobs: list[Job]) -> list[Handle]:
    found = slurm.submit_all(slurm.render_all(jobs))
    assert all(isinstance(one, str) for one in found), found
    return [one for one in found if isinstance(one, str)]


def test_those_of_one_shape_are_rendered_as_one_array(tmp_path: Path) -> None:
    target: dict[str, object] = {"jobs": str(tmp_path / "jobs"), "partition": "gpu"}
    jobs = grid(tmp_path, target, 3)
    other = job(tmp_path, target | {"partition": "cpu"}, id="other")
    first, second, alone, third = (r.lines for r in slurm.render_all([*jobs[:2], other, jobs[2]]))
    assert "--array=0-2" in first[0].split()
    name = f"underdog-{tmp_path.name.replace('_', '-')}"
    assert f"--job-name={name}-0-array" in first[0].split()
    assert f"2) job={tmp_path}/jobs/{name}-2 ;;" in first
    for k, lines in ((1, second), (2, third)):
        path = tmp_path / f"jobs/{name}-{k}/job.sh"
        assert lines[0] == f"# task {k} of the array {name}-0-array, {path}:"
        assert not any(line.startswith("sbatch") for line in lines)
    assert alone == made("slurm", tmp_path).render(other).lines
    assert not (tmp_path / "jobs").exists()


def test_a_long_grid_is_several_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("underdog.runners._slurm_job.MOST_TASKS", 2)
    jobs = grid(tmp_path, {"jobs": str(tmp_path / "jobs")}, 5)
    said = [r.lines[0] for r in slurm.render_all(jobs)]
    assert ["--array=0-1" in line for line in said] == [True, False, True, False, False]
    assert said[4].startswith("sbatch")


@pytest.fixture
def running(cluster: Cluster, tmp_path: Path) -> Iterator[tuple[list[Job], list[Handle]]]:
    """Three tasks of one array that have no end; on two nodes, so that all run at once."""
    jobs = grid(tmp_path, cluster.target(), 3)
    found = handles(jobs)
    until(lambda: all(started(tmp_path / f"own-{k}") for k in range(3)))
    yield jobs, found
    cluster.ask("scancel", *(handle.split('"')[3] for handle in found))


@slow
def test_each_task_is_a_trial_of_its_own(
    running: tuple[list[Job], list[Handle]], cluster: Cluster, tmp_path: Path
) -> None:
    jobs, found = running
    numbers = [handle.split('"')[3] for handle in found]
    (array,) = {number.partition("_")[0] for number in numbers}
    assert numbers == [f"{array}_{k}" for k in range(3)]
    # as after a kill before the handles were kept: nothing is started again
    assert handles(jobs) == found
    runner = made("slurm", tmp_path)
    assert runner.submit(runner.render(jobs[1])) == found[1]
    runner.cancel(found[1])
    runner.cancel(found[1])
    ended(runner, found[1])
    assert (trial(runner, found[1]).status, trial(runner, found[1]).workload) == (
        "interrupted",
        "tiny-1",
    )
    states = [runner.status(handle) for handle in (found[0], found[2])]
    assert not any(state.ended for state in states)
    # another runner finds them; a killed one is lost, and the third is left alone
    other = made("slurm", tmp_path)
    above = psutil.Process(started(tmp_path / "own-2")[0]).parents()
    next(p for p in above if p.cmdline()[:2] == ["sh", "./job.sh"]).kill()
    ended(other, found[2])
    with pytest.raises(RunnerError, match=f"Slurm's job {numbers[2]} is lost on n"):
        other.collect(found[2])
    assert not other.status(found[0]).ended
    other.cancel(found[0])
    ended(other, found[0])
    assert trial(other, found[0]).workload == "tiny-0"
    pids = [pid for k in range(3) for pid in started(tmp_path / f"own-{k}")]
    assert len(pids) == 3
    until(lambda: not any(alive(pid) for pid in pids))


@slow
def test_tasks_that_wait_say_why_and_one_can_be_taken_out(cluster: Cluster, tmp_path: Path) -> None:
    jobs = grid(tmp_path, cluster.target(partition="weak"), 3)
    found = handles(jobs)
    runner = made("slurm", tmp_path)
    until(lambda: started(tmp_path / "own-0"))
    until(lambda: runner.status(found[2]).waiting)
    assert handles(jobs) == found
    runner.cancel(found[2])
    ended(runner, found[2])
    assert not runner.status(found[1]).ended  # which waits on
    for handle in (found[1], found[0]):
        runner.cancel(handle)
        ended(runner, handle)
    assert trial(runner, found[2]).reason == "it was cancelled before it had begun"
    assert trial(runner, found[0]).status == "interrupted"
    assert [len(started(tmp_path / f"own-{k}")) for k in range(3)] == [1, 0, 0]


@slow
def test_what_is_refused_is_refused_for_all_of_that_shape_only(
    cluster: Cluster, tmp_path: Path
) -> None:
    jobs = grid(tmp_path, cluster.target(), 3)
    jobs[1:] = [
        dataclasses.replace(one, target={**one.target, "constraint": "h100"}) for one in jobs[1:]
    ]
    first, *others = slurm.submit_all(slurm.render_all(jobs))
    assert isinstance(first, str)
    assert all(isinstance(one, RefusedError) and one.kind == "not_offered" for one in others)
    made("slurm", tmp_path).cancel(first)


def test_the_engines_that_can_are_known() -> None:
    assert runners.together("slurm") is not None
    assert runners.together("local") is None


NODE = """
[[offer]]
offer = "{name}"
provider = "mine"
instance_type = "{name}"
price_per_hour = 1.0
[offer.slurm]
jobs = "{jobs}"
python = "{python}"
"""
STUDY = """
[workload]
command = ["{python}", "train.py", "1"]
[candidates]
offers = "machines.toml"
[utility]
by = "samples_per_second"
[search]
parallel = 2
[runner]
name = "slurm"
"""
TRACKED = "import sys, underdog\nfor _ in underdog.track([[0] * 4] * 60): pass\n"


@slow
def test_a_grid_of_knobs_is_one_array_and_so_are_tests_at_once_of_one_shape(
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNDERDOG_STORE", str(tmp_path / "store.sqlite3"))
    (tmp_path / "train.py").write_text(TRACKED)
    given = {"jobs": cluster.jobs, "python": sys.executable}
    nodes = "".join(NODE.format(name=name, **given) for name in ("node", "other"))
    (tmp_path / "machines.toml").write_text(nodes)
    (tmp_path / "study.toml").write_text(STUDY.format(**given))
    there = ["--on", "node", "--offers", "machines.toml", "--json"]
    words = [*there, "--knob", "n=1,2,3", "--", sys.executable, "train.py", "{n}"]
    assert run(["explore", "study.toml", "--dry-run"]) == 0
    assert "--array=0-1" in capfd.readouterr().out
    assert run(["measure", "--dry-run", *words]) == 0
    assert "--array=0-2" in capfd.readouterr().out
    assert run(["measure", *words]) == 0
    with open_store() as store:
        trials = store.trials()
    assert [(t.status, t.knobs["n"], t.handle) for t in trials] == [
        ("ok", n, None) for n in ("1", "2", "3")
    ]
    names = [(cluster.jobs / f"underdog-{t.id}" / "array").read_text() for t in trials]
    assert names == [f"underdog-{trials[0].id}-array {k}" for k in range(3)]
