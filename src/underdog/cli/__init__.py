"""The command line: one thin file per verb. ``underdog --help`` loads none of them."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

import underdog
from underdog.errors import UnderdogError, did_you_mean

# command -> its module and the line that --help shows; kept here so that --help loads no module
COMMANDS = {
    "measure": ("underdog.cli.measure", "Run a training script unchanged and measure it."),
    "choose": ("underdog.cli.choose", "Rank the offers for a measured workload."),
    "offers": ("underdog.cli.offers", "List the offers of the catalog."),
    "trials": ("underdog.cli.trials", "List, show, import and export trials."),
}


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"No such command '{args[0]}'. {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(underdog.__version__, prog_name="underdog")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """On which machine should this deep-learning workload run? Measure it, then choose."""


def main(argv: list[str] | None = None) -> Any:
    """Entry point. Exit status: 0 done, 1 the answer is no, 2 could not do it, 130 Ctrl-C."""
    args = sys.argv[1:] if argv is None else argv
    try:
        status = cli.main(args=args, prog_name="underdog", standalone_mode=False)
    except UnderdogError as error:
        if "--debug" in args[: _before_dashes(args)]:
            raise
        click.echo(f"underdog: {error}", err=True)
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        sys.exit(0)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away; nothing is left to say
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)


def _before_dashes(args: list[str]) -> int:
    return args.index("--") if "--" in args else len(args)
