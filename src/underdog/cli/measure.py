"""``underdog measure``: run a training script unchanged and measure it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from underdog.cli.common import (
    DURATION,
    FRACTION,
    POSITIVE,
    console,
    json_option,
    print_json,
    store_option,
)
from underdog.cli.elsewhere import carry, place_of, place_options
from underdog.units import format_seconds

if TYPE_CHECKING:
    from underdog.measuring.observe import Progress
    from underdog.model import Trial


@click.command(
    "measure",
    context_settings={"allow_interspersed_args": False},
    short_help="Run a training script unchanged and measure it.",
)
@click.option(
    "--for",
    "seconds",
    type=DURATION,
    help="End the script after this time at the latest.  [default: 5m]",
)
@click.option(
    "--precision",
    type=FRACTION,
    help="End it earlier, when half the 95 % interval is within this share.  [default: 2%]",
)
@click.option("--whole", is_flag=True, help="Let the script run to its own end.")
@click.option(
    "--timeout",
    type=DURATION,
    default="2m",
    show_default=True,
    help="End a script that shows no step, no output and no processor use for this long.",
)
@click.option(
    "--samples-per-step",
    type=POSITIVE,
    metavar="N",
    help="How many samples a step takes, over all its micro-batches, on each rank.",
)
@click.option(
    "--pattern",
    metavar="REGEX",
    help="Read the rate from the script's output: a regular expression with a group named "
    "rate, samples (and seconds) or step.",
)
@click.option(
    "--knob",
    "knobs",
    multiple=True,
    metavar="NAME=A,B,C",
    help="Measure each value, put where the command says {NAME}. May be repeated.",
)
@click.option("--workload", metavar="NAME", help="[default: the script's name]")
@click.option(
    "--price",
    type=POSITIVE,
    metavar="USD",
    help="Price of this machine per hour.  [default: that of its instance type, if known]",
)
@click.option(
    "--progress",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the rate so far in this file, as JSON, for another program to read.",
)
@place_options
@store_option
@json_option
@click.option("--dry-run", is_flag=True, help="Say what would be run, and run nothing.")
@click.argument("command_line", metavar="-- COMMAND...", nargs=-1, type=click.UNPROCESSED)
def command(command_line: tuple[str, ...], as_json: bool, dry_run: bool, **options: Any) -> int:
    """Run a training script unchanged and measure it.

    Everything after -- is run as it stands. The script's output passes through; with --json its
    standard output goes to standard error, and standard output holds one JSON object.

    Exit status: 0 measured, 1 run but not measured, 2 could not do it, 130 interrupted.

    With --on or --runner it is measured on another machine: docs/how-to/run-elsewhere.md.

    \b
      underdog measure -- python train.py --epochs 1
      underdog measure --knob batch=8,16,32 -- python train.py --batch {batch}
      underdog measure --on gpu-box --offers machines.toml -- python train.py
    """
    from underdog.measuring.command import parse_knobs
    from underdog.measuring.launch import occupy_standard_fds
    from underdog.verbs import measure as verb

    occupy_standard_fds()
    options["knobs"] = parse_knobs(options["knobs"])
    progress_file = options.pop("progress")
    where = place_of(options)
    if where is not None:
        if progress_file is not None:
            raise click.UsageError("--progress is of a measurement on this machine.")
        settings = verb.Settings(command=list(command_line), here=False, **options)
        return carry(settings, where, as_json, dry_run)
    settings = verb.Settings(command=list(command_line), **options)
    if dry_run:
        print_plan(verb.plan(settings), as_json)
        return 0
    stdout_to = 2 if as_json else 1
    trials = verb.measure_all(settings, stdout_to, progress_line, progress_file)
    if as_json:
        print_json(as_one(trials))
    else:
        print_report(trials)
    return exit_status(trials)


def as_one(trials: list[Trial]) -> Any:
    """The trial; of several the best one, with all of them under ``trials``."""
    import msgspec

    from underdog.report.measurement import best

    if len(trials) == 1:
        return trials[0]
    return {**msgspec.to_builtins(best(trials)), "trials": trials}


def print_report(trials: list[Trial], offers: str | None = None) -> None:
    """The report on standard output, after whatever the script wrote there.

    Args:
        offers: the file of offers that the machine was named in.
    """
    from underdog.report.measurement import best, knobs_report, next_command, trial_report

    out = console()
    chosen = best(trials)
    out.print(trial_report(chosen))
    if len(trials) > 1:
        out.print(knobs_report(trials))
    if chosen.status == "ok":
        out.print(next_command(chosen, offers))
    sys.stdout.flush()


def print_plan(plan: list[dict[str, Any]], as_json: bool) -> None:
    """What would be run."""
    if as_json:
        print_json(plan)
        return
    import shlex

    for run in plan:
        click.echo(shlex.join(run["command"]))
        for name, value in run["environment"].items():
            click.echo(f"  with {name}={value}")
        for name, value in run["limits"].items():
            click.echo(f"  {name}: {value}")


def exit_status(trials: list[Trial], interrupted: bool | None = None) -> int:
    """2 where a trial could not be kept, 130 where the user interrupted, else 0 or 1.

    Args:
        interrupted: whether the user did; None: the trials tell.
    """
    if interrupted is None:
        interrupted = any(t.status == "interrupted" for t in trials)
    if any(c.code == "not_stored" for t in trials for c in t.caveats):
        return 2
    if interrupted:
        return 130
    measured = any(
        t.status in ("ok", "interrupted") and t.measurement and t.measurement.samples_per_second
        for t in trials
    )
    return 0 if measured else 1


def progress_line(progress: Progress) -> str:
    """One line for the terminal while the script runs."""
    from underdog.report.measurement import number

    elapsed = format_seconds(max(progress.elapsed, 1.0))
    result = progress.result
    if result is None or not result.steps:
        return f"underdog: {elapsed}, no step yet"
    estimate, unit = result.samples_per_second, "samples/s"
    if estimate is None:
        estimate, unit = result.steps_per_second, "steps/s"
    if estimate is None:
        return f"underdog: {elapsed}, {result.steps:,} steps"
    share = 100 * (estimate.high - estimate.low) / 2 / estimate.value
    return f"underdog: {elapsed}, {number(estimate.value)} {unit} ±{share:.2g} %"
