"""Compare layers of service for a stated volume: bare machines, managed ones, APIs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from underdog.catalog import services as prices
from underdog.core import layers
from underdog.core.choosing import Choice
from underdog.core.layers import Volume
from underdog.core.problems import LARGEST, SMALLEST
from underdog.core.services import HOURS_PER_MONTH, Api, Tokens, per_sample
from underdog.errors import UsageError
from underdog.units import parse_duration
from underdog.verbs import supplying


@dataclass(frozen=True, kw_only=True, slots=True)
class Further(supplying.Obtaining):
    """What ``choose`` may be asked besides: needs, layers of service, and how to get machines.

    Args:
        needs: names of the support matrix that the workload cannot do without.
        monthly: samples every month; machines may be kept.
        apis: a file of API prices.
        tokens_per_sample: of one sample, or those sent and those made.
        utilisation: the share of the month for which a kept machine has work at most; 1 without it.
        idle: what a machine that is given back is paid for besides the work, seconds or text.
    """

    needs: Sequence[str] = ()
    monthly: float | None = None
    apis: str | Path | None = None
    tokens_per_sample: Sequence[float] = ()
    utilisation: float | None = None
    idle: float | str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A checked question about layers of service."""

    volume: Volume
    apis: tuple[Api, ...] = ()
    tokens: Tokens | None = None


def question(options: Further, samples: float | None) -> Question | None:
    """The question about layers of service that options ask, None where they ask none.

    Args:
        samples: of the one job; without ``monthly`` machines are given back at its end.

    Raises:
        UsageError: options that cannot be, or that contradict each other; all together.
        CatalogError: a file of API prices that cannot be read.
    """
    besides = {
        "--tokens-per-sample": tuple(options.tokens_per_sample) or None,
        "--utilisation": options.utilisation,
        "--idle": options.idle,
    }
    if options.monthly is None and options.apis is None:
        without = [name for name, value in besides.items() if value is not None]
        if without:
            said = f"{' and '.join(without)} compare services: --monthly or --apis is missing."
            raise UsageError(said, "Say how many samples a month: --monthly 3e6.")
        return None
    idle = parse_duration(options.idle) if isinstance(options.idle, str) else options.idle or 0.0
    problems = _problems(options, samples, idle)
    found = prices.apis(options.apis) if options.apis is not None else []
    tokens = Tokens(*options.tokens_per_sample[:2]) if options.tokens_per_sample else None
    for api in found:
        if api.by_tokens and tokens is None:
            problems.append(f"'{api.name}' is priced by tokens: --tokens-per-sample is missing.")
        elif per_sample(api, tokens) is None:
            problems.append(f"'{api.name}' has no price for these tokens.")
    if problems:
        raise UsageError("\n".join(problems))
    volume = Volume(
        samples=options.monthly or samples or 0.0,
        hours=None if options.monthly is None else HOURS_PER_MONTH,
        utilisation=1.0 if options.utilisation is None else options.utilisation,
        idle_hours=idle / 3600,
    )
    return Question(volume=volume, apis=tuple(found), tokens=tokens)


def _problems(options: Further, samples: float | None, idle: float) -> list[str]:
    found, monthly, utilisation = [], options.monthly, options.utilisation
    if monthly is None and samples is None:
        found.append("--apis needs a volume: --samples of one job, or --monthly.")
    if monthly is not None and samples is not None:
        found.append("--samples is one job and --monthly comes every month: give one of them.")
    if monthly is not None and not SMALLEST < monthly < LARGEST:
        found.append(f"--monthly must be positive, not {monthly}.")
    if utilisation is not None and not 0 < utilisation <= 1:
        found.append(f"--utilisation must be a share such as 60%, not {utilisation}.")
    if utilisation is not None and monthly is None:
        found.append("--utilisation is of machines that are kept: --monthly is missing.")
    if not 0 <= idle < math.inf:
        found.append(f"--idle must be 0 or more, not {idle}.")
    tokens = tuple(options.tokens_per_sample)
    if len(tokens) > 2 or not all(0 <= number < LARGEST for number in tokens):
        found.append(f"--tokens-per-sample must be as 800, or 600,200, not {tokens}.")
    return found


def compared(choice: Choice, asked: Question | None) -> dict[str, Any]:
    """What the work costs on each layer and where they break even; see ``layers.compare``."""
    if asked is None:
        return {}
    found = layers.compare(choice, asked.volume, asked.apis, asked.tokens, prices.managed())
    return {**found, "assumptions": _assumptions(asked.volume, found)}


def _assumptions(volume: Volume, found: dict[str, Any]) -> list[str]:
    made = ["A machine that a service manages works as fast as the bare one."]
    if volume.hours is not None:
        made.append(
            f"A kept machine is paid for {volume.hours:g} hours a month and has work for "
            f"{volume.utilisation:.0%} of them at most; only whole machines are kept."
        )
    if all(layer["name"] != "sagemaker" for layer in found["layers"]):
        made.append(
            "No machine of SageMaker is among them; underdog catalog refresh --provider aws "
            "brings its prices."
        )
    return made
