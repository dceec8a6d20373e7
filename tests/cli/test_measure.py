"""``underdog measure`` as people and programs use it, whatever the script and the system do."""

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
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from underdog.cli.group import run
from underdog.store import open_store

# A script that writes records as the probe does, with steps of 2 ms and 8 samples.
TRAIN = """
import json, os, sys, time
folder = os.environ["UNDERDOG_RECORDS"]
records = open(f"{folder}/{os.getpid()}-1.jsonl", "a", buffering=1)
def record(**fields): records.write(json.dumps(fields) + "\\n")
record(kind="process", pid=os.getpid(), rank=None, world_size=None, framework="torch",
       framework_version="2.0", python="3.11")
last = time.perf_counter()
def step(seconds=0.002, samples=8):
    global last
    time.sleep(seconds)
    now = time.perf_counter()
    try:
        records.write(json.dumps([last, now, samples, 0, 0, .0005, .0005, .0005, 0, 0]) + "\\n")
    except OSError:
        pass
    last = now
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNDERDOG_STORE", str(tmp_path / "store.sqlite3"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path


def script(home: Path, code: str, name: str = "train.py") -> str:
    path = home / name
    path.write_text(TRAIN + textwrap.dedent(code))
    return str(path)


def command_line(*args: str) -> list[str]:
    return [sys.executable, "-m", "underdog", "measure", *args]


def underdog(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"stdin": subprocess.DEVNULL, "timeout": 90, **options}
    return subprocess.run(
        command_line(*args), capture_output=True, text=True, check=False, **options
    )


def python(path: str, *args: str) -> list[str]:
    return ["--", sys.executable, path, *args]


def stored(home: Path) -> list[Any]:
    with open_store(str(home / "store.sqlite3")) as store:
        return store.trials()


def wait_for(condition: Callable[[], object], limit: float = 20) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)


def tree(process: subprocess.Popen[Any]) -> list[psutil.Process]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(process.pid).children(recursive=True)
    return []


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    found = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def test_a_script_that_ends_by_itself(home: Path) -> None:
    path = script(home, "for _ in range(300): step()\nprint('done')")
    done = underdog("--json", "--price", "3.6", *python(path))
    assert done.returncode == 0, done.stderr
    assert "done" in done.stderr
    trial = json.loads(done.stdout)
    assert trial["status"] == "ok"
    assert trial["exit_code"] == 0
    assert trial["workload"] == f"{home.name}/train"
    assert trial["price"]["per_hour"] == 3.6
    m = trial["measurement"]
    assert (m["steps"], m["samples"], m["batch_size"], m["ranks"]) == (300, 2400, 8, 1)
    rate = m["samples_per_second"]
    assert rate["low"] < rate["value"] < rate["high"]
    assert rate["value"] < 4000
    assert sum(trial["phases"].values()) == pytest.approx(1)
    assert trial["peak_memory_gib"]["host"] > 0
    assert trial["software"]["framework"] == "torch"
    (kept,) = stored(home)
    assert kept.id == trial["id"]
    assert kept.status == "ok"
    assert kept.measurement.samples_per_second.value == rate["value"]
    assert list((home / "tmp").iterdir()) == [], "the records are gone"


@pytest.mark.slow
def test_it_ends_by_itself_when_the_interval_is_narrow(home: Path) -> None:
    path = script(home, "while True: step()")
    began = time.monotonic()
    done = underdog("--for", "60s", "--precision", "20%", "--json", *python(path))
    assert done.returncode == 0, done.stderr
    assert 5 < time.monotonic() - began < 40
    trial = json.loads(done.stdout)
    assert trial["status"] == "ok"
    assert trial["exit_code"] is None, "it was us who ended it"


def test_it_ends_at_the_given_time(home: Path) -> None:
    path = script(home, "while True: step()")
    began = time.monotonic()
    done = underdog("--for", "2s", *python(path))
    assert done.returncode == 0, done.stderr
    assert time.monotonic() - began < 10
    assert "samples/s" in done.stdout
    assert f"underdog choose --workload {home.name}/train" in done.stdout


@pytest.mark.slow
def test_whole_runs_to_the_end(home: Path) -> None:
    path = script(home, "for _ in range(4000): step()")
    done = underdog("--whole", "--json", *python(path))
    assert json.loads(done.stdout)["measurement"]["steps"] == 4000


def test_output_and_arguments_pass_through_unchanged(home: Path) -> None:
    path = home / "echo.py"
    path.write_text(
        "import sys, os\n"
        "print(sys.argv[1:], os.getcwd(), sys.stdin.read())\nprint('err', file=sys.stderr)"
    )
    args = ["--json", "--", "{batch}", "a b", "[bold]x[/]", "ünï\ncode", "--help", ""]
    done = underdog(*python(str(path), *args), stdin=None, input="typed")
    assert done.stdout.startswith(f"{args} {home} typed\n")
    assert done.stderr == "err\n"
    assert done.returncode == 1


@pytest.mark.slow
def test_knobs(home: Path) -> None:
    path = script(
        home,
        """
        batch = int(sys.argv[1])
        if batch == 64: raise MemoryError("out of memory: batch 64")
        for _ in range(200): step(0.002, batch)
        """,
    )
    done = underdog("--json", "--knob", "batch=8,64,16", *python(path, "{batch}"))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["knobs"] == {"batch": "16"}
    assert [t["knobs"]["batch"] for t in answer["trials"]] == ["8", "64", "16"]
    assert [t["status"] for t in answer["trials"]] == ["ok", "out_of_memory", "ok"]
    assert len(stored(home)) == 3
    shown = underdog("--knob", "batch=8,64", *python(path, "{batch}"))
    assert "best" in shown.stdout
    assert "out of memory" in shown.stdout


@pytest.mark.parametrize(
    ("code", "status", "exit_code", "words"),
    [
        ("step(); sys.exit(3)", "failed", 3, "exit code 3"),
        ("step(); raise ValueError('bad [red]thing[/]')", "failed", 1, "bad [red]thing[/]"),
        ("step(); os.kill(os.getpid(), 11)", "failed", -11, "SIGSEGV"),
        ("step(); os.abort()", "failed", -6, "SIGABRT"),
        ("step(); raise MemoryError()", "out_of_memory", 1, "MemoryError"),
        ("raise RuntimeError('CUDA out of memory. Tried')", "out_of_memory", 1, "CUDA out of"),
        (
            "record(kind='error', type='X', message='m', out_of_memory=True); sys.exit(1)",
            "out_of_memory",
            1,
            "X: m",
        ),
        ("os.kill(os.getpid(), 9)", "failed", -9, "SIGKILL"),
        ("print('hello')", "no_steps", 0, "--samples-per-step"),
        ("step()", "no_steps", 0, ""),
    ],
)
def test_every_end_has_its_status_and_reason(
    home: Path, code: str, status: str, exit_code: int, words: str
) -> None:
    done = underdog("--json", *python(script(home, code)))
    trial = json.loads(done.stdout)
    assert (trial["status"], trial["exit_code"]) == (status, exit_code), trial["reason"]
    assert words in trial["reason"]
    assert done.returncode == 1
    (kept,) = stored(home)
    assert kept.status == status


def test_steps_without_known_samples_are_told(home: Path) -> None:
    done = underdog("--json", *python(script(home, "for _ in range(100): step(samples=-1)")))
    trial = json.loads(done.stdout)
    assert done.returncode == 1
    assert trial["measurement"]["samples_per_second"] is None
    assert trial["measurement"]["step_seconds"]["value"] > 0
    assert "--samples-per-step" in trial["reason"]
    assert "--pattern" in trial["reason"]
    assert "underdog.track" in trial["reason"]


@pytest.mark.slow
def test_a_script_that_hangs(home: Path) -> None:
    path = script(home, "for _ in range(50): step()\ntime.sleep(1000)")
    began = time.monotonic()
    done = underdog("--json", "--timeout", "3s", *python(path))
    trial = json.loads(done.stdout)
    assert trial["status"] == "hung"
    assert trial["measurement"]["steps"] == 50
    assert time.monotonic() - began < 20


@pytest.mark.slow
def test_work_without_steps_is_no_hang(home: Path) -> None:
    path = script(
        home, "t = time.time()\nwhile time.time() - t < 4: pass\nfor _ in range(50): step()"
    )
    done = underdog("--json", "--timeout", "2s", *python(path))
    assert json.loads(done.stdout)["status"] == "ok"


@pytest.mark.slow
def test_a_pattern(home: Path) -> None:
    path = home / "own.py"
    path.write_text(
        "import time\nfor i in range(60):\n    time.sleep(0.02)\n    print(f'{i}: 100.0 img/s')"
    )
    done = underdog("--json", "--pattern", r"(?P<rate>[\d.]+) img/s", *python(str(path)))
    trial = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert trial["measurement"]["samples_per_second"]["value"] == pytest.approx(100, rel=0.02)
    assert "59: 100.0 img/s" in done.stderr
    missed = underdog("--json", "--pattern", r"(?P<rate>\d+) tok/s", *python(str(path)))
    assert json.loads(missed.stdout)["status"] == "no_steps"
    assert "matched no line" in json.loads(missed.stdout)["reason"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--"], "no command"),
        (["--", "nosuchprogram"], "'nosuchprogram'"),
        (["--", "/"], "folder"),
        (["--price", "-1", "--", "true"], "-1"),
        (["--price", "nan", "--", "true"], "nan"),
        (["--price", "0", "--", "true"], "'0'"),
        (["--for", "soon", "--", "true"], "'soon'"),
        (["--for", "0s", "--", "true"], "'0s'"),
        (["--precision", "5", "--", "true"], "'5'"),
        (["--precision", "-1%", "--", "true"], "-1%"),
        (["--samples-per-step", "0", "--", "true"], "'0'"),
        (["--pattern", "(", "--", "true"], "regular expression"),
        (["--knob", "batch", "--", "true"], "'batch'"),
        (["--knob", "batch=1,2", "--", "true"], "'batch'"),
        (["--knob", "batch=1,2", "--", "echo", "{bathc}"], "Did you mean 'batch'"),
        (["--whole", "--for", "3s", "--", "true"], "--whole"),
        (["--workload", " ", "--", "true"], "--workload"),
        (["--nosuch", "--", "true"], "--nosuch"),
        (["--store", "/dev/null/x.sqlite3", "--", "true"], "/dev/null/x.sqlite3"),
    ],
)
def test_bad_input_is_one_message_and_changes_nothing(
    home: Path, args: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["measure", *args]) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.out == ""
    assert not (home / "store.sqlite3").exists()


def test_dry_run_runs_nothing(home: Path) -> None:
    path = script(home, "open('ran', 'w')")
    done = underdog("--dry-run", "--json", "--knob", "b=1,2", *python(path, "{b}"))
    assert done.returncode == 0
    plans = json.loads(done.stdout)
    assert [p["command"][2] for p in plans] == ["1", "2"]
    assert "UNDERDOG_RECORDS" in plans[0]["environment"]
    assert not (home / "ran").exists()
    assert not (home / "store.sqlite3").exists()


def start(*args: str, **options: Any) -> subprocess.Popen[str]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    return subprocess.Popen(command_line(*args), text=True, **{**pipes, **options})


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
