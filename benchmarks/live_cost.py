"""What it costs a training to have its record in the store brought up to date while it runs.

One real training; stretches of seconds with and without updates take turns, with, without, without,
with, so that what disturbs the machine meets both alike. Bar: the training is not slower by more
than 0.3 %, or the difference is within its noise.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from underdog.core.quantiles import student
from underdog.measuring.interrupts import Interrupts
from underdog.measuring.live import Live, Shown
from underdog.measuring.machine import describe
from underdog.measuring.nvml import Nvml
from underdog.measuring.observe import Limits, Progress
from underdog.measuring.rates import job_of
from underdog.measuring.run import Request, run
from underdog.model import Software, Trial
from underdog.store import open_store
from underdog.store.owner import current_owner
from underdog.verbs.measure import new_id, offer_of, so_far

BAR = 0.003
SETTLING = 10.0  # seconds after the first step that do not count
EXAMPLE = Path(__file__).parents[1] / "examples" / "train_gpt.py"


class Turns:
    """A listener that brings the record up to date in every other stretch, and counts its cost."""

    def __init__(self, begun: Trial, keep: Live, stretch: float) -> None:
        self.begun, self.live, self.stretch = begun, keep, stretch
        self.shown = Shown()

    def on(self, elapsed: float) -> bool:
        """Whether there are updates at that time."""
        return int(elapsed / self.stretch) % 4 in (0, 3)

    def __call__(self, progress: Progress) -> None:
        if self.on(progress.elapsed):
            self.live.tell(lambda: so_far(self.begun, self.shown.figures(progress), 0.1))


class Counted(Live):
    """Counts updates and their processor time."""

    updates, cpu = 0, 0.0

    def _update(self, record: object) -> None:
        began = time.thread_time()
        super()._update(record)  # type: ignore[arg-type]
        self.updates += 1
        self.cpu += time.thread_time() - began


def main() -> int:
    """Run it; 1 where the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=400.0)
    parser.add_argument("--stretch", type=float, default=2.0)
    asked = parser.parse_args()
    small = ["--width", "32", "--layers", "1", "--heads", "2", "--length", "32"]
    command = [sys.executable, str(EXAMPLE), *small, "--batch-size", "4", "--steps", "10000000"]
    nvml = Nvml()
    machine = describe(nvml)
    begun = Trial(
        id=new_id(),
        workload="live",
        status="running",
        price=offer_of(machine, 1.0)[1],
        machine=machine,
        software=Software(),
        owner=current_owner(),
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(str(Path(folder) / "store.sqlite3")) as store,
        Interrupts() as interrupts,
        open(os.devnull, "w") as nowhere,
    ):
        store.save(begun)
        live = Counted(store.update)
        turns = Turns(begun, live, asked.stretch)
        request = Request(
            command=command,
            limits=Limits(seconds=asked.seconds, precision=None),
            stdout_to=nowhere.fileno(),
            listener=turns,
            environment={**os.environ, "OMP_NUM_THREADS": "1"},
        )
        seen = run(request, nvml, interrupts)
        live.finish()
    job = job_of(seen.processes)
    assert job is not None
    return report(turns, job.series.start - seen.began, job.series.end - seen.began, live)


def report(turns: Turns, start: np.ndarray, end: np.ndarray, live: Counted) -> int:
    """Print the difference with its interval."""
    counted = start > start[0] + SETTLING
    start, end = start[counted], end[counted]
    stretch = (end // turns.stretch).astype(int)
    whole = (stretch == start // turns.stretch) & (stretch < stretch[-1])
    seconds = (end - start)[whole]
    stretch = stretch[whole]
    means = {int(n): float(np.mean(seconds[stretch == n])) for n in np.unique(stretch)}
    ratios = []
    for four in range(0, max(means) + 1, 4):
        if all(four + i in means for i in range(4)):
            with_, without = (
                means[four] + means[four + 3],
                means[four + 1] + means[four + 2],
            )
            ratios.append(math.log(with_ / without))
    mean = statistics.fmean(ratios)
    half = student(0.975, len(ratios) - 1) * statistics.stdev(ratios) / math.sqrt(len(ratios))
    usual = statistics.median(seconds)
    print(f"{len(seconds):,} steps of {usual * 1e3:.2f} ms, {len(ratios)} rounds")
    print(
        f"{live.updates} updates, {live.cpu / max(live.updates, 1) * 1e3:.1f} ms of processor each"
    )
    print(f"a step with updates takes {mean:+.2%} (±{half:.2%}) longer; bar {BAR:.1%} or noise")
    return int(mean - half > BAR)


if __name__ == "__main__":
    sys.exit(main())
