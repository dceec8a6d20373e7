"""What ``measure`` and ``run`` share: flags that name a machine, and carrying a trial to it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from underdog.cli.common import POSITIVE, print_json
from underdog.units import format_seconds

if TYPE_CHECKING:
    from underdog.runners import State
    from underdog.verbs.elsewhere import Where
    from underdog.verbs.measure import Settings

SAID_EVERY = 30.0  # seconds between two lines where no terminal renews one
_F = TypeVar("_F", bound=Callable[..., Any])


def folder_options(function: _F) -> _F:
    """The flags that say what goes along to another machine."""
    for option in (
        click.option(
            "--no-folder",
            is_flag=True,
            help="Carry no files: the command finds all that it needs there.",
        ),
        click.option(
            "--folder",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            metavar="DIR",
            help="The folder that goes along and that the command runs in.  [default: this one]",
        ),
    ):
        function = option(function)
    return function


def carried_folder(folder: Path | None, none: bool) -> Path | None:
    """What goes along, by the flags of ``folder_options``; None: nothing does."""
    if none and folder is not None:
        raise click.UsageError("Give --folder or --no-folder.")
    return None if none else (folder or Path()).resolve()


def place_options(function: _F) -> _F:
    """The flags that name another machine and what goes there."""
    function = folder_options(function)
    for option in (
        click.option(
            "--max-dollars",
            "dollars",
            type=POSITIVE,
            metavar="USD",
            help="The most that one trial may cost; the machine itself ends it there.",
        ),
        click.option("--offers", metavar="FILE", help="A file of offers, instead of the catalog."),
        click.option("--runner", metavar="NAME", help="Who carries it: docs/reference/targets.md."),
        click.option("--on", metavar="OFFER", help="The machine: an offer, or an instance type."),
    ):
        function = option(function)
    return function


def place_of(options: dict[str, Any]) -> Where | None:
    """Take the flags of ``place_options`` out; None where they name no other machine."""
    folder, none = options.pop("folder"), options.pop("no_folder")
    at_most = options.pop("at_most", None)
    given = {name: options.pop(name) for name in ("on", "runner", "offers", "dollars")}
    if not any(given[name] is not None for name in ("on", "runner", "offers")):
        for name, value in (
            ("--folder", folder),
            ("--no-folder", none or None),
            ("--max-dollars", given["dollars"]),
        ):
            if value is not None:
                raise click.UsageError(f"{name} is of another machine: name it with --on OFFER.")
        return None
    from underdog.verbs.elsewhere import Where

    return Where(folder=carried_folder(folder, none), at_most=at_most, **given)


def carry(settings: Settings, where: Where, as_json: bool, dry_run: bool) -> int:
    """Measure there and print what came of it, or what would be submitted; the exit status."""
    from underdog.cli.measure import as_one, exit_status, print_report
    from underdog.verbs import elsewhere as verb

    if dry_run:
        _print_plan(verb.plan(settings, where), as_json)
        return 0
    from underdog.measuring.interrupts import Interrupts

    told, interrupts = Told(), Interrupts()
    trials = verb.measure_there(settings, where, told.tell, interrupts)
    told.end()
    if as_json:
        print_json(as_one(trials))
    else:
        print_report(trials, None if where.offers is None else str(where.offers))
    return exit_status(trials, interrupted=interrupts.count > 0)


class Told:
    """How a job elsewhere stands: one line that is renewed on a terminal, else what is new."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._last = ""
        self._said = time.monotonic()

    def tell(self, name: str, state: State) -> None:
        """Say it on standard error."""
        line = f"underdog: {name}: {_standing(state)}"
        if self._live:
            click.echo(f"\r\x1b[K{line}", err=True, nl=False)
        elif _kind(state) != self._last or time.monotonic() - self._said > SAID_EVERY:
            click.echo(line, err=True)
            self._said = time.monotonic()
        self._last = _kind(state)

    def end(self) -> None:
        """The line is over."""
        if self._live and self._last:
            click.echo("\r\x1b[K", err=True, nl=False)


def _kind(state: State) -> str:
    if state.waiting is not None:
        return f"waiting: {state.waiting}"
    return "runs" if state.look is None else "measures"


def _standing(state: State) -> str:
    from underdog.report.measurement import number

    look = state.look
    if look is None:
        return _kind(state)
    elapsed = format_seconds(max(1.0, look.elapsed))  # 1.0 where it is no number
    if look.rate is None or not look.rate.value > 0:
        return f"{elapsed}, no rate yet"
    share = 100 * (look.rate.high - look.rate.low) / 2 / look.rate.value
    return f"{elapsed}, {number(look.rate.value)} samples/s ±{share:.2g} %"


def _print_plan(plan: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print_json(plan)
        return
    print_jobs(plan)


def print_jobs(plan: Iterable[dict[str, Any]]) -> None:
    """Jobs that would be submitted, to the last line, and what each may cost."""
    for job in plan:
        knobs = "".join(f" {name}={value}" for name, value in job["knobs"].items())
        click.echo(f"{job['offer']} by {job['runner']}{knobs}")
        for line in job["would_submit"]:
            click.echo(f"  {line}")
        longest = format_seconds(job["longest_seconds"])
        if job["most_dollars"] is None:
            click.echo(f"  at most {longest}; what it costs is unknown, for its price is")
        else:
            price = f"${job['price_per_hour']:,.4g} per hour"
            click.echo(f"  at most {longest} at {price}: ${job['most_dollars']:,.2f}")
