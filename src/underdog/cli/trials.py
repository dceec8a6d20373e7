"""``underdog trials``: list, show, import and export trials."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from underdog.cli.common import (
    Group,
    console,
    json_option,
    one_format,
    print_json,
    store_option,
)
from underdog.cli.progress import bars
from underdog.errors import did_you_mean

if TYPE_CHECKING:
    from underdog.model import Trial
    from underdog.verbs.trials import ImportSummary

ROWS = 50  # of a table, where --limit does not say

workload_option = click.option("--workload", metavar="NAME", help="Only trials of this workload.")


@click.group(
    "trials",
    cls=Group,
    invoke_without_command=True,
    short_help="List, show, import, export and recover trials.",
)
@workload_option
@click.option("--status", metavar="STATUS", help="Only trials that ended so: ok, failed, …")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Only the latest N.  [default: {ROWS} in a table, else all]",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv", "markdown"]),
    default="table",
    show_default=True,
)
@json_option
@store_option
@click.pass_context
def command(
    ctx: click.Context,
    workload: str | None,
    status: str | None,
    limit: int | None,
    form: str,
    as_json: bool,
    store: str | None,
) -> None:
    """List the trials of the store, the latest last."""
    if ctx.invoked_subcommand is not None:
        return
    from underdog.verbs import trials as verb

    _check_status(status)
    form = one_format(form, as_json)
    # one more than is shown tells whether there are more
    asked = limit if limit or form != "table" else ROWS + 1
    found = verb.trials(store, workload=workload, status=status, limit=asked)
    if form == "table" and limit is None and len(found) > ROWS:
        found = found[-ROWS:]
        click.echo(f"The latest {ROWS}; --limit N shows more.", err=True)
    if not found:
        click.echo("No trials. Measure one: underdog measure -- python train.py", err=True)
    _print(found, form)


@command.command("show", short_help="Show one trial.")
@click.argument("id")
@json_option
@store_option
@click.pass_context
def show(ctx: click.Context, id: str, as_json: bool, store: str | None) -> None:
    """Show all that is known of the trial ID."""
    from underdog.verbs import trials as verb

    found = verb.trial(id, _store(ctx, store))
    if as_json:
        print_json(found)
    else:
        from underdog.report.trials import trial_page

        console().print(trial_page(found))


@command.command("import", short_help="Bring in trials that were measured elsewhere.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--offers",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="CSV or JSON with what the offers are, and their prices of then.",
)
@click.option(
    "--workload",
    metavar="NAME",
    help="Take only this workload; it is the name of rows that have none.",
)
@json_option
@store_option
@click.pass_context
def import_command(
    ctx: click.Context,
    file: Path,
    offers: Path | None,
    workload: str | None,
    as_json: bool,
    store: str | None,
) -> None:
    """Bring in the trials of FILE: CSV with workload, offer and throughput, or JSON.

    All of them or, where anything is wrong, none. The same file again adds nothing.
    """
    from underdog.verbs import trials as verb

    with bars():
        summary = verb.import_trials(file, offers, _store(ctx, store), workload=workload)
    if as_json:
        print_json(summary)
    else:
        click.echo(_told(summary), err=True)


@command.command("export", short_help="Write trials for other tools.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--format",
    "form",
    metavar="NAME",
    help="csv, json, markdown, mlflow, openmetrics, parquet, prometheus, wandb.  "
    "[default: the ending of FILE says]",
)
@workload_option
@store_option
@click.pass_context
def export(
    ctx: click.Context, file: Path, form: str | None, workload: str | None, store: str | None
) -> None:
    """Write the trials to FILE, for other tools or for underdog trials import.

    JSON (.json) holds all that is known and CSV (.csv) one line for each trial: both can be
    imported again. .parquet, .md, .prom and .om are for data frames, pages and scrapers. For
    mlflow and wandb FILE is a folder, to which runs are added; nothing is sent anywhere.
    """
    from underdog.verbs import trials as verb

    with bars():
        count = verb.export_trials(file, _store(ctx, store), workload=workload, form=form)
    click.echo(f"{count:,} trials written to {file}", err=True)


@command.command("recover", short_help="Bring in trials of other machines after a kill.")
@click.option("--cancel", is_flag=True, help="End the jobs that still run, instead of waiting.")
@json_option
@store_option
@click.pass_context
def recover(ctx: click.Context, cancel: bool, as_json: bool, store: str | None) -> int:
    """Bring in the trials on other machines whose underdog is gone.

    What ran there ran on, within its limits; its records are collected and the machine given back.

    Exit status: 0 all that were out are in, 1 some could not be brought in, 2 could not do it.
    """
    from underdog.cli.elsewhere import Told
    from underdog.verbs import elsewhere as verb

    told = Told()
    found = verb.recover(_store(ctx, store), cancel=cancel, tell=told.tell)
    told.end()
    if as_json:
        print_json(found)
    else:
        _print(found.trials, "table")
        for trial, why in found.still_out:
            click.echo(f"{trial.id} on {trial.runner} is still out: {why}", err=True)
        if not found.trials and not found.still_out:
            click.echo("No trial is out whose process is gone.", err=True)
    return 1 if found.still_out else 0


def _store(ctx: click.Context, own: str | None) -> str | None:
    """--store after the sub-command, else before it."""
    before: str | None = ctx.parent.params["store"] if ctx.parent else None
    return own or before


def _check_status(status: str | None) -> None:
    from typing import get_args

    from underdog.model import Status

    known = get_args(Status)
    if status is not None and status not in known:
        raise click.BadParameter(
            f"'{status}': {did_you_mean(status, known)}", param_hint="--status"
        )


def _print(found: list[Trial], form: str) -> None:
    if form == "json":
        print_json(found)
        return
    from underdog.report import trials as report

    if form == "csv":
        report.write_csv(found, sys.stdout)
    elif form == "markdown":
        click.echo(report.trials_markdown(found))
    elif found:
        screen = console()
        screen.print(report.trials_table(found, screen.width))


def _told(summary: ImportSummary) -> str:
    lines = [f"{summary.file}: {summary.added:,} trials added"]
    lines[0] += f", {summary.updated:,} updated" if summary.updated else ""
    lines[0] += f", {summary.unchanged:,} were there already" if summary.unchanged else ""
    if summary.failed:
        lines.append(f"  {summary.failed:,} without a throughput are kept as failed")
    if summary.price_unknown:
        lines.append(f"  {summary.price_unknown:,} without a price: --offers FILE gives them one")
    lines += [f"  {count:,} with the caveat {code}" for code, count in summary.caveats.items()]
    return "\n".join(lines)
