"""What a run has shown so far, for whoever looks at it while it runs, at next to no cost."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from underdog.core.figures import Figures
from underdog.errors import UnderdogError
from underdog.measuring.observe import Progress
from underdog.measuring.timelines import timeline_of
from underdog.model import Trial

EVERY = 1.0  # seconds between two updates
# of the processors, of which at most two count: what updates may take
CPU_SHARE = 0.003 * min(os.cpu_count() or 1, 2)
WALL_SHARE = 0.1  # of the time: what a slow store may be kept at work
SMOOTHING = 0.2  # weight of the last update in what one takes
TIMELINE_EVERY = 10.0  # seconds between two timelines
FEW, SAMPLES = 60, 240  # looks at the machine that count for the means, and for a timeline
PATIENCE = 2.0  # seconds that the last update gets to end


class Shown:
    """What a run has shown so far; the timeline, which is dear and changes slowly, now and then."""

    def __init__(self) -> None:
        self._timeline_due = 0.0

    def figures(self, progress: Progress) -> Figures:
        """The figures now; without a timeline where the last one is still good."""
        result, sampler = progress.result, progress.sampler
        measurement = result.measurement() if result is not None and result.steps else None
        usage, timeline = {}, None
        if sampler is not None:
            begin, end = progress.span()
            usage = sampler.means(begin, end, FEW)
            if time.monotonic() >= self._timeline_due:
                timeline = timeline_of(progress.series, sampler, progress.began, SAMPLES)
                if timeline is not None:
                    self._timeline_due = time.monotonic() + TIMELINE_EVERY
        return Figures(
            measurement=measurement,
            phases=result.phases if result is not None else {},
            usage=usage,
            timeline=timeline,
        )


class Rhythm:
    """Says when to do something again that is to take a small share of the time."""

    def __init__(self) -> None:
        self._due = 0.0
        self._cpu: float | None = None

    def due(self) -> bool:
        """Whether it is time."""
        return time.monotonic() >= self._due

    def took(self, began: float, cpu: float) -> None:
        """It was done just now.

        Args:
            began: when, on the clock of ``time.monotonic()``.
            cpu: processor seconds that it took.
        """
        wall = time.monotonic() - began
        # a dear one now and then, such as one with a timeline, is spread over the others
        self._cpu = cpu if self._cpu is None else self._cpu + SMOOTHING * (cpu - self._cpu)
        self._due = began + max(EVERY, self._cpu / CPU_SHARE, wall / WALL_SHARE)


class Live:
    """Keeps the record of a running trial up to date, about once a second.

    An update has a thread of its own, so that nobody waits for a store; there is one at a time,
    and what comes meanwhile is passed over. One that fails is passed over too. Where ``keep`` says
    that the trial runs no more, there are no further ones.

    Args:
        keep: takes the record as it is now; returns whether the trial still runs.
    """

    def __init__(self, keep: Callable[[Trial], bool]) -> None:
        self._keep = keep
        self._rhythm = Rhythm()
        self._thread: threading.Thread | None = None
        self._over = False

    def tell(self, record: Callable[[], Trial]) -> None:
        """There is something new, which ``record`` makes a record of where it is time for one."""
        busy = self._thread is not None and self._thread.is_alive()
        if self._over or busy or not self._rhythm.due():
            return
        self._thread = threading.Thread(
            target=self._update, args=(record,), name="underdog-live", daemon=True
        )
        self._thread.start()

    def finish(self) -> None:
        """No more updates; the one under way gets a moment to end."""
        self._over = True
        if self._thread is not None:
            self._thread.join(PATIENCE)

    def _update(self, record: Callable[[], Trial]) -> None:
        began, cpu = time.monotonic(), time.thread_time()
        try:
            self._over = not self._keep(record()) or self._over
        except UnderdogError:
            pass  # what is missed now is in the next one, or in the last
        finally:
            self._rhythm.took(began, time.thread_time() - cpu)
