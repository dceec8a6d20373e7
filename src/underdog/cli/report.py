"""``underdog report``: all there is to see as one file, or one chart of it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from underdog.cli.common import json_option, store_option
from underdog.cli.progress import bars
from underdog.errors import UsageError


@click.command("report", short_help="Write a report, or one of its charts, to a file.")
@click.argument("name", required=False)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The ending says what it is to be: .html, .json or .md; of a chart .svg, .png or .json "
    "(Vega-Lite).",
)
@click.option(
    "--chart",
    metavar="NAME",
    help="Only this chart: front, ranking, funnel, search, throughput, phases, machine or history.",
)
@json_option
@store_option
def command(
    name: str | None, output: Path | None, chart: str | None, as_json: bool, store: str | None
) -> None:
    """Write all there is to see of NAME to a file.

    NAME is a study, a decision, a trial or a workload; of an id its first letters do. Without it,
    the study that runs, else the latest study or decision.

    \b
    underdog report -o report.html
    underdog report train_gpt -o train_gpt.md
    underdog report --chart front -o front.svg
    """
    from underdog.verbs import report as verb

    if as_json and (output is not None or chart is not None):
        raise UsageError(
            "--json prints the report on standard output; it goes with no --output and no --chart.",
            "Write a file: -o report.json",
        )
    if as_json:
        with bars():
            text = verb.render(verb.gather(name, store), "json").decode()
        sys.stdout.write(text)
        return
    if output is None:
        wanted = "front.svg" if chart else "report.html"
        raise UsageError("Where to? --output is missing.", f"Add -o {wanted}")
    # an ending that cannot be taken is told before anything is gathered
    known = verb.PAGES if chart is None else verb.PICTURES
    form = verb.ending(output, known, "report" if chart is None else "picture")
    with bars():
        page = verb.gather(name, store)
        content = verb.render(page, form) if chart is None else verb.chart(page, chart, form)
    verb.write(output, content)
    click.echo(f"{output}: {_size(len(content))}", err=True)


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"
