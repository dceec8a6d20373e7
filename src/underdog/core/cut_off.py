"""A trial whose process was gone before its end: its figures are shown, and are no evidence."""

from __future__ import annotations

from dataclasses import replace

from underdog.model import Caveat, Trial

CODE = "cut_off"
_CAVEAT = Caveat(
    code=CODE,
    message="The process that measured was gone before it could judge what it saw: warm-up, other "
    "programs, whether an accelerator was used. The figures so far do not count.",
    remedy="Measure again.",
)


def cut_off(trial: Trial, reason: str) -> Trial:
    """A running trial as the interrupted one that it turned out to be."""
    caveats = [*trial.caveats, _CAVEAT] if trial.measurement is not None else trial.caveats
    return replace(trial, status="interrupted", reason=reason, caveats=caveats)


def is_cut_off(trial: Trial) -> bool:
    """Whether its figures were never judged."""
    return any(caveat.code == CODE for caveat in trial.caveats)
