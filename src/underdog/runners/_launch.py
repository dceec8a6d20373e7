"""The process between the runner of this machine and its measurement: it sets what may be used.

Run as a program of its own (``python -I -S _launch.py LIMITS COMMAND…``), standard library only; it
becomes the command. ``LIMITS`` is a JSON object: ``cpus``, the processors by number, and ``bytes``
of memory with the file ``note``, left where more was held and a process was killed for it; all are
optional.

Memory is watched, not rationed: control groups need rights that a user seldom has, and the limits
of a single process count addresses, of which frameworks reserve far more than they touch.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time

PR_SET_PDEATHSIG = 1
LOOK = 0.1  # seconds between two looks at the memory
SHARE = 20  # a look may take one part in so many of the time
KIB = 1024


def end_with_parent(number: int) -> None:
    """Have the kernel signal us when our parent is gone; without Linux's prctl we go on."""
    with contextlib.suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number, 0, 0, 0)


def started_by_children(root: int) -> list[int]:
    """What the children of a process started, and all below: of a job, the user's command."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    parent = int(file.read().rpartition(b")")[2].split()[1])
                children.setdefault(parent, []).append(int(name))
    found: list[int] = []
    queue = children.get(root, [])
    while queue:
        queue = [child for pid in queue for child in children.get(pid, ())]
        found.extend(queue)
    return found


def fields(path: str, names: tuple[bytes, ...]) -> int | None:
    """The sum of some ``name: number kB`` lines, in bytes; None where none of them is there."""
    try:
        with open(path, "rb") as file:
            lines = [line.split() for line in file]
    except OSError:
        return None
    found = [int(words[1]) for words in lines if words and words[0] in names]
    return sum(found) * KIB if found else None


def at_most(pid: int) -> int:
    """Bytes that a process holds and no file gives back; what it shares counts in full."""
    return fields(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:", b"VmSwap:")) or 0


def own(pid: int) -> int:
    """The same, what it shares divided among those that share it."""
    parts = (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:")
    found = fields(f"/proc/{pid}/smaps_rollup", parts)
    return at_most(pid) if found is None else found


def held(pids: list[int], limit: int) -> dict[int, int]:
    """Bytes by process, exact where they may come to more than the limit."""
    quick = {pid: at_most(pid) for pid in pids}
    return quick if sum(quick.values()) <= limit else {pid: own(pid) for pid in pids}


def watch(job: int, limit: int, note: str) -> None:
    """Kill the largest process of a job whenever all of them hold more than ``limit`` bytes."""
    victim = 0
    while True:
        began = time.monotonic()
        found = held(started_by_children(job), limit)
        if sum(found.values()) > limit and not found.get(victim):
            victim = max(found, key=lambda pid: found[pid])
            with open(note, "w") as file:
                file.write(str(sum(found.values())))
            with contextlib.suppress(OSError):
                os.kill(victim, signal.SIGKILL)
        time.sleep(max(LOOK, SHARE * (time.monotonic() - began)))


def main() -> None:
    limits = json.loads(sys.argv[1])
    end_with_parent(signal.SIGTERM)
    if limits.get("cpus"):
        os.sched_setaffinity(0, limits["cpus"])
    if limits.get("bytes"):
        job = os.getpid()
        if os.fork() == 0:
            end_with_parent(signal.SIGKILL)
            if os.getppid() == job:
                watch(job, limits["bytes"], limits["note"])
            os._exit(0)
    os.execv(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
