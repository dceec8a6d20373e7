"""The options of ``choose`` about what the workload needs and about layers of service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from underdog.cli.common import DURATION, FRACTION, POSITIVE

Command = TypeVar("Command", bound=Callable[..., Any])


class Tokens(click.ParamType):  # type: ignore[type-arg]
    """Tokens of a sample: ``800``, or those sent and those made, ``600,200``."""

    name = "tokens"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        if isinstance(value, tuple):
            return value
        try:
            found = tuple(float(part) for part in str(value).split(","))
        except ValueError:
            found = ()
        # a comparison with NaN is false
        if not 1 <= len(found) <= 2 or not all(0 <= n < 1e12 for n in found) or not sum(found):
            self.fail(f"'{value}' is not like 800, or 600,200 for those sent and made.", param, ctx)
        return found


needs_option = click.option(
    "--needs",
    multiple=True,
    metavar="NAME",
    help="What the workload cannot do without, as flash-attention-3, fp64 or "
    "sagemaker-model-parallel; may be given several times. underdog support lists the names; "
    "recorded-software is the framework's version that was measured.",
)


def service_options(command: Command) -> Command:
    """--monthly, --apis, --tokens-per-sample, --utilisation and --idle."""
    for option in (
        click.option(
            "--idle",
            type=DURATION,
            help="What a machine that is given back is paid for besides the work: start, set-up.",
        ),
        click.option(
            "--utilisation",
            type=FRACTION,
            metavar="SHARE",
            help="For how much of the month a kept machine has work at most.  [default: 100%]",
        ),
        click.option(
            "--tokens-per-sample",
            type=Tokens(),
            default=(),
            metavar="N[,N]",
            help="For prices by tokens: of a sample, or those sent and those made.",
        ),
        click.option("--apis", metavar="FILE", help="A table of API prices to compare with."),
        click.option(
            "--monthly",
            type=POSITIVE,
            metavar="N",
            help="Samples every month, as 3e6: compare bare machines, managed ones and --apis.",
        ),
    ):
        command = option(command)
    return command
