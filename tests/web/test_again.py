"""The one thing that a page can start: a decision asked again, where that is allowed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from underdog.verbs.serving import Reader
from web.stores import ORIGIN

OURS = {"origin": ORIGIN}


@pytest.fixture
def own(store: str, tmp_path: Path) -> Reader:
    """The reader of a copy of the store."""
    return Reader(str(shutil.copy(store, tmp_path / "copy.sqlite3")))


def key_of(client: TestClient, path: str) -> str:
    said = client.get(path).text
    return said.partition('name="key" value="')[2].partition('"')[0]


def test_a_decision_is_asked_again(own: Reader, clients: Callable[..., TestClient]) -> None:
    client = clients(own, allow_run=True)
    before = own.decisions()
    path = f"/decisions/{before[-1].id}"
    answer = client.post(f"{path}/again", data={"key": key_of(client, path)}, headers=OURS)
    assert answer.status_code == 303
    made = client.get(answer.headers["location"] + ".json").json()
    after = own.decisions()
    assert len(after) == len(before) + 1
    assert after[0].id == made["id"]
    assert (made["workload"], made["utility"]) == (before[-1].workload, before[-1].utility)


@pytest.mark.parametrize("given", [{}, {"key": ""}, {"key": "wrong"}, {"other": "x"}])
def test_a_form_of_another_page_starts_nothing(
    own: Reader, clients: Callable[..., TestClient], given: dict[str, str]
) -> None:
    client = clients(own, allow_run=True)
    before = own.decisions()
    answer = client.post(f"/decisions/{before[-1].id}/again", data=given, headers=OURS)
    assert answer.status_code in (403, 413)
    assert own.decisions() == before


def test_a_large_form_is_not_read(own: Reader, clients: Callable[..., TestClient]) -> None:
    client = clients(own, allow_run=True)
    answer = client.post("/decisions/x/again", content=b"a" * 70_000, headers=OURS)
    assert answer.status_code == 413


def test_without_leave_nothing_is_started(own: Reader, clients: Callable[..., TestClient]) -> None:
    client = clients(own)
    before = own.decisions()
    path = f"/decisions/{before[-1].id}"
    assert "/again" not in client.get(path).text
    answer = client.post(f"{path}/again", data={"key": "x"}, headers=OURS)
    assert answer.status_code == 403
    assert "--allow-run" in answer.text
    assert own.decisions() == before


def test_nothing_starts_by_get(own: Reader, clients: Callable[..., TestClient]) -> None:
    client = clients(own, allow_run=True)
    before = own.decisions()
    for way in ("get", "head"):
        answer = getattr(client, way)(f"/decisions/{before[-1].id}/again")
        assert answer.status_code in (404, 405)
    assert own.decisions() == before


def test_a_question_that_cannot_be_asked_is_told(
    own: Reader, clients: Callable[..., TestClient]
) -> None:
    client = clients(own, allow_run=True)
    key = key_of(client, f"/decisions/{own.decisions()[-1].id}")
    answer = client.post("/decisions/none/again", data={"key": key}, headers=OURS)
    assert answer.status_code == 404
