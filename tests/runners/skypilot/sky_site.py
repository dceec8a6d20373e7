"""A Slurm cluster that SkyPilot reaches by ssh, on this machine, and SkyPilot's API server.

On a node SkyPilot fetches ``uv`` from the web and with it a Python and itself; here ``uv`` is that
of the tests and the Python Debian's. All else is SkyPilot's own way.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
import slurm_cluster
import ssh_server

with_skypilot = pytest.mark.skipif(
    importlib.util.find_spec("sky") is None,
    reason="SkyPilot is not installed here; `make skypilot` runs this in an environment of its own",
)
_ROOT = Path(__file__).parents[3]
USER = "underdog-sky"
NAME = "ours"  # of the cluster, in SkyPilot's words
PYTHON = Path("/usr/bin/python3")  # of the nodes, whose user may not read that of the tests
# Nodes by names that resolve: SkyPilot's own processes there look them up.
NODES = """\
ClusterName=sky
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmctldPidFile={folder}/controller.pid
SlurmctldLogFile={folder}/controller.log
StateSaveLocation={folder}/state
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/spool-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
NodeName={host} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=2
NodeName=localhost NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=2
PartitionName=main Nodes={host},localhost Default=YES MaxTime=120 State=UP
"""
CURL = """\
#!/bin/sh
case "$*" in
*astral.sh/uv*) echo 'mkdir -p "$UV_INSTALL_DIR" && cp {folder}/bin/uv "$UV_INSTALL_DIR/uv"' ;;
*) exec /usr/bin/curl "$@" ;;
esac
"""
UV = """\
#!/bin/bash
words=()
for word in "$@"; do [ "$word" = 3.10 ] && word={python}; words+=("$word"); done
export UV_PYTHON_DOWNLOADS=never UV_SYSTEM_CERTS=1 UV_CACHE_DIR={folder}/uv-cache
export SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt
exec {folder}/bin/uv.real "${{words[@]}}"
"""
SSH = """\
Host {name}
  HostName 127.0.0.1
  Port {port}
  User {user}
  IdentityFile {key}
  IdentitiesOnly yes
"""


def missing() -> str | None:
    """What this machine lacks for it, or None."""
    if os.geteuid() != 0:
        return "it is started by root only"
    tools = [name for name in ("rsync", "curl", "uv", "useradd") if shutil.which(name) is None]
    tools += slurm_cluster.missing() + ([] if ssh_server.program() else ["sshd"])
    if tools:
        return (
            f"there is no {tools[0]}: apt-get install slurm-wlm munge openssh-server rsync curl; "
            "pip install uv"
        )
    asked = [str(PYTHON), "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
    if subprocess.run(asked, check=False).returncode:
        return f"{PYTHON} is older than 3.11"
    closed = next((p for p in (_ROOT, *_ROOT.parents) if p.stat().st_mode & 0o005 != 0o005), None)
    return f"another user may not read '{closed}'" if closed else None


@dataclass(slots=True)
class SkySite(slurm_cluster.Cluster):
    """Two nodes of two processors, an ssh server, and a home for SkyPilot's own files."""

    server: ssh_server.Server | None = field(default=None)

    @property
    def home(self) -> Path:
        return self.folder / "client"

    @property
    def python(self) -> Path:
        """A Python for the nodes that has underdog."""
        return self.folder / "venv" / "bin" / "python"

    def start(self) -> None:
        self.folder.chmod(0o755)
        host = socket.gethostname()
        names = ("state", "bin", "uv-cache", "client/.slurm", "client/.sky", "ssh", "jobs")
        for name in (*names, f"spool-{host}", "spool-localhost"):
            (self.folder / name).mkdir(parents=True)
        ports = slurm_cluster.free_ports(3)
        self.config.write_text(NODES.format(host=host, ports=ports, folder=self.folder))
        (self.folder / "munge.key").write_bytes(os.urandom(1024))
        (self.folder / "munge.key").chmod(0o400)
        own = [
            f"--{name}-file={self.folder}/munge.{name}" for name in ("key", "pid", "log", "seed")
        ]
        self._run("munged", "-F", "--force", f"--socket={self.folder}/munge.sock", *own)
        self.until((self.folder / "munge.sock").exists)
        self._run("slurmctld", "-D", "-f", str(self.config))
        for name in (host, "localhost"):
            self._run("slurmd", "-D", "-N", name, "-f", str(self.config), key=name)
        self.until(lambda: self.ask("sinfo", "-h", "-N", "-o", "%T").split() == ["idle", "idle"])
        self._add_user()
        self._equip_nodes()
        self._start_ssh()

    def _add_user(self) -> None:
        self._remove_user()  # of a run that was killed
        home = str(self.folder / "home")
        words = ["useradd", "--create-home", "--home-dir", home, "--shell", "/bin/bash"]
        subprocess.run([*words, "--password", "*", USER], check=True)
        (self.folder / "home").chmod(0o755)
        (self.folder / "uv-cache").chmod(0o777)
        (self.folder / "jobs").chmod(0o777)

    def _remove_user(self) -> None:
        """The user that ``start`` made, with what runs in its name."""
        for entry in pwd.getpwall():
            if entry.pw_name != USER:
                continue
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.NoSuchProcess):
                    if process.uids().real == entry.pw_uid:
                        process.kill()
            subprocess.run(["userdel", "--force", USER], check=True, capture_output=True)

    def _equip_nodes(self) -> None:
        tools = self.folder / "bin"
        shutil.copy(str(shutil.which("uv")), tools / "uv.real")
        real = PYTHON.resolve()
        for name, text in (("curl", CURL), ("uv", UV)):
            (tools / name).write_text(text.format(folder=self.folder, python=real))
        for path in tools.iterdir():
            path.chmod(0o755)
        for name in (".bashrc", ".profile"):
            line = f"export SLURM_CONF={self.config} PATH={tools}:$PATH\n"
            (self.folder / "home" / name).write_text(line)
            shutil.chown(self.folder / "home" / name, USER)
        venv = self.folder / "venv"
        subprocess.run([str(PYTHON), "-m", "venv", "--without-pip", str(venv)], check=True)
        ours = [str(_ROOT / "src"), *(p for p in sys.path if "-packages" in p)]
        found = next(venv.glob("lib/python3*/site-packages"))
        (found / "ours.pth").write_text("\n".join(ours) + "\n")

    def _start_ssh(self) -> None:
        self.server = ssh_server.Server(self.folder / "ssh")
        self.server.folder.chmod(0o755)
        self.server.prepare()
        self.server.start()
        (self.home / ".slurm" / "config").write_text(
            SSH.format(name=NAME, port=self.server.port, user=USER, key=self.server.folder / "user")
        )
        (self.home / ".sky" / "config.yaml").write_text("slurm:\n  provision_timeout: 10\n")

    def queued(self) -> str:
        """What Slurm has of the user's jobs."""
        return self.ask("squeue", "--noheader", f"--user={USER}").strip()

    def stop(self) -> None:
        self.ask("scancel", "--full", "--signal=KILL", f"--user={USER}")
        if self.server is not None:
            self.server.stop()
        slurm_cluster.Cluster.stop(self)
        self._remove_user()
