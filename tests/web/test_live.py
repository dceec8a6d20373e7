"""What runs is streamed once a second, to many at once, and nothing is left of who went away."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from underdog.store import open_store
from underdog.store.owner import current_owner
from underdog.verbs.serving import Reader
from underdog.web.access import access
from underdog.web.app import application
from underdog.web.live import event
from underdog.web.server import listening, settings
from web.stores import SCRIPT, running

LIMIT = 60


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "store.sqlite3"
    with open_store(str(made)) as store:
        store.save(running(owner=current_owner(), workload=SCRIPT))
    return made


class Here:
    """A server in a thread of this process."""

    def __init__(self, reader: Reader) -> None:
        self.listener = listening("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.app = application(reader, access("127.0.0.1", 80))
        self.server = uvicorn.Server(settings(self.app))
        self.thread = threading.Thread(target=self.server.run, args=([self.listener],))

    def __enter__(self) -> Here:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.should_exit = True
        self.thread.join(LIMIT)
        self.listener.close()
        assert not self.thread.is_alive()

    @property
    def open(self) -> int:
        return len(self.server.server_state.connections)


@pytest.fixture
def here(path: Path) -> Iterator[Here]:
    with Here(Reader(str(path))) as found:
        yield found


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


@contextlib.contextmanager
def stream(address: str) -> Iterator[Iterator[str]]:
    """The events of a stream, as texts."""
    with (
        httpx.Client(timeout=LIMIT, trust_env=False) as asking,
        asking.stream("GET", address) as answer,
    ):
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        yield _events(answer.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[str]:
    data: list[str] = []
    for line in lines:
        if line.startswith("data: "):
            data.append(line.removeprefix("data: "))
        elif not line and data:
            yield "\n".join(data)
            data = []


def test_values_move_while_the_trial_does(here: Here, path: Path) -> None:
    with stream(f"{here.address}/live/values") as events:
        first = json.loads(next(events))
        assert first["trials"][0]["steps"] == 120
        with open_store(str(path)) as store:
            trial = store.trials()[0]
            store.update(replace_steps(trial, 240))
        assert json.loads(next(events))["trials"][0]["steps"] == 240
        with open_store(str(path)) as store:
            store.save(replace_steps(trial, 300, status="ok"))
        assert json.loads(next(events))["trials"] == []


def replace_steps(trial: Any, steps: int, **given: Any) -> Any:
    from dataclasses import replace

    return replace(trial, measurement=replace(trial.measurement, steps=steps), **given)


def test_the_part_of_the_page_is_escaped(here: Here) -> None:
    with stream(f"{here.address}/live/page") as events:
        part = next(events)
    assert "&lt;script&gt;alert(1)" in part
    assert SCRIPT not in part


def test_many_look_at_once_and_leave_nothing(here: Here) -> None:
    page = httpx.Client(base_url=here.address, timeout=LIMIT, trust_env=False)
    page.get("/live.json")
    page.close()
    wait_for(lambda: here.open == 0)
    with contextlib.ExitStack() as streams:
        many = [streams.enter_context(stream(f"{here.address}/live/values")) for _ in range(12)]
        said = {next(events) for events in many}
        # each looked within the same second or the next one: the values are those of the reader
        assert {json.loads(one)["trials"][0]["id"] for one in said} == {"trial-running"}
        assert here.open == 12
    wait_for(lambda: here.open == 0)
    wait_for(lambda: not here.server.server_state.tasks)


def test_a_server_that_ends_does_not_wait_for_who_looks(path: Path) -> None:
    with Here(Reader(str(path))) as here, stream(f"{here.address}/live/page") as events:
        next(events)
        here.app.end()
        here.server.should_exit = True
        assert list(events) == []


def test_a_search_that_runs_shows_with_its_trial(path: Path, clients: Any) -> None:
    with open_store(str(path)) as store:
        store.save(running(owner=current_owner(), study="study-7", id="trial-7"))
    client = clients(Reader(str(path)))
    assert [one["id"] for one in client.get("/live.json").json()["studies"]] == ["study-7"]
    page = client.get("/live").text
    assert "/studies/study-7" in page
    assert "The search is running" in page
    assert client.head("/live/values").status_code == 405


@pytest.mark.parametrize("text", ["a", "a\nb", "a\r\nb\rc", "", "\n", "x\u2028y\x0bz\x85"])
def test_an_event_carries_any_text(text: str) -> None:
    said = event(text.encode()).decode()
    assert said.endswith("\n\n")
    parts = said.removesuffix("\n\n").split("\n")
    assert all(part.startswith("data: ") for part in parts)
    carried = "\n".join(part.removeprefix("data: ") for part in parts)
    assert carried == text.replace("\r\n", "\n").replace("\r", "\n")


def test_a_slow_page_does_not_hold_up_the_others(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, go_on = Reader(str(path)), threading.Event()
    monkeypatch.setattr(reader, "study", lambda id: go_on.wait(LIMIT))

    with Here(reader) as here, ThreadPoolExecutor(1) as other:
        asking = httpx.Client(timeout=LIMIT, trust_env=False, base_url=here.address)
        slow = other.submit(asking.get, "/studies/x")
        assert asking.get("/trials").status_code == 200
        assert not slow.done()
        go_on.set()
        slow.result(LIMIT)
        asking.close()
