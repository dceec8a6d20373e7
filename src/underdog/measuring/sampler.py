"""A thread that looks at the process tree, the host and the accelerators while a script runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from underdog.measuring.cgroup import Cgroup
from underdog.measuring.nvml import DeviceReading, Nvml
from underdog.measuring.readings import (
    HostReading,
    PackageEnergy,
    TreeReading,
    proportional_memory,
    read_host,
    read_tree,
    thermal_throttles,
)
from underdog.units import GIB

COST_LIMIT = 0.008  # of one core: what sampling may take
SHARED_COST_LIMIT = 0.002  # of one core: what counting shared memory may take
LONGEST_INTERVAL = 30.0
KEPT = 4096  # samples kept; a longer run keeps every second, then every fourth, …


@dataclass(frozen=True, slots=True)
class Sample:
    """One look at everything; ``time`` is that of ``time.perf_counter()``."""

    time: float
    tree: TreeReading
    host: HostReading
    devices: list[DeviceReading] = field(default_factory=list)
    throttled: float | None = None
    joules: float | None = None


class Sampler:
    """Samples from ``start()`` to ``stop()``.

    Args:
        root: the process whose tree is watched.
        nvml: the accelerators, opened.
        interval: seconds between two looks; it grows where a look is dear.
    """

    def __init__(self, root: int, nvml: Nvml, interval: float = 1.0) -> None:
        self.samples: list[Sample] = []
        self.peak_host: int = 0  # bytes of the tree, shared pages counted once where possible
        self.peak_devices: dict[int, int] = {}  # bytes of our processes per accelerator
        self._root = root
        self._nvml = nvml
        self._base_interval = interval
        self._interval = interval
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="underdog-sampler", daemon=True)
        self._lock = threading.Lock()
        self._cgroup = Cgroup()
        self._energy = PackageEnergy()
        self._thermal_before = thermal_throttles()
        self._kills_before = self._cgroup.memory_kills()
        self._device_before: dict[int, int] = {}
        self._shared_share = 1.0  # proportional memory over resident memory, when last counted
        self._shared_due = 0.0
        self.cost_seconds = 0.0

    def start(self) -> None:
        """Begin; what the accelerators hold already is not counted as ours."""
        for device in self._nvml.read(set()):
            self._device_before[device.index] = device.memory_used or 0
        self._thread.start()

    def stop(self) -> None:
        """End; the samples stay."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(10)

    def look(self) -> Sample:
        """Take one sample now, also outside the thread's rhythm."""
        with self._lock:
            began = time.thread_time()
            tree = read_tree(self._root)
            devices = self._nvml.read(set(tree.pids)) if len(self._nvml) else []
            sample = Sample(
                time=time.perf_counter(),
                tree=tree,
                host=read_host(),
                devices=devices,
                throttled=self._cgroup.throttled_seconds(),
                joules=self._energy.read(),
            )
            self.samples.append(sample)
            if len(self.samples) > KEPT:
                del self.samples[1::2]
                self._base_interval *= 2
            cost = time.thread_time() - began
            self.cost_seconds += cost
            self._interval = max(self._base_interval, min(cost / COST_LIMIT, LONGEST_INTERVAL))
            self._note_peaks(sample)
            return sample

    def _note_peaks(self, sample: Sample) -> None:
        tree = sample.tree
        if len(tree.pids) > 2 and tree.resident and sample.time >= self._shared_due:
            began = time.thread_time()
            counted = proportional_memory(tree.pids)
            cost = time.thread_time() - began
            self.cost_seconds += cost
            self._shared_due = sample.time + cost / SHARED_COST_LIMIT
            if counted is not None:
                self._shared_share = min(1.0, counted / tree.resident)
        self.peak_host = max(self.peak_host, int(tree.resident * self._shared_share))
        for device in sample.devices:
            used = self.device_bytes(device)
            if used is not None:
                self.peak_devices[device.index] = max(self.peak_devices.get(device.index, 0), used)

    def _run(self) -> None:
        while True:
            self.look()
            if self._stop.wait(self._interval):
                return

    def memory_kills(self) -> int:
        """Processes that the kernel killed for memory since the sampler was made."""
        return self._cgroup.memory_kills() - self._kills_before

    def thermal_events(self) -> int | None:
        """How often a processor was slowed down for heat since the sampler was made."""
        now = thermal_throttles()
        before = self._thermal_before
        return None if now is None or before is None else max(0, now - before)

    def usage(self, start: float, end: float) -> dict[str, float | None]:
        """Means over the samples of a span of time; see ``docs/reference/usage.md``."""
        found = self.means(start, end)
        if found:
            events = self.thermal_events()
            found["cpu_thermal_throttles"] = None if events is None else float(events)
        return found

    def means(self, start: float, end: float, most: int = KEPT) -> dict[str, float | None]:
        """What a look at the samples alone tells of a span, of at most so many of them."""
        inside = [s for s in self.samples if start <= s.time <= end]
        if len(inside) < 2:  # a span shorter than our rhythm: the samples around it
            before = [s for s in self.samples if s.time < start][-1:]
            after = [s for s in self.samples if s.time > end][:1]
            inside = before + inside + after
        if len(inside) < 2:
            return {}
        inside = spread(inside, most)
        first, last = inside[0], inside[-1]
        found = tree_usage(first, last) | host_usage(inside)
        found["threads"] = mean(s.tree.threads for s in inside)
        found["processes"] = mean(len(s.tree.pids) - 1 for s in inside)  # the guard is ours
        found["memory_gib"] = mean(self.memory_gib(s) for s in inside)
        if len(self._nvml):
            found |= device_usage(inside)
        return found

    def memory_gib(self, sample: Sample) -> float:
        """Memory of the tree, GiB, shared pages counted once where the kernel tells."""
        return sample.tree.resident * self._shared_share / GIB

    def device_bytes(self, device: DeviceReading) -> int | None:
        """What our processes hold of a device."""
        if device.process_memory is not None or device.memory_used is None:
            return device.process_memory
        # in a container the driver tells process numbers of another world
        return max(0, device.memory_used - self._device_before.get(device.index, 0))


def spread(samples: list[Sample], most: int) -> list[Sample]:
    """At most so many of the samples, evenly, the first and the last among them."""
    if len(samples) <= most:
        return samples
    return [samples[round(i * (len(samples) - 1) / (most - 1))] for i in range(most)]


def tree_usage(first: Sample, last: Sample) -> dict[str, float | None]:
    """Rates of the process tree between two samples; ``cores`` is CPU seconds per second."""
    seconds = last.time - first.time

    def rate(get: Callable[[Sample], float | None]) -> float | None:
        a, b = get(first), get(last)
        return None if a is None or b is None or b < a else (b - a) / seconds

    return {
        "cores": rate(lambda s: s.tree.user + s.tree.system),
        "cores_user": rate(lambda s: s.tree.user),
        "cores_system": rate(lambda s: s.tree.system),
        "disk_read_bytes_per_second": rate(lambda s: s.tree.read),
        "disk_write_bytes_per_second": rate(lambda s: s.tree.written),
        "read_bytes_per_second": rate(lambda s: s.tree.read_calls),
        "write_bytes_per_second": rate(lambda s: s.tree.write_calls),
        "network_receive_bytes_per_second": rate(lambda s: s.host.received),
        "network_send_bytes_per_second": rate(lambda s: s.host.sent),
        "quota_throttled_share": rate(lambda s: s.throttled),
        "cpu_power_w": rate(lambda s: s.joules),
        "steal_cores": rate(lambda s: s.host.steal),
        "io_wait_cores": rate(lambda s: s.host.io_wait),
        "host_cores": rate(lambda s: s.host.busy),
    }


def host_usage(samples: list[Sample]) -> dict[str, float | None]:
    """What others did on the machine meanwhile."""
    first, last = samples[0], samples[-1]
    rates = tree_usage(first, last)
    busy, ours = rates["host_cores"], rates["cores"]
    return {
        "other_load_cores": None if busy is None or ours is None else max(0.0, busy - ours),
        "run_queue": mean(s.host.running for s in samples),
        "cpu_ghz": scaled(mean(s.host.mhz for s in samples), 1e-3),
    }


def device_usage(samples: list[Sample]) -> dict[str, float | None]:
    """Means over time and over the accelerators that were busy; sums for power."""
    rows = list(by_device(samples).values())
    busy = [row for row in rows if is_busy(row)] or rows
    flat = [device for row in busy for device in row]
    joules = [
        last.joules - row[0].joules
        for row in busy
        if (last := row[-1]).joules is not None and row[0].joules is not None
    ]
    seconds = samples[-1].time - samples[0].time
    power = [mean(d.power_w for d in row) for row in busy]
    known_power = [p for p in power if p is not None]
    return {
        "accelerators_busy": float(sum(is_busy(row) for row in rows)),
        "accelerator_utilization": mean(d.utilization for d in flat),
        "accelerator_memory_activity": mean(d.memory_activity for d in flat),
        "accelerator_clock_mhz": mean(d.clock_mhz for d in flat),
        "accelerator_power_w": (
            sum(joules) / seconds if joules else sum(known_power) if known_power else None
        ),
        "accelerator_thermal_share": mean(as_number(d.thermal) for d in flat),
        "accelerator_power_capped_share": mean(as_number(d.power_capped) for d in flat),
    }


def by_device(samples: list[Sample]) -> dict[int, list[DeviceReading]]:
    """The readings of each device, by its index."""
    found: dict[int, list[DeviceReading]] = {}
    for sample in samples:
        for device in sample.devices:
            found.setdefault(device.index, []).append(device)
    return found


def is_busy(readings: list[DeviceReading]) -> bool:
    """Whether a device worked for more than one percent of the time."""
    return (mean(device.utilization for device in readings) or 0) > 0.01


def mean(values: Iterable[float | None]) -> float | None:
    """The mean of what is known, None where nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def scaled(value: float | None, factor: float) -> float | None:
    """A number in another unit, or None."""
    return None if value is None else value * factor


def as_number(flag: bool | None) -> float | None:
    """0 or 1, or None."""
    return None if flag is None else float(flag)
