"""What every exporter must do: run it against one of your own.

``check_exporter(export, count, folder)`` raises AssertionError at the first broken promise; a test
of one's own may run the checks of ``ExporterChecks`` one by one.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from underdog.model import (
    Caveat,
    Estimate,
    Machine,
    Measurement,
    Offer,
    Price,
    Profile,
    Software,
    Trial,
)
from underdog.testing.store import ODD_TEXTS

Export = Callable[[Sequence[Trial], Path], None]

MEASURED = Trial(
    id="20260102T030405-0a1b2c3d",
    workload="resnet",
    command=["python", "train.py", "--batch", "32"],
    knobs={"batch": "32"},
    status="ok",
    exit_code=0,
    started_at="2026-01-02T03:04:05.000+00:00",
    ended_at="2026-01-02T03:06:05.000+00:00",
    offer=Offer(
        provider="aws",
        region="us-east-1",
        instance_type="g5.xlarge",
        price=Price(per_hour=1.0, source="test", date="2026-01-01"),
        vcpus=4,
        memory_gib=16,
        accelerator="A10G",
        accelerator_count=1,
    ),
    price=Price(per_hour=1.0, source="test", date="2026-01-01"),
    measurement=Measurement(
        samples_per_second=Estimate(value=100.0, low=98.0, high=102.0, n=500),
        steps=500,
        samples=16000,
        seconds=60.0,
    ),
    phases={"forward": 0.4, "backward": 0.6},
    usage={"cpu_share": 0.5, "accelerator_share": None},
    peak_memory_gib={"host": 2.0, "accelerator": None},
    caveats=[Caveat(code="busy", message="Others worked.", remedy="Measure again.")],
    machine=Machine(cpu_model="EPYC", vcpus=4),
    software=Software(framework="torch", framework_version="2.13.0"),
    profile=Profile(parameters=25_000_000, number_format="float32"),
    dollars=0.03,
)
FAILED = Trial(
    id="20260102T030505-4e5f6a7b",
    workload="resnet",
    status="out_of_memory",
    reason="CUDA out of memory",
    started_at="2026-01-02T03:05:05.000+00:00",
    price=Price(unknown_reason="not told"),
    machine=Machine(),
    software=Software(),
)


def odd_trials() -> list[Trial]:
    """A trial for each text that formats have stumbled over, in every place a user fills."""
    told = [text for text in ODD_TEXTS if len(text) < 10_000]  # beyond it cells of tables end
    texts = (*told, "=HYPERLINK(1)", "-2+3", "@SUM(A1)", "a\nb\r\nc", "x" * 3000)
    return [
        dataclasses.replace(
            MEASURED,
            id=f"odd-{number}",
            workload=text or "empty",
            knobs={text or "knob": text},
            command=[text],
            reason=text,
            phases={text or "phase": 1.0},
            software=Software(framework=text, commit=text),
        )
        for number, text in enumerate(texts)
    ]


def check_exporter(export: Export, count: Callable[[Path], int | None], folder: Path) -> None:
    """Run all checks.

    Args:
        count: how many trials a target holds, read back by other means; None where the format
            does not keep each one.
        folder: an empty folder; each check writes to a name of its own in it.

    Raises:
        AssertionError: the exporter breaks a promise; the message says which.
    """
    for name in ExporterChecks.names():
        getattr(ExporterChecks(export, count, folder / name), name)()


class ExporterChecks:
    """The promises of an exporter, one method for each."""

    def __init__(self, export: Export, count: Callable[[Path], int | None], target: Path) -> None:
        self.export, self.count, self.target = export, count, target
        self.odd = odd_trials()

    @classmethod
    def names(cls) -> list[str]:
        """The names of all checks."""
        return [name for name in vars(cls) if name.startswith("check_")]

    def check_every_trial_is_there(self) -> None:
        self._export_and_count([MEASURED, FAILED], 2)

    def check_no_trial_is_no_fault(self) -> None:
        self._export_and_count([], 0)

    def check_a_second_export_adds_nothing(self) -> None:
        self.export([MEASURED], self.target)
        self._export_and_count([MEASURED], 1)

    def check_any_text_can_be_told(self) -> None:
        self._export_and_count(self.odd, len(self.odd))

    def check_trials_are_left_as_they_were(self) -> None:
        trials = [MEASURED, FAILED]
        before = copy.deepcopy(trials)
        self.export(trials, self.target)
        assert trials == before, "the trials were changed"

    def _export_and_count(self, trials: list[Trial], expected: int) -> None:
        self.export(trials, self.target)
        found = self.count(self.target)
        assert found is None or found == expected, f"{found} trials are there, not {expected}"
