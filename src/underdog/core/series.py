"""The steps of one process as arrays, and the steps of a whole job from those of its ranks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from underdog.core.caveats import caveat
from underdog.model import Caveat

Floats = NDArray[np.float64]
Pause = tuple[str, float, float]  # kind, start, end

PHASES = ("data", "transfer", "forward", "backward", "optimizer", "communication")
FIELDS = 4 + len(PHASES)  # of a step in the records: start, end, samples, phases, skipped
# Ranks take their steps together; more than one step and a twentieth apart, one has stopped.
UNEVEN = 0.05


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Series:
    """The steps of one process, or of a job, in order. Times are seconds of one clock.

    ``rank`` and ``world_size`` are None for a process that belongs to no job of several ranks;
    ``ranks`` counts the processes that the steps are summed over.
    """

    start: Floats  # (n,)
    end: Floats  # (n,)
    samples: Floats  # (n,), NaN where unknown
    phases: Floats  # (n, 6), seconds, in the order of PHASES
    skipped: NDArray[np.bool_]  # (n,), the gradient scaler skipped the update
    pauses: tuple[Pause, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    ranks: int = 1

    @classmethod
    def from_rows(cls, rows: Any, pauses: Iterable[Pause] = (), **job: int | None) -> Series:
        """From the steps of a records file, see ``docs/reference/records.md``.

        Args:
            rows: numbers, shape (n, 10) or flat (10 n,); samples below zero are unknown.
            pauses: kind, start, end.
            job: ``rank``, ``world_size``.
        """
        table = np.array(rows, dtype=float).reshape(-1, FIELDS)
        samples = table[:, 2]
        return cls(
            start=table[:, 0],
            end=table[:, 1],
            samples=np.where((samples >= 0) & np.isfinite(samples), samples, np.nan),
            phases=table[:, 3 : 3 + len(PHASES)],
            skipped=table[:, -1] > 0,
            pauses=tuple(pauses),
            **job,  # type: ignore[arg-type]
        )

    def __len__(self) -> int:
        return len(self.end)

    @property
    def seconds(self) -> Floats:
        """Of each step, pauses inside it included; shape (n,)."""
        with np.errstate(invalid="ignore", over="ignore"):  # of times that are no numbers
            return self.end - self.start

    def cut(self, begin: int, end: int | None = None) -> Series:
        """The steps from ``begin`` up to before ``end``; all pauses stay."""
        return self.select(slice(begin, end))

    def select(self, steps: slice | NDArray[np.bool_]) -> Series:
        """Some of the steps; all pauses stay."""
        return replace(
            self,
            start=self.start[steps],
            end=self.end[steps],
            samples=self.samples[steps],
            phases=self.phases[steps],
            skipped=self.skipped[steps],
        )

    def pause_seconds(self, kinds: Iterable[str] | None = None) -> Floats:
        """Seconds of each step that lie in a pause of these kinds, or of any; shape (n,).

        Time that two pauses share counts once.
        """
        wanted = None if kinds is None else set(kinds)
        spans = _union([p for p in self.pauses if wanted is None or p[0] in wanted])
        if not len(spans) or not len(self):
            return np.zeros(len(self))
        spans = np.clip(spans, self.start.min(), self.end.max())
        edges = spans.ravel()
        paused = np.concatenate(([0.0], np.cumsum(spans[:, 1] - spans[:, 0])))
        paused = np.repeat(paused, 2)[1:-1]
        before = np.interp(self.end, edges, paused) - np.interp(self.start, edges, paused)
        return np.clip(before, 0.0, np.maximum(self.seconds, 0.0))

    def pause_spans(self, kind: str) -> Floats:
        """Begin and end of the pauses of a kind, in order; those of several ranks at once are one.

        Shape (k, 2).
        """
        return _union([p for p in self.pauses if p[0] == kind])

    def pause_count(self, kind: str) -> int:
        """How many pauses of a kind there are among the steps; of several ranks at once is one."""
        spans = self.pause_spans(kind)
        if not len(spans) or not len(self):
            return 0
        return int(((spans[:, 1] > self.start.min()) & (spans[:, 0] < self.end.max())).sum())


class Job(NamedTuple):
    """What the processes of a run did together, and what to know about it."""

    series: Series
    caveats: list[Caveat]


def combine(processes: Sequence[Series]) -> Job | None:
    """The whole job from its processes, None where none took a step.

    The ranks of one job take step i together: its samples are the sum, it ends when the last rank
    ended it, its phases are the mean, and steps that not all of them took are left out. Processes
    that are ranks of no job and run at once do the work of the command side by side: the steps of
    all are put in one order of time, over the time that they share, so that the rate is the sum of
    their rates. Of processes that run one after the other the one with the most samples counts.
    """
    trained = [one for one in processes if len(one)]
    if not trained:
        return None
    anchor = max(trained, key=_weight)
    others = [one for one in trained if one is not anchor]
    if (anchor.world_size or 1) > 1:
        return _combine_ranks(anchor, others)
    return _combine_independent(anchor, others)


def _weight(series: Series) -> tuple[float, int]:
    """By samples where they are known, else by steps."""
    return float(np.nansum(series.samples)), len(series)


def _overlap(a: Series, b: Series) -> float:
    """Seconds in which both took steps."""
    return float(min(a.end[-1], b.end[-1]) - max(a.start[0], b.start[0]))


def _combine_ranks(anchor: Series, others: Sequence[Series]) -> Job:
    """A rank that was restarted has several files: the one that ran beside the anchor counts."""
    by_rank = {anchor.rank: anchor}
    for one in sorted(others, key=lambda one: -_overlap(anchor, one)):
        if one.world_size == anchor.world_size and _overlap(anchor, one) > 0:
            by_rank.setdefault(one.rank, one)
    ranks = [by_rank[rank] for rank in sorted(by_rank, key=lambda rank: rank or 0)]
    caveats = []
    if len(ranks) < (anchor.world_size or 1):
        caveats.append(
            caveat(
                "missing_ranks",
                f"Only {len(ranks)} of {anchor.world_size} ranks were seen; samples of the others "
                "are not counted.",
            )
        )
    lengths = [len(rank) for rank in ranks]
    common, longest = min(lengths), max(lengths)
    if longest - common > max(1, UNEVEN * longest):
        caveats.append(
            caveat(
                "uneven_ranks",
                f"One rank took {common} steps, another {longest}; the {common} that all took "
                "count.",
            )
        )
    return Job(_step_by_step([rank.cut(0, common) for rank in ranks]), caveats)


def _step_by_step(ranks: Sequence[Series]) -> Series:
    end = np.max([rank.end for rank in ranks], axis=0)
    begin = min(float(rank.start[0]) for rank in ranks)
    return Series(
        start=np.concatenate(([begin], end[:-1])),
        end=end,
        samples=np.sum([rank.samples for rank in ranks], axis=0),
        phases=np.mean([rank.phases for rank in ranks], axis=0),
        skipped=np.any([rank.skipped for rank in ranks], axis=0),
        pauses=tuple(pause for rank in ranks for pause in rank.pauses),
        world_size=ranks[0].world_size,
        ranks=len(ranks),
    )


def _combine_independent(anchor: Series, others: Sequence[Series]) -> Job:
    """What runs for less than half of the anchor's time is a side show."""
    enough = (anchor.end[-1] - anchor.start[0]) / 2
    beside = [one for one in others if _overlap(anchor, one) > enough]
    caveats = []
    if others:
        treated = (
            f"{len(beside) + 1} of them at once, whose rates are added"
            if beside
            else "one after the other; the one with the most samples counts"
        )
        caveats.append(
            caveat(
                "several_processes",
                f"{len(others) + 1} processes trained that are not ranks of one job: {treated}.",
            )
        )
    if not beside:
        return Job(anchor, caveats)
    return Job(_side_by_side([anchor, *beside]), caveats)


def _side_by_side(processes: Sequence[Series]) -> Series:
    """All steps that end in the time that the processes share, in the order of their ends."""
    begin = max(float(one.start[0]) for one in processes)
    close = min(float(one.end[-1]) for one in processes)
    inside = [(one.end > begin) & (one.end <= close) for one in processes]

    def together(name: str) -> Any:
        parts = [getattr(one, name)[keep] for one, keep in zip(processes, inside, strict=True)]
        return np.concatenate(parts)[order]

    ends = np.concatenate([one.end[keep] for one, keep in zip(processes, inside, strict=True)])
    order = np.argsort(ends, kind="stable")
    end = ends[order]
    return Series(
        start=np.concatenate(([begin], end[:-1])),
        end=end,
        samples=together("samples"),
        phases=together("phases") / len(processes),
        skipped=together("skipped"),
        pauses=(),
        ranks=len(processes),
    )


def _union(pauses: Sequence[Pause]) -> Floats:
    """The time in any of the pauses as disjoint spans in order, shape (k, 2)."""
    spans: list[list[float]] = []
    for _, start, end in sorted(pauses, key=lambda pause: pause[1]):
        if not (np.isfinite(start) and np.isfinite(end)) or end <= start:
            continue
        if spans and start <= spans[-1][1]:
            spans[-1][1] = max(spans[-1][1], end)
        else:
            spans.append([start, end])
    return np.array(spans, dtype=float).reshape(-1, 2)
