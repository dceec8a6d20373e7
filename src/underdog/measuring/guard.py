"""The process between underdog and the script: it starts the script and leaves nothing behind.

Run as a program of its own (``python -I -S guard.py CONTROL_FD COMMAND…``), standard library
only. It is the subreaper of everything that the script starts, daemons included, so that the
tree can be ended whatever the script does; and it holds one end of a socket whose other end is
underdog's, so that it learns at once when underdog is gone, killed with signal 9 or not.

From underdog it reads one word per line: ``interrupt`` (SIGINT to the script's process group, as
a terminal sends it), ``stop SECONDS`` (SIGTERM, then SIGKILL after that grace), ``kill``. To
underdog it writes one JSON object per line: ``started``, ``exec_error``, ``exited``, ``gone``.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Mapping

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
ORPHANED_GRACE = 2.0  # seconds that the tree gets when underdog is gone
LEFTOVER_WAIT = 1.0  # seconds that helpers get to end by themselves after the script
LEFTOVER_GRACE = 3.0
FIRST_ONLY = 2.0  # seconds in which only the script itself is asked to end, not its children
UNKILLABLE = 5.0  # seconds after which a process that survives SIGKILL is given up
INTERPRETER_IGNORES = ("SIGPIPE", "SIGXFZ", "SIGXFSZ")  # Python does so at start; restored


def prctl(option: int, value: int) -> bool:
    """True where the kernel took it; False on systems without prctl."""
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def descendants(root: int) -> list[int]:
    """Live processes below ``root``, from the parents that /proc tells; zombies are left out."""
    children: dict[int, list[int]] = {}
    dead: set[int] = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            with open(f"/proc/{name}/stat", "rb") as file:
                state, parent = file.read().rpartition(b")")[2].split()[:2]
            children.setdefault(int(parent), []).append(int(name))
            if state in (b"Z", b"X"):
                dead.add(int(name))
    found: list[int] = []
    queue = list(children.get(root, ()))
    while queue:
        pid = queue.pop()
        queue.extend(children.get(pid, ()))
        if pid not in dead:
            found.append(pid)
    return found


class Guard:
    """Starts the script, carries out what underdog asks, ends the tree, tells what happened."""

    def __init__(self, control: int, command: list[str]) -> None:
        self.control = control
        self.command = command
        self.child = 0
        self.exited = False
        self.received = b""
        self.term_all: float | None = None  # when to ask everything below
        self.kill_at: float | None = None

    def tell(self, **message: object) -> None:
        with contextlib.suppress(OSError):
            os.write(self.control, json.dumps(message).encode() + b"\n")

    def start(self) -> bool:
        """Fork and exec the script; False where that failed."""
        dispositions = {
            s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        }
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        for number in dispositions:
            signal.signal(number, signal.SIG_IGN)
        error_read, error_write = os.pipe()  # closed by a successful exec
        parent = os.getpid()
        self.child = os.fork()
        if self.child == 0:
            self.become_script(dispositions, error_write, parent)
        os.close(error_write)
        with os.fdopen(error_read, "rb") as pipe:
            failure = pipe.read()
        if failure:
            self.tell(exec_error=int(failure))
            return False
        silence = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):  # the script's pipes must close when the script closes them
            os.dup2(silence, fd)
        self.tell(started=self.child)
        return True

    def become_script(
        self, dispositions: Mapping[signal.Signals, object], err: int, dad: int
    ) -> None:
        try:
            for number, handler in dispositions.items():
                ignored = handler == signal.SIG_IGN
                signal.signal(number, signal.SIG_IGN if ignored else signal.SIG_DFL)
            for name in INTERPRETER_IGNORES:
                if hasattr(signal, name):
                    signal.signal(getattr(signal, name), signal.SIG_DFL)
            os.setpgid(0, 0)
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() == dad:  # else the guard died before the kernel knew to tell us
                os.execvp(self.command[0], self.command)
        except OSError as error:
            os.write(err, str(error.errno or 0).encode())
        finally:
            os._exit(127)

    def run(self) -> None:
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_write, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        poller = select.poll()
        poller.register(wake_read, select.POLLIN)
        poller.register(self.control, select.POLLIN)
        alive = self.reap()
        while alive or not self.exited:
            busy = self.kill_at is not None
            for fd, _ in poller.poll(50 if busy else 10_000):
                if fd == wake_read:
                    os.read(wake_read, 4096)
                elif not self.listen():
                    poller.unregister(self.control)
            alive = self.reap()
            if self.kill_at is not None and not self.advance():
                break
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        gone = {"user": used.ru_utime, "system": used.ru_stime, "peak_kib": used.ru_maxrss}
        self.tell(gone={**gone, "survivors": descendants(os.getpid())})

    def reap(self) -> bool:
        """Collect ended processes; True while any child is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.child:
                self.exited = True
                self.tell(exited=os.waitstatus_to_exitcode(status))
                now = time.monotonic()
                self.plan(now + LEFTOVER_WAIT, now + LEFTOVER_WAIT + LEFTOVER_GRACE)

    def listen(self) -> bool:
        """Read underdog's words; False when underdog is gone."""
        try:
            data = os.read(self.control, 4096)
        except OSError:
            data = b""
        if not data:
            self.stop(ORPHANED_GRACE)
            return False
        *lines, self.received = (self.received + data).split(b"\n")
        for line in lines:
            word, _, rest = line.partition(b" ")
            if word == b"interrupt":
                self.send(signal.SIGINT, group=True)
            elif word == b"stop":
                self.stop(float(rest))
            elif word == b"kill":
                self.kill_at = time.monotonic()
        return True

    def stop(self, grace: float) -> None:
        now = time.monotonic()
        self.send(signal.SIGTERM, group=False)
        self.plan(now + min(FIRST_ONLY, grace / 2), now + grace)

    def plan(self, term_all: float, kill_at: float) -> None:
        """Ask everything at ``term_all`` and kill at ``kill_at``, or earlier if planned so."""
        self.term_all = term_all if self.term_all is None else min(self.term_all, term_all)
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)

    def send(self, number: signal.Signals, group: bool) -> None:
        if not self.exited:
            with contextlib.suppress(OSError):
                (os.killpg if group else os.kill)(self.child, number)

    def advance(self) -> bool:
        """Send what is due; False when what is left cannot be killed."""
        now = time.monotonic()
        if self.kill_at is not None and now >= self.kill_at:
            self.signal_all(signal.SIGKILL)
            return now < self.kill_at + UNKILLABLE
        if self.term_all is not None and now >= self.term_all:
            self.term_all = float("inf")
            self.signal_all(signal.SIGTERM)
        return True

    def signal_all(self, number: signal.Signals) -> None:
        if not os.path.isdir("/proc/self"):  # no /proc: the process group is the best known
            self.send(number, group=True)
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, number)


def main() -> None:
    control = int(sys.argv[1])
    os.set_inheritable(control, False)
    guard = Guard(control, sys.argv[2:])
    if guard.start():
        guard.run()


if __name__ == "__main__":
    main()
