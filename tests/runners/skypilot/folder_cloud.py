"""A cloud whose machines are folders here: what the runner asks of SkyPilot, and no SkyPilot.

The scripts of the runner run for real, by bash, with the folder as their home.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from underdog.errors import RunnerError


class ClusterDoesNotExist(ValueError):  # noqa: N818
    """SkyPilot's."""


@dataclass(slots=True)
class Asked:
    """A request to launch."""

    cluster: str
    stage: str = "succeeded"
    error: Exception | None = None
    said: str = ""


@dataclass(slots=True)
class FolderCloud:
    """Has the methods of ``_skyclient.Client``; its attributes make things go wrong."""

    folder: Path
    refuses: Exception | None = None
    says: str = "Launching on Folder.\n"
    launches_slowly: bool = False
    answers: bool = True  # its machines, when a script is to be run on them
    stays_up: bool = False
    confused: Exception | None = None  # what is asked about its jobs gives this error
    requests: dict[str, Asked] = field(default_factory=dict)
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    tasks: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    downs: list[str] = field(default_factory=list)

    def home(self, cluster: str) -> Path:
        return self.folder / cluster

    def launch(self, task: Mapping[str, Any], cluster: str, secrets: Mapping[str, str]) -> str:
        self.tasks[cluster], self.secrets = task, dict(secrets)
        request = uuid.uuid4().hex
        self.requests[request] = asked = Asked(cluster, said=self.says)
        self.home(cluster).mkdir()
        if self.refuses is not None:
            asked.stage, asked.error = "failed", self.refuses
        elif self.launches_slowly:
            asked.stage = "running"
        else:
            self._start(task, cluster, secrets)
        return request

    def _start(self, task: Mapping[str, Any], cluster: str, secrets: Mapping[str, str]) -> None:
        home = self.home(cluster)
        if "workdir" in task:
            shutil.copytree(task["workdir"], home / "sky_workdir")
        for there, here in task.get("file_mounts", {}).items():
            path = home / there.removeprefix("~/")
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(here, path)
        with (home / "run.log").open("wb") as log:
            self.running[cluster] = subprocess.Popen(
                ["bash", "-c", task["run"]],
                cwd=home,
                env={**os.environ, **secrets, "HOME": str(home)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def launches(self, cluster: str) -> list[str]:
        return [key for key, asked in self.requests.items() if asked.cluster == cluster]

    def stage(self, request: str) -> str:
        return self.requests[request].stage if request in self.requests else "gone"

    def result(self, request: str) -> Any:
        if request.startswith("down "):
            if self.stays_up:
                raise RuntimeError("the cloud did not answer")
            return None
        asked = self.requests[request]
        if asked.error is not None:
            raise asked.error
        return 1, asked.cluster

    def said(self, request: str, lines: int | None = None) -> str:
        return self.requests[request].said

    def record(self, cluster: str) -> dict[str, Any] | None:
        return {"handle": cluster} if self.home(cluster).is_dir() else None

    def is_up(self, cluster: str) -> bool | None:
        return self.home(cluster).is_dir()

    def job_ended(self, cluster: str, job: int) -> bool | None:
        if not self.home(cluster).is_dir():
            raise ClusterDoesNotExist(cluster)
        if self.confused is not None:
            raise self.confused
        return self.running[cluster].poll() is not None

    def run(self, handle: str, script: str) -> str:
        if not self.answers or not self.home(handle).is_dir():
            raise RunnerError("The machine cannot be reached: ssh timed out")
        env = {**os.environ, "HOME": str(self.home(handle))}
        words = ["bash", "-c", script]
        return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout

    def log(self, cluster: str, job: int) -> str:
        if not self.home(cluster).is_dir():
            raise ClusterDoesNotExist(cluster)
        lines = (self.home(cluster) / "run.log").read_text().splitlines()
        return "\n".join(f"\x1b[36m(underdog, pid=17821)\x1b[0m {line}" for line in lines)

    def cancel_request(self, request: str) -> None:
        self.requests[request].stage = "cancelled"

    def cancel_job(self, cluster: str, job: int) -> None:
        self.running[cluster].terminate()

    def down(self, cluster: str) -> str:
        self.downs.append(cluster)
        if not self.stays_up:
            self.vanish(cluster)
        return f"down {cluster}"

    def vanish(self, cluster: str) -> None:
        """The machine is gone with all on it, as a spot machine that is taken away."""
        process = self.running.pop(cluster, None)
        if process is not None:
            tree = [psutil.Process(process.pid)] if process.poll() is None else []
            tree = [*tree, *(p for one in tree for p in one.children(recursive=True))]
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            for one in tree:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
            process.wait()
        shutil.rmtree(self.home(cluster), ignore_errors=True)

    def close(self) -> None:
        for cluster in list(self.running):
            self.vanish(cluster)
