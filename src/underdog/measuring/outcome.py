"""What became of a run: its status and the reason, for people."""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

from underdog.core.stats import Throughput
from underdog.measuring.observe import Limits
from underdog.measuring.run import Run
from underdog.model import Status
from underdog.units import format_seconds

# what frameworks print when an allocation fails; the last lines of the output are searched
MEMORY_WORDS = re.compile(
    r"\bMemoryError\b|OutOfMemory|out of memory|can't allocate memory|Cannot allocate memory"
    r"|RESOURCE_EXHAUSTED|std::bad_alloc|CUBLAS_STATUS_ALLOC_FAILED",
    re.IGNORECASE,
)
COUNT_ADVICE = (
    "write 'for batch in underdog.track(loader):' in the script, or read the rate that the script "
    "prints with --pattern."
)
ADVICE = (
    "underdog sees steps of PyTorch, JAX and Keras by itself. For a loop of another kind say with "
    f"--samples-per-step N how many samples a step takes, {COUNT_ADVICE}"
)
SAMPLES_ADVICE = f"Say how many samples a step takes with --samples-per-step N, {COUNT_ADVICE}"


class Outcome(NamedTuple):
    """The status of a trial; the exit code only where the script ended by itself."""

    status: Status
    reason: str | None
    exit_code: int | None


def outcome(run: Run, result: Throughput, limits: Limits) -> Outcome:
    """What became of a run that showed this throughput."""
    own_code = run.exit_code if run.ending == "itself" else None
    if run.ending == "interrupt":
        return Outcome("interrupted", "Interrupted by the user.", own_code)
    if run.ending == "silence":
        silence = format_seconds(limits.silence or 0)
        text = f"No step, no output and no processor use for {silence}, so it was ended."
        return Outcome("hung", text, own_code)
    if own_code:
        if memory := out_of_memory(run):
            return Outcome("out_of_memory", memory, own_code)
        return Outcome("failed", failure(run), own_code)
    if result.steps == 0:
        return Outcome("no_steps", no_steps(run), own_code)
    if result.step_seconds is None:
        return Outcome("no_steps", too_few_steps(run, result.steps), own_code)
    reason = None if result.samples_per_second else f"Its samples are not known. {SAMPLES_ADVICE}"
    return Outcome("ok", reason, own_code)


def out_of_memory(run: Run) -> str | None:
    """Why a run that failed is taken for out of memory, None where it is not."""
    for process in run.processes:
        if process.error and process.error.get("out_of_memory") is True:
            return error_text(process.error)
    killed = run.exit_code in (-signal.SIGKILL, 128 + signal.SIGKILL)
    if run.memory_kills > 0 and (killed or any("SIGKILL" in line for line in run.tail)):
        return "The kernel ended it because the machine's memory, or the limit on it, was used up."
    if not any(process.error for process in run.processes):
        for line in reversed(run.tail):
            if MEMORY_WORDS.search(line):
                return line.strip()
    return None


def failure(run: Run) -> str:
    """How a script failed: its exception, else how it ended with the last lines it wrote."""
    ended = how_it_ended(run.exit_code)
    for process in run.processes:
        if process.error:
            return f"{ended}: {error_text(process.error)}"
    return "\n".join([f"{ended}." if not run.tail else f"{ended}; its last lines:", *run.tail])


def how_it_ended(code: int) -> str:
    """The exit code in words; a shell tells a signal as 128 plus its number."""
    number = -code if code < 0 else code - 128 if 128 < code < 128 + 65 else None
    if number is not None:
        try:
            name = signal.Signals(number).name
        except ValueError:
            name = f"signal {number}"
        return f"It was ended by {name}"
    return f"It ended with exit code {code}"


def error_text(error: dict[str, object]) -> str:
    """An exception in one line as Python prints it."""
    kind, message = str(error.get("type") or "Exception"), str(error.get("message") or "")
    return f"{kind}: {message}" if message else kind


def too_few_steps(run: Run, steps: int) -> str:
    """Steps were seen, but not enough to tell a rate."""
    seconds = format_seconds(run.ended - run.began)
    return f"Only {steps} step(s) in {seconds}, too few to measure. Give it longer with --for."


def no_steps(run: Run) -> str:
    """Why there is nothing to measure."""
    if run.matches is not None:
        return (
            f"--pattern matched {run.matches} lines of the output, too few for a rate."
            if run.matches
            else "--pattern matched no line of the output."
        )
    seconds = format_seconds(run.ended - run.began)
    if run.ending == "itself":
        return f"It ended by itself after {seconds} without a step that could be seen.\n{ADVICE}"
    return (
        f"No step was seen in {seconds}.\nIf it has not begun to train by then, give it longer "
        f"with --for. {ADVICE}"
    )
