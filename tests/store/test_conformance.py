"""SQLite and PostgreSQL keep the promises that every store must keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from underdog.core.attempts import Attempt
from underdog.errors import StoreError
from underdog.model import Decision, Trial
from underdog.store import Record, Store, Tally, open_store
from underdog.testing.store import StoreChecks, bare_trial, check_store


@pytest.mark.parametrize("name", StoreChecks.names())
def test_promise(name: str, url: str) -> None:
    getattr(StoreChecks(lambda: open_store(url)), name)()


def test_all_promises_at_once_and_again(url: str) -> None:
    for _ in range(2):
        check_store(lambda: open_store(url))


class Broken:
    """A store that breaks promises: each of the flaws that the suite must find."""

    def __init__(self, store: Store, flaw: str) -> None:
        self.store, self.flaw = store, flaw

    def __enter__(self) -> Broken:
        return self

    def __exit__(self, *error: object) -> None:
        self.store.close()

    def close(self) -> None:
        self.store.close()

    def save(self, *records: Record) -> None:
        if self.flaw == "one by one":
            for record in records:
                self.store.save(record)
        else:
            self.save_all(records)

    def save_all(self, records: Iterable[Record]) -> int:
        kept = list(records) if self.flaw != "one by one" else records
        if self.flaw == "forgets commands":
            kept = [replace(r, command=[]) if isinstance(r, Trial) else r for r in kept]
        if self.flaw == "zero for NaN":
            kept = [replace(r, usage={"cpu": 0}) if isinstance(r, Trial) else r for r in kept]
        return self.store.save_all(kept)

    def attempts(self, **filters: Any) -> list[Attempt]:
        if self.flaw == "any type":
            filters.pop("instance_type", None)
        return self.store.attempts(**filters)

    def trials(self, **filters: Any) -> list[Trial]:
        if self.flaw == "ignores the limit":
            filters.pop("limit", None)
        if self.flaw == "ignores the offset":
            filters.pop("offset", None)
        if self.flaw == "any study":
            filters.pop("study", None)
        if self.flaw == "no timeline":
            filters.pop("timeline", None)
        found = self.store.trials(**filters)
        return found[::-1] if self.flaw == "newest first" else found

    def decisions(self, **filters: Any) -> list[Decision]:
        return self.store.decisions(**filters)

    def tally(self) -> list[Tally]:
        found = self.store.tally()
        return [replace(one, count=1) for one in found] if self.flaw == "never counts" else found

    def update(self, trial: Trial) -> bool:
        if self.flaw == "revives":
            self.store.save(trial)
            return True
        return self.store.update(trial)


@pytest.mark.parametrize(
    "flaw",
    [
        "one by one",
        "forgets commands",
        "zero for NaN",
        "ignores the limit",
        "newest first",
        "any type",
        "ignores the offset",
        "any study",
        "no timeline",
        "never counts",
        "revives",
    ],
)
def test_the_suite_finds_a_broken_store(flaw: str, tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")
    with pytest.raises(AssertionError):
        check_store(lambda: cast(Store, Broken(open_store(path), flaw)))


def test_the_suite_finds_nothing_where_nothing_is_broken(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite3")
    check_store(lambda: cast(Store, Broken(open_store(path), "none")))


def test_an_unknown_kind_of_store_names_the_nearest() -> None:
    with pytest.raises(StoreError, match="Did you mean 'postgresql'"):
        open_store("postgress://host/database")


def test_two_stores_are_apart(tmp_path: Path) -> None:
    with open_store(f"{tmp_path}/a") as a, open_store(f"{tmp_path}/b") as b:
        a.save(bare_trial("w"))
        assert len(a.trials()) == 1
        assert b.trials() == []
