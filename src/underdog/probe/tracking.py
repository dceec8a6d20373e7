"""``underdog.track``: one line in a script that gives the probe no other way to see its samples."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from .batches import count_samples

T = TypeVar("T")

_END = object()


def track(loader: Iterable[T]) -> Iterator[T]:
    """Yield from any iterable of batches, and count their samples where a probe is at work.

    The samples of a batch are the leading dimension of its first array, else its length. Where no
    hook of a framework sees steps, each batch is one step. Without a probe it only yields.

    Args:
        loader: what a training loop iterates over.
    """
    recorder = _active_recorder()
    if recorder is None:
        yield from loader
        return
    fetcher = recorder.fetcher or _StepPerBatch(recorder)
    iterator = iter(loader)
    while True:
        batch = fetcher.fetch(iterator, _END)
        if batch is _END:
            return
        yield batch


class _StepPerBatch:
    """Where no hook sees steps: from one batch to the next is a step."""

    def __init__(self, recorder: Any) -> None:
        self._recorder = recorder
        self._samples: float | None = None
        self._waited = 0.0
        self._in_step = False

    def fetch(self, iterator: Iterator[Any], default: Any) -> Any:
        asked = time.perf_counter()
        if self._in_step:
            self._recorder.step(asked, self._samples, (self._waited, 0.0, 0.0, 0.0, 0.0, 0.0))
        else:
            self._recorder.begin(asked)
        batch = next(iterator, default)
        self._waited = time.perf_counter() - asked
        self._in_step = batch is not default
        self._samples = count_samples(batch) if self._in_step else None
        return batch


def _active_recorder() -> Any | None:
    startup = sys.modules.get("underdog_probe.startup")
    recorder = startup.recorder() if startup is not None else None
    if recorder is not None and recorder.framework is None:
        recorder.process("python", sys.version.split()[0])
        recorder.framework = None  # a framework may still be imported
    return recorder
