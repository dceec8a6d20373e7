"""Who carries a trial in flight, and whether that process still lives."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


@cache
def _host_facts() -> tuple[str, str | None]:
    return platform.node(), _read(_PROC / "sys/kernel/random/boot_id")


def current_owner() -> dict[str, Any]:
    """What a running trial keeps as its owner: host, boot, process, and when that one started.

    ``pid_start`` is in clock ticks since boot, ``pid_namespace`` sets apart the processes of
    containers. A fact that the system does not tell is None.
    """
    host, boot_id = _host_facts()
    return {
        "host": host,
        "boot_id": boot_id,
        "pid": os.getpid(),
        "pid_start": _start_and_state(os.getpid())[0],
        "pid_namespace": _pid_namespace(),
    }


def death(owner: dict[str, Any]) -> str | None:
    """Why the owner of a trial can no longer be alive, or None where it is or may be alive."""
    host, boot_id = _host_facts()
    if owner.get("host") != host or not isinstance(owner.get("pid"), int):
        return None
    pid = owner["pid"]
    if owner.get("boot_id") != boot_id:
        return f"{host} was restarted while process {pid} was measuring"
    if owner.get("pid_namespace") != _pid_namespace():
        return None  # another container's process: its number means nothing here
    gone = f"process {pid} on {host} ended before the trial did"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return gone
    except (PermissionError, OverflowError):
        pass
    start, state = _start_and_state(pid)
    if state in {"Z", "X"} or (start is not None and start != owner.get("pid_start")):
        return gone
    return None


def _start_and_state(pid: int) -> tuple[int | None, str]:
    stat = _read(_PROC / str(pid) / "stat")
    if stat is None:
        return None, ""
    # the name of the program comes before, in parentheses, and may hold anything
    fields = stat.rpartition(")")[2].split()
    return int(fields[19]), fields[0]


def _pid_namespace() -> str | None:
    try:
        return os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return None


def _read(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None
