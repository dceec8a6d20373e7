"""What the engines of other machines share: a trial there is ``underdog measure`` in a folder.

The folder of a job holds ``job.sh``, and when it has run ``trial.json``, ``progress.json``,
``log.txt`` and ``exit``. The script needs no more than a POSIX shell and a Python: where the
machine has no underdog of this version, it makes an environment of its own for it, once, from the
wheel that comes along; the user's environment is left as it is.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import shlex
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

from underdog.core.racing import Look
from underdog.model import Estimate
from underdog.runners import Job

SCRIPT, TRIAL, PROGRESS, LOG, EXIT = "job.sh", "trial.json", "progress.json", "log.txt", "exit"
GRACE = 30  # seconds between the request to end and the kill

_TEMPLATE = """\
#!/bin/sh
# {title}
job=$(cd "$(dirname "$0")" && pwd) || exit 125
{environment}
cd {folder} || {{ echo "The folder "{folder}" cannot be entered." >"$job/{log}"; exit 125; }}
timeout --signal=TERM --kill-after={grace} {longest:.0f} \\
  "$underdog" -m underdog {measure} \\
  --store="$job/store.sqlite3" --progress="$job/{progress}" -- \\
  {command} \\
  >"$job/{trial}.part" 2>"$job/{log}" </dev/null &
child=$!
trap 'kill -TERM $child 2>/dev/null' TERM INT HUP
wait $child; code=$?
while kill -0 $child 2>/dev/null; do wait $child; code=$?; done
mv "$job/{trial}.part" "$job/{trial}"
echo $code >"$job/{exit}.part" && mv "$job/{exit}.part" "$job/{exit}"
exit 0
"""

# made in place, for an environment cannot be moved; whoever made the lock makes it
_OWN_ENVIRONMENT = """\
home=${{XDG_CACHE_HOME:-$HOME/.cache}}/underdog/{name}
underdog=$home/bin/python
mkdir -p "$(dirname "$home")"
until [ -e "$home/ready" ]; do
  if mkdir "$home.lock" 2>/dev/null; then
    {python} -m venv --clear "$home" && "$underdog" -m pip install --quiet "$job/{wheel}" \\
      && touch "$home/ready"; made=$?
    rmdir "$home.lock"
    [ $made = 0 ] || {{ echo "underdog could not be installed here." >"$job/{log}"; exit 125; }}
  else
    sleep 1
  fi
done"""


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


def job_script(job: Job, folder: str | None, python: str | None = None) -> str:
    """The script that carries out a job on the machine, to be stored as ``SCRIPT`` in its folder.

    It ends with status 0 whatever came of the command; ``EXIT`` holds that of ``underdog measure``
    and appears last, when all else is in place. A SIGTERM ends the measurement early. It holds no
    value of the environment, so no secret either.

    Args:
        folder: where the command runs, a path on the machine; None: the folder of the job.
        python: the Python there that has underdog; None: the script sets one up from the wheel
            (``wheel``), which then lies beside it.
    """
    if python is None:
        name = wheel_name()
        environment = _OWN_ENVIRONMENT.format(
            name=f"{Path(name).stem}-{_digest()[:12]}", python="python3", wheel=name, log=LOG
        )
    else:
        environment = f"underdog={shlex.quote(python)}"
    return _TEMPLATE.format(
        title=f"{job.workload} on {job.candidate}".replace("\n", " "),
        environment=environment,
        folder='"$job"' if folder is None else shlex.quote(folder),
        grace=GRACE,
        longest=job.longest,
        measure=shlex.join(measure_arguments(job)),
        command=shlex.join(job.command),
        trial=TRIAL,
        progress=PROGRESS,
        log=LOG,
        exit=EXIT,
    )


def look_of(said: bytes | str) -> Look | None:
    """What a running measurement says of itself in ``PROGRESS``; None before it says anything."""
    try:
        found: dict[str, Any] = json.loads(said)
    except ValueError:
        return None
    rate = found["samples_per_second"]
    return Look(
        elapsed=found["elapsed"],
        seconds=found["seconds"],
        rate=None if rate is None else Estimate(**rate),
        effective=found["effective"],
        settled=found["settled"],
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
