"""What a Ray job of ours is: the package that it brings, what it runs, and what its log tells.

Ray keeps no files of a job, and unpacks a package once for all jobs of a node. So a job works in a
folder of its own, which it removes, and what is to come back it writes into its log: lines of
``underdog:NAME``, with what a file holds packed by gzip and base64.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import re
import shlex
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from underdog.core.racing import Look
from underdog.errors import UsageError
from underdog.runners import Job
from underdog.runners._carried import carried_files, send
from underdog.runners._remote import (
    EXIT,
    FILES,
    LOG,
    PROGRESS,
    SCRIPT,
    TRIAL,
    look_of,
    shell_path,
    wheel_name,
    write_wheel,
)

ARCHIVE = "underdog.tar"
MOST_BYTES = 100 << 20  # that Ray's dashboard takes at once
SAID_BYTES = 4096  # of the log of a job that come back

# Ray cannot take back a job that waits for a node: it starts it and ends it at once, for which the
# first second is. Then it asks every process to end, so this one waits for job.sh to do so. Where
# a node's Ray dies, this one alone is killed, or nothing is, for Ray's supervisor of the job may
# live on; so one in a session of its own looks after the rest: it sees by the supervisor's parent
# that the node is gone. The first minute is told every second, for what cannot win is stopped by
# it; then every ten.
_ENTRYPOINT = """\
# {title}
job=
trap 'rm -rf "$job"' EXIT
trap exit TERM INT HUP
sleep 1 & wait $!
job=$(mktemp -d {scratch}/underdog-XXXXXXXX) || exit 125
trap : TERM INT HUP
tell() {{ echo "underdog:$1 $(gzip -c | base64 | tr -d '\\n')"; }}
{unpack}printf %s {script} >"$job/{SCRIPT}" || exit 125
{shell} "$job/{SCRIPT}" &
child=$! second=0
setsid sh -c '
  trap "" TERM
  node() {{
    stat=; read -r stat <"/proc/$supervisor/stat"
    stat=${{stat##*) ? }}; echo "${{stat%% *}}"
  }}
  supervisor=$4 above=$(node 2>/dev/null)
  while [ -d "$3" ]; do
    kill -0 "$1" 2>/dev/null && [ "$(node 2>/dev/null)" = "$above" ] || {{
      kill -TERM "$2" 2>/dev/null
      while kill -0 "$2" 2>/dev/null; do sleep 1; done
      rm -rf "$3"
    }}
    sleep 1
  done' sh $$ $child "$job" $PPID &
while kill -0 $child 2>/dev/null; do
  sleep 1 & wait $!
  second=$((second + 1))
  if [ -s "$job/{PROGRESS}" ] && {{ [ $second -le 60 ] || [ $((second % 10)) = 0 ]; }}; then
    tell progress <"$job/{PROGRESS}"
  fi
done
wait $child; code=$?
[ -s "$job/{TRIAL}" ] && tell trial <"$job/{TRIAL}"
[ -s "$job/{LOG}" ] && tail -c {SAID_BYTES} "$job/{LOG}" | tell log
echo "underdog:free $(df -Pk "$job" | awk 'NR == 2 {{ print $4 }}')"
echo "underdog:exit $(cat "$job/{EXIT}" 2>/dev/null || echo $code)"
"""
_UNPACK = f"""\
tar -xof {ARCHIVE} -C "$job" || exit 125
"""
_LINE = re.compile(r"^underdog:([a-z]+) ([A-Za-z0-9+/=]+)$", re.MULTILINE)


def entrypoint(job: Job, script: str, *, login: bool, scratch: str | None, unpacks: bool) -> str:
    """The shell commands that Ray runs for a job.

    Args:
        script: of ``_remote.job_script``.
        login: run it by bash as a login shell.
        scratch: folder of the node to work in; None: that for its temporary files.
        unpacks: whether it brings a package.
    """
    return _ENTRYPOINT.format(
        title=f"{job.workload} on {job.candidate}".replace("\n", " "),
        scratch=shell_path(scratch) if scratch else '"${TMPDIR:-/tmp}"',
        unpack=_UNPACK if unpacks else "",
        script=shlex.quote(script),
        shell="bash -l" if login else "sh",
        SCRIPT=SCRIPT,
        PROGRESS=PROGRESS,
        TRIAL=TRIAL,
        LOG=LOG,
        EXIT=EXIT,
        SAID_BYTES=SAID_BYTES,
    )


def package(folder: Path | None, wheel: bool, scratch: Path) -> tuple[str, bytes]:
    """The name and the content of what a job brings; the same files are the same package.

    Args:
        folder: whose files are carried; None: none.
        wheel: whether underdog itself is.
        scratch: for the making of it.

    Raises:
        UsageError: it is more than Ray takes.
        RunnerError: a file cannot be read.
    """
    files = carried_files(folder) if folder else []
    last = {wheel_name(): write_wheel(scratch).read_bytes()} if wheel else {}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        member = zipfile.ZipInfo(ARCHIVE)  # without the time of now
        member.compress_type = zipfile.ZIP_DEFLATED
        with archive.open(member, "w", force_zip64=True) as out:
            send(out, folder, FILES, files, last)
    content = packed.getvalue()
    if len(content) > MOST_BYTES:
        raise UsageError(
            f"The files of '{folder}' come to {len(content) / 2**20:.0f} MiB when packed; Ray "
            f"takes {MOST_BYTES / 2**20:.0f} MiB.",
            "Have git ignore what the command does not need, name a folder that the nodes have by "
            "folder in [offer.ray], or carry none: --no-folder.",
        )
    return f"_ray_pkg_{hashlib.sha256(content).hexdigest()[:32]}.zip", content


@dataclass(frozen=True, slots=True)
class Told:
    """What the log of a job tells, as far as it got.

    Attributes:
        exit: the status of ``underdog measure``, or of the script that was to start it; None: the
            job did not get to its end.
        log: the last of what underdog wrote there.
        free_kib: on the disk of the job at its end.
    """

    look: Look | None = None
    trial: bytes | None = None
    log: str = ""
    exit: str | None = None
    free_kib: int | None = None


def told_by(log: str) -> Told:
    """Read the log of a job."""
    found: dict[str, str] = dict(_LINE.findall(log))  # the last of each name
    progress, trial, said = (_unpacked(found.get(n)) for n in ("progress", "trial", "log"))
    return Told(
        look=look_of(progress) if progress else None,
        trial=trial,
        log=(said or b"").decode(errors="replace"),
        exit=found.get("exit"),
        free_kib=int(free) if (free := found.get("free", "")).isdigit() else None,
    )


def _unpacked(word: str | None) -> bytes | None:
    """The content of a file, None where it is not there or was cut off."""
    try:
        return gzip.decompress(base64.b64decode(word, validate=True)) if word else None
    except (ValueError, OSError, EOFError, zlib.error):
        return None
