"""``underdog show``: a study, a decision, a trial or a workload as text."""

from __future__ import annotations

import click

from underdog.cli.common import console, json_option, store_option


@click.command("show", short_help="Show a study, a decision, a trial or a workload.")
@click.argument("name", required=False)
@json_option
@store_option
def command(name: str | None, as_json: bool, store: str | None) -> None:
    """Show NAME: a study, a decision, a trial or a workload; of an id its first letters do.

    Without NAME, the study that runs, else the latest study or decision. A workload is shown over
    time. Bars are drawn where the terminal can, plain text elsewhere.

    \b
    underdog show
    underdog show train_gpt
    """
    from underdog.store import open_store
    from underdog.verbs import viewing

    with open_store(store) as opened:
        meant = viewing.latest(opened) if name is None else viewing.found(opened, name)
        view = viewing.view_of(opened, meant)
    if as_json:
        from underdog.report.page_json import to_json

        click.echo(to_json(view))
    else:
        from underdog.report.show import print_view

        print_view(view, console())
