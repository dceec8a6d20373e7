"""Starting the script under its guard, and ending it with all that it started."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from underdog.errors import MeasureError, UsageError, nearest
from underdog.measuring import guard

PYTHON = re.compile(r"python[\d.]*")
KIB = 1024 if sys.platform != "darwin" else 1  # the unit of ru_maxrss differs
START_LIMIT = 30.0  # seconds within which a guard answers even on a machine that swaps


def check_command(command: Sequence[str], env: Mapping[str, str]) -> None:
    """Say what is wrong with a command that cannot be started.

    Raises:
        UsageError: it is empty, not found, a folder, or not executable.
    """
    if not command or not command[0]:
        raise UsageError(
            "There is no command to measure.", "underdog measure [options] -- python train.py"
        )
    program = command[0]
    if shutil.which(program, path=env.get("PATH", os.defpath)):
        _check_script(command)
        return
    rest = " ".join(command)
    hint = "Check the spelling and $PATH."
    if Path(program).is_dir():
        raise UsageError(f"'{program}' is a folder, not a program.", hint)
    if Path(program).is_file():
        if program.endswith(".py"):
            hint = f"underdog measure -- python {rest}"
        elif os.sep not in program:
            hint = f"underdog measure -- ./{rest}"
        else:
            hint = f"chmod +x {program}"
        raise UsageError(f"'{program}' is a file but not a program that can be run.", hint)
    if program.startswith("-"):
        hint = "Options of underdog stand before '--', the command after it."
    raise UsageError(f"The program '{program}' was not found.", hint)


def _check_script(command: Sequence[str]) -> None:
    """A mistyped script must not become a failed trial of a workload that does not exist."""
    script = command[1] if len(command) > 1 else ""
    if not (PYTHON.fullmatch(Path(command[0]).name) and script.endswith(".py")):
        return
    if not (Path(script).exists() or "{" in script):  # that would be a knob's
        folder = Path(script).parent
        beside = sorted(path.name for path in folder.glob("*.py")) if folder.is_dir() else []
        near = nearest(Path(script).name, beside)
        hint = f"Did you mean '{folder / near}'?" if near else f"There is no such file in {folder}."
        raise UsageError(f"The script '{script}' was not found.", hint)


class Script:
    """A running command and everything that it starts, in a session of its own.

    Attributes:
        root: pid of the guard; every process of the run is below it.
        pid: pid of the command itself.
        exit_code: of the command, the negative signal number where one ended it, None while it
            runs.
        cpu_seconds: user and system time of the whole tree, known when it is gone.
        peak_resident: bytes of the largest process of the tree at its peak, known likewise.
        survivors: pids that could not be killed.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        occupy_standard_fds()
        self.exit_code: int | None = None
        self.cpu_seconds: tuple[float, float] | None = None
        self.peak_resident: int | None = None
        self.survivors: list[int] = []
        self.gone = False
        self.pid = 0
        self._received = b""
        self._ours, theirs = socket.socketpair()
        argv = [sys.executable, "-I", "-S", guard.__file__, str(theirs.fileno()), *command]
        try:
            self._guard = subprocess.Popen(
                argv,
                env=dict(env),
                stdout=stdout,
                stderr=stderr,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError as error:
            self._ours.close()
            raise MeasureError(f"'{command[0]}' could not be started: {error}.") from error
        finally:
            theirs.close()
        self.root = self._guard.pid
        self._await_start(command[0])

    def _await_start(self, program: str) -> None:
        deadline = time.monotonic() + START_LIMIT
        while not self.pid and not self.gone and time.monotonic() < deadline:
            for message in self._messages(0.1):
                if "exec_error" in message:
                    self._guard.wait()
                    raise self._exec_failure(program, int(message["exec_error"]))
                self._note(message)
        if not self.pid:
            self.kill()
            raise MeasureError(f"'{program}' could not be started: its guard did not answer.")

    @staticmethod
    def _exec_failure(program: str, number: int) -> UsageError:
        hint = None
        if number == errno.ENOEXEC:
            hint = f"It has no '#!' line; name its interpreter: bash {program}"
        return UsageError(f"'{program}' could not be started: {os.strerror(number)}.", hint)

    def _messages(self, timeout: float) -> list[dict[str, Any]]:
        """What the guard said since; waits at most ``timeout`` seconds for a first word."""
        if self.gone:
            return []
        data = b""
        try:
            if select.select([self._ours], [], [], timeout)[0]:
                data = self._ours.recv(65536)
                self.gone = not data
        except OSError:
            self.gone = True
        *lines, self._received = (self._received + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def _note(self, message: dict[str, Any]) -> None:
        if "started" in message:
            self.pid = int(message["started"])
        if "exited" in message:
            self.exit_code = int(message["exited"])
        if isinstance(gone := message.get("gone"), dict):
            self.cpu_seconds = (float(gone["user"]), float(gone["system"]))
            self.peak_resident = int(gone["peak_kib"]) * KIB
            self.survivors = list(gone["survivors"])

    def poll(self, timeout: float = 0.0) -> int | None:
        """The exit code, or None while the command runs; waits at most ``timeout`` seconds."""
        for message in self._messages(timeout):
            self._note(message)
        if self.gone and self.exit_code is None:
            self.exit_code = self._bury()
        return self.exit_code

    def _bury(self) -> int:
        """The guard itself was killed: the kernel ended the command, we end the rest."""
        for pid in session_members(self.root):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return self._guard.wait()

    def interrupt(self) -> None:
        """SIGINT to the command's process group, as Ctrl-C in a terminal sends it."""
        self._say(b"interrupt\n")

    def stop(self, grace: float) -> None:
        """SIGTERM, and SIGKILL to whatever of the tree is left after ``grace`` seconds."""
        self._say(b"stop %.3f\n" % grace)

    def kill(self) -> None:
        """SIGKILL to the whole tree."""
        self._say(b"kill\n")

    def _say(self, word: bytes) -> None:
        with contextlib.suppress(OSError):  # a guard that is gone has nothing left to end
            self._ours.sendall(word)

    def wait_gone(self, limit: float) -> bool:
        """Wait until nothing of the tree is left, ``limit`` seconds at most; False on time-out."""
        deadline = time.monotonic() + limit
        while not self.gone:
            if time.monotonic() > deadline:
                return False
            self.poll(0.1)
        self.poll()
        self._guard.wait()
        return True

    def close(self) -> None:
        """End whatever is left; after this no process of the tree is alive."""
        if not self.gone:
            self.kill()
            self.wait_gone(guard.UNKILLABLE + 2)
        self._ours.close()  # a guard that still lives learns from this that we are gone


def occupy_standard_fds() -> None:
    """Open /dev/null for every standard stream that is closed.

    Else a pipe of ours would get the number of a standard stream, and the script would take it
    for one.
    """
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != fd:
                os.dup2(opened, fd)
                os.close(opened)
            os.set_inheritable(fd, True)
        if getattr(sys, name) is None:  # Python was started without it
            setattr(sys, name, os.fdopen(fd, "w" if fd else "r", closefd=False))


def session_members(session: int) -> list[int]:
    """Live processes of a session, by /proc; empty where there is no /proc."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.getsid(int(name)) == session:
                    found.append(int(name))
    return found
