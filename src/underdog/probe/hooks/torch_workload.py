"""When the workload is profiled: one early step, once it has shown what it trains on."""

from __future__ import annotations

import os
import time
from typing import Any

LOOKED_AT = 3  # the step whose calls are noted, counted from 1: the first ones are not typical


class Workload:
    """Notes the software at the first step, and profiles one step soon after.

    The time that this takes is a pause of the kind ``profile``.
    """

    def __init__(self, torch: Any, tap: Any, recorder: Any) -> None:
        self._torch = torch
        self._tap = tap
        self._recorder = recorder
        self._steps = 0
        self._shapes: Any = None
        self._optimizers: list[Any] = []
        self._wanted = os.environ.get("UNDERDOG_PROFILE") != "0"

    def after_step(self, optimizer: Any, taken: Any) -> None:
        """A step has ended.

        Args:
            optimizer: whose step ended it, or None.
            taken: the samples of the step.
        """
        if not self._wanted:
            return
        self._steps += 1
        if optimizer is not None and all(optimizer is not o for o in self._optimizers):
            self._optimizers.append(optimizer)
        if self._shapes is not None:
            self._tap.show_calls(None)
            start = time.perf_counter()
            self._profile(taken.samples)
            self._recorder.pause("profile", start, time.perf_counter())
            self._wanted = False
            self._shapes, self._optimizers = None, []
        elif self._steps == LOOKED_AT - 1:
            from .torch_profile import StepShapes

            self._shapes = StepShapes(self._torch)
            self._tap.show_calls(self._see)

    def _see(self, module: Any, args: Any, kwargs: Any) -> None:
        try:
            self._shapes.see(module, args, kwargs)
        except Exception as error:
            self._tap.show_calls(None)
            self._failed(error)

    def _profile(self, samples: Any) -> None:
        try:
            self._write(samples)
        except Exception as error:
            self._failed(error)

    def _write(self, samples: Any) -> None:
        from . import torch_settings
        from .torch_faster import faster_setting
        from .torch_profile import profile_step

        recorder, torch = self._recorder, self._torch
        calls = self._shapes.calls.values()
        libraries, settings = torch_settings.software(torch, calls)
        recorder.write("software", libraries=libraries, settings=settings)
        result = profile_step(torch, self._shapes, self._optimizers, samples)
        recorder.write("profile", **result.fields)
        notes = result.notes + torch_settings.caveats(torch, result.fields.get("uses_accelerator"))
        faster = faster_setting(torch, result.operations, recorder.last_step_seconds)
        for note in notes + ([faster] if faster else []):
            recorder.note(*note)

    def _failed(self, error: Exception) -> None:
        self._recorder.note(
            "profile_incomplete",
            f"The workload could not be profiled: {type(error).__name__}: {error}",
            "Predictions for other machines will be wider; measure on those that matter.",
        )
