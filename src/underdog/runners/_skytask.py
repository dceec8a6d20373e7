"""A trial as a SkyPilot task: plain data, made without SkyPilot.

The form is that of SkyPilot's task YAML; https://docs.skypilot.co/en/latest/reference/yaml-spec.html
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from underdog.config import data_folder
from underdog.errors import UsageError, did_you_mean
from underdog.model import Offer
from underdog.runners import Job
from underdog.runners._remote import (
    EXIT,
    GRACE,
    LOG,
    PROGRESS,
    SCRIPT,
    TRIAL,
    job_script,
    shell_path,
    wheel_name,
)

# of SkyPilot 0.14: what stands first in `infra`
CLOUDS = (
    "aws", "azure", "cudo", "do", "fluidstack", "gcp", "hyperbolic", "ibm", "kubernetes", "lambda",
    "mithril", "nebius", "oci", "paperspace", "primeintellect", "runpod", "scp", "seeweb",
    "shadeform", "slurm", "ssh", "vast", "verda", "vsphere", "yotta",
)  # fmt: skip
# whose machines cannot take themselves down (SkyPilot's clouds/*.py: AUTODOWN)
KEEPS_RUNNING = ("hyperbolic", "primeintellect", "verda", "yotta")
# where machines are asked for by what they have, and no instance types are sold
_NO_TYPES = ("kubernetes", "k8s", "slurm", "ssh")
COLLECT_MINUTES = 3  # that a machine waits for its records to be brought back
PROVISION_MINUTES = 10  # of an allocation of Slurm, before the job begins in it
MASTER_PORT = 29500
WORK = "~/sky_workdir"  # where SkyPilot puts what is carried
HERE = "~/.underdog"
BEGIN, END = "UNDERDOG-RECORDS-BEGIN", "UNDERDOG-RECORDS-END"
CANCELLED, PID, TAIL = "cancelled", "pid", "tail.txt"
ABSENT, RUNS, ENDED, DEAD = "absent", "runs", "ended", "dead"
SAYS = "underdog:"
_TAIL_BYTES = 65536


class Target(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The keys of ``[offer.skypilot]``; what is not given comes from the offer.

    Attributes:
        infra: where, as SkyPilot writes it: ``aws/us-east-1``, ``k8s/context``, ``slurm/cluster``.
        region: of the offer's cloud.
        zones: of the region, tried in this order; by default the offer's, else all.
        instance_type: of the cloud.
        accelerators: in SkyPilot's names: ``H100:8``, ``tpu-v6e-8``.
        cpus: ``8``, ``8+``.
        memory: GiB: ``32``, ``32+``.
        use_spot: whether to ask for spot.
        disk_size: GB.
        disk_tier: ``low``, ``medium``, ``high``, ``ultra``, ``best``.
        network_tier: ``standard``, ``best``.
        image_id: of the cloud, or ``docker:IMAGE``.
        secrets: names of environment variables of here whose values the job gets.
        python: the Python there that has underdog; without it, underdog is installed there.
        folder: a folder there to work in; nothing is carried then.
        shell_setup: commands of bash before the job, such as ``pip install -r requirements.txt``.
    """

    infra: str | None = None
    region: str | None = None
    zones: tuple[str, ...] = ()
    instance_type: str | None = None
    accelerators: str | None = None
    cpus: int | float | str | None = None
    memory: int | float | str | None = None
    use_spot: bool | None = None
    disk_size: int | None = None
    disk_tier: str | None = None
    network_tier: str | None = None
    image_id: str | None = None
    secrets: tuple[str, ...] = ()
    python: str | None = None
    folder: str | None = None
    shell_setup: tuple[str, ...] = ()


def task_of(job: Job, target: Target) -> dict[str, Any]:
    """The task of a job.

    Raises:
        UsageError: SkyPilot cannot start a machine of that offer; the message says why.
    """
    resources = _resources(job, target)
    task: dict[str, Any] = {"name": "underdog", "resources": resources}
    if job.offer.nodes > 1:
        task["num_nodes"] = job.offer.nodes
    if _first(resources["infra"]) == "slurm":
        minutes = limit_minutes(job) + PROVISION_MINUTES
        task["config"] = {"slurm": {"sbatch_options": {"time": minutes}}}
    if target.folder is None and job.folder is not None:
        task["workdir"] = str(job.folder)
    if target.python is None:
        task["file_mounts"] = {f"{HERE}/{wheel_name()}": str(wheel_path())}
    if target.secrets:
        task["secrets"] = dict.fromkeys(target.secrets)
    task["run"] = run_script(job, target)
    return task


def wheel_path() -> Path:
    """Where the wheel of underdog lies for SkyPilot, which reads it after we may be gone."""
    return data_folder() / "wheels" / wheel_name()


def limit_minutes(job: Job) -> int:
    """Minutes after which the machine takes itself down, counted from the start of the job."""
    return math.ceil((job.longest + GRACE) / 60) + COLLECT_MINUTES


def _first(infra: str) -> str:
    return infra.partition("/")[0].lower()


def _resources(job: Job, target: Target) -> dict[str, Any]:
    offer = job.offer
    infra = target.infra or _infra(offer, target)
    typeless = _first(infra) in _NO_TYPES
    found: dict[str, Any] = {"infra": infra}
    found |= _asked(offer, target) if typeless else _sold(offer, target)
    if _is_spot(offer, target):
        found["use_spot"] = True
    for name in ("disk_size", "disk_tier", "network_tier", "image_id"):
        if (value := getattr(target, name)) is not None:
            found[name] = value
    if _first(infra) not in KEEPS_RUNNING:
        # `none`: a job that hangs counts as idle too, so that the limit holds whatever it does
        limit = {"idle_minutes": limit_minutes(job), "down": True, "wait_for": "none"}
        found["autostop"] = limit
    if len(target.zones) > 1:
        if infra.count("/") != 1:
            raise UsageError(
                f"Zones of '{infra}' cannot be named for '{job.candidate}'.",
                "Let infra be CLOUD/REGION, and zones those of it.",
            )
        found["ordered"] = [{"infra": f"{infra}/{zone}"} for zone in target.zones]
    return found


def _infra(offer: Offer, target: Target) -> str:
    """Where the offer is, as SkyPilot writes it."""
    cloud = offer.provider.lower()
    if cloud not in CLOUDS:
        raise UsageError(
            f"SkyPilot starts no machines of '{offer.provider}', as the offer '{offer.id}' needs.",
            f"{did_you_mean(cloud, CLOUDS)} Or say where: infra = … in [offer.skypilot]",
        )
    region = target.region or (offer.region if offer.region != "unknown" else None)
    zone = target.zones[0] if len(target.zones) == 1 else None
    if not target.zones and target.region is None:
        zone = offer.zone
    return "/".join(part for part in (cloud, region, zone) if part)


def _sold(offer: Offer, target: Target) -> dict[str, Any]:
    """The machine of a cloud: its type, which SkyPilot's own catalog knows."""
    if target.instance_type is None:
        _check_sold(offer, target)
    found: dict[str, Any] = {"instance_type": target.instance_type or offer.instance_type}
    if target.accelerators is not None:
        found["accelerators"] = target.accelerators
        if target.accelerators.lower().startswith("tpu-"):
            found.pop("instance_type")
    return found | _sizes(target.cpus, target.memory)


def _check_sold(offer: Offer, target: Target) -> None:
    if offer.instance_type.startswith("ml."):
        raise UsageError(
            f"SkyPilot starts machines, and '{offer.instance_type}' is one of SageMaker.",
            f"Measure on the machine itself: {offer.instance_type.removeprefix('ml.')}",
        )
    if (offer.accelerator or "").startswith("TPU") and target.accelerators is None:
        raise UsageError(
            f"SkyPilot asks for a TPU by its slice, not by the type '{offer.instance_type}'.",
            "Name the slice, as accelerators = 'tpu-v6e-8' in [offer.skypilot].",
        )


def _asked(offer: Offer, target: Target) -> dict[str, Any]:
    """What to ask a cluster for: what the offer has."""
    accelerators = target.accelerators
    if accelerators is None and offer.accelerator and offer.accelerator_count >= 1:
        accelerators = f"{offer.accelerator}:{offer.accelerator_count:g}"
    found = {} if accelerators is None else {"accelerators": accelerators}
    if target.instance_type is not None:
        found["instance_type"] = target.instance_type
    return found | _sizes(target.cpus or offer.vcpus, target.memory or offer.memory_gib)


def _sizes(cpus: float | str | None, memory: float | str | None) -> dict[str, Any]:
    """SkyPilot takes a number or a text such as ``8+``."""
    given = {"cpus": cpus, "memory": memory}
    return {k: v if isinstance(v, str) else f"{v:g}" for k, v in given.items() if v is not None}


def _is_spot(offer: Offer, target: Target) -> bool:
    if target.use_spot is not None:
        return target.use_spot
    if offer.purchase not in ("on-demand", "spot"):
        raise UsageError(
            f"SkyPilot starts machines on demand or as spot, and '{offer.id}' is '{offer.purchase}'"
            ".",
            "Measure the offer on demand, which is the same machine; where a reservation of yours "
            "covers it, say use_spot = false in [offer.skypilot].",
        )
    return offer.purchase == "spot"


_RUN = """\
mkdir -p {here} && cd {here} || exit 125
[ ! -e {cancelled} ] || exit 0
{nodes}cat >{script} <<'{mark}'
{content}{mark}
bash ./{script} &
echo $! >{pid}
trap 'kill -TERM "$(cat {pid})"' TERM INT
wait; wait
{show}
exit "$(cat {exit} 2>/dev/null || echo 125)"
"""
# A node that fails must not take down the first one, which measures, before its record is written.
_NODES = """\
export MASTER_ADDR="$(echo "$SKYPILOT_NODE_IPS" | head -n 1)" MASTER_PORT={port}
export NNODES="$SKYPILOT_NUM_NODES" NODE_RANK="$SKYPILOT_NODE_RANK"
if [ "$SKYPILOT_NODE_RANK" != 0 ]; then
  {setup}
  cd {folder}
  timeout --kill-after={grace} {longest:.0f} {command}
  exit 0
fi
"""
# The user's own Python may be too old for underdog; SkyPilot has brought uv along.
_NEWER = """\
UNDERDOG_PYTHON=python3
if ! python3 -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))'; then
  uv=$HOME/.local/bin/uv
  "$uv" python install 3.12 && UNDERDOG_PYTHON=$("$uv" python find --no-project 3.12) || :
fi"""


def run_script(job: Job, target: Target) -> str:
    """What each node runs, in bash; the first one measures, the others run the bare command."""
    work = target.folder or (WORK if job.folder is not None else None)
    own = [] if target.python else [_NEWER]
    setup = (*own, *target.shell_setup)
    content = job_script(job, work, target.python, setup, maker='"$UNDERDOG_PYTHON"')
    nodes = _NODES.format(
        port=MASTER_PORT,
        setup="\n".join(target.shell_setup) or ":",
        folder=shell_path(work or HERE),
        grace=GRACE,
        longest=job.longest,
        command=shlex.join(job.command),
    )
    return _RUN.format(
        here=shell_path(HERE),
        cancelled=CANCELLED,
        script=SCRIPT,
        mark="END-" + hashlib.sha256(content.encode()).hexdigest()[:16],
        content=content,
        nodes=nodes if job.offer.nodes > 1 else "",
        pid=PID,
        show=show_script(),
        exit=EXIT,
    )


_HOW = f"""\
if [ -e {EXIT} ]; then echo {SAYS}{ENDED}
elif [ ! -s {PID} ]; then echo {SAYS}{ABSENT}
elif [ -d "/proc/$(cat {PID})" ]; then echo {SAYS}{RUNS}
else sleep 1; if [ -e {EXIT} ]; then echo {SAYS}{ENDED}; else echo {SAYS}{DEAD}; fi; fi
"""


def show_script() -> str:
    """Print how a job stands and its records, these between two marks to come through any log."""
    names = f"{EXIT} {TRIAL} {TAIL} {CANCELLED}"
    return f"""\
cd {shell_path(HERE)} 2>/dev/null && {{
  {_HOW}
  tail -c {_TAIL_BYTES} {LOG} >{TAIL} 2>/dev/null
  echo; echo {BEGIN}
  tar -czf - $(ls {names} 2>/dev/null) | base64
  echo {END}
}}"""


def look_script() -> str:
    """Print how a job stands, and its progress."""
    return f"""\
cd {shell_path(HERE)} 2>/dev/null || {{ echo {SAYS}{ABSENT}; exit 0; }}
{_HOW}
cat {PROGRESS} 2>/dev/null || :"""


def cancel_script() -> str:
    """Ask a job to end; one that has not begun does not begin any more."""
    return f"""\
mkdir -p {shell_path(HERE)} && cd {shell_path(HERE)} || exit 0
[ -e {EXIT} ] || : >{CANCELLED}
[ ! -s {PID} ] || kill -TERM "$(cat {PID})" 2>/dev/null || :"""


def as_yaml(task: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a task as YAML."""
    for key, value in task.items():
        if isinstance(value, str) and "\n" in value and _is_plain(value):
            yield f"{key}: |"
            yield from (f"  {line}" if line else "" for line in value.split("\n"))
        elif isinstance(value, Mapping):
            yield f"{key}:"
            yield from (f"  {line}" for line in as_yaml(value))
        else:
            yield f"{json.dumps(key) if '~' in key else key}: {json.dumps(value)}"


def _is_plain(text: str) -> bool:
    """Whether YAML takes it as it stands."""
    return all(letter.isprintable() or letter in "\n\t" for letter in text)
