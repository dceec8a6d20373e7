"""The group of commands: finds a command's module when it runs, and turns errors into messages."""

from __future__ import annotations

import errno
import importlib
import os
import sys

import click

from underdog import __version__
from underdog.cli import COMMANDS, help_text
from underdog.errors import UnderdogError, did_you_mean

# of standard output: commands tell faults of the files that they name themselves
_WRITE_FAILED = (errno.ENOSPC, errno.EIO, errno.EFBIG, errno.EDQUOT)


class LazyGroup(click.Group):
    """A group that imports a command's module only when that command runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"underdog.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            ctx.fail(f"No such command '{args[0]}'. {did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(help_text() + "\n")


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="underdog", message="%(prog)s %(version)s")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """The commands of underdog."""


def run(args: list[str]) -> int:
    """Run the command line ``args`` and return its exit status."""
    try:
        if sys.stdout is None:  # closed by who started us: a measurement is stored all the same
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - open until the process ends
        status = cli.main(args=args, prog_name="underdog", standalone_mode=False)
        sys.stdout.flush()
    except UnderdogError as error:
        if args[0] == "--debug":
            raise
        click.echo(f"underdog: {_harmless(str(error))}", err=True)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        return 130
    except BrokenPipeError:
        # the reader of our output went away; the interpreter must not try to flush again
        _discard_output()
        return 0
    except OSError as error:
        if error.errno not in _WRITE_FAILED:
            raise
        _discard_output()
        what = f"'{error.filename}'" if error.filename else "The output"
        click.echo(f"underdog: {what} cannot be written: {error.strerror}.", err=True)
        return 2
    return status if isinstance(status, int) else 0


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _harmless(text: str) -> str:
    """A message that may quote a file: what a terminal would obey is spelled out."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)
