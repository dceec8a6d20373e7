"""The recorder writes what it is told, in order, and never harms the program."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest
from observed import read

from underdog.probe.recorder import Recorder, is_out_of_memory


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jsonl"))


def test_steps_and_records_in_order(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    recorder.process("torch", "2.0")
    recorder.begin(10.0)
    recorder.step(11.0, 32, (0.1, 0, 0.2, 0.3, 0.1, 0))
    recorder.pause("evaluation", 11.0, 11.5)
    recorder.step(12.0, skipped=True)
    recorder.end()
    (file,) = files(tmp_path)
    kinds = [v[0:3] if isinstance(v, list) else v["kind"] for v in map(json.loads, file.open())]
    assert kinds == ["process", [10.0, 11.0, 32], "pause", [11.0, 12.0, -1], "end"]
    assert read(file).steps[0][3:] == [0.1, 0, 0.2, 0.3, 0.1, 0, 0]
    assert read(file).steps[1][9] == 1


def test_samples_per_step_overrides(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path), samples_per_step=7)
    recorder.step(1.0, 32)
    recorder.end()
    assert [s[2] for s in read(files(tmp_path)[0]).steps] == [7]


def test_it_is_flushed_while_it_runs(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    import time

    now = time.perf_counter()
    recorder.step(now + 0.1, 1)
    assert files(tmp_path) == []
    recorder.step(now + 0.3, 1)
    assert len(read(files(tmp_path)[0]).steps) == 2


def test_a_note_is_said_once(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    recorder.note("code", "message", "remedy")
    recorder.note("code", "message", "remedy")
    recorder.end()
    assert len(read(files(tmp_path)[0]).of("note")) == 1


def test_what_is_no_number_is_not_written(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    recorder.write("profile", flops_per_sample=float("nan"))
    recorder.end()
    assert read(files(tmp_path)[0]).of("profile") == []


@pytest.mark.parametrize("folder", ["missing", "/dev/full/x", ""])
def test_a_folder_that_is_gone_is_said_once(
    folder: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recorder = Recorder(str(tmp_path / folder / "gone"))
    for end in range(3):
        recorder.step(1e9 + end, 1)
    recorder.end()
    assert capfd.readouterr().err.count("the run goes on unmeasured") == 1


def test_a_full_disk_is_said_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recorder = Recorder(str(tmp_path))
    recorder.process("torch", "2")
    descriptor = os.open("/dev/full", os.O_WRONLY)
    os.dup2(descriptor, recorder._descriptor or -1)
    os.close(descriptor)
    for end in range(3):
        recorder.step(1e9 + end, 1)
    assert "No space left" in capfd.readouterr().err


def test_a_listener_that_fails_is_taken_out(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path))
    calls: list[int] = []

    def listener(index: int, start: float, end: float, samples: float | None) -> None:
        calls.append(index)
        raise ValueError("broken")

    recorder.after_step(listener)
    recorder.step(1.0)
    recorder.step(2.0)
    recorder.end()
    assert calls == [0]
    assert read(files(tmp_path)[0]).notes == {"probe_error"}


def test_a_worker_leaves_no_file_until_it_steps(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path), worker=True)
    recorder.process("torch", "2")
    recorder.flush()
    assert files(tmp_path) == []
    recorder.step(1e9, 1)
    assert read(files(tmp_path)[0]).about["framework"] == "torch"


FORKS = """
import multiprocessing, os, sys
from underdog.probe.recorder import Recorder
recorder = Recorder(sys.argv[1])
os.register_at_fork(after_in_child=recorder.after_fork)
recorder.process("torch", "2")
recorder.step(1.0, 1)

def child(steps):
    for end in range(steps):
        recorder.step(2.0 + end, 5)

fork = multiprocessing.get_context("fork")
for steps in (0, 3):
    process = fork.Process(target=child, args=(steps,))
    process.start()
    process.join()
recorder.step(3.0, 1)
recorder.end()
"""


def test_a_forked_child_has_a_file_of_its_own_once_it_steps(tmp_path: Path) -> None:
    assert "fork" in multiprocessing.get_all_start_methods()
    subprocess.run([sys.executable, "-c", FORKS, str(tmp_path)], check=True)
    found = {read(f).about["pid"]: [s[2] for s in read(f).steps] for f in files(tmp_path)}
    assert sorted(found.values()) == [[1, 1], [5, 5, 5]]


def test_an_exception_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "last_value", MemoryError("no more"), raising=False)
    recorder = Recorder(str(tmp_path))
    recorder.end()
    (error,) = read(files(tmp_path)[0]).of("error")
    assert error["out_of_memory"] is True


def test_out_of_memory_is_recognised() -> None:
    assert is_out_of_memory(MemoryError())
    assert is_out_of_memory(RuntimeError("CUDA error: out of memory"))
    assert is_out_of_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory"))
    assert not is_out_of_memory(ValueError("memory"))
