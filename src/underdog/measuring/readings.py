"""One look at the process tree and at the host, cheap enough to be taken every second.

Linux only: elsewhere the readings are empty, and everything that rests on them is unknown. The
meaning of the files is told in proc(5).
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from underdog.measuring.cgroup import read_int

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
CLOCKS_READ = 4  # processors whose clock is read; the rest run alike


@dataclass(frozen=True, slots=True)
class TreeReading:
    """Sums over the live processes below a root. Seconds and bytes since each process began,
    its ended and awaited children included."""

    pids: list[int] = field(default_factory=list)
    threads: int = 0
    user: float = 0.0
    system: float = 0.0
    resident: int = 0
    resident_by_pid: dict[int, int] = field(default_factory=dict)
    read: int | None = None  # from storage
    written: int | None = None  # to storage
    read_calls: int | None = None  # bytes that passed through read(), cached or not
    write_calls: int | None = None


def read_tree(root: int) -> TreeReading:
    """The tree below ``root``, ``root`` itself included."""
    stats: dict[int, list[bytes]] = {}
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
                stats[int(name)] = fields
                children.setdefault(int(fields[1]), []).append(int(name))
    pids = []
    queue = [root]
    while queue:
        pid = queue.pop()
        if pid in stats:
            pids.append(pid)
        queue.extend(children.get(pid, ()))
    rows = [stats[pid] for pid in pids]
    resident = {pid: int(stats[pid][21]) * PAGE for pid in pids}
    return TreeReading(
        pids=pids,
        threads=sum(int(row[17]) for row in rows),
        user=sum(int(row[11]) + int(row[13]) for row in rows) / TICK,
        system=sum(int(row[12]) + int(row[14]) for row in rows) / TICK,
        resident=sum(resident.values()),
        resident_by_pid=resident,
        **read_io(pids),
    )


def read_io(pids: list[int]) -> dict[str, int]:
    """Bytes read and written by some processes; what may not be looked at is left out."""
    totals: dict[str, int] = {}
    names = {b"rchar:": "read_calls", b"wchar:": "write_calls"}
    names |= {b"read_bytes:": "read", b"write_bytes:": "written"}
    for pid in pids:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/io", "rb") as file:
            words = file.read().split()
            for key, value in zip(words[::2], words[1::2], strict=False):
                if key in names:
                    totals[names[key]] = totals.get(names[key], 0) + int(value)
    return totals


def proportional_memory(pids: list[int]) -> int | None:
    """Bytes of memory of some processes with shared pages counted once; None where hidden."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
                for line in file:
                    if line.startswith(b"Pss:"):
                        total += int(line.split()[1]) * 1024
                        break
        except FileNotFoundError:
            continue  # it ended
        except OSError:
            return None
    return total


def written_files(pids: list[int], ours: str) -> dict[tuple[int, int], int]:
    """Sizes of the files that some processes have open for writing, by device and inode.

    Their standard streams are left out, and what lies in the folder ``ours``.
    """
    found = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for fd in set(os.listdir(f"/proc/{pid}/fd")) - {"0", "1", "2"}:
                with contextlib.suppress(OSError, IndexError, ValueError):
                    link = f"/proc/{pid}/fd/{fd}"
                    path = os.readlink(link)
                    if not path.startswith("/") or path.startswith(ours):
                        continue
                    with open(f"/proc/{pid}/fdinfo/{fd}", "rb") as file:
                        flags = int(file.read().split(b"flags:", 1)[1].split()[0], 8)
                    if flags & os.O_ACCMODE:
                        info = os.stat(link)
                        found[info.st_dev, info.st_ino] = info.st_size
    return found


@dataclass(frozen=True, slots=True)
class HostReading:
    """Counters of the whole machine; seconds are summed over its processors."""

    busy: float | None = None
    steal: float | None = None
    io_wait: float | None = None
    running: int | None = None  # threads that run or want to
    received: int | None = None  # bytes, loopback left out
    sent: int | None = None
    mhz: float | None = None


def read_host() -> HostReading:
    """The host's counters now; those that cannot be read are None."""
    busy = steal = io_wait = running = None
    with contextlib.suppress(OSError, ValueError), open("/proc/stat", "rb") as file:
        for line in file:
            if line.startswith(b"cpu "):
                user, nice, system, _, wait, irq, soft, stolen = map(int, line.split()[1:9])
                busy = (user + nice + system + irq + soft) / TICK
                steal, io_wait = stolen / TICK, wait / TICK
            elif line.startswith(b"procs_running"):
                running = int(line.split()[1])
    received, sent = read_network()
    return HostReading(busy, steal, io_wait, running, received, sent, read_clock())


def read_network() -> tuple[int | None, int | None]:
    """Bytes that came in and went out by all interfaces but loopback."""
    received = sent = 0
    try:
        with open("/proc/net/dev") as file:
            for line in file.readlines()[2:]:
                name, _, numbers = line.partition(":")
                if name.strip() != "lo":
                    received += int(numbers.split()[0])
                    sent += int(numbers.split()[8])
    except (OSError, ValueError, IndexError):
        return None, None
    return received, sent


def read_clock() -> float | None:
    """The mean clock of the first processors in MHz, None where it is not told."""
    values = []
    for index in range(CLOCKS_READ):
        folder = Path(f"/sys/devices/system/cpu/cpu{index}/cpufreq")
        value = read_int(folder / "scaling_cur_freq")
        if value is None:
            break
        values.append(value / 1000)
    return sum(values) / len(values) if values else None


def thermal_throttles(root: Path = Path("/sys/devices/system/cpu")) -> int | None:
    """How often any processor was slowed down for heat, ever; None where it is not told."""
    counts = [read_int(file) for file in root.glob("cpu*/thermal_throttle/core_throttle_count")]
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


class PackageEnergy:
    """Joules of the processor packages and memory since it was made (RAPL)."""

    def __init__(self, root: Path = Path("/sys/class/powercap")) -> None:
        self._last: dict[Path, int] = {}
        self._range: dict[Path, int] = {}
        self.joules: float | None = None
        for zone in sorted(root.glob("intel-rapl:*")):
            if zone.name.count(":") == 1:  # sub-zones are part of their package
                energy = read_int(zone / "energy_uj")
                if energy is not None:
                    self._last[zone] = energy
                    self._range[zone] = read_int(zone / "max_energy_range_uj") or 0
                    self.joules = 0.0

    def read(self) -> float | None:
        """Joules so far, the counters' wrap-around undone; None where there is no counter."""
        for zone, last in self._last.items():
            now = read_int(zone / "energy_uj")
            if now is None or self.joules is None:
                continue
            self.joules += (now - last + (self._range[zone] if now < last else 0)) / 1e6
            self._last[zone] = now
        return self.joules
