"""``underdog check``: fail where a workload's samples per dollar have fallen against a baseline."""

from __future__ import annotations

import click

from underdog.cli.common import FRACTION, console, json_option, print_json, store_option


@click.command("check")
@click.argument("baseline", metavar="FILE", type=click.Path(dir_okay=False))
@click.option(
    "--workload",
    "workloads",
    metavar="NAME",
    multiple=True,
    help="Only this workload; may be given several times. [default: all of the baseline]",
)
@click.option(
    "--drop",
    type=FRACTION,
    default="5%",
    metavar="SHARE",
    help="The fall of samples per dollar that is allowed. [default: 5%]",
)
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Pool the latest N trials of each workload. [default: 1]",
)
@click.option(
    "--update", is_flag=True, help="Write the latest trials into the baseline instead of checking."
)
@json_option
@store_option
def command(
    baseline: str,
    workloads: tuple[str, ...],
    drop: float,
    runs: int,
    update: bool,
    as_json: bool,
    store: str | None,
) -> int:
    """Fail (exit status 1) where a workload has become slower or dearer than FILE says.

    FILE is a baseline: what was measured on a day that counted, kept beside the code. It is written
    with --update. Only a fall that noise does not explain fails; where noise hides it, it says so
    and ends with 0. Exit status 2: there was nothing to compare.
    """
    from underdog.verbs import check as verb

    if update:
        made = verb.update(baseline, workloads=workloads, runs=runs, store=store)
        if as_json:
            print_json(made)
        for one in made:
            click.echo(f"baseline of {one.workload} written to {baseline}", err=True)
        return 0
    checked = verb.check(baseline, drop=drop, workloads=workloads, runs=runs, store=store)
    if as_json:
        print_json(checked)
    else:
        from underdog.report.check import check_report

        pairs = [(one.before, one.after, one.change) for one in checked]
        console().print(check_report(pairs, drop), end="")
    return int(any(one.change.verdict == "fell" for one in checked))
