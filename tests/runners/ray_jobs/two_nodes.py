"""A real Ray cluster on this machine: a head that runs no jobs, and nodes that do."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil

PROGRAM = Path(__file__).with_name("ray_nodes.py")
HEAD = "127.0.0.2"
LIMIT = 240.0  # seconds within which a node is up on a busy machine
OBJECTS = 80_000_000  # bytes of Ray's object store; it takes no less than 75 MB


def free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


class Cluster:
    """The nodes, each on a loopback address of its own.

    Attributes:
        address: of the dashboard.
        doomed: the raylet of the node with the resource of that name, for a test to kill.
    """

    def __init__(self) -> None:
        # sockets lie below it, and their paths may have no more than 107 characters
        self.folder = Path(tempfile.mkdtemp(prefix="ray-"))
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        own = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_TMPDIR": str(self.folder), "PATH": path}
        self._log = (self.folder / "log.txt").open("wb")
        self._program = subprocess.Popen(
            [sys.executable, str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, **own},
            start_new_session=True,
        )
        self.address = f"http://{HEAD}:{free_port(HEAD)}"
        self._nodes = 0

    def start(self) -> None:
        """Returns when Ray knows all nodes.

        Raises:
            AssertionError: one did not come up.
        """
        self._add(
            num_cpus=0,
            gcs_server_port=free_port(HEAD),
            include_dashboard=True,
            dashboard_host=HEAD,
            dashboard_port=int(self.address.rpartition(":")[2]),
            dashboard_agent_listen_port=free_port(HEAD),
        )
        self._add(num_cpus=2, num_gpus=2, resources={"worker": 2}, labels={"pool": "tests"})
        self.doomed = self._add(num_cpus=0, resources={"doomed": 1})

    def _add(self, **given: object) -> psutil.Process:
        """Another node, which the cluster knows when this returns: its raylet."""
        host = f"127.0.0.{self._nodes + 2}"
        self._nodes += 1
        node = {
            "node_ip_address": host,
            "object_store_memory": OBJECTS,
            "include_log_monitor": False,
            **given,
        }
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._program.stdin.write(json.dumps(node).encode() + b"\n")
            self._program.stdin.flush()
        assert self._program.stdout.readline() == b"added\n", self.said()
        deadline = time.monotonic() + LIMIT
        while host not in self.alive():
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.1)
        return next(p for p in self._tree() if f"--node_ip_address={host}" in p.cmdline())

    def alive(self) -> list[str]:
        """The addresses of the nodes that Ray takes for alive; none while it does not answer."""
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"{self.address}/api/v0/nodes", timeout=10) as answer:
                listed = json.load(answer)["data"]["result"]["result"]
            return [node["node_ip"] for node in listed if node["state"] == "ALIVE"]
        return []

    def _tree(self) -> list[psutil.Process]:
        return psutil.Process(self._program.pid).children(recursive=True)

    def said(self) -> str:
        return (self.folder / "log.txt").read_text()[-4000:]

    def stop(self) -> None:
        tree = self._tree() if self._program.poll() is None else []
        try:
            self._program.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            self._program.kill()
            self._program.communicate()
        _, left = psutil.wait_procs(tree, timeout=20)
        for process in left:
            process.kill()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def target(self, **more: object) -> dict[str, object]:
        return {"address": self.address, "python": sys.executable, "cpus": 1, **more}
