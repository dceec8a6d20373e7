"""The options of ``choose`` about getting machines and keeping them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from underdog.cli.common import DURATION, POSITIVE

Command = TypeVar("Command", bound=Callable[..., Any])


def supply_options(command: Command) -> Command:
    """--availability, --patience, and what checkpoints and interruptions cost."""
    for option in (
        click.option(
            "--interruptions-per-hour",
            type=POSITIVE,
            metavar="RATE",
            help="Of a spot machine.  [default: from attempts and --availability]",
        ),
        click.option(
            "--restart-seconds",
            type=DURATION,
            help="From getting a machine to training on.  [default: 5m]",
        ),
        click.option(
            "--checkpoint-every",
            type=DURATION,
            help="Training between two checkpoints.  [default: what costs the least]",
        ),
        click.option(
            "--checkpoint-seconds",
            type=DURATION,
            help="What saving a checkpoint takes.  [default: as measured, else 1m]",
        ),
        click.option(
            "--patience",
            type=DURATION,
            default="20m",
            show_default=True,
            help="How long to ask for an offer before going on with the next.",
        ),
        click.option(
            "--availability",
            metavar="FILE",
            help="A table of what is told of places: zones, placement scores, interruptions.",
        ),
    ):
        command = option(command)
    return command
