"""What the engines of other machines share: a trial there is ``underdog measure`` in a folder.

The folder of a job holds ``job.sh``, and when it has run ``trial.json``, ``progress.json``,
``log.txt`` and ``exit``. The script needs no more than a POSIX shell and a Python: where the
machine has no underdog of this version, it makes an environment of its own for it, once, from the
wheel that comes along; the user's environment is left as it is.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import importlib.metadata
import math
import re
import shlex
import uuid
import zipfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec

from underdog.core.figures import Figures, faults_of
from underdog.core.racing import Look
from underdog.errors import UsageError
from underdog.model import Estimate, Machine, Price, Software, Trial
from underdog.runners import Job

SCRIPT, TRIAL, PROGRESS, LOG, EXIT = "job.sh", "trial.json", "progress.json", "log.txt", "exit"
FILES = "files"  # the folder of what was carried, in that of the job
GRACE = 30  # seconds between the request to end and the kill
TIMED_OUT = "124"  # what timeout(1) ends with when the time was over
TOO_LONG = "It was ended because the longest time that it may take was over."

_T = TypeVar("_T")

# What kills our process group kills timeout too, which is in the foreground; where the shell alone
# is killed the kernel ends timeout, by util-linux's setpriv; and underdog goes with it. It is asked
# to end once: a second time might come when it writes its record.
_TEMPLATE = """\
#!/bin/sh
# {title}
job=$(cd "$(dirname "$0")" && pwd) || exit 125
fail() {{ echo "$1" >>"$job/{log}"; exit 125; }}
seconds_up() {{ cut -d. -f1 /proc/uptime 2>/dev/null || echo 0; }}
began=$(seconds_up)
{setup}{environment}
mkdir -p "$job/{files}" && cd "$job" && cd {folder} || fail {no_folder}
left=$(({longest:.0f} - $(seconds_up) + began))
[ $left -gt 0 ] || fail "All the time that it may take went by before its measurement began."
bound=; setpriv --pdeathsig TERM true 2>/dev/null && bound="setpriv --pdeathsig TERM"
$bound timeout --foreground --signal=TERM --kill-after={grace} $left \
  "$underdog" -E -P -m underdog {measure} \
  --store="$job/store.sqlite3" --progress="$job/{progress}" -- \
  {command} \
  >"$job/{trial}.part" 2>"$job/{log}" </dev/null &
child=$!
trap 'trap : TERM INT HUP; kill -TERM $child 2>/dev/null' TERM INT HUP
wait $child; code=$?
while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
mv "$job/{trial}.part" "$job/{trial}"
echo $code >"$job/{exit}.part" && mv "$job/{exit}.part" "$job/{exit}"
exit 0
"""
_SETUP = """\
{{ {line}
}} >>"$job/{log}" 2>&1 || fail {failed}
"""

# made in place, for an environment cannot be moved; a link gives it its name when it is whole, so
# that of several that are made at once, or left half made by a kill, one whole one is used
_OWN_ENVIRONMENT = """\
home=${{XDG_CACHE_HOME:-$HOME/.cache}}/underdog/{name}-$(uname -m)
underdog=$home/bin/python
if [ ! -e "$home/bin/python" ]; then
  command -v {python} >/dev/null || fail "There is no '{python}' on this machine."
  own=$home.$(hostname).$$
  {{ mkdir -p "$(dirname "$home")" \
    && timeout --foreground {longest:.0f} {python} -m venv --clear "$own" \
    && timeout --foreground {longest:.0f} "$own/bin/python" -m pip install --quiet "$job/{wheel}" \
    && {{ ln -sn "$own" "$home" 2>/dev/null || rm -rf "$own"; }}
  }} >>"$job/{log}" 2>&1 || {{ rm -rf "$own"; fail "underdog could not be installed here."; }}
fi"""


class _Progress(msgspec.Struct, kw_only=True):
    """What ``measure --progress`` writes; it comes from another machine, so it may be anything."""

    elapsed: Annotated[float, msgspec.Meta(ge=0)]
    seconds: Annotated[float, msgspec.Meta(ge=0)]
    samples_per_second: Estimate | None
    effective: Annotated[float, msgspec.Meta(ge=0)]
    settled: bool
    figures: Figures | None = None


def measure_arguments(job: Job) -> list[str]:
    """The arguments of ``underdog`` that measure the job, up to ``--``."""
    arguments = ["measure", "--json", *(["--whole"] if job.whole else [])]
    for flag, value in (
        ("--for", None if job.whole else f"{job.seconds:.3f}s"),
        ("--precision", None if job.whole else f"{job.precision:g}"),
        ("--timeout", f"{job.timeout:.3f}s"),
        ("--workload", job.workload),
        ("--price", None if job.price is None else repr(job.price)),
        ("--pattern", job.pattern),
        (
            "--samples-per-step",
            None if job.samples_per_step is None else repr(job.samples_per_step),
        ),
    ):
        if value is not None:
            arguments.append(f"{flag}={value}")
    return arguments


def job_script(
    job: Job,
    folder: str | None,
    python: str | None = None,
    setup: Sequence[str] = (),
    maker: str = "python3",
) -> str:
    """The script that carries out a job on the machine, to be stored as ``SCRIPT`` in its folder.

    It ends with status 0 whatever came of the command; ``EXIT`` holds that of ``underdog measure``
    (124 where ``job.longest`` was over) and appears last, when all else is in place. A SIGTERM ends
    the measurement early. It holds no value of the environment, so no secret either.

    Args:
        folder: where the command runs, a path on the machine; None: ``FILES`` in the folder of the
            job, where what was carried has to be by then.
        python: the Python there that has underdog; None: the script sets one up from the wheel
            (``wheel``), which then lies beside it.
        setup: shell commands that come before all else, such as ``module load cuda``.
        maker: the Python there that makes the environment of ours, as a word of the shell.
    """
    steps = [
        _SETUP.format(line=line, log=LOG, failed=shlex.quote(f"'{line}' of shell_setup failed."))
        for line in setup
    ]
    return _TEMPLATE.format(
        title=f"{job.workload} on {job.candidate}".replace("\n", " "),
        setup="".join(steps),
        environment=_environment(job, maker)
        if python is None
        else f"underdog={shell_path(python)}",
        folder=f'"$job/{FILES}"' if folder is None else shell_path(folder),
        files=FILES,
        no_folder=shlex.quote(f"The folder '{folder or FILES}' cannot be entered on this machine."),
        grace=GRACE,
        longest=job.longest,
        measure=shlex.join(measure_arguments(job)),
        command=shlex.join(job.command),
        trial=TRIAL,
        progress=PROGRESS,
        log=LOG,
        exit=EXIT,
    )


def _environment(job: Job, maker: str) -> str:
    """The lines that make an environment of ours, where there is none yet."""
    name = wheel_name()
    return _OWN_ENVIRONMENT.format(
        name=f"{Path(name).stem}-{_digest()[:12]}",
        python=maker,
        wheel=name,
        log=LOG,
        longest=job.longest,
    )


def shell_path(path: str) -> str:
    """A path as a word of the shell; a leading ``~`` is the home folder there."""
    home, tilde, rest = path.partition("~/")
    return f'"$HOME"/{shlex.quote(rest)}' if tilde and not home else shlex.quote(path)


def target_of(job: Job, kind: type[_T], runner: str) -> _T:
    """How to get at the machine of a job.

    Raises:
        UsageError: a key that there is not, or a value that cannot be taken.
    """
    try:
        return msgspec.convert(dict(job.target), kind)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"'{job.candidate}' cannot be reached by {runner}: {error}.",
            "docs/reference/targets.md has the keys of each runner.",
        ) from error


def job_name(job: Job) -> str:
    """The name of a job at its engine, the same whenever the same trial is submitted."""
    return "underdog-" + re.sub(r"[^A-Za-z0-9.-]", "-", job.id or uuid.uuid4().hex)


def brought_back(content: bytes, exit_code: str) -> bytes | None:
    """The trial of a job whose ``EXIT`` says ``exit_code``; None where there is no whole one."""
    try:
        trial = msgspec.json.decode(content, type=Trial)
    except msgspec.MsgspecError:
        return None
    if exit_code.strip() == TIMED_OUT:
        return msgspec.json.encode(dataclasses.replace(trial, reason=TOO_LONG))
    return content


def cancelled_trial(workload: str, id: str | None = None) -> bytes:
    """The trial of a job that was cancelled before its measurement had begun.

    Args:
        id: of the trial, where it is made more than once.
    """
    reason = "it was cancelled before it had begun"
    trial = Trial(
        id=id or uuid.uuid4().hex,
        workload=workload,
        status="interrupted",
        reason=reason,
        price=Price(unknown_reason=reason),
        machine=Machine(),
        software=Software(),
    )
    return msgspec.json.encode(trial)


def look_of(said: bytes | str) -> Look | None:
    """What a running measurement says of itself in ``PROGRESS``; None before it says anything."""
    try:
        found = msgspec.json.decode(said, type=_Progress)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
    rate = found.samples_per_second
    if rate is not None and not (0 < rate.value < math.inf and rate.low <= rate.value <= rate.high):
        return None  # no rate that can be: whoever wrote it is not believed in the rest either
    figures = found.figures
    if figures and faults_of(figures.measurement, figures.phases, figures.timeline):
        figures = None
    return Look(
        elapsed=found.elapsed,
        seconds=found.seconds,
        rate=rate,
        effective=found.effective,
        settled=found.settled,
        figures=figures,
    )


def wheel_name() -> str:
    """The file name of ``wheel``."""
    return f"underdog-{importlib.metadata.version('underdog')}-py3-none-any.whl"


def write_wheel(folder: Path) -> Path:
    """Write this very version of underdog as a wheel into the folder."""
    path = folder / wheel_name()
    version = importlib.metadata.version("underdog")
    info = f"underdog-{version}.dist-info"
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in (*_sources(), *_about(info)):
            # no dates of today: the same version gives the same bytes
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}")
        record.append(f"{info}/RECORD,,")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "\n".join(record) + "\n")
    return path


def _sources() -> list[tuple[str, bytes]]:
    package = Path(__file__).parents[1]
    return [
        (f"underdog/{path.relative_to(package).as_posix()}", path.read_bytes())
        for path in sorted(package.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def _about(info: str) -> list[tuple[str, bytes]]:
    metadata = importlib.metadata.distribution("underdog").read_text("METADATA") or ""
    wheel = "Wheel-Version: 1.0\nGenerator: underdog\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return [
        (f"{info}/METADATA", metadata.encode()),
        (f"{info}/WHEEL", wheel.encode()),
    ]


@cache
def _digest() -> str:
    whole = hashlib.sha256()
    for name, data in _sources():
        whole.update(name.encode() + b"\0" + data)
    return whole.hexdigest()
