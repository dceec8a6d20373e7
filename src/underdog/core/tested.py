"""What a trial of an exploration says: the rate to learn from, and why there may be none. Pure."""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple

from underdog.core.cut_off import is_cut_off
from underdog.core.evidence import UNUSED, accelerator_unused
from underdog.core.exploring import Attempt
from underdog.core.knobs import OUT_OF_MEMORY
from underdog.core.trials_file import COUNTED
from underdog.model import Estimate, Trial


class Cut(NamedTuple):
    """How and why a test was ended early, and the USD that it saved; None: not known."""

    status: Literal["stopped", "interrupted"]
    reason: str
    saved: float | None = None


def rate_of(trial: Trial) -> Estimate | None:
    """Samples per second, where the trial is one to learn from."""
    if trial.status not in COUNTED or trial.measurement is None:
        return None
    if accelerator_unused(trial) or is_cut_off(trial):
        return None
    return trial.measurement.samples_per_second


def says_something(trial: Trial, mine: bool = True) -> bool:
    """Whether it tells of the workload: that there was no room, or an end by hand, does not.

    Args:
        mine: it is of the study that asks. A failure of another one may be mended by now.
    """
    if rate_of(trial) is not None or trial.status == OUT_OF_MEMORY:
        return True
    return mine and trial.status not in ("no_capacity", "interrupted")


def doubt_of(trial: Trial) -> str | None:
    """Why a trial that gave a throughput is none to learn from."""
    if not accelerator_unused(trial):
        return None
    said = [caveat.message for caveat in trial.caveats if caveat.code == UNUSED]
    return said[0] if said else "the accelerator was not used"


def attempt_of(index: int, trial: Trial) -> Attempt:
    """The trial on candidate ``index`` as the explorer takes it."""
    return Attempt(index, setting_of(trial), trial.status, rate_of(trial))


def setting_of(trial: Trial) -> dict[str, str]:
    """The trial's knobs, without the offer's name where that stands among them."""
    return {name: value for name, value in trial.knobs.items() if name != "offer"}


def cut_short(trial: Trial, cut: Cut | None) -> Trial:
    """The trial of a test that was to end early; one that ended by itself stands as it is."""
    if cut is None or trial.status in ("ok", OUT_OF_MEMORY):
        return trial
    if cut.status == "stopped" and trial.status not in COUNTED:
        return trial
    usage = {**trial.usage, "saved_dollars": cut.saved} if cut.saved else trial.usage
    return dataclasses.replace(trial, status=cut.status, reason=cut.reason, usage=usage)
