"""Jobs for engines of other machines: scripts that print their rate, and what came back."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
import psutil
import pytest

from underdog import runners
from underdog.model import Estimate, Offer, Price, Trial
from underdog.runners import Handle, Job, Runner, Setup, State
from underdog.testing.runner import CANCELLED, RunnerChecks

# it says where it runs, each time that it is started, and then a sample every 5 ms
SCRIPT = """
import os, sys, time
with open(sys.argv[1], "a") as starts:
    starts.write(f"{os.getpid()}\\n")
for step in range(int(sys.argv[2])):
    time.sleep(0.005)
    print("samples=8", flush=True)
"""
# the same, and ends when a file appears
WAITING = """
import os, sys, time
with open(sys.argv[1], "a") as starts:
    starts.write(f"{os.getpid()}\\n")
for step in range(100):
    print("samples=8", flush=True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.02)
"""
SHORT, LONG = 120, 1_000_000  # steps
OFFER = Offer(
    provider="mine", region="here", instance_type="box", price=Price(per_hour=1.0, source="me")
)


def job(at: Path, target: Mapping[str, object], steps: int = SHORT, **more: object) -> Job:
    """A job whose script appends its process to ``starts`` in ``at``, each time it begins."""
    script = at / "train.py"
    script.write_text(SCRIPT)
    given: dict[str, object] = {
        "workload": "tiny",
        "candidate": "box",
        "offer": OFFER,
        "command": (sys.executable, str(script), str(at / "starts"), str(steps)),
        "price": 1.0,
        "seconds": 60.0,
        "precision": 1e-9,  # on a quiet machine 2 % is soon reached, and that would end it
        "pattern": r"samples=(?P<samples>\d+)",
        "target": {"python": sys.executable, **target},
    }
    return Job(**(given | more))  # type: ignore[arg-type]


def waiting_job(at: Path, target: Mapping[str, object], end: Path) -> Job:
    """A job whose script ends when ``end`` exists."""
    script = at / "wait.py"
    script.write_text(WAITING)
    words = (sys.executable, str(script), str(at / "starts"), str(end))
    return job(at, target, command=words)


def made(name: str, folder: Path) -> Runner:
    """A runner with a folder of its own, as another process would have."""
    own = folder / f"own-{uuid.uuid4().hex}"
    own.mkdir()
    return runners.make(name, Setup(folder=own))


def keeps(check: str, name: str, folder: Path, target: Mapping[str, object]) -> None:
    """Run one check of the conformance suite against a runner."""
    steps = LONG if check in CANCELLED else SHORT
    getattr(RunnerChecks(lambda: made(name, folder), job(folder, target, steps)), check)()


def until(condition: Callable[[], object], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to it"
        time.sleep(0.05)


def measuring(runner: Runner, handle: Handle) -> None:
    """Wait until the script has shown a rate."""

    def rate(state: State) -> bool:
        return state.look is not None and state.look.rate is not None

    until(lambda: rate(runner.status(handle)))


def ended(runner: Runner, handle: Handle) -> None:
    until(lambda: runner.status(handle).ended)


def trial(runner: Runner, handle: Handle) -> Trial:
    return msgspec.json.decode(runner.collect(handle).read_bytes(), type=Trial)


def started(folder: Path) -> list[int]:
    """The processes of the script, in the order in which they were started."""
    path = folder / "starts"
    return [int(line) for line in path.read_text().splitlines()] if path.exists() else []


def alive(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def same_rate(name: str, folder: Path, target: Mapping[str, object]) -> None:
    """A runner measures what ``local`` measures at the same time: their intervals meet.

    Where other programs disturb one of the two and not the other, it is tried again.
    """
    for _ in range(3):
        there, here = _rates(name, folder, target)
        if there.low <= here.high and here.low <= there.high:
            return
    raise AssertionError(f"{name} measures {there}, and local {here}")


def _rates(name: str, folder: Path, target: Mapping[str, object]) -> list[Estimate]:
    both = [(made(name, folder), target), (made("local", folder), {})]
    jobs = [job(folder, given, LONG, seconds=6.0, precision=0.001) for _, given in both]
    jobs[1] = dataclasses.replace(jobs[1], target={})
    handles = [runner.submit(runner.render(j)) for (runner, _), j in zip(both, jobs, strict=True)]
    found: list[Estimate] = []
    for (runner, _), handle in zip(both, handles, strict=True):
        ended(runner, handle)
        measured = trial(runner, handle).measurement
        assert measured is not None
        assert measured.samples_per_second is not None
        found.append(measured.samples_per_second)
    return found


_SUBMITTING = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from carried_jobs import LONG, job, made
name, at, target, trial = sys.argv[2], Path(sys.argv[3]), eval(sys.argv[4]), sys.argv[5]
runner = made(name, at)
print(runner.submit(runner.render(job(at, target, LONG, id=trial))), flush=True)
time.sleep(60)
"""


def handle_of_a_killed_process(
    name: str, folder: Path, target: Mapping[str, object], trial_id: str
) -> Handle:
    """Submit a job that has no end from a process that is killed right after."""
    here = str(Path(__file__).parent)
    words = [sys.executable, "-c", _SUBMITTING, here, name, str(folder), repr(target), trial_id]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        handle = process.stdout.readline().strip()
        process.kill()
    assert handle
    return handle


@contextlib.contextmanager
def full_disk(folder: Path) -> Iterator[Path]:
    """A file system of 4 MB; whoever uses it fills it with ``fill``."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False).returncode:
        pytest.skip("a small file system can be mounted by root only")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Leave no byte in it."""
    with (folder / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
