"""What the control groups of this process allow, and what they did to it. Versions 1 and 2."""

from __future__ import annotations

from pathlib import Path

UNLIMITED = 2**60  # version 1 writes a huge number where there is no limit


class Cgroup:
    """The control groups of this process.

    Args:
        root: where they are mounted.
        membership: the text of ``/proc/self/cgroup``.
    """

    def __init__(self, root: Path = Path("/sys/fs/cgroup"), membership: str | None = None) -> None:
        if membership is None:
            membership = read_text(Path("/proc/self/cgroup")) or ""
        self._unified: list[Path] = []
        self._by_controller: dict[str, list[Path]] = {}
        for line in membership.splitlines():
            _, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if not controllers:
                self._unified = ancestors(root, path)
            for name in controllers.split(","):
                if name in ("cpu", "memory"):
                    mount = root / name if (root / name).is_dir() else root / controllers
                    self._by_controller[name] = ancestors(mount, path)

    def cpu_quota(self) -> float | None:
        """Processors that the tightest quota allows, None where there is none."""
        quotas = []
        for folder in self._unified:
            words = (read_text(folder / "cpu.max") or "max").split()
            if words[0] != "max" and len(words) == 2:
                quotas.append(float(words[0]) / float(words[1]))
        for folder in self._by_controller.get("cpu", []):
            quota = read_int(folder / "cpu.cfs_quota_us")
            period = read_int(folder / "cpu.cfs_period_us")
            if quota and period and quota > 0:
                quotas.append(quota / period)
        return min(quotas, default=None)

    def memory_limit(self) -> int | None:
        """Bytes of the tightest memory limit, None where there is none."""
        files = [folder / "memory.max" for folder in self._unified]
        files += [f / "memory.limit_in_bytes" for f in self._by_controller.get("memory", [])]
        limits = [read_int(file) for file in files]
        return min((x for x in limits if x is not None and x < UNLIMITED), default=None)

    def throttled_seconds(self) -> float | None:
        """Time for which the processor quota held this group back, ever."""
        for folder in [*self._unified, *self._by_controller.get("cpu", [])]:
            found = read_pairs(folder / "cpu.stat")
            if "throttled_usec" in found:
                return found["throttled_usec"] / 1e6
            if "throttled_time" in found:
                return found["throttled_time"] / 1e9
        return None

    def memory_kills(self) -> int:
        """Processes that the kernel killed for memory, ever, here or on the whole machine."""
        counts = [read_pairs(Path("/proc/vmstat")).get("oom_kill", 0)]
        counts += [read_pairs(f / "memory.events").get("oom_kill", 0) for f in self._unified]
        for folder in self._by_controller.get("memory", []):
            counts.append(read_pairs(folder / "memory.oom_control").get("oom_kill", 0))
        return sum(counts)


def ancestors(mount: Path, path: str) -> list[Path]:
    """The folders of a group and of all above it, those that exist, the group first.

    In a container the group's path is that of the host while only its own folder is mounted, as
    the root; so the root always counts.
    """
    folder = mount / path.strip("/")
    chain = [folder, *folder.parents]
    return [f for f in chain if (f == mount or mount in f.parents) and f.is_dir()]


def read_text(path: Path) -> str | None:
    """The stripped text of a small file of the kernel, None where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def read_int(path: Path) -> int | None:
    """The number in a small file of the kernel, None where there is none."""
    text = read_text(path)
    try:
        return int(text) if text else None
    except ValueError:
        return None


def read_pairs(path: Path) -> dict[str, int]:
    """``name number`` per line; what cannot be read is left out."""
    found = {}
    for line in (read_text(path) or "").splitlines():
        words = line.split()
        if len(words) == 2 and words[1].lstrip("-").isdigit():
            found[words[0]] = int(words[1])
    return found
