"""``underdog measure`` whatever the script and the system do: killed, crowded, out of disk."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from measured_script import (
    TRAIN,
    alive,
    command_line,
    python,
    script,
    start,
    stored,
    tree,
    underdog,
    wait_for,
)

STUBBORN = """
import signal
for s in (signal.SIGTERM, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
for i in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in range(3): os.close(fd)
        while True: time.sleep(1)
print("ready", flush=True)
while True: step()
"""


def test_kill_9_leaves_no_process_and_no_lost_record(home: Path) -> None:
    underdog("--for", "2s", *python(script(home, "for _ in range(50): step()", "first.py")))
    process = start("--for", "60s", *python(script(home, STUBBORN)))
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    wait_for(lambda: len(tree(process)) >= 8)
    children = tree(process)
    process.kill()
    process.communicate()
    wait_for(lambda: alive(children) == [], 8)
    first, second = stored(home)
    assert first.status == "ok"
    assert second.status == "interrupted"
    assert second.workload == f"{home.name}/train"


@pytest.mark.slow
def test_kill_9_at_any_moment_leaves_the_store_readable(home: Path) -> None:
    path = script(home, "for _ in range(150): step()")
    seen: list[psutil.Process] = []
    for delay in (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 1.0, 1.2):
        process = start("--for", "60s", *python(path))
        deadline = time.monotonic() + delay
        while time.monotonic() < deadline:
            seen += tree(process)
            time.sleep(0.02)
        process.kill()
        process.communicate()
        assert {t.status for t in stored(home)} <= {"ok", "interrupted"}
    wait_for(lambda: alive(seen) == [], 8)
    connection = sqlite3.connect(home / "store.sqlite3")
    assert connection.execute("pragma integrity_check").fetchone() == ("ok",)
    connection.close()


def test_ctrl_c_is_passed_on_and_what_was_measured_is_kept(home: Path) -> None:
    path = script(
        home,
        """
        try:
            print("ready", flush=True)
            while True: step()
        except KeyboardInterrupt:
            print("saved", flush=True)
            sys.exit(0)
        """,
    )
    process = start("--json", *python(path))
    assert process.stderr
    assert process.stderr.readline() == "ready\n"
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "saved" in err
    trial = json.loads(out)
    assert trial["status"] == "interrupted"
    assert trial["measurement"]["steps"] > 100
    (kept,) = stored(home)
    assert kept.status == "interrupted"
    assert kept.measurement.steps == trial["measurement"]["steps"]


@pytest.mark.slow
def test_a_second_ctrl_c_kills(home: Path) -> None:
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + STUBBORN
    process = start("--json", *python(script(home, code)))
    assert process.stderr
    assert process.stderr.readline() == "ready\n"
    children = tree(process)
    process.send_signal(signal.SIGINT)
    time.sleep(1.5)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"
    assert alive(children) == []


def test_a_request_to_end_is_passed_on(home: Path) -> None:
    process = start("--json", *python(script(home, "print('ready', flush=True)\nwhile 1: step()")))
    assert process.stderr
    process.stderr.readline()
    children = tree(process)
    process.terminate()
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"
    assert alive(children) == []


def test_ctrl_c_between_knobs_ends_all(home: Path) -> None:
    path = script(home, "print('ready', flush=True)\nwhile 1: step()")
    process = start("--json", "--knob", "b=1,2,3", *python(path, "{b}"))
    assert process.stderr
    process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"
    assert len(stored(home)) == 1


@pytest.mark.slow
def test_a_checkpoint_that_is_being_written_is_waited_for(home: Path) -> None:
    path = script(
        home,
        """
        print("ready", flush=True)
        began = time.time()
        while time.time() - began < 1.5: step()
        with open("checkpoint.tmp", "wb", buffering=0) as f:
            while time.time() - began < 6: f.write(bytes(1 << 20)); time.sleep(0.02)
        os.rename("checkpoint.tmp", "checkpoint")
        while True: step()
        """,
    )
    done = underdog("--json", "--for", "3s", *python(path))
    assert json.loads(done.stdout)["status"] == "ok", done.stderr
    assert (home / "checkpoint").exists()


def test_daemons_closed_streams_and_deleted_records(home: Path) -> None:
    path = script(
        home,
        """
        import shutil
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                open("daemon", "w").write(str(os.getpid()))
                time.sleep(600)
            os._exit(0)
        os.close(1); os.close(2)
        os.chdir("/")
        for _ in range(100): step()
        shutil.rmtree(folder)
        for _ in range(100): step()
        """,
    )
    done = underdog("--json", *python(path))
    trial = json.loads(done.stdout)
    assert trial["status"] == "ok", trial["reason"]
    assert trial["measurement"]["steps"] >= 1
    assert not psutil.pid_exists(int((home / "daemon").read_text()))


def test_through_a_shell(home: Path) -> None:
    path = script(home, "for _ in range(100): step()")
    line = f"cd / && '{sys.executable}' '{path}' && echo finished"
    done = underdog("--json", "--", "bash", "-c", line)
    assert json.loads(done.stdout)["workload"] == f"{home.name}/train"
    assert json.loads(done.stdout)["measurement"]["steps"] == 100
    assert "finished" in done.stderr


def test_without_standard_streams(home: Path) -> None:
    path = script(home, "for _ in range(100): step()\nprint('x'); print('y', file=sys.stderr)")
    line = " ".join(f"'{word}'" for word in command_line(*python(path)))
    done = subprocess.run(["bash", "-c", f"{line} <&- >&- 2>&-"], timeout=60, check=False)
    assert done.returncode == 0
    assert stored(home)[0].status == "ok"


@pytest.mark.slow
def test_names_with_markup_newlines_and_bytes(home: Path) -> None:
    name = b"tr[red]\n\x1b[31m\xff\xc3\xa9.py"
    path = os.fsencode(home) + b"/" + name
    with open(path, "w") as file:
        file.write(TRAIN + "for _ in range(100): step()\n")
    args = [os.fsencode(word) for word in command_line("--json", "--", sys.executable)] + [path]
    done = subprocess.run(args, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "ok"
    args.remove(b"--json")
    shown = subprocess.run(args, capture_output=True, check=False, timeout=60)
    assert shown.returncode == 0, shown.stderr
    assert b"\x1b" not in shown.stdout, "nothing from a name reaches the terminal as a command"
    assert len(stored(home)) == 2


@pytest.mark.slow
def test_a_hundred_megabytes_of_output(home: Path) -> None:
    path = script(
        home,
        "for _ in range(50): step()\n"
        "for _ in range(1000): sys.stderr.write('x' * 99999 + '\\n')\n"
        "for _ in range(50): step()",
    )
    done = underdog("--json", *python(path))
    assert json.loads(done.stdout)["measurement"]["steps"] == 100
    assert len(done.stderr) == 100_000_000


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to mount a small file system")
@pytest.mark.slow
def test_a_full_disk_for_the_records(home: Path) -> None:
    small = home / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(small)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a small file system")
    try:
        path = script(home, "for _ in range(3000): step(0.0005)")
        done = underdog("--json", *python(path), env={**os.environ, "TMPDIR": str(small)})
        trial = json.loads(done.stdout)
        assert 0 < trial["measurement"]["steps"] < 3000
        assert trial["status"] == "ok"
        full = small / "filler"
        with contextlib.suppress(OSError), full.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(4096))
        # nothing fits any more: another folder for temporary files is taken, as Python does
        other = underdog("--json", *python(path), env={**os.environ, "TMPDIR": str(small)})
        assert json.loads(other.stdout)["measurement"]["steps"] == 3000
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


@pytest.mark.slow
def test_a_full_disk_for_the_store_keeps_the_answer(home: Path) -> None:
    """The limit on the size of files stands for a disk that fills up during the run."""
    underdog("--for", "1s", *python(script(home, "for _ in range(50): step()", "first.py")))
    size = (home / "store.sqlite3").stat().st_size
    path = script(home, "print('ready', flush=True)\nfor _ in range(1500): step()")
    process = start("--json", *python(path))
    assert process.stderr
    process.stderr.readline()
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size // 2, size // 2))
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    trial = json.loads(out)
    assert trial["measurement"]["steps"] == 1500
    assert "not_stored" in [c["code"] for c in trial["caveats"]]
    assert stored(home)[0].status == "ok"


@pytest.mark.slow
def test_two_at_once(home: Path) -> None:
    path = script(home, "for _ in range(400): step()")
    both = [start("--json", *python(path)) for _ in range(2)]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in both]
    assert [a["status"] for a in answers] == ["ok", "ok"]
    assert {t.id for t in stored(home)} == {a["id"] for a in answers}


def test_colour_only_where_it_is_wanted(home: Path) -> None:
    path = script(home, "for _ in range(100): step()")
    assert "\x1b" not in underdog(*python(path)).stdout
    if shutil.which("script"):
        line = " ".join(f"'{word}'" for word in command_line(*python(path)))
        env = {**os.environ, "NO_COLOR": "1", "TERM": "xterm"}
        shown = subprocess.run(
            ["script", "-qec", line, "/dev/null"], capture_output=True, env=env, check=False
        )
        assert b"samples/s" in shown.stdout
        assert b"\x1b[3" not in shown.stdout
