"""A Slurm cluster of our own on this machine: munge, a controller, and several nodes by number."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scontrol")
ALONE = "n3"  # a node with files of its own
CONFIG = """\
ClusterName=tests
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
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
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdTimeout=120
SlurmdParameters=config_overrides
ReturnToService=2
GresTypes=gpu
NodeName=n1 {here} Port={ports[0]} CPUs=4 Feature=small
NodeName=n2 {here} Port={ports[1]} CPUs=4 Feature=big Gres=gpu:a100:2
NodeName=n3 {here} Port={ports[2]} CPUs=4
NodeName=n4 {here} Port={ports[3]} CPUs=1
PartitionName=main Nodes=n1,n2 Default=YES State=UP
PartitionName=short Nodes=n1 MaxTime=1 MaxNodes=1 State=UP
PartitionName=alone Nodes=n3 State=UP
PartitionName=weak Nodes=n4 State=UP
"""


def missing() -> list[str]:
    """The programs of Slurm that this machine lacks."""
    return [name for name in PROGRAMS if program(name) is None]


def program(name: str) -> str | None:
    return shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin")


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@dataclass(slots=True)
class Cluster:
    """Four nodes: two that share all, one with files of its own, one to be killed."""

    folder: Path
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def config(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def jobs(self) -> Path:
        return self.folder / "jobs"

    def target(self, **more: object) -> dict[str, object]:
        return {"jobs": str(self.jobs)} | more

    def start(self) -> None:
        for name in ("state", "jobs", "private", *(f"spool-n{i}" for i in range(1, 5))):
            (self.folder / name).mkdir()
        port, *ports = free_ports(5)
        host = socket.gethostname().partition(".")[0]
        here = f"NodeHostname={host} NodeAddr=127.0.0.1"
        self.config.write_text(
            CONFIG.format(host=host, here=here, port=port, ports=ports, folder=self.folder)
        )
        devices = [self.folder / f"gpu{i}" for i in range(2)]
        for device in devices:
            device.touch()
        files = f"{self.folder}/gpu[0-1]"
        (self.folder / "gres.conf").write_text(f"NodeName=n2 Name=gpu Type=a100 File={files}\n")
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        own = {"key-file": key} | {
            name: self.folder / f"munge.{name.partition('-')[0]}"
            for name in ("pid-file", "log-file", "seed-file")
        }
        options = [f"--{name}={path}" for name, path in own.items()]
        self._run(
            "munged", "--foreground", "--force", f"--socket={self.folder}/munge.sock", *options
        )
        self.until((self.folder / "munge.sock").exists)
        self._run("slurmctld", "-D", "-f", str(self.config))
        for number in range(1, 5):
            self.start_node(f"n{number}")
        self.until(lambda: self.ask("sinfo", "-h", "-N", "-o", "%N %T").count("idle") >= 5)

    def start_node(self, name: str) -> None:
        words = ["slurmd", "-D", "-N", name, "-f", str(self.config)]
        if name != ALONE:
            self._run(*words, key=name)
            return
        # it sees an empty folder where the others see that of the jobs
        hide = f'mount --bind "{self.folder}/private" "{self.jobs}" && exec "$@"'
        self._run(
            "unshare",
            "--mount",
            "sh",
            "-c",
            hide,
            "sh",
            str(program("slurmd")),
            *words[1:],
            key=name,
        )

    def _run(self, name: str, *words: str, key: str | None = None) -> None:
        with (self.folder / f"{key or name}.out").open("ab") as out:
            self.running[key or name] = subprocess.Popen(
                [str(program(name)), *words], stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    def ask(self, *words: str) -> str:
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=self.environ)
        return done.stdout

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.config)}

    def until(self, condition: object, seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():  # type: ignore[operator]
            died = any(process.poll() for process in self.running.values())
            if died or time.monotonic() > deadline:
                logs = sorted(self.folder.glob("*.out")) + sorted(self.folder.glob("*.log"))
                said = "\n".join(f"{p.name}: {p.read_text()[-600:]}" for p in logs)
                raise AssertionError(f"the cluster never came to it\n{said}")
            time.sleep(0.1)

    def kill_node(self, name: str) -> None:
        """Kill a node's daemon, and have the controller see it now instead of after its pings."""
        process = self.running.pop(name)
        process.kill()
        process.wait()
        self.ask("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=killed")

    def stop(self) -> None:
        """End its jobs, its daemons, and what is left of either."""
        self.ask("scancel", f"--user={os.geteuid()}")
        for process in reversed(self.running.values()):
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for left in psutil.process_iter():  # steps that would report to a controller for ever
            with contextlib.suppress(psutil.Error):
                if left.pid != os.getpid() and left.environ().get("SLURM_CONF") == str(self.config):
                    left.kill()
