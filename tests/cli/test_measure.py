"""``underdog measure`` as people and programs use it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest
from measured_script import (
    python,
    script,
    stored,
    underdog,
)

from underdog.cli.group import run
from underdog.verbs.measure import measure


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
    assert time.monotonic() - began < 40  # of a loaded machine; without --for it would not end
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
    assert time.monotonic() - began < 80


@pytest.mark.slow
def test_work_without_steps_is_no_hang(home: Path) -> None:
    path = script(
        home, "t = time.time()\nwhile time.time() - t < 4: pass\nfor _ in range(50): step()"
    )
    done = underdog("--json", "--timeout", "2s", *python(path))
    assert json.loads(done.stdout)["status"] == "ok"


@pytest.mark.slow
def test_work_is_no_hang_where_a_look_at_the_machine_is_dear(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("underdog.measuring.sampler.COST_LIMIT", 1e-9)  # one look in 30 s
    path = script(
        home, "t = time.time()\nwhile time.time() - t < 4: pass\nfor _ in range(50): step()"
    )
    (trial,) = measure([sys.executable, path], timeout=2)
    assert trial.status == "ok"


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
