"""The rate so far of a running measurement, kept in a file for whoever watches it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from underdog.core.figures import Figures
from underdog.errors import UsageError
from underdog.measuring.live import Rhythm, Shown
from underdog.measuring.observe import Progress


def to_file(path: Path) -> Callable[[Progress], None]:
    """A listener that keeps the latest progress in ``path``: one JSON object, never half of it.

    ``elapsed`` and ``seconds`` count from the start and from the first step; ``effective`` is how
    many independent steps would tell the rate as well, ``settled`` whether the warm-up is over.
    ``figures`` is all that there is to tell, renewed less often where it takes long to make.

    Raises:
        UsageError: the file cannot be written; here, before anything runs.
    """
    rhythm, shown = Rhythm(), Shown()
    figures = Figures()
    beside = path.with_name(f".{path.name}.{os.getpid()}")

    def keep(progress: Progress) -> None:
        nonlocal figures
        result = progress.result
        if progress.sampler is not None and rhythm.due():
            began, cpu = time.monotonic(), time.thread_time()
            fresh = shown.figures(progress)
            figures = replace(fresh, timeline=fresh.timeline or figures.timeline)
            rhythm.took(began, time.thread_time() - cpu)
        said = {
            "elapsed": progress.elapsed,
            "seconds": result.seconds if result else 0.0,
            "steps": result.steps if result else 0,
            "samples_per_second": result.samples_per_second if result else None,
            "effective": result.effective if result else 0.0,
            "settled": result.settled if result else False,
            "figures": figures,
        }
        beside.write_bytes(msgspec.json.encode(said))
        beside.replace(path)

    try:
        keep(Progress(0.0, None))
    except OSError as error:
        raise UsageError(f"'{path}' cannot be written: {error.strerror}.") from error
    return keep
