"""An existing Ray cluster, by Ray Jobs: a job runs on the node that has what it asks for."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from underdog.core.refusals import NEXT
from underdog.errors import RefusedError, RunnerError
from underdog.runners import Handle, Job, Request, Runner, Setup, State, _ray_job
from underdog.runners._ray_cluster import Cluster, dashboard
from underdog.runners._ray_job import Told, told_by
from underdog.runners._remote import (
    GRACE,
    TRIAL,
    brought_back,
    cancelled_trial,
    job_name,
    job_script,
    target_of,
)
from underdog.units import GIB, format_seconds

PAUSE = 1.0  # seconds for which an answer holds
ACCELERATORS = ("TPU", "HPU", "NPU", "neuron_cores")  # Ray's names of those that are no GPUs
TYPE = "accelerator_type:"  # Ray's resource of a node with such accelerators
TRACE = 0.001  # of it, so that it is asked for and not used up
FULL_KIB = 1024  # free on a disk that is taken for full
OWN_EXITS = ("1", "2", "125")  # of a measurement, and of the script, that end by themselves
NO_NODE = ("JOB_SUPERVISOR_ACTOR_START_TIMEOUT", "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE")
PENDING, RUNNING, STOPPED, SUCCEEDED = "PENDING", "RUNNING", "STOPPED", "SUCCEEDED"

_Amount = Annotated[float, Meta(ge=0)]


class Target(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The keys of ``[offer.ray]``.

    Attributes:
        address: of the dashboard; without it ``$RAY_API_SERVER_ADDRESS``, ``$RAY_ADDRESS``, or this
            machine's.
        cpus: that Ray keeps for the job; without it those of the offer, else 1.
        gpus: without it the accelerators of the offer.
        memory_gib: that Ray keeps for the job; Ray does not hold the job to it.
        accelerator_type: Ray's name of it, such as ``A100``.
        resources: custom ones, by name.
        labels: of the node, by name.
        patience: seconds that it may wait for a node.
        python: the Python there that has underdog; without it, underdog is installed there once.
        folder: a folder there to work in; nothing is carried then.
        shell_setup: commands of bash before the job, such as ``source venv/bin/activate``.
        scratch: a folder there for the job's own files; without it that for temporary ones.
    """

    address: str | None = None
    cpus: _Amount | None = None
    gpus: _Amount | None = None
    memory_gib: Annotated[float, Meta(gt=0)] | None = None
    accelerator_type: str | None = None
    resources: dict[str, _Amount] = {}
    labels: dict[str, str] = {}
    patience: Annotated[float, Meta(gt=0)] = 900.0
    python: str | None = None
    folder: str | None = None
    shell_setup: tuple[str, ...] = ()
    scratch: str | None = None

    def asked(self, job: Job) -> dict[str, float]:
        """What a node must have, by Ray's name; memory in bytes."""
        cpus = self.cpus
        if cpus is None:
            cpus = float(job.offer.vcpus or 1)
        gpus = self.gpus
        if gpus is None:
            other = any(name in ACCELERATORS for name in self.resources)
            gpus = 0.0 if other else float(job.offer.accelerator_count)
        custom = dict(self.resources)
        if self.accelerator_type is not None:
            custom.setdefault(f"{TYPE}{self.accelerator_type}", TRACE)
        memory = {} if self.memory_gib is None else {"memory": float(int(self.memory_gib * GIB))}
        found = {"CPU": cpus, "GPU": gpus, **memory, **custom}
        return {name: amount for name, amount in found.items() if amount}


class Ray:
    """Carries jobs by Ray Jobs; ``underdog.runners.Runner`` says what each method does."""

    def __init__(self, setup: Setup) -> None:
        self._folder = setup.folder
        self._seen: dict[Handle, tuple[float, State]] = {}
        self._cancelled: set[Handle] = set()

    def render(self, job: Job) -> Request:
        target = target_of(job, Target, "ray")
        body = _body(job, target)
        entrypoint = body.pop("entrypoint")
        lines = [f"POST {dashboard(target.address)}/api/jobs/", json.dumps(body)]
        if _carries(job, target):
            lines.append(f"with the files of {job.folder} as Ray's package")
        return Request(job, (*lines, *entrypoint.splitlines()))

    def submit(self, request: Request) -> Handle:
        job = request.job
        target = target_of(job, Target, "ray")
        cluster, name = Cluster(dashboard(target.address)), job_name(job)
        _check_nodes(cluster, target, target.asked(job))
        body = _body(job, target)
        if _brings(job, target):
            folder = job.folder if _carries(job, target) else None
            package, content = _ray_job.package(folder, target.python is None, self._folder)
            cluster.upload(package, content)
            body["runtime_env"]["working_dir"] = f"gcs://{package}"
        cluster.submit(name, body)
        return f"ray:{cluster.address}:{name}"

    def status(self, handle: Handle) -> State:
        at, state = self._seen.get(handle, (-PAUSE, None))
        if state is None or time.monotonic() - at >= PAUSE:
            state = self._asked(handle)
            self._seen[handle] = (time.monotonic(), state)
        return state

    def _asked(self, handle: Handle) -> State:
        cluster, name = _found(handle)
        job = cluster.job(name)
        look = self._seen[handle][1].look if handle in self._seen else None
        if job is None:
            return State(True, look)
        if job["status"] == PENDING:
            gone = handle in self._cancelled or cluster.waited(job) > _patience(job)
            return State(gone, None, None if gone else job.get("message"))
        log = cluster.log(name)
        look = (told_by(log).look if log else None) or look
        running = job["status"] == RUNNING
        return State(not running, look, "it is being set up" if running and not look else None)

    def collect(self, handle: Handle) -> Path:
        cluster, name = _found(handle)
        path = self._folder / name / TRIAL
        if not path.exists():
            content = self._content(cluster, name, handle)
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        return path

    def _content(self, cluster: Cluster, name: str, handle: Handle) -> bytes:
        job = cluster.job(name)
        where = f"'{name}' at '{cluster.address}'"
        if job is None:
            raise RunnerError(
                f"The Ray job {where} is lost: the cluster does not know it.",
                "It was started anew since, or forgot it.",
            )
        if job["status"] == RUNNING:
            raise RunnerError(f"The Ray job {where} has not ended.")
        workload = (job.get("metadata") or {}).get("workload", "")
        if job["status"] == PENDING:
            return self._waiting(cluster, job, handle, workload)
        log = cluster.log(name)
        told = told_by(log or "")
        found = brought_back(told.trial, told.exit or "") if told.trial else None
        if found is not None:
            return found
        if job.get("error_type") in NO_NODE:
            raise RefusedError(str(job.get("message")), "no_capacity", _next("no_capacity"))
        if _cancelled_early(job, told, log):
            return cancelled_trial(workload, name)
        raise _lost(where, job, told, log)

    def _waiting(
        self, cluster: Cluster, job: Mapping[str, Any], handle: Handle, workload: str
    ) -> bytes:
        """The end of a job that got no node; Ray ends it before its command begins."""
        name = job["submission_id"]
        if handle in self._cancelled:
            return cancelled_trial(workload, name)
        waited = cluster.waited(job)
        if waited <= _patience(job):
            raise RunnerError(f"The Ray job '{name}' at '{cluster.address}' has not begun.")
        cluster.stop(name)
        raise RefusedError(
            f"{job.get('message')} It waited for {format_seconds(waited)}.",
            "no_capacity",
            _next("no_capacity"),
        )

    def cancel(self, handle: Handle) -> None:
        cluster, name = _found(handle)
        self._seen.pop(handle, None)
        self._cancelled.add(handle)
        cluster.stop(name)


def _carries(job: Job, target: Target) -> bool:
    return job.folder is not None and target.folder is None


def _brings(job: Job, target: Target) -> bool:
    return _carries(job, target) or target.python is None


def _body(job: Job, target: Target) -> dict[str, Any]:
    """The request for a job, but for its name and its package."""
    asked = target.asked(job)
    script = job_script(job, target.folder, target.python, target.shell_setup)
    entrypoint = _ray_job.entrypoint(
        job,
        script,
        login=bool(target.shell_setup),
        scratch=target.scratch,
        unpacks=_brings(job, target),
    )
    memory = asked.pop("memory", None)
    body: dict[str, Any] = {
        "entrypoint": entrypoint,
        "entrypoint_num_cpus": asked.pop("CPU", 0),
        "entrypoint_num_gpus": asked.pop("GPU", 0),
        "metadata": {
            "workload": job.workload,
            "candidate": job.candidate,
            "patience": f"{target.patience:.0f}",
        },
        # Ray's own three seconds are too short for a measurement to end well
        "runtime_env": {"env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": str(2 * GRACE)}},
    }
    if memory is not None:
        body["entrypoint_memory"] = int(memory)
    if asked:
        body["entrypoint_resources"] = asked
    if target.labels:  # a Ray that knows none would not take the key
        body["entrypoint_label_selector"] = dict(target.labels)
    return body


def _check_nodes(cluster: Cluster, target: Target, asked: Mapping[str, float]) -> None:
    """Refuse at once what no node of the cluster has, where none can be added."""
    nodes = cluster.nodes()
    if not nodes or any(_fits(node, target, asked) for node in nodes):
        return
    if not cluster.is_fixed(nodes):
        return
    most = {name: max(_has(node, name) for node in nodes) for name in asked}
    wants = ", ".join(f"{name}={amount:g}" for name, amount in asked.items())
    have = ", ".join(f"{name}={amount:g}" for name, amount in most.items())
    labels = f" and the labels {target.labels}" if target.labels else ""
    raise RefusedError(
        f"No node of the Ray cluster at '{cluster.address}' has {wants}{labels}; the most of each "
        f"on its {len(nodes)} nodes is {have}, and no autoscaler adds any.",
        "not_offered",
        "`ray status -v` shows what each node has; correct [offer.ray].",
    )


def _has(node: Mapping[str, Any], name: str) -> float:
    return float((node.get("resources_total") or {}).get(name, 0.0))


def _fits(node: Mapping[str, Any], target: Target, asked: Mapping[str, float]) -> bool:
    labels = node.get("labels") or {}
    # a selector may also say "!value" or "in(a, b)", which is for Ray to judge
    plain = {k: v for k, v in target.labels.items() if v and v[0] != "!" and "(" not in v}
    return all(_has(node, name) >= amount for name, amount in asked.items()) and all(
        labels.get(name) == value for name, value in plain.items()
    )


def _found(handle: Handle) -> tuple[Cluster, str]:
    kind, _, rest = handle.partition(":")
    address, _, name = rest.rpartition(":")
    if kind != "ray" or not address or not name:
        raise RunnerError(f"'{handle}' names no job of Ray.")
    return Cluster(address), name


def _patience(job: Mapping[str, Any]) -> float:
    return float((job.get("metadata") or {}).get("patience", "inf"))


def _cancelled_early(job: Mapping[str, Any], told: Told, log: str | None) -> bool:
    """Whether a job without a trial was asked to end, and not killed or out of room."""
    told_its_end = told.exit is not None or told.look is None
    return job["status"] == STOPPED and log is not None and told_its_end and not _full(told)


def _full(told: Told) -> bool:
    return told.free_kib is not None and told.free_kib < FULL_KIB


def _next(kind: str) -> str:
    return {str(known): words for known, words in NEXT.items()}[kind]


def _lost(where: str, job: Mapping[str, Any], told: Told, log: str | None) -> RunnerError:
    """What is known of a job that brought no trial back."""
    lines = [line for line in told.log.splitlines() if line.strip()][-5:]
    said = "\n".join(lines)
    if _full(told):
        return RunnerError(
            f"The Ray job {where} is lost: the disk of its node is full.\n{said}".rstrip(),
            "Make room there, or name a folder on another disk: scratch = … in [offer.ray]",
        )
    if told.exit in OWN_EXITS:
        return RunnerError(f"The measurement by the Ray job {where} gave nothing.\n{said}")
    why = str(job.get("message") or "").strip()
    if job["status"] == SUCCEEDED:  # as its command does where only what it waited for was killed
        why = "its command ended."
    if told.exit is not None:
        why = f"its measurement was killed (exit status {told.exit}).\n{said}".rstrip()
    elif log is None:
        why = f"{why} Its node does not give its log any more.".strip()
    return RunnerError(f"The Ray job {where} is lost: {why}")


def runner(setup: Setup) -> Runner:
    """The runner of Ray clusters."""
    return Ray(setup)
