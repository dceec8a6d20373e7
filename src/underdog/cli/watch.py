"""``underdog watch``: whether the stored decisions still stand."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from underdog.cli.common import (
    DURATION,
    POSITIVE,
    console,
    json_option,
    json_text,
    print_json,
    store_option,
)
from underdog.cli.elsewhere import Told, carried_folder, folder_options, print_jobs

if TYPE_CHECKING:
    from underdog.report.notices import Notices
    from underdog.verbs.watch import Round, Watch


@click.command("watch", short_help="Say whether the stored decisions still stand.")
@click.option(
    "--workload",
    "workloads",
    metavar="NAME",
    multiple=True,
    help="Only decisions about it; may be given several times. [default: all that are stored]",
)
@click.option("--every", type=DURATION, help="Go on, a round each so long, as 6h.")
@click.option("--no-refresh", is_flag=True, help="Ask no provider; the newest snapshot counts.")
@click.option(
    "--max-age",
    type=DURATION,
    default="90d",
    help="A measurement that is older asks for another one.  [default: 90d]",
)
@click.option("--act", is_flag=True, help="Run the tests that would settle what is open.")
@click.option(
    "--budget",
    type=POSITIVE,
    metavar="USD",
    help="The most that all of those may cost, over all rounds.",
)
@click.option("--dry-run", is_flag=True, help="With --act: only show what would be submitted.")
@click.option(
    "--offers",
    metavar="FILE",
    help="With --act: a file of offers that says how to get at machines, before the decision's.",
)
@folder_options
@click.option(
    "--notify",
    "urls",
    multiple=True,
    metavar="URL",
    envvar="UNDERDOG_NOTIFY",
    help="Send what is new since the last watch there: a URL of apprise. May be given several "
    "times. [default: $UNDERDOG_NOTIFY]",
)
@click.option("--all", "everything", is_flag=True, help="Tell of those that stand, too.")
@json_option
@store_option
def command(
    workloads: tuple[str, ...],
    every: float | None,
    no_refresh: bool,
    max_age: float,
    act: bool,
    budget: float | None,
    dry_run: bool,
    offers: str | None,
    folder: Path | None,
    no_folder: bool,
    urls: tuple[str, ...],
    everything: bool,
    as_json: bool,
    store: str | None,
) -> int:
    """Say of every stored decision what has changed, and whether it still stands.

    The latest decision of each question is judged by the newest offers and all trials. Exit status:
    0 all stand, or only a test can tell; 1 at least one does not stand; 2 one cannot be judged, or
    a notice could not be sent.

    \b
    underdog watch
    underdog watch --every 6h --notify mailto://user:password@example.org
    underdog watch --act --budget 2 --dry-run
    underdog watch --act --budget 2
    """
    from underdog.report.notices import Notices
    from underdog.verbs.watch import Watch, repeat

    asked = Watch(
        workloads=workloads,
        refresh=not no_refresh,
        oldest_seconds=max_age,
        act=act,
        budget=budget,
        dry_run=dry_run,
        offers=offers,
        folder=carried_folder(folder, no_folder),
        store=store,
    )
    output = _Output(Notices(urls), as_json, everything)
    if every is None:
        return output.round(asked)
    ended = _ended_by_signal(lambda: repeat(lambda: output.round(asked, True), every, _say))
    return 0 if ended == signal.SIGTERM else 128 + ended


class _Output:
    """What a round prints and sends."""

    def __init__(self, notices: Notices, as_json: bool, everything: bool) -> None:
        self._notices, self._as_json, self._everything = notices, as_json, everything
        self._spent = 0.0  # of the budget, in earlier rounds

    def round(self, asked: Watch, several: bool = False) -> int:
        """One round; returns its exit status."""
        from underdog.verbs import watch as verb

        if asked.budget is not None:
            asked = replace(asked, budget=max(asked.budget - self._spent, 0.0))
        with _progress() as tell:
            found = verb.judge(asked, _say, tell)
        told = Told()
        try:
            found = verb.act(found, asked, _say, told.tell)
        finally:
            told.end()
        self._spent += found.spent
        self._print(found, several)
        failed = verb.notify(found, asked, self._notices) if self._notices else []
        for scheme in failed:
            _say(f"the notice to {scheme}://… was not taken")
        return 2 if failed and found.status == 0 else found.status

    def _print(self, found: Round, several: bool) -> None:
        if self._as_json:
            if several:  # one line for each round
                sys.stdout.write(" ".join(json_text(found).split("\n")) + "\n")
            else:
                print_json(found)
        else:
            from underdog.report.watch import settled_lines, watch_report

            if several:
                click.echo(f"{found.at}  catalog of {found.catalog_date}")
            text = watch_report(found.judged, found.tests, self._everything)
            # names are there to be searched for and pasted: the terminal may wrap them
            console().print(text, end="", soft_wrap=True)
            console().print(settled_lines(found.settled), end="", soft_wrap=True)
            print_jobs(planned.plan for planned in found.planned if planned.plan)
        for planned in found.planned:
            if planned.reason is not None:
                _say(
                    f"would not be run: {planned.test.workload} on {planned.test.offer}: "
                    f"{planned.reason}"
                )
        for one in found.done:
            if one.trial is not None:
                why = "" if one.reason is None else f": {one.reason}"
                _say(f"trial {one.trial} ended as {one.status}, for ${one.dollars:.4g}{why}")
        sys.stdout.flush()


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str, int, int | None], None] | None]:
    """What the providers are at, on a terminal; a log is spared it."""
    if not sys.stderr.isatty():
        yield None
        return
    from underdog.cli.progress import Progress
    from underdog.progress import telling

    with Progress() as progress, telling(progress.tell):
        yield progress.tell


def _say(line: str) -> None:
    from underdog.report.measurement import shown

    click.echo(f"underdog: {shown(line, keep_lines=True)}", err=True)


def _ended_by_signal(work: Callable[[], NoReturn]) -> int:
    """Work without end until a signal ends it; returns which."""
    came: list[int] = []

    def end(number: int, frame: FrameType | None) -> None:
        came.append(number)
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # of nohup
            signal.signal(number, end)
    try:
        work()
    except KeyboardInterrupt:
        return came[0] if came else signal.SIGINT
