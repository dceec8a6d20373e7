"""One run of one command, from the empty records folder to everything that was seen of it."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from underdog.errors import MeasureError
from underdog.measuring import injection
from underdog.measuring.interrupts import Interrupts
from underdog.measuring.launch import Script, check_command
from underdog.measuring.nvml import Nvml
from underdog.measuring.observe import Ending, Limits, Observer, Progress
from underdog.measuring.output import Output
from underdog.measuring.pattern import RateReader, compile_pattern
from underdog.measuring.rates import so_far
from underdog.measuring.records import ProcessRecords, RecordsReader
from underdog.measuring.sampler import Sampler

ProgressLine = Callable[[Progress], str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """What to run and how to watch it.

    ``stdout_to`` is the file descriptor that the script's standard output goes to.
    """

    command: list[str]
    limits: Limits = field(default_factory=Limits)
    pattern: str | None = None
    samples_per_step: float | None = None
    stdout_to: int = 1
    progress_line: ProgressLine | None = None
    listener: Callable[[Progress], None] | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What was seen of a run. Times are those of ``time.perf_counter()``."""

    processes: list[ProcessRecords]
    sampler: Sampler
    ending: Ending
    exit_code: int
    tail: list[str]  # the last lines of the output, where it passed through us
    cpu_seconds: tuple[float, float] | None
    peak_resident: int | None  # bytes of the largest process
    survivors: list[int]
    matches: int | None  # lines that --pattern found, None without it
    garbage: int  # records that could not be read
    memory_kills: int  # processes that the kernel killed for memory meanwhile
    began: float
    ended: float


def child_environment(request: Request, folder: Path) -> dict[str, str]:
    """The environment of the script: the user's, with the probe's way in."""
    environment = injection.environment(
        folder, base=request.environment, samples_per_step=request.samples_per_step
    )
    if request.pattern is not None:
        # else Python holds lines back when a pipe reads them, and their times are lost
        environment.setdefault("PYTHONUNBUFFERED", "1")
    return environment


def run(request: Request, nvml: Nvml, interrupts: Interrupts) -> Run:
    """Run the command and watch it to its end. No process of it is alive afterwards.

    Raises:
        UsageError: the command cannot be started, or the pattern cannot be read.
        MeasureError: the records folder cannot be made, or the guard did not start.
    """
    check_command(request.command, request.environment)
    pattern = None
    if request.pattern is not None:
        pattern = compile_pattern(request.pattern, request.samples_per_step)
    try:
        folder = Path(tempfile.mkdtemp(prefix="underdog-"))
    except OSError as error:
        raise MeasureError(
            f"The folder for the records could not be made: {error}.",
            "Name a folder with room in it: TMPDIR=/path/to/folder underdog measure …",
        ) from error
    try:
        rates = RateReader(pattern, folder, request.samples_per_step) if pattern else None
        return _run(request, folder, rates, nvml, interrupts)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(
    request: Request, folder: Path, rates: RateReader | None, nvml: Nvml, interrupts: Interrupts
) -> Run:
    reader = RecordsReader(folder)
    output = Output(request.stdout_to, rates.line if rates else None)
    script: Script | None = None
    began = time.perf_counter()
    try:
        environment = child_environment(request, folder)
        script = Script(request.command, environment, output.stdout, output.stderr)
        output.started()
        sampler = Sampler(script.root, nvml)
        sampler.start()
        try:
            ending = Observer(
                script,
                reader,
                sampler,
                output,
                request.limits,
                interrupts=interrupts,
                look=lambda: so_far(reader.processes, rates is not None),
                progress_line=request.progress_line,
                listener=request.listener,
            ).watch()
        finally:
            sampler.stop()
    finally:
        if script is not None:
            script.close()
        output.finish()
    reader.poll(all_of_it=True)
    return _seen(script, reader, sampler, output, rates, ending=ending, began=began)


def _seen(
    script: Script,
    reader: RecordsReader,
    sampler: Sampler,
    output: Output,
    rates: RateReader | None,
    *,
    ending: Ending,
    began: float,
) -> Run:
    return Run(
        processes=reader.processes,
        sampler=sampler,
        ending=ending,
        exit_code=script.exit_code if script.exit_code is not None else -signal.SIGKILL,
        tail=output.last_lines(),
        cpu_seconds=script.cpu_seconds,
        peak_resident=script.peak_resident,
        survivors=script.survivors,
        matches=rates.matches if rates else None,
        garbage=reader.garbage,
        memory_kills=sampler.memory_kills(),
        began=began,
        ended=time.perf_counter(),
    )
