"""``underdog explore``: find the best offer in few and cheap tests."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from underdog.cli.common import (
    DURATION,
    POSITIVE,
    console,
    json_option,
    print_json,
    store_option,
)
from underdog.cli.progress import bars
from underdog.cli.service_options import needs_option

EVERY = 30.0  # seconds between two lines on what runs, where they cannot be drawn anew

if TYPE_CHECKING:
    from underdog.core.exploration import Event, Exploration, Why


@click.command("explore", short_help="Find the best offer in few and cheap tests.")
@click.argument("study", required=False, type=click.Path(dir_okay=False), metavar="[STUDY]")
@click.option(
    "--runner",
    metavar="NAME",
    help="Who carries the tests: local, ssh, slurm, ray, skypilot, replay.",
)
@click.option("--trials", metavar="FILE", help="Recorded trials, for --runner replay.")
@click.option("--offers", metavar="FILE", help="Search among these offers, not the catalog.")
@click.option("--workload", metavar="NAME", help="[default: the script's name]")
@click.option(
    "--by",
    metavar="UTILITY",
    help="What to search the best of: as in choose.  [default: samples_per_dollar]",
)
@click.option(
    "--minimize", "better", flag_value="lower", help="Less of the --by expression is better."
)
@click.option(
    "--maximize", "better", flag_value="higher", help="More of the --by expression is better."
)
@click.option("--where", metavar="CONDITION", help="Only offers that satisfy it.")
@needs_option
@click.option("--budget", type=POSITIVE, metavar="USD", help="The most that all tests may cost.")
@click.option(
    "--max-trials", type=click.IntRange(1), metavar="N", help="At most so many.  [default: 20]"
)
@click.option(
    "--parallel",
    type=click.IntRange(1, 64),
    metavar="N",
    help="So many tests at once.  [default: 1]",
)
@click.option(
    "--deadline", type=DURATION, help="Begin no test that might end later than this from now."
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="The same one, the same search.")
@store_option
@json_option
@click.option("--dry-run", is_flag=True, help="Say what would be tested first, and run nothing.")
def command(
    study: str | None, store: str | None, as_json: bool, dry_run: bool, **options: Any
) -> int:
    """Find the best offer in few and cheap tests.

    STUDY is a TOML file: docs/reference/study.md. What is given here stands over what it says.
    The same command again goes on where it stopped, also after it was killed. A replay is kept
    only with --store.

    Exit status: 0 found, 1 no candidate works, 2 could not do it, 130 interrupted.

    \b
      underdog explore study.toml --budget 20
      underdog explore --runner replay --trials trials.csv --offers offers.csv --workload gpt
    """
    from underdog.verbs import explore as verb
    from underdog.verbs import studies

    given = {name: value for name, value in options.items() if value not in (None, ())}
    found = studies.read(study, given, os.environ)
    if dry_run:
        _print_plan(*verb.plan(found, store), as_json)
        return 0
    said = _Talk(found.by)
    # tests that run have lines of their own
    shown = bars() if found.runner == "replay" else contextlib.nullcontext()
    try:
        with shown:
            result = verb.run(found, store, said.tell)
    finally:
        said.end()
    if as_json:
        print_json(result)
    else:
        _print_report(result)
    if result.ended == "interrupted":
        return 130
    return 0 if result.best is not None else 1


def _print_plan(plan: list[dict[str, Any]], ended: Why | None, as_json: bool) -> None:
    if as_json:
        print_json(plan)
        return
    from underdog.report.explore import plan_lines

    for line in plan_lines(plan, ended):
        click.echo(line)


def _print_report(result: Exploration) -> None:
    from underdog.report.explore import command_lines, report
    from underdog.report.ranking import NARROWEST

    screen = console()
    screen.width = max(screen.width, NARROWEST)
    screen.print(report(result, screen.width))
    for line in command_lines(result):  # whole: what is wrapped cannot be pasted
        click.echo(line)


class _Talk:
    """Lines on standard error; on a terminal what runs has one line that is drawn anew."""

    def __init__(self, utility: str) -> None:
        self._utility = utility
        self._terminal = sys.stderr is not None and sys.stderr.isatty()
        self._running: dict[int, str] = {}
        self._drawn = False
        self._last = time.monotonic()

    def tell(self, event: Event) -> None:
        from underdog.core.exploration import Running
        from underdog.report.explore import line_of

        line = line_of(event, self._utility)
        if isinstance(event, Running):
            self._running[event.number] = line
            self._tell_running()
            return
        self._running.pop(event.number, None)
        self.end()
        self._last = time.monotonic()
        click.echo(line, err=True)

    def _tell_running(self) -> None:
        together = "; ".join(self._running.values())
        if self._terminal:
            width = console(stderr=True).width - 1
            click.echo(f"\r\x1b[2K{together[:width]}", err=True, nl=False)
            self._drawn = True
        elif time.monotonic() - self._last > EVERY:
            click.echo(f"  {together}", err=True)
            self._last = time.monotonic()

    def end(self) -> None:
        if self._drawn:
            click.echo("\r\x1b[2K", err=True, nl=False)
            self._drawn = False
