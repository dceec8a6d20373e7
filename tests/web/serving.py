"""``underdog serve`` in a process of its own."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

LIMIT = 60  # seconds that a loaded machine may take


@dataclass(slots=True)
class Served:
    """A server: its address, what it says, and its process."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    address: str = ""

    @property
    def port(self) -> int:
        return int(self.address.rstrip("/").rpartition(":")[2])


def command(*args: str) -> list[str]:
    return [sys.executable, "-m", "underdog", "serve", *args]


@contextlib.contextmanager
def serving(*args: str, **options: Any) -> Iterator[Served]:
    """A server on a free port until the block ends."""
    process = subprocess.Popen(
        command("--port", "0", *args),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    found, told = Served(process), threading.Event()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            found.lines.append(line)
            address = re.search(r"http://\S+", line)
            if address and not found.address:
                found.address = address[0]
                told.set()
        told.set()

    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    try:
        assert told.wait(LIMIT), "it said no address"
        assert found.address, "".join(found.lines)
        yield found
    finally:
        process.kill()
        process.wait(LIMIT)
        reading.join(LIMIT)
