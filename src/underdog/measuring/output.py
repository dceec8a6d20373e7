"""The script's output: passed through live, its last lines kept, and read where asked.

A stream that goes to a terminal is given a pseudo-terminal, one that goes elsewhere a pipe, so
that the script sees of its output what it would see without us. Standard output that is neither
a terminal nor read by anyone of us is simply inherited.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import shutil
import struct
import termios
import threading
from collections.abc import Callable

TAIL_BYTES = 65536
LINE_LIMIT = 8192  # longer lines are cut for readers, never for the one who looks at them
ERASE = b"\r\x1b[2K"
WINDOW = struct.calcsize("HHHH")

Listener = Callable[[str], None]


class Screen:
    """A terminal that the script's output and one status line of ours share."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._lock = threading.Lock()
        self._at_line_start = True
        self._shown = False

    def write(self, data: bytes) -> None:
        """The script's output; our line makes room for it."""
        with self._lock:
            self._erase()
            write_all(self.fd, data)
            self._at_line_start = data.endswith((b"\n", b"\r\n"))

    def status(self, text: str) -> None:
        """Draw our line, unless the script is in the middle of one of its own."""
        width = shutil.get_terminal_size().columns - 1
        with self._lock:
            if self._at_line_start:
                write_all(self.fd, ERASE + text[:width].encode(errors="replace"))
                self._shown = True

    def clear(self) -> None:
        """Take our line away."""
        with self._lock:
            self._erase()

    def _erase(self) -> None:
        if self._shown:
            write_all(self.fd, ERASE)
            self._shown = False


class Output:
    """The two output streams of one run.

    Args:
        stdout_to: the file descriptor that the script's standard output goes to (1, or 2 where
            standard output is kept free for data).
        listener: called with each line of output, without its end, from a thread of ours.
    """

    def __init__(self, stdout_to: int = 1, listener: Listener | None = None) -> None:
        self.tail = bytearray()
        self.total = 0
        self.screen = Screen(2) if os.isatty(2) else None
        self._listener = listener
        self._threads: list[threading.Thread] = []
        self._close_after_start: list[int] = []
        self._terminals: list[tuple[int, int]] = []  # (of the script, the real one)
        self._sources: list[tuple[int, int]] = []
        self.stderr = self._channel(2)
        if same_file(stdout_to, 2):
            self.stdout = self.stderr
        elif listener is None and not os.isatty(stdout_to):
            self.stdout = stdout_to
        else:
            self.stdout = self._channel(stdout_to)

    def _channel(self, target: int) -> int:
        """A new stream for the script whose other end we pass on to ``target``."""
        if os.isatty(target):
            ours, theirs = os.openpty()
            copy_terminal(target, theirs)
            self._terminals.append((ours, target))
        else:
            ours, theirs = os.pipe()
        self._sources.append((ours, target))
        self._close_after_start.append(theirs)
        return theirs

    def started(self) -> None:
        """The script has its ends: close ours of them and begin to pass on."""
        for fd in self._close_after_start:
            os.close(fd)
        self._close_after_start = []
        for source, target in self._sources:
            thread = threading.Thread(target=self._pass_on, args=(source, target), daemon=True)
            thread.start()
            self._threads.append(thread)

    def finish(self, limit: float = 5.0) -> None:
        """Wait until all output has passed; the tree is gone, so there is an end."""
        if self._close_after_start:  # never started
            for fd in [*self._close_after_start, *(source for source, _ in self._sources)]:
                os.close(fd)
        for thread in self._threads:
            thread.join(limit)
        if self.screen:
            self.screen.clear()

    def follow_window(self) -> None:
        """Give the script's terminals the size of the real ones."""
        for ours, real in self._terminals:
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(real, termios.TIOCGWINSZ, b"\0" * WINDOW)
                if size != fcntl.ioctl(ours, termios.TIOCGWINSZ, b"\0" * WINDOW):
                    fcntl.ioctl(ours, termios.TIOCSWINSZ, size)

    def last_lines(self, count: int = 5) -> list[str]:
        """The last lines that were not empty, of all that passed through us."""
        text = self.tail.decode(errors="replace").replace("\r", "\n")
        return [line.rstrip() for line in text.split("\n") if line.strip()][-count:]

    def _pass_on(self, source: int, target: int) -> None:
        on_screen = self.screen if self.screen and os.isatty(target) else None
        rest = b""
        open_target = True
        while data := read_some(source):
            if open_target:
                try:
                    if on_screen:
                        on_screen.write(data)
                    else:
                        write_all(target, data)
                except OSError:  # the reader went away; the measurement goes on
                    open_target = False
            self.total += len(data)
            self.tail += data
            del self.tail[:-TAIL_BYTES]
            if self._listener:
                *lines, rest = (rest + data).replace(b"\r", b"\n").split(b"\n")
                rest = rest[-LINE_LIMIT:]
                self._read(lines)
        if self._listener and rest:
            self._read([rest])
        self._terminals = [pair for pair in self._terminals if pair[0] != source]
        os.close(source)

    def _read(self, lines: list[bytes]) -> None:
        assert self._listener is not None
        for line in lines:
            if line:
                self._listener(line[:LINE_LIMIT].decode(errors="replace"))


def read_some(fd: int) -> bytes:
    """What there is; empty at the end. A pseudo-terminal ends with an error."""
    try:
        return os.read(fd, 65536)
    except OSError:
        return b""


def write_all(fd: int, data: bytes) -> None:
    """Write everything, also where someone made the descriptor non-blocking."""
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:
            select.select([], [fd], [], 1.0)


def same_file(a: int, b: int) -> bool:
    """True where two descriptors are the same open file, pipe or terminal."""
    try:
        return os.path.sameopenfile(a, b)
    except OSError:
        return False


def copy_terminal(real: int, ours: int) -> None:
    """Settings and size of the real terminal; line ends are left to the real one."""
    with contextlib.suppress(termios.error, OSError):
        settings = termios.tcgetattr(real)
        settings[1] &= ~termios.OPOST
        termios.tcsetattr(ours, termios.TCSANOW, settings)
        size = fcntl.ioctl(real, termios.TIOCGWINSZ, b"\0" * WINDOW)
        fcntl.ioctl(ours, termios.TIOCSWINSZ, size)
