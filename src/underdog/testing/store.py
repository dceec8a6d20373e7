"""What every store must do: run it against one of your own.

``check_store(lambda: open_my_store(url))`` raises AssertionError at the first broken promise; a
test of one's own may run the checks of ``StoreChecks`` one by one. Records of any earlier use may
be in the store, and the records of the checks stay in it.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from underdog.core.attempts import Attempt, Place
from underdog.errors import StoreError
from underdog.model import (
    Accelerator,
    Caveat,
    Decision,
    Estimate,
    Machine,
    Measurement,
    Offer,
    Price,
    Profile,
    Software,
    Timeline,
    Trial,
)
from underdog.store import Record, Store, Tally
from underdog.store.owner import current_owner

ODD_TEXTS = (
    "",
    "null \x00 character",
    "half of a pair \udcff, and both halves, which are not one character \ud83d\ude00",
    "mark \uffff, \uffffd83d",
    "<b>markup</b> & [bold]rich[/bold] '; drop table underdog_trials; --",
    'quotes " and back\\slash \\u0000 and %s :name ?',
    "emoji 🐕 and right-to-left \u202e and combining é",
    "line\r\nbreak\ttab\u2028",
    "long " * 200_000,
)


def check_store(open_store: Callable[[], Store]) -> None:
    """Run all checks; ``open_store`` opens the same store at every call.

    Raises:
        AssertionError: the store breaks a promise; the message says which.
    """
    for name in StoreChecks.names():
        getattr(StoreChecks(open_store), name)()


class StoreChecks:
    """The promises of a store, one method for each."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self.open = open_store
        self.workload = f"check-{uuid.uuid4().hex}"

    @classmethod
    def names(cls) -> list[str]:
        """The names of all checks."""
        return [name for name in vars(cls) if name.startswith("check_")]

    def check_records_come_back_equal(self) -> None:
        trial, decision = full_trial(self.workload), full_decision(self.workload)
        bare = bare_trial(self.workload, why="it may be the best")
        with self.open() as store:
            store.save(trial)
            store.save(decision, bare)
        with self.open() as store:
            assert store.trials(workload=self.workload) == [trial, bare], "trials differ"
            assert store.decisions(workload=self.workload) == [decision], "decisions differ"

    def check_saving_again_replaces(self) -> None:
        first = bare_trial(self.workload, status="running", owner=current_owner())
        other = bare_trial(self.workload)
        done = dataclasses.replace(first, status="ok", owner={})
        with self.open() as store:
            store.save(first)
            store.save(other)
            store.save(done)
            found = store.trials(workload=self.workload)
        assert found == [done, other], "the new record stands in the old one's place"

    def check_filters(self) -> None:
        trials = [bare_trial(self.workload, status=s) for s in ("ok", "failed", "ok", "hung")]
        decision = full_decision(self.workload)
        with self.open() as store:
            store.save(*trials)
            store.save(decision)
            ids = [t.id for t in trials]
            assert store.trials(workload=self.workload, status="ok") == [trials[0], trials[2]]
            assert store.trials(id=ids[1]) == [trials[1]]
            assert store.trials(id=[*ids[::-1], ids[0], "absent"]) == trials, "by several ids"
            assert store.trials(id=[]) == []
            assert store.trials(id="absent") == []
            assert store.trials(workload=self.workload, limit=2) == trials[2:], "the last ones"
            assert store.trials(workload=self.workload, limit=0) == []
            assert store.trials(workload=self.workload.upper()) == [], "names are case-sensitive"
            assert store.decisions(id=decision.id) == [decision]
            assert store.decisions(workload="absent") == []

    def check_pages(self) -> None:
        trials = [bare_trial(self.workload) for _ in range(5)]
        decisions = [full_decision(self.workload) for _ in range(5)]
        mine = self.workload
        with self.open() as store:
            store.save(*trials, *decisions)
            for limit, offset in ((2, 0), (2, 2), (2, 4), (2, 9), (None, 3), (0, 1)):
                first = 0 if limit is None else max(0, 5 - offset - limit)
                kept = slice(first, max(0, 5 - offset))
                ids = [one.id for one in trials]
                page: dict[str, Any] = {"limit": limit, "offset": offset}
                assert store.trials(workload=mine, **page) == trials[kept], page
                assert store.trials(id=ids, **page) == trials[kept], f"{page} by id"
                assert store.decisions(workload=mine, **page) == decisions[kept], page

    def check_studies(self) -> None:
        study = f"{self.workload} study"
        asked = [bare_trial(self.workload, study=study) for _ in range(2)]
        with self.open() as store:
            store.save(asked[0], bare_trial(self.workload), asked[1])
            assert store.trials(study=study) == asked
            assert store.trials(study=study, limit=1) == asked[1:]
            assert store.trials(study="absent") == []

    def check_timelines(self) -> None:
        told = dataclasses.replace(full_trial(self.workload), timeline=full_timeline())
        bare = dataclasses.replace(told, timeline=None)
        other = bare_trial(self.workload)
        newer = Timeline(steps={"seconds": [2.0], "step": [8], "samples_per_second": [None]})
        mine = self.workload
        with self.open() as store:
            store.save(told, other)
            assert store.trials(workload=mine, timeline=True) == [told, other]
            assert store.trials(workload=mine) == [bare, other], "it is given where it is asked for"
            store.save(dataclasses.replace(bare, reason="again"))
            again = store.trials(id=told.id, timeline=True)
            assert again == [dataclasses.replace(told, reason="again")], "it stays"
            store.save(dataclasses.replace(told, timeline=newer))
            (found,) = store.trials(id=told.id, timeline=True)
            assert found.timeline == newer, "a new one replaces it"
        bad = Timeline(usage={"seconds": [1.0], "cores": [math.nan]})
        self._check_refused(bare_trial(self.workload, timeline=bad))

    def check_updates_of_running_trials(self) -> None:
        begun = bare_trial(self.workload, status="running", owner=current_owner())
        later = dataclasses.replace(begun, dollars=0.5, timeline=full_timeline())
        latest = dataclasses.replace(begun, dollars=0.75)
        ended = dataclasses.replace(begun, status="ok", owner={}, dollars=1.0)
        with self.open() as store:
            assert not store.update(begun), "what is not there is not made"
            assert store.trials(id=begun.id) == []
            store.save(begun)
            assert store.update(later)
            assert store.trials(id=begun.id, timeline=True) == [later]
            assert store.update(latest)
            kept = dataclasses.replace(latest, timeline=later.timeline)
            assert store.trials(id=begun.id, timeline=True) == [kept], "the timeline stays"
            store.save(ended)
            assert not store.update(latest), "what has ended runs no more"
            assert store.trials(id=begun.id) == [ended]

    def check_tally(self) -> None:
        long = f"{self.workload} \\ \udcff" + "long " * 100
        rows = [("ok", "2026-08-02"), ("ok", "2026-08-01"), ("failed", "2026-08-03")]
        with self.open() as store:
            for workload in (self.workload, long, f"{long}er"):
                store.save(*(bare_trial(workload, status=s, started_at=at) for s, at in rows))
            found = [one for one in store.tally() if one.workload.startswith(self.workload)]
        assert found == [
            tally
            for workload in sorted((self.workload, long, f"{long}er"))
            for tally in (
                Tally(workload, "failed", 1, "2026-08-03"),
                Tally(workload, "ok", 2, "2026-08-02"),
            )
        ]

    def check_attempts(self) -> None:
        started = time.time()
        place = Place(
            provider=self.workload, region="r", zone="", instance_type="x.large", purchase="spot"
        )
        first = Attempt(id=f"{self.workload} 1", place=place, at=started - 100, got=True, waited=3)
        other = dataclasses.replace(
            first,
            id=f"{self.workload} 2",
            place=dataclasses.replace(place, instance_type="y.large"),
            at=started,
            got=False,
            refusal="quota",
            words="half of a pair \udcff",
        )
        done = dataclasses.replace(first, held=60.0, interrupted=True)
        with self.open() as store:
            store.save(first, other)
            store.save(done)
        mine = self.workload
        with self.open() as store:
            assert store.attempts(provider=mine) == [done, other], (
                "the new one stands in the old's place"
            )
            assert store.attempts(provider=mine, instance_type="y.large") == [other]
            assert store.attempts(provider=mine, since=started - 50) == [other]
            assert store.attempts(provider=mine, limit=1) == [other], "the last ones"
            assert {one.id for one in store.attempts()} >= {done.id, other.id}

    def check_any_text(self) -> None:
        for number, text in enumerate(ODD_TEXTS):
            workload = f"{self.workload} {text}"
            trial = bare_trial(workload, command=[text], knobs={text: text}, reason=text)
            trial = dataclasses.replace(trial, id=f"{trial.id} {text}")
            with self.open() as store:
                store.save(trial)
                assert store.trials(workload=workload) == [trial], f"text {number} by workload"
                assert store.trials(id=trial.id) == [trial], f"text {number} by id"

    def check_numbers_that_are_none_are_refused(self) -> None:
        for number in (math.nan, math.inf, -math.inf):
            bad = bare_trial(self.workload, usage={"cpu": number})
            self._check_refused(bare_trial(self.workload), bad)
            decision = dataclasses.replace(
                full_decision(self.workload), ranking=[{"offer": "o", "metrics": [1.0, number]}]
            )
            self._check_refused(decision)

    def check_all_or_none(self) -> None:
        def broken() -> Iterator[Record]:
            for _ in range(1500):
                yield bare_trial(self.workload)
            raise ZeroDivisionError

        with self.open() as store:
            before = bare_trial(self.workload)
            store.save(before)
            try:
                store.save_all(broken())
            except ZeroDivisionError:
                pass
            else:
                raise AssertionError("the source's error went unheard")
            assert store.trials(workload=self.workload) == [before], "half of a batch was kept"
            many = [bare_trial(self.workload) for _ in range(1500)]
            assert store.save_all(iter(many)) == 1500
            assert store.trials(workload=self.workload) == [before, *many]
            assert store.save_all([]) == 0

    def check_several_at_once(self) -> None:
        sets = [[bare_trial(self.workload) for _ in range(5)] for _ in range(4)]
        failed: list[BaseException] = []

        def save(trials: list[Trial]) -> None:
            try:
                with self.open() as store:
                    for trial in trials:
                        store.save(trial)
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=save, args=(trials,)) for trials in sets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed:
            raise AssertionError("a writer failed beside others") from failed[0]
        with self.open() as store:
            found = {trial.id for trial in store.trials(workload=self.workload)}
        assert found == {trial.id for trials in sets for trial in trials}, "a record is lost"

    def check_trials_of_dead_processes_are_interrupted(self) -> None:
        here = current_owner()
        told = {"status": "running", "timeline": full_timeline()}
        alive = bare_trial(self.workload, **told, owner=here)
        elsewhere = bare_trial(self.workload, status="running", owner=here | {"host": "elsewhere"})
        gone = [
            bare_trial(self.workload, **told, owner=here | {"pid_start": -1}),
            bare_trial(self.workload, status="running", owner=here | {"pid": 2**22 + 1}),
            bare_trial(self.workload, status="running", owner=here | {"boot_id": "another"}),
        ]
        with self.open() as store:
            store.save(alive, elsewhere, *gone)
        with self.open() as store:
            mine = store.trials(workload=self.workload, timeline=True)
        found = {trial.id: trial for trial in mine}
        assert found[alive.id] == alive, "a trial in flight of a living process is left"
        assert found[elsewhere.id] == elsewhere, "another host's trial is left"
        for trial in gone:
            ended = found[trial.id]
            assert ended.status == "interrupted", "a dead process's trial is interrupted"
            assert ended.reason, "with a reason"
            expected = dataclasses.replace(trial, status="interrupted", reason=ended.reason)
            assert ended == expected, "and else as it was"

    def check_closing_twice(self) -> None:
        store = self.open()
        store.close()
        store.close()

    def _check_refused(self, *records: Record) -> None:
        with self.open() as store:
            try:
                store.save(*records)
            except StoreError:
                ids = [record.id for record in records if isinstance(record, Trial)]
                assert store.trials(id=ids) == [], "a refused batch leaves nothing"
            else:
                raise AssertionError("a number that is not finite was kept as something else")


def bare_trial(workload: str, **fields: Any) -> Trial:
    """A trial with a new id, of which next to nothing is known."""
    facts: dict[str, Any] = {
        "id": uuid.uuid4().hex,
        "workload": workload,
        "status": "ok",
        "price": Price(unknown_reason="not asked for"),
        "machine": Machine(),
        "software": Software(),
    }
    return Trial(**facts | fields)


def full_trial(workload: str) -> Trial:
    """A trial in which every kind of field is filled."""
    price = Price(per_hour=1.212, source="list", date="2026-08-01")
    return bare_trial(
        workload,
        command=["python", "train.py", ""],
        knobs={"batch": "64"},
        exit_code=0,
        started_at="2026-08-01T12:00:00+00:00",
        ended_at="2026-08-01T12:05:00.123456+00:00",
        offer=Offer(
            provider="aws", region="us-east-1", instance_type="g5.xlarge", price=price,
            accelerator="A10G", accelerator_count=0.125, accelerator_memory_gib=24,
        ),
        price=price,
        measurement=Measurement(
            samples_per_second=Estimate(value=1 / 3, low=0.1, high=1e99, n=2**40),
            steps=10, samples=None, batch_size=64.0, pauses={"checkpoint": 1.5},
        ),
        phases={"data": 0.25, "forward": 0.75},
        bound_by="data",
        peak_memory_gib={"host": 1.0, "accelerator": None},
        usage={"cpu": 5e-324, "gpu": -0.0, "unknown": None},
        caveats=[Caveat(code="noisy", message="…", remedy="…")],
        machine=Machine(hostname="h", accelerators=[Accelerator(name="A10G", memory_gib=22.3)]),
        software=Software(
            python="3.11.7", libraries={"torch": "2.13"}, dirty=False,
            settings={"tf32": True, "threads": 4, "nested": {"a": [1, 2.5, None, "x"]}},
        ),
        profile=Profile(parameters=2**70, input_shapes=[[3, 224], []], uses_accelerator=True),
    )  # fmt: skip


def full_timeline() -> Timeline:
    """A timeline in which every part is filled."""
    return Timeline(
        steps={
            "seconds": [0.5, 1.0],
            "step": [4.0, 8.0],
            "samples_per_second": [64.0, None],
        },
        usage={"seconds": [-0.25, 0.75], "cores": [1.5, None], "memory_gib": [1 / 3, 5e-324]},
        pauses={"evaluation": [[0.5, 0.75]], "checkpoint": []},
    )


def full_decision(workload: str) -> Decision:
    """A decision in which every kind of field is filled."""
    return Decision(
        id=uuid.uuid4().hex,
        workload=workload,
        created_at="2026-08-01T12:06:00+00:00",
        utility="samples_per_dollar",
        better="higher",
        constraints=["price_per_hour < 2"],
        trials=["a", "b"],
        candidates=80_000,
        ranking=[{"offer": "o", "rank": 1, "samples_per_dollar": {"value": 1.5, "low": None}}],
        ledger=[{"offer": "p", "verdict": "excluded", "reason": "12 GiB < 24 GiB"}],
        caveats=[Caveat(code="overlap", message="…", remedy="…")],
        study="s",
        exploration={"tests": [{"number": 1, "rate": None}], "high_loss": 0.5},
    )
