"""``underdog choose``: rank the offers for a measured workload."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from underdog.cli.common import (
    DURATION,
    FRACTION,
    POSITIVE,
    as_of_option,
    console,
    json_option,
    json_text,
    one_format,
    store_option,
)
from underdog.cli.progress import bars
from underdog.cli.service_options import needs_option, service_options
from underdog.cli.supply_options import supply_options
from underdog.errors import UsageError

if TYPE_CHECKING:
    from underdog.verbs.choose import Answer

MOST_NODES = 1024


class Numbers(click.ParamType):  # type: ignore[type-arg]
    """Whole numbers such as ``1,2,4`` or ``1-8``."""

    name = "numbers"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        found: set[int] = set()
        for part in str(value).split(","):
            match = re.fullmatch(r"\s*(\d{1,4})(?:-(\d{1,4}))?\s*", part)
            first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
            if not 1 <= first <= last <= MOST_NODES:
                self.fail(f"'{value}' is not like 1,2,4 or 1-8 (up to {MOST_NODES}).", param, ctx)
            found |= set(range(first, last + 1))
        return tuple(sorted(found))


class Names(click.ParamType):  # type: ignore[type-arg]
    """Names with commas between them."""

    name = "names"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(part.strip() for part in str(value).split(",") if part.strip())
        if not names:
            self.fail(f"'{value}' names nothing.", param, ctx)
        return names


@click.command("choose", short_help="Rank the offers for a measured workload.")
@click.option("--workload", metavar="NAME", help="[default: the most recently measured one]")
@click.option(
    "--by",
    metavar="UTILITY",
    default="samples_per_dollar",
    show_default=True,
    help="What to rank by: a metric, an expression over metrics and offer columns, or several "
    "with commas between them, of which each decides among those within --tolerance of the best "
    "by the one before.",
)
@click.option(
    "--minimize", "better", flag_value="lower", help="Less of the --by expression is better."
)
@click.option(
    "--maximize", "better", flag_value="higher", help="More of the --by expression is better."
)
@click.option("--tolerance", type=FRACTION, metavar="SHARE", help="Such as 10%.")
@click.option("--where", metavar="CONDITION", help="Only offers that satisfy it.")
@click.option("--samples", type=POSITIVE, metavar="N", help="Samples of the whole job, as 300e6.")
@click.option("--deadline", type=DURATION, help="The longest the job may take; needs --samples.")
@click.option("--budget", type=POSITIVE, metavar="USD", help="The most the job may cost.")
@click.option(
    "--purchase",
    type=Names(),
    default=(),
    metavar="LIST",
    help="Among on-demand,spot,reserved. [default: on-demand,spot]",
)
@click.option(
    "--nodes",
    type=Numbers(),
    default="1",
    show_default=True,
    help="Numbers of machines that may share the job, as 1,2,4 or 1-8.",
)
@click.option(
    "--software",
    type=Names(),
    metavar="LIST",
    help="Software stacks that the workload can run on, as cuda,neuron.  [default: what its "
    "framework reaches without changes to the script]",
)
@needs_option
@service_options
@supply_options
@click.option("--offers", metavar="FILE", help="Choose among these offers, not the catalog.")
@as_of_option
@click.option("--all-regions", is_flag=True, help="List every region of a machine.")
@click.option(
    "--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, metavar="N"
)
@click.option("--explain", metavar="OFFER", help="Tell the story of one offer or instance type.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["table", "json", "csv", "markdown"]),
    default="table",
    show_default=True,
)
@json_option
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
@store_option
def command(
    explain: str | None, format_: str, as_json: bool, output: Path | None, **options: Any
) -> int:
    """Rank the offers of the catalog for a workload that was measured.

    What was measured and what is predicted from it are told apart; the ledger in the JSON says of
    every candidate why it is where it is. Exit status 1: no offer meets the constraints.

    \b
    underdog choose --by samples_per_second --where "price_per_hour < 2"
    underdog choose --samples 300e6 --deadline 48h --nodes 1-4
    underdog choose --samples 300e6 --by "dollars_to_train, hours_to_train" --tolerance 10%
    """
    from underdog.verbs.choose import Options, decide

    format_ = one_format(format_, as_json)
    options["tolerance"] = options["tolerance"] or 0.0
    with bars():
        answer = decide(Options(**options))
    if explain is not None:
        _explain(answer, explain, format_ == "json", output)
        return 0
    if format_ == "json":
        _print_json(answer, output)
    else:
        _print_text(answer, format_, output)
    if answer.decision.ranking:
        return 0
    from underdog.report.decision import harmless, nearest_miss

    said = nearest_miss(harmless(answer.decision))
    click.echo(f"underdog: no offer meets the constraints: {said}", err=True)
    for line in answer.near_misses():
        click.echo(harmless(line), err=True)
    return 1


def _explain(answer: Answer, offer: str, as_json: bool, output: Path | None) -> None:
    from underdog.report.measurement import shown

    story = answer.explain(offer)
    if as_json:
        _write(json_text({"offer": offer, "story": story}), output)
    else:
        _write(shown(story, keep_lines=True), output)


def _print_json(answer: Answer, output: Path | None) -> None:
    _write(json_text(answer.full()), output)


def _print_text(answer: Answer, format_: str, output: Path | None) -> None:
    from underdog.report import decision as report
    from underdog.report.ranking import NARROWEST

    if format_ != "table":
        made = report.to_csv if format_ == "csv" else report.to_markdown
        _write(made(answer.decision).rstrip("\n"), output)
    elif output is None:
        screen = console()
        screen.width = max(screen.width, NARROWEST)
        screen.print(report.decision_report(answer.decision, screen.width))
    else:
        from rich.console import Console

        page = Console(file=io.StringIO(), width=120, highlight=False, color_system=None)
        with page.capture() as captured:
            page.print(report.decision_report(answer.decision, page.width))
        _write(captured.get().rstrip("\n"), output)


def _write(text: str, output: Path | None) -> None:
    """Write to standard output, or replace the file at the end, not before: whole or not at all."""
    if output is None:
        sys.stdout.write(text + "\n")
        return
    target = output.resolve()  # a link stays a link
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        if output.exists() and not output.is_file():  # a pipe or a device cannot be replaced
            output.write_text(text + "\n", encoding="utf-8")
            return
        try:
            beside.write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"'{output}' cannot be written: {error.strerror}.") from error
