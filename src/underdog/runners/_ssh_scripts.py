"""What is run on the machine of a job that is carried by ssh: POSIX shell, and Linux's /proc.

The folder of a job has, besides what ``_remote`` puts there, ``pid``: the number of its first
process, when that started, and which boot of the machine it was, so that no other process is ever
taken for it. All that a job starts carries its name in ``UNDERDOG_JOB``, so that nothing is left
behind, whatever was killed.
"""

from __future__ import annotations

import shlex

from underdog.runners._remote import (
    EXIT,
    FILES,
    LOG,
    PROGRESS,
    SCRIPT,
    TIMED_OUT,
    TOO_LONG,
    TRIAL,
    shell_path,
)

PID, CANCELLED, COLLECTED = "pid", "cancelled", "collected"
KEEP = "keep"  # beside files that somebody wants: what a whole run wrote
EARLY, SAID = "early.json", "said.txt"
GONE, RUNS, ENDED, BACK, LOST = "gone", "runs", "ended", "back", "lost"
JOBS = '"${XDG_CACHE_HOME:-$HOME/.cache}"/underdog/jobs'
KEPT_DAYS = 30  # that the records of a job stay there once they were brought back
START_SECONDS = 10

# After the name in parentheses come state, parent, group, session; the start is the 20th.
_TOOLS = f"""\
boot=$(cat /proc/sys/kernel/random/boot_id)
stat_of() {{ sed 's/.*) //' "/proc/$1/stat" 2>/dev/null; }}
alive() {{
  pid= start= then=
  read -r pid start then <{PID} || [ -n "$then" ] || return 1
  [ "$then" = "$boot" ] || return 1
  set -- $(stat_of "$pid")
  [ "${{20}}" = "$start" ] && [ "$1" != Z ]
}} 2>/dev/null
sweep() {{
  for left in $(grep -lsF "UNDERDOG_JOB=$(basename "$PWD");" /proc/[0-9]*/environ); do
    left=${{left#/proc/}}; kill -s KILL "${{left%/environ}}" 2>/dev/null
  done
}}
"""


def _launch(shell: str) -> str:
    """What the first process of a job runs before it becomes the job's script."""
    return f"""\
set -C
stat=$(sed 's/.*) //' "/proc/$$/stat"); set -- $stat
echo "$$ ${{20}} $(cat /proc/sys/kernel/random/boot_id)" >{PID} || exit
UNDERDOG_JOB="$(basename "$PWD");"; export UNDERDOG_JOB
exec {shell} ./{SCRIPT}"""


def start(jobs: str | None, name: str, login: bool) -> str:
    """Unpack the archive on the input into the folder of a new job and start it.

    Prints the folder. Of a job that was started already it does no more than that; one that was cut
    off before is begun anew.

    Args:
        jobs: folder of all jobs.
        login: run it by bash as a login shell.
    """
    launch = shlex.quote(_launch("bash -l" if login else "sh"))
    place = shell_path(jobs) if jobs else JOBS
    needs = "tar setsid timeout" + (" bash" if login else "")
    return f"""\
for tool in {needs}; do
  command -v $tool >/dev/null || {{ echo "it has no '$tool'." >&2; exit 96; }}
done
[ -r /proc/self/stat ] || {{ echo "it has no /proc; it must be a Linux machine." >&2; exit 96; }}
mkdir -p {place} && cd {place} || exit 97
find . -maxdepth 2 -name {COLLECTED} -mtime +{KEPT_DAYS} | while read -r old; do
  [ -e "${{old%/*}}/{KEEP}" ] || rm -rf "${{old%/*}}"
done
mkdir -p -m 700 {name} && cd {name} || exit 97
pwd
[ -e {PID} ] && exit
mkdir -p {FILES} && tar -xof - && [ -e {SCRIPT} ] || {{
  df -Pk . | awk 'NR == 2 && $4 < 1024 {{ print "its disk is full." }}' >&2; exit 98; }}
setsid sh -c {launch} </dev/null >/dev/null 2>{SAID} &
for _ in $(seq {START_SECONDS * 10}); do
  [ -s {PID} ] && exit
  sleep 0.1
done
cat {SAID} >&2; rm -f {PID}; exit 99
"""


def status(folder: str) -> str:
    """Print how the job stands, and its progress."""
    return f"""\
cd {shlex.quote(folder)} 2>/dev/null || {{ echo {GONE}; exit; }}
{_TOOLS}
if alive; then echo {RUNS}; else echo {ENDED}; fi
cat {PROGRESS} 2>/dev/null || :
"""


def collect(folder: str) -> str:
    """End what is left of a job that has ended, and print what came of it.

    That is the exit status of the measurement and the trial; or the kilobytes that are free there,
    and the last of what was said.
    """
    return f"""\
cd {shlex.quote(folder)} 2>/dev/null || {{ echo {GONE}; exit; }}
{_TOOLS}
alive && {{ echo {RUNS}; exit; }}
sweep
[ -e {KEEP} ] || rm -rf {FILES}
rm -f ./*.whl store.sqlite3*
if [ -e {EXIT} ] && [ -s {TRIAL} ]; then
  : >{COLLECTED}; echo {BACK}; cat {EXIT} {TRIAL}
elif [ -e {CANCELLED} ]; then
  : >{COLLECTED}; echo {BACK}; echo 0; cat {EARLY}
else
  echo {LOST}; df -Pk . | awk 'NR == 2 {{ print $4 }}'
  [ "$(cat {EXIT} 2>/dev/null)" != {TIMED_OUT} ] || echo "{TOO_LONG}"
  for file in {LOG} {SAID}; do tail -c 2048 $file 2>/dev/null; done; :
fi
"""


def cancel(folder: str) -> str:
    """Ask the job to end."""
    return f"""\
cd {shlex.quote(folder)} 2>/dev/null || exit 0
{_TOOLS}
[ -e {EXIT} ] || : >{CANCELLED}
alive && kill -s TERM "$pid" && sleep 0.2
alive || [ -e {EXIT} ] || sweep
"""
