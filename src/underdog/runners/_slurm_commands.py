"""Slurm's own commands: what is asked of them, and their errors in words."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from underdog.core.refusals import Kind
from underdog.errors import RefusedError, RunnerError
from underdog.runners import _slurm_words

LONGEST = 90.0  # seconds; the commands have limits of their own below it
_UNREACHABLE = re.compile(
    r"unable to contact|socket timed out|connection refused|authentication|munge|configuration file"
    r"|configuration source|cannot stat|communication|try again|zero bytes",
    re.IGNORECASE,
)
_NO_SUCH_JOB = re.compile(r"invalid job id|not found", re.IGNORECASE)
# scancel may say so by its status alone: the last 8 bits of Slurm's errors 2017 and 2021
_OVER = re.compile(r"invalid job id|already complet|^exit 2(25|29)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Standing:
    """How Slurm says that a job stands, in its own words."""

    name: str
    state: str
    reason: str = ""
    nodes: str = ""
    exit_code: str = ""
    restarts: int = 0


class FailedError(RunnerError):
    """A command of Slurm's ran and refused; ``said`` is what it said."""

    def __init__(self, command: str, said: str) -> None:
        super().__init__(f"Slurm's '{command}' failed: {said}")
        self.said = said


def call(*words: str, given: str = "") -> str:
    """Run one of Slurm's commands; what it prints.

    Raises:
        FailedError: it takes no such thing.
        RunnerError: there is no such command, or no controller answers.
    """
    try:
        done = subprocess.run(
            words, input=given, capture_output=True, text=True, check=False, timeout=LONGEST
        )
    except FileNotFoundError as error:
        raise RunnerError(
            f"This machine has no '{words[0]}', a command of Slurm.",
            "Run underdog on a login node of the cluster, or reach one by ssh: [offer.ssh].",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise RunnerError(
            f"Slurm's '{words[0]}' gave no answer within {LONGEST:.0f} s.", "Look at: sinfo"
        ) from error
    if done.returncode:
        said = "\n".join((done.stderr.strip() or done.stdout.strip()).splitlines()[-3:])
        if _UNREACHABLE.search(said):
            raise RunnerError(f"Slurm cannot be reached: {said}", "Look at: scontrol ping")
        raise FailedError(words[0], said or f"exit {done.returncode}")
    return done.stdout


def submit(options: list[str], script: str) -> str:
    """Have ``sbatch`` take a job; its number.

    Raises:
        RefusedError: the cluster has no such machine, or not for this user.
        RunnerError: Slurm cannot be used, or an option is none of its own.
    """
    try:
        printed = call("sbatch", "--parsable", *options, given=script)
    except FailedError as error:
        kind = _slurm_words.refused(error.said)
        if kind is None:
            raise
        raise refusal(kind, error.said) from error
    return printed.strip().partition(";")[0]  # a name of the cluster may follow


def refusal(kind: Kind, words: str) -> RefusedError:
    """The error of a machine that Slurm does not give."""
    return RefusedError(words, kind, _slurm_words.next_step(kind, words))


def standing(job: str) -> Standing | None:
    """How a job stands; None where Slurm knows it no more.

    Raises:
        RunnerError: Slurm cannot be asked.
    """
    try:
        told = call("scontrol", "show", "job", "-o", job)
    except FailedError as error:
        if not _NO_SUCH_JOB.search(error.said):
            raise
        return _accounted(job)
    found = dict(re.findall(r"(\w+)=(\S*)", told))
    return Standing(
        name=found.get("JobName", ""),
        state=found.get("JobState", ""),
        reason=found.get("Reason", ""),
        nodes=found.get("NodeList", "").replace("(null)", ""),
        exit_code=found.get("ExitCode", ""),
        restarts=int(found.get("Restarts", 0)),
    )


def _accounted(job: str) -> Standing | None:
    """From the accounting, which not every cluster has; it remembers for longer."""
    try:
        told = call("sacct", "-X", "-n", "-P", "-j", job, "-o", "JobName,State,NodeList,ExitCode")
    except RunnerError:
        return None
    parts = told.strip().partition("\n")[0].split("|")
    if len(parts) != 4 or not parts[1].strip():
        return None
    name, state, nodes, exit_code = parts
    return Standing(name=name, state=state.split()[0], nodes=nodes, exit_code=exit_code)


def number_of(name: str) -> str | None:
    """The number of the job or the array of that name, where it waits or runs."""
    told = call("squeue", "--noheader", "--me", f"--name={name}", "--format=%F").split()
    return told[0] if told else None


def cancel(job: str) -> None:
    """Take a waiting job out, and ask the shell of a running one to end. Idempotent."""
    asked = [["--state=PENDING"], ["--batch", "--signal=TERM"]]
    if "_" in job:
        # the tasks of an array that wait are one record, and all of it is what has that state
        told = standing(job)
        if told is None:
            return
        asked = [[]] if told.state == "PENDING" else asked[1:]
    for words in asked:
        try:
            call("scancel", *words, job)
        except FailedError as error:
            if not _OVER.search(error.said):
                raise
