"""What the commands share: options of one spelling, value types, and printing of data."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from underdog.core.problems import LARGEST, SMALLEST
from underdog.errors import UsageError, did_you_mean
from underdog.units import parse_duration

if TYPE_CHECKING:
    from rich.console import Console


class Duration(click.ParamType):  # type: ignore[type-arg]
    """A duration such as 90s, 5m or 48h, converted to seconds."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, float):
            return value
        try:
            return parse_duration(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


class Positive(click.ParamType):  # type: ignore[type-arg]
    """A positive finite number; ``5%`` is taken as 0.05 where percent is allowed."""

    name = "number"

    def __init__(self, percent: bool = False) -> None:
        self.percent = percent

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        text = str(value).strip()
        scale = 1.0
        if self.percent and text.endswith("%"):
            text, scale = text[:-1], 0.01
        try:
            number = float(text) * scale
        except ValueError:
            self.fail(f"'{value}' is not a number.", param, ctx)
        if not (math.isfinite(number) and number > 0):
            self.fail(f"'{value}' is not a positive number.", param, ctx)
        if not SMALLEST < number < LARGEST:
            self.fail(f"'{value}' is beyond anything that can be.", param, ctx)
        return number


class Group(click.Group):
    """A command with commands of its own, which names the one that was meant."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            ctx.fail(f"No such command '{args[0]}'. {did_you_mean(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


DURATION = Duration()
POSITIVE = Positive()
FRACTION = Positive(percent=True)

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON on standard output and nothing else there."
)
store_option = click.option(
    "--store",
    metavar="URL",
    help="Where trials and decisions live: a SQLite file or a database URL. "
    "[default: $UNDERDOG_STORE, else the user's data folder]",
)
as_of_option = click.option(
    "--as-of",
    metavar="DATE|HASH",
    help="The catalog of that day, or the one whose hash starts so; 'bundled': the one that came "
    "with underdog. [default: the newest]",
)


def one_format(form: str, as_json: bool) -> str:
    """The format that --format and --json ask for together.

    Raises:
        UsageError: they contradict each other.
    """
    if as_json and form not in ("table", "json"):
        raise UsageError(f"--json and --format {form} contradict each other.", "Give one.")
    return "json" if as_json else form


def json_text(value: Any) -> str:
    """A record, or a list or dict of records, as JSON; NaN and infinity become null."""
    import msgspec

    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except UnicodeEncodeError:  # a command line may hold bytes that are no UTF-8; escape those
        return json.dumps(msgspec.to_builtins(value), indent=2, allow_nan=False)


def print_json(value: Any) -> None:
    """Print what ``json_text`` gives."""
    sys.stdout.write(json_text(value) + "\n")


def console(stderr: bool = False) -> Console:
    """A rich console: data on stdout, talk on stderr. NO_COLOR and a missing tty are respected.

    Where the output is no terminal the width is $COLUMNS, else 120, so that tables in files and
    pipes are not squeezed into 80 columns.
    """
    from rich.console import Console

    made = Console(stderr=stderr, highlight=False, soft_wrap=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = 120
    return made
