"""The dashboard of a Ray cluster: the REST interface of Ray Jobs, which Ray documents as such.

No package of Ray is needed for it, so the cluster's version of Ray is the cluster's own business.
The token of a cluster that asks for one is taken from the environment, as Ray takes it.
"""

from __future__ import annotations

import email.utils
import json
import os
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import urllib3
from urllib3.util import Timeout

from underdog.errors import RunnerError, UsageError

DEFAULT = "http://127.0.0.1:8265"  # Ray's own
CONNECT, READ, UPLOAD = 5.0, 30.0, 600.0  # seconds
MOST_NODES = 10_000  # Ray lists no more at once


def dashboard(address: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """The address of the dashboard: the one given, else that of the environment, else Ray's own.

    Raises:
        UsageError: it is that of another port of Ray, or holds a password.
    """
    given = address or environment.get("RAY_API_SERVER_ADDRESS") or environment.get("RAY_ADDRESS")
    full = given or DEFAULT
    parts = urllib.parse.urlsplit(full if "://" in full else f"http://{full}")
    if parts.scheme not in ("http", "https") or not parts.hostname or full == "auto":
        raise UsageError(
            f"'{full}' is not the address of a Ray dashboard.",
            "It is such as http://HOST:8265: give it as address in [offer.ray], or by "
            "$RAY_API_SERVER_ADDRESS.",
        )
    if parts.username or parts.password:
        raise UsageError(
            f"The address of the Ray dashboard at '{parts.hostname}' holds a user or a password.",
            "Leave it out, and set RAY_AUTH_TOKEN.",
        )
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


class Cluster:
    """A Ray cluster by the address of its dashboard. Every method asks it once.

    Raises:
        RunnerError: it cannot be reached, refuses us, or answers what no Ray answers.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._date: str | None = None  # of its last answer
        parts = urllib.parse.urlsplit(address)
        proxy = urllib.request.getproxies().get(parts.scheme)
        direct = not proxy or urllib.request.proxy_bypass(parts.hostname or "")
        self._pool = urllib3.PoolManager() if direct else urllib3.ProxyManager(str(proxy))

    def submit(self, name: str, body: Mapping[str, Any]) -> None:
        """Have a job started; one that is there under this name already is left alone."""
        answer = self._ask("POST", "/api/jobs/", json={"submission_id": name, **body})
        said = answer.data.decode(errors="replace").strip()
        if answer.status != 200 and "already exists" not in said:
            last = said.rstrip(".\n").rpartition("\n")[2]
            raise RunnerError(f"The Ray cluster at '{self.address}' did not take the job: {last}.")

    def job(self, name: str) -> dict[str, Any] | None:
        """What Ray knows of a job: ``status``, ``message`` and more; None where it knows none."""
        answer = self._ask("GET", f"/api/jobs/{name}")
        return None if answer.status == 404 else self._object(answer)

    def waited(self, job: Mapping[str, Any]) -> float:
        """Seconds since a job was submitted, by the cluster's clock; ours may differ."""
        now = email.utils.parsedate_to_datetime(self._date).timestamp() if self._date else None
        return 0.0 if now is None else max(0.0, now - (job.get("start_time") or now * 1000) / 1000)

    def log(self, name: str) -> str | None:
        """All that a job wrote, None where its node does not give it."""
        answer = self._ask("GET", f"/api/jobs/{name}/logs")
        return None if answer.status != 200 else str(self._object(answer).get("logs") or "")

    def stop(self, name: str) -> None:
        """Ask a job to end; one that is gone has."""
        answer = self._ask("POST", f"/api/jobs/{name}/stop")
        if answer.status not in (200, 404):
            said = answer.data.decode(errors="replace").strip().rpartition("\n")[2]
            raise RunnerError(f"The Ray job '{name}' could not be stopped: {said}.")

    def upload(self, name: str, package: bytes) -> None:
        """Give it a package of files, unless it has it."""
        path = f"/api/packages/gcs/{name}"
        if self._ask("GET", path).status == 200:  # this keeps it from being removed, too
            return
        answer = self._ask("PUT", path, body=package, read=UPLOAD)
        if answer.status != 200:
            size = f"{len(package) / 2**20:.0f} MiB"
            raise RunnerError(
                f"The Ray cluster at '{self.address}' did not take the {size} of files "
                f"(HTTP {answer.status}).",
                "Have git ignore what the command does not need, or name a folder of the nodes by "
                "folder in [offer.ray].",
            )

    def nodes(self) -> list[dict[str, Any]] | None:
        """Its nodes that are alive, with ``resources_total`` and ``labels``; None: not told."""
        answer = self._ask("GET", f"/api/v0/nodes?limit={MOST_NODES}")
        if answer.status != 200:
            return None
        listed = ((self._object(answer).get("data") or {}).get("result") or {}).get("result")
        return None if listed is None else [n for n in listed if n.get("state") == "ALIVE"]

    def is_fixed(self, nodes: list[dict[str, Any]]) -> bool:
        """Whether it is known that no autoscaler adds nodes.

        Ray then reports a type of its own for every node, named by the node.
        """
        answer = self._ask("GET", "/api/cluster_status")
        if answer.status != 200:
            return False
        status = (self._object(answer).get("data") or {}).get("clusterStatus") or {}
        kinds = ((status.get("autoscalerReport") or {}).get("nodeTypeMapping") or {}).values()
        own = {f"node_{node['node_id']}" for node in nodes}
        return bool(kinds) and set(kinds) <= own

    def _ask(
        self, method: str, path: str, *, read: float = READ, **sent: Any
    ) -> urllib3.BaseHTTPResponse:
        try:
            answer = self._pool.request(
                method,
                self.address + path,
                headers=_headers()
                | ({"Content-Type": "application/json"} if "json" in sent else {}),
                timeout=Timeout(connect=CONNECT, read=read),
                retries=False,
                **sent,
            )
        except urllib3.exceptions.HTTPError as error:
            raise RunnerError(
                f"The Ray cluster at '{self.address}' cannot be reached: {_reason(error)}.",
                "Check that address, that of the dashboard (http://HOST:8265): "
                f"curl {self.address}/api/version",
            ) from error
        self._date = answer.headers.get("Date")
        if answer.status in (401, 403):
            raise RunnerError(
                f"The Ray cluster at '{self.address}' does not let us in (HTTP {answer.status}).",
                "export RAY_AUTH_TOKEN=… with the token that `ray get-auth-token` prints there.",
            )
        return answer

    def _object(self, answer: urllib3.BaseHTTPResponse) -> dict[str, Any]:
        try:
            found = json.loads(answer.data)
        except ValueError:
            found = None
        if answer.status != 200 or not isinstance(found, dict):
            raise RunnerError(
                f"What answers at '{self.address}' is no Ray dashboard, or not well "
                f"(HTTP {answer.status}).",
                f"curl {self.address}/api/version",
            )
        return found


def _headers(environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What Ray's own client sends: the headers and the token of the environment."""
    found = {"User-Agent": "underdog"}
    try:
        found |= json.loads(environment.get("RAY_JOB_HEADERS") or "{}")
    except (ValueError, TypeError) as error:
        raise UsageError("$RAY_JOB_HEADERS is no JSON object of headers.") from error
    token = environment.get("RAY_AUTH_TOKEN")
    if not token and environment.get("RAY_AUTH_MODE") == "token":
        path = Path(environment.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()
        token = path.read_text().strip() if path.is_file() else None
    if token:
        found.setdefault("Authorization", f"Bearer {token}")
    return found


def _reason(error: urllib3.exceptions.HTTPError) -> str:
    """The last part of urllib3's message: what the system said."""
    return str(error).rpartition("object at 0x")[2].partition(">: ")[2] or str(error).rstrip(".")
