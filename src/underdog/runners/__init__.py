"""Runners: the engines that carry trials. One file per engine, found by its name.

A runner of yours is a module with ``runner(setup) -> Runner`` under the entry-point group
``underdog.runners``. What it brings back is what ``underdog measure --json`` prints, in a file.
Where the engine has to be told how to get at the machine of an offer, the module has a ``Target``,
a ``msgspec.Struct`` whose fields are the keys of the offer's table of that name in a file of
offers; ``_remote`` holds what the engines of other machines share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import msgspec

from underdog import plugins
from underdog.core.racing import Look
from underdog.errors import RunnerError
from underdog.model import Offer, Trial

PACKAGE, GROUP = "underdog.runners", "underdog.runners"
Handle = str  # names a submitted job to its runner; a text, so that a record can keep it
STARTING = 900.0  # seconds that a machine may take to set up the software before its job starts


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One trial to carry: the command with its knobs filled in, on an offer.

    ``candidate`` is the offer's name as the user's file has it. ``price`` is in USD per hour of all
    its nodes, None where unknown; ``seconds``, ``precision`` and ``timeout`` are those of
    ``underdog measure``.

    Attributes:
        id: that of its trial; an engine that can tell does not start the same one twice.
        whole: to the command's own end, at most ``seconds``; ``precision`` ends nothing.
        target: how the engine gets at the machine: the offer's table of the engine's name.
        folder: what the command runs in and what is carried to the machine; None: nothing is.
        dollars: the most that the trial may cost, USD.
    """

    id: str = ""
    workload: str
    candidate: str
    offer: Offer
    command: tuple[str, ...] = ()
    knobs: Mapping[str, str] = field(default_factory=dict)
    price: float | None = None
    seconds: float = 120.0
    precision: float = 0.02
    timeout: float = 120.0
    pattern: str | None = None
    samples_per_step: float | None = None
    whole: bool = False
    target: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    dollars: float | None = None

    @property
    def longest(self) -> float:
        """Seconds after which the machine is given back, whatever the job does.

        It is for the engine to hold, so that it holds when we are gone.
        """
        longest = self.seconds  # of a whole run it is what the user said
        if not self.whole:
            longest += STARTING + 2 * self.timeout
        if self.dollars is not None and self.price is not None:
            longest = min(longest, self.dollars / self.price * 3600)
        return longest


@dataclass(frozen=True, slots=True)
class Request:
    """Exactly what would be submitted: ``--dry-run`` prints ``lines`` and no more happens."""

    job: Job
    lines: tuple[str, ...]
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """Of a submitted job.

    Attributes:
        ended: there is nothing to wait for any more; ``collect`` tells what came of it.
        look: what it shows so far.
        waiting: why it has not begun, in the engine's words; None once it has.
    """

    ended: bool
    look: Look | None = None
    waiting: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """What a runner is made from.

    Attributes:
        folder: an empty folder for its files; it is removed at the end.
        recorded: gives the recorded trial of a job, for the replay; None elsewhere.
    """

    folder: Path
    recorded: Callable[[Job], Trial] | None = None


class Runner(Protocol):
    """An engine. A method that cannot do its work raises an ``UnderdogError`` that says why.

    A handle outlives the process that submitted: another runner of the same name, made later or
    elsewhere, finds the job by it. Where the jobs end with that process instead, the module says
    ``ENDS_WITH_US = True``; where a whole run leaves files, ``files(handle)`` is the command
    that fetches them. After ``collect`` or ``cancel`` the engine keeps nothing running, and
    no machine that costs money.
    """

    def render(self, job: Job) -> Request:
        """Exactly what ``submit`` would submit. Pure: nothing happens.

        Raises:
            UsageError: the target has a key or a value that the engine cannot take.
        """

    def submit(self, request: Request) -> Handle:
        """Start it; returns when the engine has taken it, not when it runs.

        Raises:
            RefusedError: the engine has no such machine to give.
            RunnerError: the engine cannot be reached or used.
        """

    def status(self, handle: Handle) -> State:
        """How it stands, without waiting.

        Raises:
            RunnerError: the engine cannot be asked now. A job that is gone has ended.
        """

    def collect(self, handle: Handle) -> Path:
        """The file with the trial of a job that has ended, as ``measure --json`` prints it.

        Raises:
            RefusedError: it never got a machine.
            RunnerError: it is lost, with what is known of the reason.
        """

    def cancel(self, handle: Handle) -> None:
        """Ask it to end early; what it measured so far can be collected. Idempotent."""


class Together(Protocol):
    """What the module of a runner has whose engine starts several jobs by one request.

    Each stays a job of its own, with its own handle.
    """

    def render_all(self, jobs: Sequence[Job]) -> list[Request]:
        """Exactly what ``submit_all`` would submit, each job's part in its own. Pure."""

    def submit_all(self, requests: Sequence[Request]) -> list[Handle | RunnerError]:
        """Start them; of each its handle, or why there is none."""


def together(name: str) -> Together | None:
    """What starts several jobs at once, None where that runner starts one after the other."""
    module: Any = plugins.load(PACKAGE, GROUP, name)
    return module if hasattr(module, "submit_all") else None


def names() -> list[str]:
    """The runners that there are."""
    return plugins.names(PACKAGE, GROUP)


def check_target(name: str, target: Mapping[str, Any]) -> str | None:
    """What is wrong with how a file tells a runner to get at a machine, or None.

    Raises:
        UsageError: there is no such runner.
    """
    module: Any = plugins.load(PACKAGE, GROUP, name)
    known = getattr(module, "Target", None)
    if known is None:
        return f"the runner '{name}' takes no '{next(iter(target))}'" if target else None
    try:
        msgspec.convert(dict(target), known)
    except msgspec.ValidationError as error:
        return str(error)
    return None


def ends_with_us(name: str) -> bool:
    """Whether the jobs of that runner end with the process that submitted them."""
    module: Any = plugins.load(PACKAGE, GROUP, name)
    return bool(getattr(module, "ENDS_WITH_US", False))


def files(name: str, handle: Handle) -> str | None:
    """The command that fetches what a whole run wrote; None where it lies here, or nowhere."""
    module: Any = plugins.load(PACKAGE, GROUP, name)
    tells = getattr(module, "files", None)
    return None if tells is None else str(tells(handle))


def make(name: str, setup: Setup) -> Runner:
    """The runner of that name.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    module: Any = plugins.load(PACKAGE, GROUP, name)
    made: Runner = module.runner(setup)
    return made
