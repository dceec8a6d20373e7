"""Bars on a terminal, with rate and time left; lines now and then elsewhere."""

from __future__ import annotations

import io
import time

import pytest

from underdog.cli import progress as module
from underdog.cli.progress import Progress, bars
from underdog.progress import say


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """In place of stderr; called in a test, for pytest puts its own in place before each."""
    made = Terminal()
    monkeypatch.setattr("sys.stderr", made)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    return made


def until_drawn(terminal: Terminal, text: str) -> None:
    deadline = time.monotonic() + 60
    while text not in terminal.getvalue():
        assert time.monotonic() < deadline, terminal.getvalue()
        time.sleep(0.01)


def test_a_bar_tells_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(module, "DELAY", 0.01)
    monkeypatch.setattr(module, "SETTLING", 0.0)
    with bars():
        say("[bold]trials[/bold] kept", 0, 4000)
        until_drawn(terminal, "[bold]trials[/bold] kept")
        time.sleep(0.1)
        say("[bold]trials[/bold] kept", 1000, 4000)
        until_drawn(terminal, "1,000 of 4,000, ")
        until_drawn(terminal, "/s, ")
        until_drawn(terminal, " left")
        say("ranking 5 offers")
        until_drawn(terminal, "ranking 5 offers")
    assert terminal.getvalue().endswith("\x1b[2K"), "the line is gone at the end"


def test_what_is_quick_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(module, "DELAY", 60.0)
    with bars():
        say("trials kept", 1, 2)
    assert terminal.getvalue() == ""


def test_without_a_terminal_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with bars():
        say("trials kept", 1, 2)
    assert capsys.readouterr().err == ""


def test_lines_where_no_terminal_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Progress() as progress:
        for done in range(3):
            progress.tell("aws: rows", done, None)
        monkeypatch.setattr(module, "PLAIN_SECONDS", 0)
        progress.tell("aws: rows", 10_000, 20_000)
    assert capsys.readouterr().err == "aws: rows\naws: rows, 10,000 of 20,000\n"
