"""What the page asks of a store: lists by parts, views, what runs now. It is only read here."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from underdog import config
from underdog.core import footing
from underdog.core.views.lines import (
    DecisionLine,
    StudyLine,
    TrialLine,
    WorkloadLine,
    decision_line,
    trial_line,
)
from underdog.core.views.records import (
    DecisionView,
    HistoryView,
    LedgerLine,
    StudyView,
    TrialView,
)
from underdog.core.views.trial import trial_view
from underdog.errors import UsageError, nearest
from underdog.model import Decision, Trial
from underdog.store import Store, Tally, open_store
from underdog.verbs import choose, viewing

EVERY_SECONDS = 1.0  # how often a store is asked what runs, however many people look
NEAR = 1000  # latest records among which a mistyped id is looked for
_VIEWS = 64  # kept, of records that do not change
_WHOLE = 9  # values that hold a line for every candidate

_T = TypeVar("_T")


class NotFoundError(UsageError):
    """There is no record of that name."""


@dataclass(frozen=True, slots=True)
class Part(Generic[_T]):
    """Some lines of a list, and how many there are in all."""

    lines: list[_T]
    total: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Lines:
    """Some lines of a ledger, how many match, and the verdicts that there are.

    ``whole`` is False where only the counts of a decision are known.
    """

    lines: list[LedgerLine]
    total: int
    verdicts: list[str]
    whole: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Now:
    """What runs at a moment, Unix time; ``number`` grows where anything has changed."""

    at: float
    number: int = 0
    trials: list[TrialView]
    studies: list[StudyView]


class Reader:
    """The one who reads a store for all who look at it. Its methods may be called from any thread.

    Every method raises StoreError where the store cannot be opened or read, and NotFoundError where
    there is no record of a name; the message names the nearest.
    """

    def __init__(self, url: str | None = None) -> None:
        self.url = config.store_url(url)
        self._lock = threading.Lock()
        self._opened: Store | None = None
        self._views: Kept = Kept(_VIEWS)
        self._whole: Kept = Kept(_WHOLE)
        self._now: Now | None = None
        self._asking = threading.Lock()
        self._at_work = threading.Lock()  # one large question at a time

    def store(self) -> Store:
        """The store; an empty one as long as there is none at its URL."""
        with self._lock:
            if self._opened is not None:
                return self._opened
            opened = open_store(self.url, read_only=True)
            if not getattr(opened, "provisional", False):
                self._opened = opened
            return opened

    def close(self) -> None:
        """Let go of the store."""
        if self._opened is not None:
            self._opened.close()

    def trials(
        self,
        *,
        workload: str | None = None,
        status: str | None = None,
        study: str | None = None,
        limit: int = 50,
        offset: int = 0,
    ) -> Part[TrialLine]:
        """The trials that match, the newest first."""
        store = self.store()
        wanted = (("workload", workload), ("status", status), ("study", study))
        total = sum(
            one.count
            for one in store.tally()
            if all(value is None or getattr(one, name) == value for name, value in wanted)
        )
        if offset >= total:
            return Part([], total)
        found = store.trials(
            workload=workload, status=status, study=study, limit=limit, offset=offset
        )
        return Part([trial_line(trial) for trial in reversed(found)], total)

    def decisions(
        self, *, workload: str | None = None, limit: int = 50, offset: int = 0
    ) -> list[DecisionLine]:
        """The decisions that match, the newest first; one more than ``limit`` tells of others."""
        found = self.store().decisions(workload=workload, limit=limit + 1, offset=offset)
        return [decision_line(decision) for decision in reversed(found)]

    def workloads(self) -> list[WorkloadLine]:
        """All workloads, the one that ran last first."""
        groups = _grouped(self.store().tally(), lambda one: one.workload)
        lines = [WorkloadLine(workload=name, **_counted(some)) for name, some in groups.items()]
        return sorted(lines, key=lambda line: line.last_at, reverse=True)

    def studies(self) -> list[StudyLine]:
        """All studies that have a trial, the one that ran last first."""
        groups = _grouped(self.store().tally(), lambda one: one.study)
        lines = [
            StudyLine(id=id, workload=some[0].workload, **_counted(some))
            for id, some in groups.items()
            if id is not None
        ]
        return sorted(lines, key=lambda line: line.last_at, reverse=True)

    def trial(self, id: str) -> TrialView:
        """All about one trial."""
        return trial_view(self._trial(id))

    def study(self, id: str) -> StudyView:
        """All about one search."""
        store = self.store()
        state = tuple(one for one in store.tally() if one.study == id)
        running = any(one.status == "running" for one in state)
        if not state and not any(d.study == id for d in store.decisions(limit=NEAR)):
            raise _unknown("study", id, (line.id for line in self.studies()))
        if running:
            return viewing.study_view(store, id)
        key = ("study", id, state)
        return self._views.get(key, lambda: viewing.study_view(store, id))

    def decision(self, id: str, *, whole: bool = False) -> DecisionView:
        """All about one decision; ``whole`` asks for the line of every candidate, in seconds."""
        if not whole:
            return self._views.get(("decision", id), lambda: self._decision_view(id, False))
        with self._at_work:
            return self._whole.get(id, lambda: self._decision_view(id, True))

    def ledger(
        self, id: str, *, find: str = "", verdict: str | None = None, limit: int, offset: int
    ) -> Lines:
        """The lines of a decision's ledger that have all words of ``find``."""
        view = self.decision(id, whole=True)
        texts = self._whole.get(("texts", id), lambda: [_searched(one) for one in view.ledger])
        verdicts = self._whole.get(("verdicts", id), lambda: _verdicts(view.ledger))
        places: Sequence[int] = range(len(texts))
        if verdict is not None:
            places = [place for place in places if view.ledger[place].verdict == verdict]
        for word in find.lower().split():
            places = [place for place in places if word in texts[place]]
        return Lines(
            lines=[view.ledger[place] for place in places[offset : offset + limit]],
            total=len(places),
            verdicts=verdicts,
            whole=view.whole,
        )

    def history(self, workload: str) -> HistoryView:
        """A workload over time."""
        state = self.state(workload)
        if not state and not self.trials(workload=workload, limit=1).total:
            raise _unknown("workload", workload, (line.workload for line in self.workloads()))
        key = ("history", workload, state)
        return self._views.get(key, lambda: viewing.history_view(self.store(), workload))

    def state(self, workload: str) -> tuple[Tally, ...]:
        """Changes whenever the history of a workload may have."""
        counts = self.store().tally()
        return tuple(c for c in counts if c.workload == workload and c.status != "running")

    def kind_of(self, id: str) -> str:
        """Whether an id is that of a ``trial`` or of a ``decision``."""
        store = self.store()
        if store.trials(id=id):
            return "trial"
        if store.decisions(id=id):
            return "decision"
        known = [trial.id for trial in store.trials(limit=NEAR)]
        known += [decision.id for decision in store.decisions(limit=NEAR)]
        raise _unknown("trial or decision", id, known)

    def now(self) -> Now:
        """What runs, asked of the store at most once in ``EVERY_SECONDS`` for all who look."""
        with self._asking:  # who comes meanwhile waits for the one answer
            last = self._now
            if last is not None and 0 <= time.time() - last.at < 0.9 * EVERY_SECONDS:
                return last
            trials, studies = self._running()
            same = last is not None and (last.trials, last.studies) == (trials, studies)
            number = 1 if last is None else last.number + (not same)
            self._now = Now(at=time.time(), number=number, trials=trials, studies=studies)
            return self._now

    def _running(self) -> tuple[list[TrialView], list[StudyView]]:
        store = self.store()
        running = [
            trial
            for trial in store.trials(status="running", timeline=True)
            if trial.status == "running"  # one whose process is gone is told as interrupted
        ]
        ids = dict.fromkeys(trial.study for trial in running if trial.study is not None)
        trials = [trial_view(trial) for trial in reversed(running)]
        return trials, [viewing.study_view(store, id) for id in ids]

    def again(self, id: str) -> str:
        """Ask the question of a decision again and keep the answer: this one writes.

        Returns:
            The id of the new decision.

        Raises:
            UsageError: the question is not known in full; besides, as ``choose.decide``.
        """
        decision = self._decision(id)
        asked, why = footing.question(decision)
        if why is not None:
            raise UsageError(f"The decision '{id}' cannot be made again: {why}.")
        options = choose.Options(workload=decision.workload, store=self.url, **asked)
        with self._at_work:
            return choose.decide(options).decision.id

    def _trial(self, id: str) -> Trial:
        found = self.store().trials(id=id, timeline=True)
        if not found:
            raise _unknown("trial", id, (one.id for one in self.store().trials(limit=NEAR)))
        return found[0]

    def _decision(self, id: str) -> Decision:
        found = self.store().decisions(id=id)
        if not found:
            raise _unknown("decision", id, (one.id for one in self.store().decisions(limit=NEAR)))
        return found[0]

    def _decision_view(self, id: str, whole: bool) -> DecisionView:
        return viewing.decision_view(self.store(), self._decision(id), whole=whole)


def _searched(line: LedgerLine) -> str:
    return f"{line.offer}\n{line.verdict}\n{line.reason}".lower()


def _verdicts(lines: Iterable[LedgerLine]) -> list[str]:
    return list(dict.fromkeys(line.verdict for line in lines))


class Kept:
    """The last so many values that were made; two who ask at once may both make one."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._values: OrderedDict[Hashable, Any] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                found: _T = self._values[key]
                return found
        made = make()
        with self._lock:
            self._values[key] = made
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return made


def _unknown(kind: str, name: str, known: Iterable[str]) -> NotFoundError:
    near = nearest(name, known)
    hint = f"Did you mean '{near}'?" if near else None
    return NotFoundError(f"There is no {kind} '{name}' in the store.", hint)


def _grouped(found: Sequence[Tally], key: Callable[[Tally], _T]) -> dict[_T, list[Tally]]:
    groups: dict[_T, list[Tally]] = {}
    for one in found:
        groups.setdefault(key(one), []).append(one)
    return groups


def _counted(some: Sequence[Tally]) -> dict[str, Any]:
    by_status: dict[str, int] = {}
    for one in some:
        by_status[one.status] = by_status.get(one.status, 0) + one.count
    return {
        "trials": sum(by_status.values()),
        "by_status": by_status,
        "last_at": max(one.last_started_at for one in some),
    }
