"""``underdog support``: what reaches which accelerator, by whose word."""

from __future__ import annotations

import click

from underdog.cli.common import console, json_option, print_json


@click.command("support", short_help="List what reaches which accelerator.")
@click.argument("need", nargs=-1)
@click.option("--kind", metavar="KIND", help="Only format, attention, compiler, distributed, …")
@click.option("--accelerator", metavar="NAME", help="What reaches this one, as L4 or 'Tesla T4'.")
@json_option
def command(need: tuple[str, ...], kind: str | None, accelerator: str | None, as_json: bool) -> int:
    """List which number formats, attention kernels, compilers, libraries and frameworks reach
    which accelerator, and by whose word; with a NEED, all that is known of it.

    The names are those that underdog choose --needs takes.

    \b
    underdog support flash-attention-3
    underdog support --accelerator A10G --kind attention
    """
    from underdog.report import support as report
    from underdog.verbs import support as verb

    if accelerator is not None:
        told = verb.of_accelerator(accelerator, need, kind)
        print_json(told) if as_json else console().print(report.accelerator(told))
        return 0
    rows = verb.needs(need, kind)
    if as_json:
        print_json(rows)
    elif need:
        for row in rows:
            click.echo("\n".join(report.need(row)))
    else:
        console().print(report.matrix(rows))
    return 0
