"""``underdog serve`` as a command: its address, its end, and what it cannot do."""

from __future__ import annotations

import signal
import socket
import sqlite3
import sys
import time
from pathlib import Path

import httpx
import pytest

from underdog.cli.group import run
from underdog.errors import UsageError
from underdog.web.server import listening
from web.serving import LIMIT, serving


def test_a_token_lets_others_in_and_ctrl_c_ends_it_at_once(tmp_path: Path) -> None:
    store = tmp_path / "s.sqlite3"
    with serving("--store", str(store), "--host", "0.0.0.0") as served:
        token = served.address.partition("token=")[2]
        port = served.address.partition("/?")[0].rpartition(":")[2]
        own = f"http://127.0.0.1:{port}/"
        with httpx.Client(timeout=LIMIT, trust_env=False, follow_redirects=True) as asking:
            assert asking.get(own).status_code == 401
            opened = asking.get(own, params={"token": token})
            assert opened.status_code == 200
            assert "token" not in str(opened.url)
            with asking.stream("GET", f"{own}live/page") as looking:
                next(looking.iter_lines())
                begun = time.monotonic()
                served.process.send_signal(signal.SIGINT)
                assert served.process.wait(LIMIT) in (0, 130)
                assert time.monotonic() - begun < 20  # of a loaded machine: it waits for nobody
    said = "".join(served.lines)
    assert said.count(token) == 1
    assert "Traceback" not in said
    assert not store.exists()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--host", "no.such.host.example.invalid"), "cannot be listened on"),
        (("--host", "192.0.2.1"), "cannot be listened on"),
        (("--port", "70000"), "70000"),
        (("--token", "short", "--port", "0"), "can be guessed"),
    ],
)
def test_what_cannot_be_is_one_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], told: str
) -> None:
    assert run(["serve", "--store", str(tmp_path / "s.sqlite3"), *args]) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.out == ""


def test_a_store_that_cannot_be_read_is_told_before_it_listens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "other.sqlite3"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE others (x)")
    connection.close()
    assert run(["serve", "--store", str(path), "--port", "0"]) == 2
    assert "another program" in capsys.readouterr().err


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(UsageError, match=f"The port {port} of '127.0.0.1' is taken"):
            listening("127.0.0.1", port)


def test_without_the_packages_it_says_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "underdog.web.server")
    monkeypatch.delattr("underdog.web.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(["serve", "--port", "0"]) == 2
    assert "pip install 'underdog[web]'" in capsys.readouterr().err
