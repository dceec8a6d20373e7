"""Measure a command on this machine, unchanged, and keep what was seen as trials."""

from __future__ import annotations

import dataclasses
import math
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from underdog import catalog
from underdog.catalog import facts
from underdog.core.figures import Figures
from underdog.core.roofline import FORMATS
from underdog.core.verdict import Peaks
from underdog.errors import StoreError, UnderdogError, UsageError
from underdog.measuring.collect import conclude
from underdog.measuring.command import (
    check_knobs,
    combinations,
    script_folder,
    workload_name,
)
from underdog.measuring.interrupts import Interrupts
from underdog.measuring.launch import check_command
from underdog.measuring.live import Live, Shown
from underdog.measuring.machine import commit_of, describe
from underdog.measuring.nvml import Nvml
from underdog.measuring.observe import Limits, Progress
from underdog.measuring.pattern import compile_pattern
from underdog.measuring.progress import to_file
from underdog.measuring.run import Request, child_environment, run
from underdog.model import Accelerator, Caveat, Machine, Offer, Price, Software, Status, Trial
from underdog.store import Store, open_store
from underdog.store.owner import current_owner

SECONDS = 300.0
PRECISION = 0.02
TIMEOUT = 120.0
PRICE_UNKNOWN = "this machine is of no known instance type; give its price with --price"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What to measure and when to end; see ``measure``. None takes the default.

    Args:
        here: on this machine; elsewhere its programs may be others.

    Raises:
        UsageError: a value that cannot be taken; all of them are told at once.
    """

    command: list[str]
    seconds: float | None = None
    precision: float | None = None
    whole: bool = False
    timeout: float = TIMEOUT
    samples_per_step: float | None = None
    pattern: str | None = None
    knobs: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    workload: str | None = None
    price: float | None = None
    store: str | None = None
    here: bool = True

    def __post_init__(self) -> None:
        if self.here or not self.command or not self.command[0]:
            check_command(self.command, os.environ)
        problems = [
            f"{name} must be a positive finite number, not '{value}'."
            for name, value in (
                ("--for", self.seconds),
                ("--precision", self.precision),
                ("--timeout", self.timeout),
                ("--samples-per-step", self.samples_per_step),
                ("--price", self.price),
            )
            if value is not None and not (math.isfinite(value) and value > 0)
        ]
        if self.precision is not None and self.precision >= 1:
            problems.append(f"--precision '{self.precision:g}' is not below 1: 2 % is 0.02 or 2%.")
        if self.whole and (self.seconds is not None or self.precision is not None):
            problems.append(
                "--whole runs to the end, so it goes with neither --for nor --precision."
            )
        if self.workload is not None and not self.workload.strip():
            problems.append("--workload '' is empty.")
        if problems:
            raise UsageError("\n".join(problems))
        check_knobs(self.command, self.knobs)
        if self.pattern is not None:
            compile_pattern(self.pattern, self.samples_per_step)

    @property
    def limits(self) -> Limits:
        """When a run ends."""
        if self.whole:
            return Limits(seconds=None, precision=None, silence=self.timeout)
        return Limits(
            seconds=self.seconds or SECONDS,
            precision=self.precision or PRECISION,
            silence=self.timeout,
        )

    @property
    def name(self) -> str:
        """The workload's name."""
        return printable(self.workload or workload_name(self.command))

    def request(self, command: list[str]) -> Request:
        """The run of one combination of knobs."""
        return Request(
            command=command,
            limits=self.limits,
            pattern=self.pattern,
            samples_per_step=self.samples_per_step,
        )


def measure(
    command: Sequence[str | os.PathLike[str]],
    *,
    seconds: float | None = None,
    precision: float | None = None,
    whole: bool = False,
    timeout: float = TIMEOUT,
    samples_per_step: float | None = None,
    pattern: str | None = None,
    knobs: Mapping[str, Sequence[Any]] | None = None,
    workload: str | None = None,
    price: float | None = None,
    store: str | None = None,
) -> list[Trial]:
    """Run a command unchanged and measure it; one trial per combination of knobs.

    Args:
        command: program and arguments, such as ``["python", "train.py"]``.
        seconds: end it after this time at the latest; 300 by default.
        precision: end it when half the 95 % interval is within this share; 0.02 by default.
        whole: let it run to its own end instead.
        timeout: end it when it shows no sign of life for so many seconds.
        samples_per_step: for a script that gives no way to count them.
        pattern: regular expression that reads the rate from its output.
        knobs: values to try for each ``{name}`` in the command.
        workload: name under which the trial is kept; the script's by default.
        price: USD per hour of this machine; that of its instance type by default.
        store: URL or path; ``$UNDERDOG_STORE``, else the user's data folder by default.

    Returns the trials in the order of the knobs' values; fewer where the user interrupted.

    Raises:
        UsageError: a value that cannot be taken, or a command that cannot be started.
        MeasureError, StoreError: the run cannot be observed, or the store not written.
    """
    return measure_all(
        Settings(
            command=[os.fspath(word) for word in command],
            seconds=seconds,
            precision=precision,
            whole=whole,
            timeout=timeout,
            samples_per_step=samples_per_step,
            pattern=pattern,
            knobs=knobs or {},
            workload=workload,
            price=price,
            store=store,
        )
    )


def plan(settings: Settings) -> list[dict[str, Any]]:
    """What ``measure_all`` would run: each command, what its environment gets, the limits."""
    found = []
    for command, knobs in combinations(settings.command, settings.knobs):
        environment = child_environment(settings.request(command), Path("RECORDS"))
        limits = {
            "for": settings.limits.seconds,
            "precision": settings.limits.precision,
            "timeout": settings.limits.silence,
        }
        added = {k: v for k, v in environment.items() if os.environ.get(k) != v}
        found.append(
            {
                "workload": settings.name,
                "command": [printable(word) for word in command],
                "knobs": knobs,
                "environment": added,
                "limits": limits,
            }
        )
    return found


def measure_all(
    settings: Settings,
    stdout_to: int = 1,
    progress_line: Callable[[Progress], str] | None = None,
    progress_file: Path | None = None,
) -> list[Trial]:
    """Carry out ``settings``; see ``measure``.

    Args:
        stdout_to: file descriptor that the script's standard output goes to.
        progress_line: what to show on a terminal while the script runs.
        progress_file: where to keep the rate so far, for another program to read. The record in
            the store is not brought up to date meanwhile then: that program has it.
    """
    listener = to_file(progress_file) if progress_file else None
    trials: list[Trial] = []
    with open_store(settings.store) as store, Interrupts() as interrupts:
        nvml = Nvml()
        machine = describe(nvml)
        offer, price = offer_of(machine, settings.price)
        for command, knobs in combinations(settings.command, settings.knobs):
            if interrupts.count:
                break
            begun = Trial(
                id=new_id(),
                workload=settings.name,
                command=[printable(word) for word in command],
                knobs={name: printable(value) for name, value in knobs.items()},
                status="running",
                started_at=now(),
                offer=offer,
                price=price,
                machine=machine,
                software=software_before(command),
                owner=current_owner(),
            )
            request = dataclasses.replace(
                settings.request(command),
                stdout_to=stdout_to,
                progress_line=progress_line,
                listener=listener,
            )
            trials.append(_measure_one(begun, request, store, nvml, interrupts))
        nvml.close()
        if not trials:
            raise KeyboardInterrupt
    return trials


def _measure_one(
    begun: Trial, request: Request, store: Store, nvml: Nvml, interrupts: Interrupts
) -> Trial:
    store.save(begun)
    live = Live(store.update)
    if request.listener is None:
        renew = partial(_renew, live, Shown(), begun)
        request = dataclasses.replace(request, listener=renew)
    try:
        seen = run(request, nvml, interrupts)
        live.finish()
        trial = conclude(begun, seen, request.limits, partial(peaks_of, begun.machine))
    except BaseException as error:
        live.finish()
        status: Status = "failed" if isinstance(error, UnderdogError) else "interrupted"
        reason = str(error) or type(error).__name__
        store.save(dataclasses.replace(begun, status=status, reason=reason, ended_at=now()))
        raise
    spent = cost(begun.price, trial.usage.get("elapsed_seconds"))
    trial = dataclasses.replace(trial, ended_at=now(), owner={}, dollars=spent)
    try:
        store.save(trial)
    except StoreError as error:
        # what was measured is worth more than the place it was to be kept in
        caveat = Caveat(
            code="not_stored",
            message=f"This trial could not be kept: {error.message}",
            remedy=error.hint or "Keep what --json prints: underdog trials import FILE",
        )
        return dataclasses.replace(trial, caveats=[*trial.caveats, caveat])
    return trial


def _renew(live: Live, shown: Shown, begun: Trial, progress: Progress) -> None:
    spent = cost(begun.price, progress.elapsed)
    live.tell(lambda: so_far(begun, shown.figures(progress), spent))


def so_far(begun: Trial, figures: Figures, dollars: float | None) -> Trial:
    """The record of a running trial with what it has shown so far."""
    return dataclasses.replace(
        begun,
        updated_at=now(),
        measurement=figures.measurement,
        phases=figures.phases,
        usage=figures.usage,
        timeline=figures.timeline,
        dollars=dollars,
    )


def cost(price: Price, seconds: float | None) -> float | None:
    """USD of a machine for some seconds, None where it is not known."""
    if price.per_hour is None or seconds is None:
        return None
    return price.per_hour * seconds / 3600


def software_before(command: Sequence[str]) -> Software:
    """What is known of the software before it runs."""
    from underdog import __version__

    commit, dirty = commit_of(script_folder(command))
    return Software(commit=commit, dirty=dirty, underdog=__version__)


def offer_of(machine: Machine, given: float | None) -> tuple[Offer | None, Price]:
    """The offer that this machine is, if known; its price as given, else the catalog's."""
    provider, region, shape = machine.provider, machine.region, machine.instance_type
    known = provider is not None and region is not None and shape is not None
    purchase = machine.purchase or "on-demand"
    if given is not None:
        price = Price(per_hour=given, source="--price", date=now()[:10])
    elif known:
        price = catalog.machine_price(provider or "", region or "", shape or "", purchase)
    else:
        price = Price(unknown_reason=PRICE_UNKNOWN)
    if not known:
        return None, price
    accelerators = machine.accelerators
    offer = Offer(
        provider=provider or "",
        region=region or "",
        instance_type=shape or "",
        purchase=purchase,
        price=price,
        vcpus=machine.vcpus,
        memory_gib=machine.memory_gib,
        arch=machine.arch,
        accelerator=facts_key(accelerators[0]) if accelerators else None,
        accelerator_count=len(accelerators),
        accelerator_memory_gib=accelerators[0].memory_gib if accelerators else None,
    )
    return offer, price


def facts_key(accelerator: Accelerator) -> str:
    """The catalog's name of an accelerator, else the driver's."""
    named = facts.accelerator_named(accelerator.name, accelerator.memory_gib)
    return named.key if named else accelerator.name


def peaks_of(machine: Machine, number_format: str | None) -> Peaks:
    """What one accelerator of the machine reaches at most, by the catalog's tables."""
    if not machine.accelerators:
        return Peaks()
    known = facts.accelerators().get(facts_key(machine.accelerators[0]))
    if known is None:
        return Peaks()
    return Peaks(known.tflops.get(FORMATS.get(number_format or "", "")), known.gb_per_s)


def new_id() -> str:
    """An id that sorts by time and that no two trials share."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"


def now() -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def printable(word: str) -> str:
    """A word of the command as a record can hold it: bytes that are no UTF-8 are replaced."""
    return os.fsencode(word).decode(errors="replace")
