"""Runners: the engines that carry trials. One file per engine, found by its name.

A runner of yours is a module with ``runner(setup) -> Runner`` under the entry-point group
``underdog.runners``. What it brings back is what ``underdog measure --json`` prints, in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from underdog import plugins
from underdog.core.racing import Look
from underdog.model import Offer, Trial

PACKAGE, GROUP = "underdog.runners", "underdog.runners"
Handle = str  # names a submitted job to its runner; a text, so that a record can keep it


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One trial to carry: the command with its knobs filled in, on an offer.

    ``candidate`` is the offer's name as the user's file has it. ``price`` is in USD per hour, None
    where unknown; ``seconds``, ``precision`` and ``timeout`` are those of ``underdog measure``.
    """

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


@dataclass(frozen=True, slots=True)
class Request:
    """Exactly what would be submitted: ``--dry-run`` prints ``lines`` and no more happens."""

    job: Job
    lines: tuple[str, ...]
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """Of a submitted job: whether it has ended, and what it shows so far."""

    ended: bool
    look: Look | None = None


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
    """An engine. A method that cannot do its work raises an ``UnderdogError`` that says why."""

    def render(self, job: Job) -> Request:
        """Exactly what ``submit`` would submit. Pure: nothing happens."""

    def submit(self, request: Request) -> Handle:
        """Start it; returns at once."""

    def status(self, handle: Handle) -> State:
        """How it stands, without waiting."""

    def collect(self, handle: Handle) -> Path:
        """The file with the trial of a job that has ended, as ``measure --json`` prints it."""

    def cancel(self, handle: Handle) -> None:
        """Ask it to end early; what it measured so far can be collected. Idempotent."""


def names() -> list[str]:
    """The runners that there are."""
    return plugins.names(PACKAGE, GROUP)


def make(name: str, setup: Setup) -> Runner:
    """The runner of that name.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    module: Any = plugins.load(PACKAGE, GROUP, name)
    made: Runner = module.runner(setup)
    return made
