"""``underdog attempts``: list, add and import attempts to get machines."""

from __future__ import annotations

import time
from pathlib import Path

import click

from underdog.cli.common import DURATION, Group, console, json_option, print_json, store_option
from underdog.errors import UsageError

ROWS = 50  # of a table, where --limit does not say


@click.group(
    "attempts",
    cls=Group,
    invoke_without_command=True,
    short_help="List, add and import attempts to get machines.",
)
@click.option("--provider", metavar="NAME", help="Only of this provider.")
@click.option("--type", "instance_type", metavar="NAME", help="Only for this instance type.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Only the latest N.  [default: {ROWS} in a table, else all]",
)
@json_option
@store_option
@click.pass_context
def command(
    ctx: click.Context,
    provider: str | None,
    instance_type: str | None,
    limit: int | None,
    as_json: bool,
    store: str | None,
) -> None:
    """List the attempts to get machines, the latest last, and what to do about refusals.

    choose counts waiting and interruptions by them.
    """
    if ctx.invoked_subcommand is not None:
        return
    from underdog.verbs import attempts as verb

    asked = limit if limit or as_json else ROWS + 1
    found = verb.attempts(store, provider=provider, instance_type=instance_type, limit=asked)
    if as_json:
        print_json([verb.plain(one) for one in found])
        return
    if limit is None and len(found) > ROWS:
        found = found[-ROWS:]
        click.echo(f"The latest {ROWS}; --limit N shows more.", err=True)
    if not found:
        click.echo("No attempts. Bring some in: underdog attempts import FILE", err=True)
        return
    from underdog.report.attempts import attempts_table

    console().print(attempts_table(found, verb.next_step))


@command.command("add", short_help="Add an attempt.")
@click.argument("offer")
@click.option("--zone", metavar="NAME", default="", help="Availability zone that was asked.")
@click.option("--count", type=click.IntRange(min=1), default=1, metavar="N", show_default=True)
@click.option("--refused", metavar="WORDS", help="It was refused, in the provider's words.")
@click.option("--waited", type=DURATION, help="Until it was got or given up.")
@click.option("--held", type=DURATION, help="How long it was there.")
@click.option("--interrupted", is_flag=True, help="The provider took it away after --held.")
@click.option("--at", metavar="TIME", help="When it was asked, ISO 8601.  [default: now]")
@json_option
@store_option
@click.pass_context
def add(
    ctx: click.Context,
    offer: str,
    zone: str,
    count: int,
    refused: str | None,
    waited: float | None,
    held: float | None,
    interrupted: bool,
    at: str | None,
    as_json: bool,
    store: str | None,
) -> None:
    """Add an attempt to get OFFER, such as aws/us-east-1/g5.xlarge/spot.

    \b
    underdog attempts add aws/us-east-1/g5.xlarge/spot --waited 90s --held 5h --interrupted
    underdog attempts add aws/us-east-1/g5.xlarge/spot --refused InsufficientInstanceCapacity
    """
    from underdog.core.attempts import Attempt, seconds_of
    from underdog.verbs import attempts as verb

    moment = time.time() if at is None else seconds_of(at)
    if moment is None:
        raise click.BadParameter(f"'{at}' is no moment.", param_hint="--at")
    if refused is not None and (held is not None or interrupted):
        raise UsageError("What was refused was never held.", "Give --refused, or --held.")
    if interrupted and held is None:
        raise UsageError("--interrupted needs --held: how long it was there.")
    kept = verb.add(
        Attempt(
            place=verb.place_of(offer, zone),
            at=moment,
            got=refused is None,
            waited=waited,
            count=count,
            words=refused or "",
            held=held,
            interrupted=interrupted,
            source="by hand",
        ),
        _store(ctx, store),
    )
    if as_json:
        print_json(verb.plain(kept))
    elif kept.got:
        click.echo("Kept: it was got.", err=True)
    else:
        kind = (kept.refusal or "refused").replace("_", " ")
        click.echo(f"Kept: {kind}. Next: {verb.next_step(kept)}.", err=True)


@command.command("import", short_help="Bring in attempts from elsewhere.")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
@store_option
@click.pass_context
def import_command(ctx: click.Context, file: Path, as_json: bool, store: str | None) -> None:
    """Bring in the attempts of FILE: CSV with offer, at and got, or JSON.

    All of them or, where anything is wrong, none. The same file again adds nothing.
    """
    from underdog.verbs import attempts as verb

    done = verb.import_attempts(file, _store(ctx, store))
    if as_json:
        print_json(done)
    else:
        said = f"{done.added:,} attempts added from {done.file}"
        there = f", {done.unchanged:,} were there" if done.unchanged else ""
        click.echo(said + there, err=True)


def _store(ctx: click.Context, own: str | None) -> str | None:
    """--store after the sub-command, else before it."""
    before: str | None = ctx.parent.params["store"] if ctx.parent else None
    return own or before
