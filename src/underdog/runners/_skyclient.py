"""All that is used of SkyPilot, in one place. Its SDK talks to its API server, which outlives us.

A method of the SDK gives the id of a request, whose result is waited for apart from it. What the
SDK cannot do, such as to run a command on a machine and get its output, is taken from its inside
(``get_command_runners``), and needs the API server on this computer.
"""

from __future__ import annotations

import contextlib
import copy
import io
from collections.abc import Iterator, Mapping
from typing import Any

from underdog.errors import MissingPackageError, RunnerError
from underdog.runners._skyerrors import plain

LAUNCH = "sky.launch"  # the name of such requests at the server
GONE = "gone"  # a request that the server has forgotten


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """SkyPilot talks on the standard output, which is for data."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def sdk() -> Any:
    """SkyPilot.

    Raises:
        MissingPackageError: it is not installed.
    """
    try:
        with quiet():
            import sky
    except ImportError as error:
        raise MissingPackageError("The runner 'skypilot'", "skypilot", "skypilot") from error
    return sky


class Client:
    """The requests that a runner makes. Errors are those of SkyPilot."""

    def __init__(self) -> None:
        self._sky = sdk()
        self._asked: dict[str, str] = {}

    def launch(self, task: Mapping[str, Any], cluster: str, secrets: Mapping[str, str]) -> str:
        """Ask for a cluster that runs the task; the id of the request."""
        with quiet():
            # the values are kept out of what SkyPilot stores as the user's text
            made = self._sky.Task.from_yaml_config(
                copy.deepcopy(dict(task)), secrets_overrides=list(secrets.items())
            )
            return str(self._sky.launch(made, cluster_name=cluster))

    def launches(self, cluster: str) -> list[str]:
        """The requests for a cluster of that name, the latest first."""
        with quiet():
            found = self._sky.api_status(all_status=True, cluster_name=cluster)
        mine = [r for r in found if r.name == LAUNCH and r.cluster_name == cluster]
        mine.sort(key=lambda request: request.created_at, reverse=True)
        return [str(request.request_id) for request in mine]

    def stage(self, request: str) -> str:
        """How a request stands: pending, waiting, running, succeeded, failed, cancelled, gone."""
        with quiet():
            found = self._sky.api_status(request_ids=[request])
        return str(found[0].status).rpartition(".")[2].lower() if found else GONE

    def result(self, request: str) -> Any:
        """What a request gave; waits for it, and raises what it failed with."""
        with quiet():
            return self._sky.get(request)

    def said(self, request: str, lines: int | None = None) -> str:
        """The log of a request so far, or its last lines."""
        out = io.StringIO()
        with quiet():
            self._sky.stream_and_get(request, tail=lines, follow=False, output_stream=out)
        return plain(out.getvalue())

    def record(self, cluster: str) -> dict[str, Any] | None:
        """What SkyPilot has in its books of a cluster; None where there is none."""
        found = self.result(self._status(cluster))
        return dict(found[0]) if found else None

    def is_up(self, cluster: str) -> bool | None:
        """Whether its machines are there, asked of the cloud; None until the answer has come."""
        answer = self._answer(f"up {cluster}", lambda: self._status(cluster, refresh=True))
        if answer is None:
            return None
        return any(str(record["status"]).endswith("UP") for record in answer)

    def job_ended(self, cluster: str, job: int) -> bool | None:
        """Whether SkyPilot takes a job for ended; None until the answer has come."""

        def ask() -> str:
            return str(self._sky.job_status(cluster, [job]))

        answer = self._answer(f"job {cluster}", ask)
        if answer is None:
            return None
        status = answer.get(job)
        return status is None or bool(status.is_terminal())

    def _status(self, cluster: str, refresh: bool = False) -> str:
        mode = self._sky.StatusRefreshMode.FORCE if refresh else self._sky.StatusRefreshMode.NONE
        with quiet():
            return str(self._sky.status([cluster], refresh=mode))

    def _answer(self, question: str, ask: Any) -> Any:
        """The answer to a question that takes seconds; it is asked now and looked for later."""
        if question not in self._asked:
            with quiet():
                self._asked[question] = ask()
            return None
        request = self._asked[question]
        if self.stage(request) in ("pending", "waiting", "running"):
            return None
        del self._asked[question]
        return self.result(request)

    def run(self, handle: Any, script: str) -> str:
        """What a script prints on the first machine.

        Raises:
            RunnerError: the machine cannot be reached from here.
        """
        try:
            with quiet():
                first = handle.get_command_runners()[0]
                code, out, err = first.run(
                    script, require_outputs=True, stream_logs=False, separate_stderr=True
                )
        except Exception as error:  # whatever SkyPilot's inside raises
            raise RunnerError(f"The machine cannot be reached: {error}") from error
        if code:
            raise RunnerError(f"The machine cannot be reached: {err.strip()[-500:]}")
        return str(out)

    def log(self, cluster: str, job: int) -> str:
        """What a job printed; takes seconds."""
        out = io.StringIO()
        with quiet():
            self._sky.tail_logs(cluster, job, follow=False, output_stream=out)
        return plain(out.getvalue())

    def cancel_request(self, request: str) -> None:
        """Ask the server to give up a request."""
        with quiet():
            self._sky.api_cancel(request, silent=True)

    def cancel_job(self, cluster: str, job: int) -> None:
        """Ask the server to end a job."""
        with quiet():
            self._sky.cancel(cluster, job_ids=[job])

    def down(self, cluster: str) -> str:
        """Ask the server to take the cluster down; the id of the request."""
        with quiet():
            return str(self._sky.down(cluster))
