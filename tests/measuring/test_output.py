"""The script's output passes through, on a terminal and elsewhere."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from underdog.measuring.output import Output, Screen

RUN = """
import os, sys
from underdog.measuring.launch import Script
from underdog.measuring.output import Output
lines = []
listener = lines.append if "listen" in sys.argv else None
output = Output(2 if "json" in sys.argv else 1, listener)
script = Script(["sh", "-c", sys.argv[1]], os.environ, output.stdout, output.stderr)
output.started()
while script.poll(0.05) is None:
    if output.screen and "status" in sys.argv: output.screen.status("STATUS")
script.wait_gone(10)
script.close()
output.finish()
print("TAIL", output.last_lines(2), "LINES", len(lines), lines[:3], "TOTAL", output.total)
"""


def run(shell: str, *words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    argv = [sys.executable, "-c", textwrap.dedent(RUN), shell, *words]
    return subprocess.run(argv, capture_output=True, check=True, timeout=60, **options)  # type: ignore[call-overload, no-any-return]


def run_on_terminal(shell: str, *words: str) -> str:
    """What a terminal of 80 columns gets."""
    argv = [sys.executable, "-c", textwrap.dedent(RUN), shell, *words]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                data = os.read(ours, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        elif process.poll() is not None:
            break
    process.wait(10)
    os.close(ours)
    return seen.decode()


def test_streams_stay_apart_and_errors_are_kept() -> None:
    done = run("echo out; echo one >&2; echo two >&2; echo three >&2")
    assert done.stdout.startswith(b"out\nTAIL ['two', 'three']")
    assert done.stderr == b"one\ntwo\nthree\n"


def test_with_json_standard_output_is_kept_free() -> None:
    done = run("echo out; echo err >&2", "json")
    assert done.stdout.startswith(b"TAIL")
    assert sorted(done.stderr.split()) == [b"err", b"out"]


def test_one_file_for_both_streams_keeps_the_order(tmp_path: Path) -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; done"
    argv = [sys.executable, "-c", textwrap.dedent(RUN), script]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True)
    expected = [f"{stream}{i}" for i in range(1, 10) for stream in "oe"]
    assert done.stdout.decode().split()[:18] == expected


def test_a_listener_gets_lines_and_loses_none() -> None:
    done = run("printf 'a\\rb\\nc'; printf 'd\\n\\n'; printf last", "listen")
    assert done.stdout.startswith(b"a\rb\ncd\n\nlast")
    assert b"LINES 4 ['a', 'b', 'cd']" in done.stdout


def test_a_hundred_megabytes_pass(tmp_path: Path) -> None:
    began = time.monotonic()
    done = run("head -c 100000000 /dev/zero | tr '\\0' x >&2; echo end >&2")
    assert len(done.stderr) == 100_000_004
    assert b"TOTAL 100000004" in done.stdout
    assert time.monotonic() - began < 30


def test_a_reader_that_goes_away_does_not_end_the_run() -> None:
    argv = [sys.executable, "-c", textwrap.dedent(RUN), "yes | head -c 1000000 >&2; exit 0"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout
    assert process.stderr
    process.stderr.close()
    assert b"TOTAL 1000000" in process.stdout.read()
    process.stdout.close()
    assert process.wait(20) == 0


def test_a_closed_stdout_of_the_script_is_no_trouble() -> None:
    done = run("exec >&- 2>&-; sleep 0.2; exit 0", "listen")
    assert b"LINES 0" in done.stdout


def test_on_a_terminal_the_script_sees_one() -> None:
    seen = run_on_terminal("test -t 1 && test -t 2 && echo both; stty size <&2")
    assert "both\r\n" in seen
    assert "\r\r" not in seen


def test_the_status_line_makes_room() -> None:
    seen = run_on_terminal("echo one; sleep 0.5; printf half; sleep 0.5; echo ' line'", "status")
    erase = "\r\x1b[2K"
    assert f"one\r\n{erase}STATUS" in seen
    assert f"STATUS{erase}half line\r\n" in seen, "nothing of ours inside the script's own line"
    assert "STATUSTAIL" not in seen, "nothing of ours stays"


def test_no_screen_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    output = Output()
    assert output.screen is None
    output.finish()


def test_a_status_is_cut_to_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    read, write = os.pipe()
    Screen(write).status("x" * 100)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read().count(b"x") == 19
