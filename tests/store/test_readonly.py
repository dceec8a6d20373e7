"""A store that is only read: it tells what is there, and nothing in it changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from underdog.errors import StoreError
from underdog.model import Timeline
from underdog.store import open_store
from underdog.store.owner import current_owner
from underdog.testing.store import bare_trial

GONE: dict[str, Any] = {**current_owner(), "boot_id": "another boot"}
STEPS = {"seconds": [1.0], "step": [5.0], "samples_per_second": [40.0]}


def test_it_tells_what_is_there(url: str) -> None:
    timeline = Timeline(steps=STEPS)
    kept = replace(bare_trial("main", id="one", status="ok"), study="study-1", timeline=timeline)
    with open_store(url) as store:
        store.save(kept)
    with open_store(url, read_only=True) as store:
        assert store.trials(timeline=True) == [kept]
        assert store.trials(study="study-1", limit=1)[0].id == "one"
        assert store.trials(study="study-2") == []
        assert store.decisions() == []
        assert [(one.count, one.study) for one in store.tally()] == [(1, "study-1")]


def test_nothing_can_be_written(url: str) -> None:
    with open_store(url) as store:
        store.save(bare_trial("main", id="one", status="running"))
    with open_store(url, read_only=True) as store:
        with pytest.raises(StoreError, match="read only"):
            store.save(bare_trial("main", id="two", status="ok"))
        with pytest.raises(StoreError):  # by the database itself
            store.update(bare_trial("main", id="one", status="running"))
        assert len(store.trials()) == 1


def test_a_trial_without_an_owner_is_told_as_interrupted_and_not_marked(url: str) -> None:
    with open_store(url) as store:
        store.save(replace(bare_trial("main", id="one", status="running"), owner=GONE))
    with open_store(url, read_only=True) as store:
        told = store.trials()[0]
        assert told.status == "interrupted"
        assert told.reason is not None
        assert [one.status for one in store.tally()] == ["running"]


def test_where_there_is_none_yet_it_is_empty(url: str) -> None:
    for _ in range(2):  # the first one has made nothing
        with open_store(url, read_only=True) as store:
            assert store.trials() == store.decisions() == store.tally() == []


@pytest.mark.parametrize("name", ["store.sqlite3", "50 % of? #all\u00e9.sqlite3"])
def test_a_file_moved_away_meanwhile_is_told_and_not_made_anew(tmp_path: Path, name: str) -> None:
    path, elsewhere = tmp_path / name, tmp_path / "elsewhere"
    with open_store(f"sqlite:///{path}") as store:
        store.save(bare_trial("main", id="one", status="ok"))
    with open_store(f"sqlite:///{path}", read_only=True) as store:
        assert len(store.trials()) == 1
        path.rename(elsewhere)
        with pytest.raises(StoreError, match="not there any more"):
            store.trials()
        assert not path.exists()
        elsewhere.rename(path)
        assert len(store.trials()) == 1


@pytest.mark.parametrize("name", ["study-1", "a\\b", "half \udc80", "x" * 500])
def test_studies_are_counted_by_their_names(url: str, name: str) -> None:
    with open_store(url) as store:
        store.save(*(bare_trial("main", study=name) for _ in range(3)))
        assert [(one.study, one.count) for one in store.tally()] == [(name, 3)]
        assert len(store.trials(study=name)) == 3
