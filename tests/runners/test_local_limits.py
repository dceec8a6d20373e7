"""Parts of this machine: what a job may use of it, and what its trial says of that."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from underdog import runners
from underdog.errors import RefusedError, UsageError
from underdog.model import Offer, Price, Trial
from underdog.runners import Job, Runner, Setup, _launch
from underdog.runners.local import Target, _ranges

STEPS = """
import time
for _ in range(60):
    time.sleep(0.01)
    print("samples=8", flush=True)
"""
HUNGRY = "held = bytearray(200 << 20)\nheld[::4096] = b'x' * len(held[::4096])" + STEPS
SEEN = """import os
names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
print("SEEN", sorted(os.sched_getaffinity(0)), *(os.environ.get(n) for n in names), flush=True)
"""
OFFER = Offer(
    provider="local", region="here", instance_type="part", price=Price(per_hour=1.0, source="me")
)
ALLOWED = sorted(os.sched_getaffinity(0))


def job(folder: Path, script: str = STEPS, **target: Any) -> Job:
    path = folder / "train.py"
    path.write_text(script)
    return Job(
        workload="w",
        candidate="part",
        offer=OFFER,
        command=(sys.executable, str(path)),
        seconds=20.0,
        pattern=r"samples=(?P<samples>\d+)",
        target=target,
    )


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    folder = tmp_path / "jobs"
    folder.mkdir()
    return runners.make("local", Setup(folder=folder))


def carried(runner: Runner, made: Job) -> tuple[Trial, str]:
    """The trial, and what the script and underdog wrote."""
    path = runner.collect(runner.submit(runner.render(made)))
    return msgspec.json.decode(path.read_bytes(), type=Trial), (path.parent / "log.txt").read_text()


@pytest.mark.slow
def test_a_job_has_its_part_and_its_trial_says_so(runner: Runner, tmp_path: Path) -> None:
    limits = {"cpus": 1, "threads": 3, "memory_gib": 0.5, "accelerators": []}
    made = job(tmp_path, SEEN + HUNGRY, **limits)
    trial, said = carried(runner, made)
    assert trial.status == "ok", trial.reason
    seen = re.search(r"SEEN \[(\d+)\] 3 3 $", said, re.MULTILINE)
    assert seen is not None, said
    assert int(seen[1]) in ALLOWED
    assert trial.machine.vcpus == 1
    assert trial.machine.memory_gib == 0.5
    assert trial.machine.accelerators == []


@pytest.mark.slow
def test_a_job_that_holds_more_memory_than_it_may_is_out_of_memory(
    runner: Runner, tmp_path: Path
) -> None:
    lasting = HUNGRY.replace("range(60)", "range(1500)")  # until the next look, however late
    trial, _ = carried(runner, job(tmp_path, lasting, memory_gib=0.125))
    assert trial.status == "out_of_memory"
    assert trial.reason is not None
    assert "may have 0.125 GiB" in trial.reason


def test_what_processes_share_counts_once() -> None:
    # a parent with 64 MiB whose three children see the same pages
    script = """import os, sys
held = bytearray(64 << 20)
held[::4096] = b"x" * len(held[::4096])
import signal
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        signal.pause()
    children.append(pid)
print("ready", *children, flush=True)
sys.stdin.read()
for pid in children:
    os.kill(pid, signal.SIGKILL)
"""
    piped = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", script], **piped) as process:  # type: ignore[call-overload]
        pids = [process.pid, *map(int, process.stdout.readline().split()[1:])]
        quick = sum(_launch.held(pids, 1 << 40).values())
        exact = sum(_launch.held(pids, 1 << 20).values())
        process.stdin.close()
    assert quick > 4 * (64 << 20)
    assert 64 << 20 <= exact < 2 * (64 << 20)


def test_a_count_of_processors_is_free_ones_or_refused(runner: Runner, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="this process may use") as refused:
        runner.submit(runner.render(job(tmp_path, cpus=len(ALLOWED) + 1)))
    assert refused.value.kind == "not_offered"
    forever = "import time\nwhile True:\n    time.sleep(1)\n    print(flush=True)"
    held = [runner.submit(runner.render(job(tmp_path, forever, cpus=1))) for _ in ALLOWED]
    taken = [runner._running[handle].cpus for handle in held]  # type: ignore[attr-defined]
    assert sorted(n for cpus in taken for n in cpus) == ALLOWED
    with pytest.raises(RefusedError, match="other jobs hold") as busy:
        runner.submit(runner.render(job(tmp_path, cpus=1)))
    assert busy.value.kind == "no_capacity"
    for handle in held:
        runner.cancel(handle)
        runner.collect(handle)
    runner.cancel(again := runner.submit(runner.render(job(tmp_path, cpus=len(ALLOWED)))))
    runner.collect(again)


def test_processors_by_number_are_those_or_refused(runner: Runner, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="may not use processor 9999"):
        runner.submit(runner.render(job(tmp_path, cpus=[ALLOWED[0], 9999])))
    both = [runner.submit(runner.render(job(tmp_path, cpus=[ALLOWED[-1]]))) for _ in range(2)]
    for handle in both:
        assert runner._running[handle].cpus == {ALLOWED[-1]}  # type: ignore[attr-defined]
        runner.cancel(handle)
        runner.collect(handle)


def test_an_accelerator_that_there_is_not_is_refused(runner: Runner, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="there is no 99 here"):
        runner.submit(runner.render(job(tmp_path, accelerators=[99])))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"cpu": 1}, "unknown field `cpu`"),
        ({"cpus": 0}, ">= 1"),
        ({"cpus": []}, "length >= 1"),
        ({"memory_gib": 0.0}, "> 0"),
        ({"accelerators": [-1]}, ">= 0"),
        ({"threads": "two"}, "Expected `int"),
    ],
)
def test_a_part_that_cannot_be_is_said_before_anything_runs(
    target: dict[str, Any], said: str, runner: Runner, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as told:
        runner.render(job(tmp_path, **target))
    assert said in str(told.value)
    assert "targets.md" in (told.value.hint or "")


def test_a_dry_run_says_the_part(runner: Runner, tmp_path: Path) -> None:
    assert runner.render(job(tmp_path, cpus=2, threads=1)).lines[1] == "within cpus=2 threads=1"
    assert len(runner.render(job(tmp_path)).lines) == 1
    assert msgspec.convert({}, Target) == Target()


def test_ranges_are_the_kernels() -> None:
    assert _ranges({0, 1, 2, 5, 7, 8}) == "0-2,5,7-8"


@pytest.mark.skipif(sys.platform != "linux", reason="prctl is Linux's")
def test_the_watch_ends_with_its_job() -> None:
    limits = '{"bytes": 1000000000, "note": "/nonexistent"}'
    command = [sys.executable, "-I", "-S", _launch.__file__, limits, "/bin/sleep", "60"]
    with subprocess.Popen(command) as process:
        deadline = time.monotonic() + 20
        while not (watches := psutil.Process(process.pid).children()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(watches, timeout=20)
    assert alive == []
