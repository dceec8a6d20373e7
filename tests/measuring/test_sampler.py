"""Readings of the tree, the host and the accelerators, and what they cost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from underdog.measuring.nvml import Nvml
from underdog.measuring.readings import (
    PackageEnergy,
    proportional_memory,
    read_host,
    read_tree,
    thermal_throttles,
    written_files,
)
from underdog.measuring.sampler import Sampler
from underdog.units import GIB, MIB

Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[subprocess.Popen[bytes]] = []

    def run(code: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-S", "-c", textwrap.dedent(code)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        running.append(subprocess.Popen(argv, start_new_session=True, **pipes))
        return running[-1]

    yield run
    for process in running:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def said(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout
    return process.stdout.readline()


def test_a_tree_is_summed(start: Start) -> None:
    process = start("""
        import os, threading, time
        if os.fork():
            os.fork()
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        t = time.process_time()
        while time.process_time() - t < 0.2: pass
        print("ready", flush=True)
        time.sleep(60)
    """)
    for _ in range(3):
        said(process)
    tree = read_tree(process.pid)
    assert len(tree.pids) == 3
    assert tree.threads == 6
    assert 0.5 <= tree.user + tree.system < 2
    assert tree.resident == sum(tree.resident_by_pid.values()) > 3 * MIB


def test_children_that_ended_still_count(start: Start) -> None:
    process = start("""
        import os, time
        if os.fork() == 0:
            t = time.process_time()
            while time.process_time() - t < 0.3: pass
            os._exit(0)
        os.wait()
        print("ready", flush=True)
        time.sleep(60)
    """)
    said(process)
    tree = read_tree(process.pid)
    assert len(tree.pids) == 1
    assert tree.user + tree.system >= 0.25


def test_shared_memory_counts_once(start: Start) -> None:
    process = start("""
        import mmap, os, time
        shared = mmap.mmap(-1, 200 << 20)
        for i in range(0, len(shared), 4096): shared[i] = 1
        for _ in range(3):
            if os.fork() == 0:
                for i in range(0, len(shared), 4096): shared[i]
                break
        print("ready", flush=True)
        time.sleep(60)
    """)
    for _ in range(4):
        said(process)
    tree = read_tree(process.pid)
    assert tree.resident > 800 * MIB
    counted = proportional_memory(tree.pids)
    assert counted is not None
    assert 200 * MIB < counted < 300 * MIB
    sampler = Sampler(process.pid, Nvml())
    sampler.look()
    assert 200 * MIB < sampler.peak_host < 300 * MIB


def test_bytes_read_and_written_are_seen(start: Start, tmp_path: Path) -> None:
    process = start(f"""
        import time
        with open({str(tmp_path / "x")!r}, "wb", buffering=0) as f:
            for _ in range(50): f.write(bytes(1 << 20))
        with open({str(tmp_path / "x")!r}, "rb", buffering=0) as f:
            while f.read(1 << 20): pass
        print("ready", flush=True)
        time.sleep(60)
    """)
    said(process)
    tree = read_tree(process.pid)
    assert tree.read_calls is not None
    assert tree.write_calls is not None
    assert 50 * MIB <= tree.read_calls < 60 * MIB
    assert 50 * MIB <= tree.write_calls < 51 * MIB


def test_files_being_written(start: Start, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    process = start(f"""
        import sys
        root = {str(tmp_path)!r}
        read = open(__import__("sys").executable)
        a = open(root + "/checkpoint", "wb", buffering=0)
        b = open(root + "/ours/records", "wb", buffering=0)
        for line in sys.stdin:
            a.write(bytes(100000)); b.write(bytes(100000))
            print("ready", flush=True)
    """)
    assert process.stdin
    sizes = []
    for _ in range(2):
        process.stdin.write(b"\n")
        process.stdin.flush()
        said(process)
        sizes.append(written_files([process.pid], str(tmp_path / "ours")))
    info = (tmp_path / "checkpoint").stat()
    key = (info.st_dev, info.st_ino)
    assert sizes == [{key: 100000}, {key: 200000}]


def test_gone_processes_are_no_trouble() -> None:
    tree = read_tree(2**22 + 1)
    assert tree.pids == []
    assert tree.read is None
    assert proportional_memory([2**22 + 1]) == 0
    assert written_files([2**22 + 1], "/") == {}


def test_the_host_is_read() -> None:
    host = read_host()
    assert host.busy is not None
    assert host.busy > 0
    assert host.steal is not None
    assert host.running is not None
    assert host.running >= 1


def test_energy_wraps_around(tmp_path: Path) -> None:
    zone = tmp_path / "intel-rapl:0"
    for folder, value in ((zone, "900000"), (tmp_path / "intel-rapl:0:0", "5")):
        folder.mkdir()
        (folder / "energy_uj").write_text(value)
        (folder / "max_energy_range_uj").write_text("1000000")
    energy = PackageEnergy(tmp_path)
    assert energy.read() == 0
    (zone / "energy_uj").write_text("100000")
    assert energy.read() == pytest.approx(0.2)
    assert PackageEnergy(tmp_path / "none").read() is None


def test_thermal_throttles_are_summed(tmp_path: Path) -> None:
    assert thermal_throttles(tmp_path) is None
    for cpu, count in ((0, 3), (1, 4)):
        folder = tmp_path / f"cpu{cpu}" / "thermal_throttle"
        folder.mkdir(parents=True)
        (folder / "core_throttle_count").write_text(str(count))
    assert thermal_throttles(tmp_path) == 7


def test_usage_of_a_span(start: Start) -> None:
    process = start("""
        import time
        print("ready", flush=True)
        while True: pass
    """)
    said(process)
    sampler = Sampler(process.pid, Nvml(), interval=0.2)
    sampler.start()
    began = time.perf_counter()
    time.sleep(1.5)
    sampler.stop()
    usage = sampler.usage(began, time.perf_counter())
    assert usage["cores"] is not None
    assert 0.2 < usage["cores"] <= 1.15
    assert usage["processes"] == 0
    assert usage["quota_throttled_share"] in (0, None)
    assert usage["cpu_power_w"] is None or usage["cpu_power_w"] > 0
    assert sampler.usage(began - 10, began - 5) == {}


@pytest.mark.slow
def test_sampling_hundreds_of_processes_stays_cheap(start: Start) -> None:
    process = start("""
        import os, time
        for _ in range(300):
            if os.fork() == 0:
                time.sleep(60); os._exit(0)
        print("ready", flush=True)
        time.sleep(60)
    """)
    said(process)
    sampler = Sampler(process.pid, Nvml())
    sampler.start()
    wait_until = time.perf_counter() + 30
    while not sampler.samples and time.perf_counter() < wait_until:
        time.sleep(0.05)
    # the first look is paid in full; from its cost the rhythm of the others follows
    with sampler._lock:  # which a look holds until all of it is counted
        began, first = time.perf_counter(), sampler.cost_seconds
    time.sleep(8)
    sampler.stop()
    share = (sampler.cost_seconds - first) / (time.perf_counter() - began)
    assert share < 0.02, f"{100 * share:.2f} % of a core"


class Library:
    """NVML as nvidia-ml-py shows it, of a machine with two devices, one of them busy."""

    def __init__(self) -> None:
        self.energy = 1_000_000
        self.used = {0: 10 * GIB, 1: GIB}

    def nvmlInit(self) -> None: ...  # noqa: N802

    def nvmlShutdown(self) -> None: ...  # noqa: N802

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802
        return index

    def nvmlDeviceGetName(self, handle: int) -> bytes:  # noqa: N802
        return b"NVIDIA L4"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(total=24 * GIB, used=self.used[handle])

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:  # noqa: N802
        return SimpleNamespace(gpu=0 if handle else 80, memory=0 if handle else 30)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:  # noqa: N802
        raise RuntimeError("Not Supported")

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: int) -> int:  # noqa: N802
        self.energy += 0 if handle else 10_000
        return self.energy

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: int) -> int:  # noqa: N802
        return 0x40


def test_devices_as_the_driver_tells_them() -> None:
    nvml = Nvml(Library())
    assert len(nvml) == 2
    first, second = nvml.accelerators()
    assert (first.name, first.memory_gib, first.index) == ("NVIDIA L4", 24, 0)
    assert first.power_limit_w is None
    assert second.index == 1
    busy, idle = nvml.read({1})
    assert (busy.utilization, idle.utilization) == (0.8, 0.0)
    assert busy.power_w is None
    assert busy.thermal is True
    assert busy.power_capped is False


def test_memory_of_before_is_not_ours() -> None:
    library = Library()
    sampler = Sampler(os.getpid(), Nvml(library), interval=0.1)
    sampler.start()
    library.used[0] += 3 * GIB
    began = time.perf_counter()
    for _ in range(3):  # the thread's own rhythm is slower where a look is dear
        time.sleep(0.1)
        sampler.look()
    sampler.stop()
    assert sampler.peak_devices == {0: 3 * GIB, 1: 0}
    usage = sampler.usage(began, time.perf_counter())
    assert usage["accelerators_busy"] == 1
    assert usage["accelerator_utilization"] == pytest.approx(0.8)
    assert usage["accelerator_thermal_share"] == 1
    assert usage["accelerator_power_w"] is not None


def test_without_a_driver_there_is_no_device() -> None:
    class Broken:
        def nvmlInit(self) -> None:  # noqa: N802
            raise RuntimeError("Driver Not Loaded")

    assert len(Nvml(Broken())) == 0
    assert Nvml(Broken()).accelerators() == []
