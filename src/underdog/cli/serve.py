"""``underdog serve``: look at a store in a browser."""

from __future__ import annotations

import click

from underdog.cli.common import store_option

PORT = 8765


@click.command("serve", short_help="Look at the store in a browser, while it happens.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=PORT,
    help=f"The port; 0 takes a free one. [default: {PORT}]",
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="The address to listen on; any but this machine's own demands a token. "
    "[default: 127.0.0.1]",
)
@click.option(
    "--allow-run",
    is_flag=True,
    help="Let a button of the page ask the question of a decision again, and keep the answer.",
)
@click.option(
    "--token",
    metavar="TEXT",
    envvar="UNDERDOG_TOKEN",
    help="What who looks must show, at least 16 characters. [default: $UNDERDOG_TOKEN, else one "
    "is made where one is needed]",
)
@store_option
def command(port: int, host: str, allow_run: bool, token: str | None, store: str | None) -> None:
    """Look at a store in a browser: studies, decisions, trials, the catalog, and what runs now.

    The page reads and never writes, unless started with --allow-run. Every page has a twin in JSON
    at the same address with .json behind it. It ends with Ctrl-C.

    \b
    underdog serve
    underdog serve --store postgresql://user:password@host/underdog
    underdog serve --host 0.0.0.0
    """
    try:
        from underdog.web import server
    except ModuleNotFoundError as error:
        from underdog.errors import MissingPackageError

        raise MissingPackageError("The page", str(error.name), "web") from None

    server.serve(store, host=host, port=port, token=token, allow_run=allow_run, tell=_say)


def _say(line: str) -> None:
    click.echo(f"underdog: {line}", err=True)
