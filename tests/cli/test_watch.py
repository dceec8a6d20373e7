"""``underdog watch``: exit status, output, notices over a real server, rounds and signals."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from watched_world import A, B, World, decided_in

from underdog.catalog.archive import Entry
from underdog.catalog.refresh import Outcome, Refreshed
from underdog.cli.group import run
from underdog.errors import CatalogError
from underdog.verbs import catalog, watch

SECRET = "hunter2"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return decided_in(tmp_path_factory.mktemp("decided"))


@pytest.fixture
def world(home: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """A leads; the commands find store and catalog by the environment."""
    shutil.copytree(made, home, dirs_exist_ok=True)
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    return World(home)


def flip(world: World) -> None:
    world.catalog(A, B | {"price_per_hour": 0.5})


class Inbox:
    """A server that takes what is posted to it."""

    def __init__(self) -> None:
        self.status, self.got = 200, list[dict[str, Any]]()
        inbox = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                text = self.rfile.read(int(self.headers["Content-Length"]))
                inbox.got.append(json.loads(text))
                self.send_response(inbox.status)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"json://user:{SECRET}@127.0.0.1:{self.server.server_port}/"


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    made = Inbox()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_it_stands_and_then_falls(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["watch", "--no-refresh"]) == 0
    assert capsys.readouterr().out == "1 decision: 1 stands\n"
    assert run(["watch", "--no-refresh", "--all"]) == 0
    assert (
        "gpt  by samples_per_dollar  stands  aws/us-east-1/a.large/on-demand, chosen on "
        in capsys.readouterr().out
    )
    flip(world)
    assert run(["watch", "--no-refresh"]) == 1
    output = capsys.readouterr()
    assert "gpt  by samples_per_dollar  does not stand" in output.out
    assert "✗ aws/us-east-1/b.large/on-demand leads now" in output.out
    assert output.err == ""


def test_json(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    flip(world)
    assert run(["watch", "--no-refresh", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    (one,) = found["judged"]
    assert (one["verdict"], one["gain"]) == ("falls", pytest.approx(0.8))
    assert one["now"]["offer"] == "aws/us-east-1/b.large/on-demand"
    assert {"asked", "tests", "software"} <= set(one["rests_on"])
    assert found["dollars"] == 0


def test_names_with_markup_and_escapes_are_shown_as_they_are(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    (decision,) = world.decisions()
    world.change(decision, id="d2", workload="[red]x[/red]\x1b[31m<b>")
    assert run(["watch", "--no-refresh"]) == 2
    assert "[red]x[/red]\\x1b[31m<b>" in capsys.readouterr().out


def test_wrong_options(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, said in (
        (["--act"], "--act --budget 5"),
        (["--budget", "2"], "Add --act"),
        (["--every", "soon"], "not a duration"),
        (["--workload", "gtp"], "Did you mean 'gpt'?"),
        (["--notify", f"no-such://{SECRET}@host"], "number 1 (no-such://…)"),
        (["--notify", SECRET], "number 1 (?://…)"),
    ):
        assert run(["watch", "--no-refresh", *wrong]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert SECRET not in error


def test_a_notice_is_sent_once_for_each_change(
    world: World, inbox: Inbox, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("apprise")
    asked = ["watch", "--no-refresh", "--notify", inbox.url]
    assert run(asked) == 0
    assert inbox.got == []  # it stands, and nobody was told otherwise
    flip(world)
    assert run(asked) == run(asked) == 1
    (notice,) = inbox.got
    assert notice["title"] == "underdog: 1 of 1 decisions do not stand"
    assert "- aws/us-east-1/b.large/on-demand leads now" in notice["message"]
    world.catalog(A, B | {"price_per_hour": 0.49})  # the same, with another figure
    assert run(asked) == 1
    assert len(inbox.got) == 1
    world.catalog(A, B)
    assert run(asked) == 0
    assert len(inbox.got) == 2
    assert "gpt, by samples_per_dollar: stands" in inbox.got[1]["message"]
    output = capsys.readouterr()
    assert SECRET not in output.out + output.err


def test_a_notice_that_was_not_taken_is_sent_again(
    world: World, inbox: Inbox, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("apprise")
    monkeypatch.setenv("UNDERDOG_NOTIFY", inbox.url)
    world.catalog(A, B | {"price_per_hour": 0.88})  # open, which by itself is no failure
    inbox.status = 500
    assert run(["watch", "--no-refresh"]) == 2
    error = capsys.readouterr().err
    assert "the notice to json://… was not taken" in error
    assert SECRET not in error
    inbox.status = 200
    assert run(["watch", "--no-refresh"]) == 0
    assert len(inbox.got) == 2


def test_without_apprise_it_says_what_to_install(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    assert run(["watch", "--no-refresh", "--notify", f"json://{SECRET}"]) == 2
    assert "pip install 'underdog[notify]'" in capsys.readouterr().err


def test_a_refresh_that_fails_is_told_and_the_last_catalog_counts(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = Outcome(provider="aws", state="kept", reason="no answer came")

    def offline(*_: object, **__: object) -> Refreshed:
        return Refreshed([kept], None, [])

    monkeypatch.setattr(catalog, "refresh", offline)
    assert run(["watch"]) == 0
    assert "aws: its offers of before stay: no answer came" in capsys.readouterr().err

    def broken(*_: object, **__: object) -> Refreshed:
        raise CatalogError("The archive cannot be written.")

    monkeypatch.setattr(catalog, "refresh", broken)
    assert run(["watch"]) == 0
    assert "the last good one counts: The archive cannot" in capsys.readouterr().err


def test_a_refresh_brings_the_prices_that_count(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fresh(*_: object, **__: object) -> Refreshed:
        flip(world)
        return Refreshed([], Entry(path=Path(), made="", hash=""), [])

    monkeypatch.setattr(catalog, "refresh", fresh)
    assert run(["watch"]) == 1
    assert capsys.readouterr().err == ""


def test_a_round_that_fails_is_told_and_the_next_goes_on() -> None:
    said: list[str] = []
    rounds: list[int] = []

    def one() -> None:
        rounds.append(len(rounds))
        if len(rounds) == 1:
            raise CatalogError("There are no offers.")
        if len(rounds) == 2:
            raise ZeroDivisionError

    def sleep(seconds: float) -> None:
        assert 0 <= seconds <= 6
        if len(rounds) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watch.repeat(one, 6.0, said.append, sleep)
    assert len(rounds) == 3
    assert said == [
        "this round failed: There are no offers.",
        "this round failed: ZeroDivisionError",
    ]


def started(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "underdog", "watch", "--no-refresh", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )


def waited(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    assert condition()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_the_rounds_cleanly(
    world: World, number: signal.Signals, status: int
) -> None:
    going = started("--every", "100d", "--json")
    assert going.stdout is not None
    line = going.stdout.readline()  # one for each round
    assert json.loads(line)["judged"][0]["verdict"] == "stands"
    going.send_signal(number)
    _, error = going.communicate(timeout=120)
    assert (going.returncode, error) == (status, "")


def test_killed_in_a_round_the_next_watch_tells(world: World, inbox: Inbox) -> None:
    pytest.importorskip("apprise")
    flip(world)
    before = world.decisions()
    going = started("--notify", inbox.url)
    # the lock is made just before what was told is compared: the round is in its midst
    folder = Path(os.environ["XDG_DATA_HOME"]) / "underdog" / "watch"
    waited(lambda: folder.exists() and any(folder.iterdir()))
    going.kill()
    going.communicate()
    assert world.decisions() == before
    assert run(["watch", "--no-refresh", "--notify", inbox.url]) == 1
    # told at least once; twice where it was killed between the sending and the note of it
    assert len(inbox.got) in (1, 2)
    assert run(["watch", "--no-refresh", "--notify", inbox.url]) == 1
    assert len(inbox.got) in (1, 2)


def test_two_watches_at_once_tell_once(world: World, inbox: Inbox) -> None:
    pytest.importorskip("apprise")
    flip(world)
    going = [started("--notify", inbox.url) for _ in range(2)]
    assert [one.communicate(timeout=240)[1] for one in going] == ["", ""]
    assert [one.returncode for one in going] == [1, 1]
    assert len(inbox.got) == 1


def test_a_damaged_memory_of_what_was_told_is_an_empty_one(world: World, inbox: Inbox) -> None:
    pytest.importorskip("apprise")
    flip(world)
    asked = ["watch", "--no-refresh", "--notify", inbox.url]
    assert run(asked) == 1
    (file,) = (Path(os.environ["XDG_DATA_HOME"]) / "underdog" / "watch").glob("*.json")
    file.write_text('{"half a')
    assert run(asked) == run(asked) == 1
    assert len(inbox.got) == 2
