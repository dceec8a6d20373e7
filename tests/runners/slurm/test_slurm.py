"""The runner of Slurm against a real cluster: what it asks for, carries, brings back, and says."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import pytest
from carried_jobs import LONG, ended, job, keeps, made, same_rate, started, trial, until
from slurm_cluster import Cluster

from underdog.errors import RefusedError, RunnerError, UsageError
from underdog.runners import _slurm_words, slurm
from underdog.testing.runner import RunnerChecks

slow = pytest.mark.slow


@slow
@pytest.mark.parametrize("name", RunnerChecks.names())
def test_it_keeps(name: str, cluster: Cluster, tmp_path: Path) -> None:
    keeps(name, "slurm", tmp_path, cluster.target())


@slow
def test_it_measures_what_is_measured_here(cluster: Cluster, tmp_path: Path) -> None:
    same_rate("slurm", tmp_path, cluster.target())


def test_rendering_shows_what_is_submitted_and_writes_nothing(tmp_path: Path) -> None:
    target = {
        "jobs": str(tmp_path / "jobs"),
        "partition": "gpu",
        "constraint": "a100&nvlink",
        "gres": "gpu:2",
        "flags": ["--mem=64G", "--requeue"],
        "shell_setup": ["module load cuda"],
    }
    asked = job(tmp_path, target, seconds=600.0, timeout=60.0, folder=tmp_path, id="t 1")
    lines = made("slurm", tmp_path).render(asked).lines
    words = lines[0].split()
    assert words[:2] == ["sbatch", "--parsable"]
    assert {"--partition=gpu", "'--constraint=a100&nvlink'", "--gres=gpu:2"} <= set(words)
    assert words.index("--no-requeue") > words.index("--requeue")  # the last counts
    assert "--time=28" in words  # 900 + 600 + 2 * 60 s, and the grace
    assert "--job-name=underdog-t-1" in words
    assert any("module load cuda" in line for line in lines)
    assert any(line.startswith(f"cd {tmp_path}/jobs/underdog-t-1") for line in lines)
    assert not (tmp_path / "jobs").exists()


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"partitoin": "x"}, "partitoin"),
        ({"gres": ""}, "gres"),
        ({"flags": ["--array=1-3"]}, "'--array=1-3' is no flag"),
        ({"flags": ["exclusive"]}, "'exclusive' is no flag"),
    ],
)
def test_a_target_with_faults_is_named(
    target: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said):
        made("slurm", tmp_path).render(job(tmp_path, target))


WHERE = """
import json, os, sys
from pathlib import Path
Path(sys.argv[1]).write_text(json.dumps([os.getcwd(), dict(os.environ)]))
for step in range(100):
    print("samples=8", flush=True)
"""


@slow
def test_a_job_runs_on_the_node_that_is_asked_for_in_the_folder_of_here(
    cluster: Cluster, tmp_path: Path
) -> None:
    folder = tmp_path / "my folder"
    folder.mkdir()
    (folder / "go.py").write_text(WHERE)
    runner = made("slurm", tmp_path)
    target = cluster.target(
        constraint="big", gres="gpu:a100:1", flags=["--mem=0"], shell_setup=["export SAID='a b'"]
    )
    command = (sys.executable, "go.py", str(tmp_path / "where"))
    asked = dataclasses.replace(job(tmp_path, target), folder=folder, command=command)
    handle = runner.submit(runner.render(asked))
    ended(runner, handle)
    trial(runner, handle)
    where, environment = json.loads((tmp_path / "where").read_text())
    assert where == str(folder)
    assert environment["SLURM_JOB_NODELIST"] == "n2"
    assert environment["SLURM_GPUS_ON_NODE"] == "1"
    assert environment["SAID"] == "a b"
    assert list(folder.iterdir()) == [folder / "go.py"]  # nothing of ours is left in it


@slow
@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"constraint": "h100"}, "not_offered"),
        ({"partition": "nowhere"}, "not_offered"),
        ({"gres": "gpu:h100:1"}, "not_offered"),
        ({"gres": "tpu:1"}, "not_offered"),
        ({"flags": ["--mem=900T"]}, "not_offered"),
    ],
)
def test_a_machine_that_there_is_not_is_refused_at_once(
    more: dict[str, object], kind: str, cluster: Cluster, tmp_path: Path
) -> None:
    runner = made("slurm", tmp_path)
    with pytest.raises(RefusedError, match="sbatch: error") as caught:
        runner.submit(runner.render(job(tmp_path, cluster.target(**more))))
    assert caught.value.kind == kind
    assert "sinfo" in (caught.value.hint or "")


@slow
@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"partition": "short"}, "PartitionTimeLimit"),
        ({"partition": "short", "flags": ["--nodes=2"]}, "PartitionNodeLimit"),
        ({"flags": ["--nodes=9"]}, "PartitionConfig"),
    ],
)
def test_a_job_that_can_never_run_is_refused_and_taken_out_of_the_queue(
    more: dict[str, object],
    reason: str,
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slurm, "PAUSE", 1.5)
    runner = made("slurm", tmp_path)
    handle = runner.submit(runner.render(job(tmp_path, cluster.target(**more))))
    ended(runner, handle)
    for reader in (runner, made("slurm", tmp_path)):
        with pytest.raises(RefusedError, match=reason) as caught:
            reader.collect(handle)
        assert caught.value.kind == "not_offered"
    assert handle.split('"')[3] not in cluster.ask("squeue", "-h", "-o", "%i").split()
    assert started(tmp_path) == []


@slow
def test_a_job_that_waits_says_why_and_can_be_cancelled(cluster: Cluster, tmp_path: Path) -> None:
    runner = made("slurm", tmp_path)
    weak = cluster.target(partition="weak")
    first = runner.submit(runner.render(job(tmp_path, weak, LONG)))
    until(lambda: started(tmp_path))
    second = runner.submit(runner.render(job(tmp_path, weak, LONG)))

    def waits() -> bool:
        waiting = runner.status(second).waiting
        return waiting is not None and "(Resources)" in waiting

    until(waits)
    assert not runner.status(second).ended
    for handle in (second, first):
        runner.cancel(handle)
        runner.cancel(handle)
        ended(runner, handle)
        assert trial(runner, handle).status == "interrupted"
    assert trial(runner, second).reason == "it was cancelled before it had begun"
    assert len(started(tmp_path)) == 1


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("Resources", None),
        ("Priority", None),
        ("None", None),
        ("ReqNodeNotAvail,_UnavailableNodes:n[1-2]", None),
        ("AssocGrpCpuLimit", None),  # free again when another job of the account ends
        ("AssocGrpCPURunMinutesLimit", None),
        ("QOSMaxJobsPerUserLimit", None),
        ("AssocGrpGRESMinutes", "quota"),
        ("AssocGrpCPUMinutesLimit", "quota"),
        ("QOSGrpBillingMinutes", "quota"),
        ("AssocMaxWallDurationPerJobLimit", "quota"),
        ("QOSMaxGRESPerJob", "quota"),
        ("QOSMinGRES", "quota"),
        ("BadConstraints", "not_offered"),
        ("PartitionNodeLimit", "not_offered"),
        ("AccountNotAllowed", "permission"),
        ("InvalidQOS", "permission"),
    ],
)
def test_what_ends_by_waiting_and_what_never_does(reason: str, kind: str | None) -> None:
    assert _slurm_words.never(reason) == kind


def test_without_slurm_it_says_where_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    runner = made("slurm", tmp_path)
    with pytest.raises(RunnerError, match="has no 'sbatch'") as caught:
        runner.submit(runner.render(job(tmp_path, {"jobs": str(tmp_path / "jobs")})))
    assert "login node" in (caught.value.hint or "")


@slow
@pytest.mark.parametrize(
    ("flag", "said"), [("--no-such-flag", "unrecognized option"), ("--mem=much", "Invalid --mem")]
)
def test_a_flag_that_sbatch_does_not_know_is_named(
    flag: str, said: str, cluster: Cluster, tmp_path: Path
) -> None:
    runner = made("slurm", tmp_path)
    with pytest.raises(RunnerError, match=said) as caught:
        runner.submit(runner.render(job(tmp_path, cluster.target(flags=[flag]))))
    assert not isinstance(caught.value, RefusedError)


@pytest.mark.parametrize("handle", ["", "local", '{"slurm": "1"}', '{"slurm": 1, "folder": "x"}'])
def test_a_handle_of_something_else_is_refused(handle: str, tmp_path: Path) -> None:
    runner = made("slurm", tmp_path)
    for ask in (runner.status, runner.collect, runner.cancel):
        with pytest.raises(RunnerError, match="names no job of slurm"):
            ask(handle)
