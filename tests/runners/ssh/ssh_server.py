"""An OpenSSH server of our own on loopback, with its own keys; it touches nothing of the user's."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile {folder}/pid
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin yes
MaxStartups 100
Subsystem sftp internal-sftp
SetEnv XDG_CACHE_HOME={folder}/cache {more}
"""


def program() -> str | None:
    """The server's program: it insists on being started by its whole path."""
    return shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin")


@dataclass(slots=True)
class Server:
    """One server; ``target`` is what an offer says to get at it."""

    folder: Path
    port: int = 0
    process: subprocess.Popen[bytes] | None = field(default=None)

    def prepare(self) -> None:
        for name in ("host", "user", "other"):
            made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
            subprocess.run(made, check=True)
        shutil.copy(self.folder / "user.pub", self.folder / "authorized")
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            self.port = listener.getsockname()[1]
        self.know("host")

    def know(self, key: str) -> None:
        """Take ``key`` for the server's in the file of known hosts."""
        public = (self.folder / f"{key}.pub").read_text()
        (self.folder / "known").write_text(f"[127.0.0.1]:{self.port} {public}")

    def start(self, more: str = "") -> None:
        config = self.folder / "config"
        config.write_text(CONFIG.format(port=self.port, folder=self.folder, more=more))
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # it separates its privileges there
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(program()), "-D", "-e", "-f", str(config)], stderr=log, stdin=-3
            )
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.05)

    def stop(self) -> None:
        """End it; what was started over it goes on."""
        if self.process is not None:
            self.cut()
            self.process.kill()
            self.process.wait()
            self.process = None

    def cut(self) -> int:
        """Break all connections; how many there were."""
        assert self.process is not None
        found = psutil.Process(self.process.pid).children()
        for child in found:
            child.kill()
        return len(found)

    @property
    def jobs(self) -> Path:
        return self.folder / "cache" / "underdog" / "jobs"

    def target(self, **more: object) -> dict[str, object]:
        options = [f"UserKnownHostsFile={self.folder}/known", "StrictHostKeyChecking=yes"]
        return {
            "host": f"{getpass.getuser()}@127.0.0.1",
            "port": self.port,
            "identity": str(self.folder / "user"),
            "config": "/dev/null",
            "options": [*options, "IdentitiesOnly=yes"],
        } | more
