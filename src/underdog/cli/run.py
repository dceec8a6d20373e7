"""``underdog run``: run a workload to its end on another machine, measured all along."""

from __future__ import annotations

from typing import Any

import click

from underdog.cli.common import DURATION, POSITIVE, json_option, store_option
from underdog.cli.elsewhere import carry, place_of, place_options


@click.command(
    "run",
    context_settings={"allow_interspersed_args": False},
    short_help="Run a workload to its end on another machine.",
)
@place_options
@click.option(
    "--at-most",
    "seconds",
    type=DURATION,
    default="24h",
    show_default=True,
    help="End it and give the machine back after this time, whatever it does.",
)
@click.option(
    "--timeout",
    type=DURATION,
    default="30m",
    show_default=True,
    help="End a script that shows no step, no output and no processor use for this long.",
)
@click.option(
    "--samples-per-step", type=POSITIVE, metavar="N", help="How many samples a step takes."
)
@click.option("--pattern", metavar="REGEX", help="Read the rate from the output, as in measure.")
@click.option("--workload", metavar="NAME", help="[default: the script's name]")
@click.option("--price", type=POSITIVE, metavar="USD", help="Price of the machine per hour.")
@store_option
@json_option
@click.option("--dry-run", is_flag=True, help="Say what would be submitted and what it may cost.")
@click.argument("command_line", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def command(command_line: tuple[str, ...], as_json: bool, dry_run: bool, **options: Any) -> int:
    """Run a workload to its end on another machine, measured all along.

    The folder that you are in goes along; what the command writes there stays there. How to reach a
    machine stands in a file of offers, docs/how-to/run-elsewhere.md; offers of the catalog are
    reached by SkyPilot.

    Exit status: 0 run and measured, 1 run but not measured, 2 could not do it, 130 interrupted.

    \b
      underdog run --on gpu-box --offers machines.toml -- python train.py
      underdog run --on aws/us-east-1/g5.xlarge --max-dollars 20 -- python train.py
    """
    from underdog.verbs.measure import Settings

    options["at_most"] = options.pop("seconds")
    where = place_of(options)
    if where is None:
        raise click.UsageError(
            "Which machine? Name it with --on OFFER; here it is: underdog measure --whole."
        )
    settings = Settings(command=list(command_line), whole=True, here=False, **options)
    return carry(settings, where, as_json, dry_run)
