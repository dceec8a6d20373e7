"""Starting a script and ending it: whatever it does, nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from underdog.errors import UsageError
from underdog.measuring.launch import Script, check_command

PYTHON = sys.executable


@pytest.fixture
def launch() -> Iterator[Callable[..., Script]]:
    running: list[Script] = []

    def start(*command: str, **options: int) -> Script:
        running.append(Script(command, os.environ, **options))
        return running[-1]

    yield start
    for script in running:
        script.close()


def tree_of(script: Script) -> list[psutil.Process]:
    return psutil.Process(script.root).children(recursive=True)


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    def lives(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
        return False

    return [p for p in processes if lives(p)]


def wait_for(condition: Callable[[], object], limit: float = 10) -> None:
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.02)


def python(code: str) -> list[str]:
    return [PYTHON, "-S", "-c", textwrap.dedent(code)]


def finish(script: Script, limit: float = 20) -> int:
    wait_for(lambda: script.poll(0.05) is not None, limit)
    assert script.exit_code is not None
    return script.exit_code


@pytest.mark.parametrize("code", [0, 1, 3, 255])
def test_tells_the_exit_code(launch: Callable[..., Script], code: int) -> None:
    script = launch("sh", "-c", f"exit {code}")
    assert finish(script) == code
    assert script.wait_gone(5)


def test_tells_the_signal(launch: Callable[..., Script]) -> None:
    assert finish(launch("sh", "-c", "kill -SEGV $$")) == -signal.SIGSEGV


def test_counts_the_processor_time_of_the_whole_tree(launch: Callable[..., Script]) -> None:
    burn = "import time; t = time.process_time()\nwhile time.process_time() - t < 0.3: pass"
    script = launch("sh", "-c", f'"{PYTHON}" -S -c "{burn}"; "{PYTHON}" -S -c "{burn}"')
    finish(script)
    assert script.wait_gone(5)
    assert script.cpu_seconds is not None
    assert 0.6 <= sum(script.cpu_seconds) < 2


def test_ends_daemons_that_forked_twice(launch: Callable[..., Script], tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    script = launch(
        *python(f"""
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for fd in range(3): os.close(fd)
                open({str(mark)!r}, "w").write(str(os.getpid()))
                time.sleep(600)
            os._exit(0)
        while not os.path.exists({str(mark)!r}) or not open({str(mark)!r}).read(): time.sleep(0.01)
        """)
    )
    seen = tree_of(script)
    finish(script)
    assert script.wait_gone(10)
    assert not psutil.pid_exists(int(mark.read_text()))
    assert alive(seen) == []


def test_kills_what_ignores_the_request_to_end(launch: Callable[..., Script]) -> None:
    script = launch(
        *python("""
        import signal, time, os
        for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)
        for _ in range(3):
            if os.fork() == 0: break
        while True: time.sleep(1)
        """)
    )
    wait_for(lambda: len(tree_of(script)) >= 4)
    time.sleep(0.2)
    processes = tree_of(script)
    script.interrupt()
    time.sleep(0.3)
    assert script.poll() is None
    script.stop(1.0)
    assert finish(script, 5) == -signal.SIGKILL
    assert script.wait_gone(5)
    assert alive(processes) == []
    assert script.survivors == []


def test_a_script_may_end_in_its_own_way_when_asked(
    launch: Callable[..., Script], tmp_path: Path
) -> None:
    ready = tmp_path / "ready"
    told = f"trap 'exit 7' TERM; : > '{ready}'; while :; do sleep 0.05; done"
    script = launch("sh", "-c", told)
    wait_for(ready.exists)
    script.stop(10)
    assert finish(script) == 7


def test_interrupt_reaches_the_group_as_from_a_terminal(launch: Callable[..., Script]) -> None:
    # sh alone would wait for its child; the child must get the signal too
    script = launch("sh", "-c", f'"{PYTHON}" -S -c "import time; time.sleep(60)"; exit 5')
    wait_for(lambda: len(tree_of(script)) >= 2)
    time.sleep(0.3)
    script.interrupt()
    assert finish(script, 5) != 0
    assert script.wait_gone(5)


def test_children_of_a_killed_script_are_ended(launch: Callable[..., Script]) -> None:
    script = launch(*python("import os, time; os.fork(); os.fork(); time.sleep(60)"))
    wait_for(lambda: len(tree_of(script)) == 4)
    processes = tree_of(script)
    os.kill(script.pid, signal.SIGKILL)
    assert finish(script) == -signal.SIGKILL
    assert script.wait_gone(8)
    assert alive(processes) == []


def test_children_of_a_killed_guard_are_ended(launch: Callable[..., Script]) -> None:
    script = launch(*python("import os, time; os.fork(); os.fork(); time.sleep(60)"))
    wait_for(lambda: len(tree_of(script)) == 4)
    processes = tree_of(script)
    os.kill(script.root, signal.SIGKILL)
    assert finish(script) == -signal.SIGKILL
    wait_for(lambda: alive(processes) == [], 5)


def test_the_tree_ends_when_its_starter_is_killed(tmp_path: Path) -> None:
    code = """
    import os, sys, time
    from underdog.measuring.launch import Script
    forks = "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    script = Script([sys.executable, "-S", "-c", forks + "os.fork(); os.setsid() if "
        "os.fork() == 0 else 0; time.sleep(600)"], os.environ)
    print(script.root, flush=True)
    time.sleep(600)
    """
    starter = subprocess.Popen(
        [PYTHON, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout
    guard = psutil.Process(int(starter.stdout.readline()))
    wait_for(lambda: len(guard.children(recursive=True)) == 4)
    time.sleep(0.3)
    processes = [guard, *guard.children(recursive=True)]
    starter.kill()
    starter.wait()
    starter.stdout.close()
    wait_for(lambda: alive(processes) == [], 6)


def test_the_environment_of_signals_is_that_of_a_shell(launch: Callable[..., Script]) -> None:
    command = ["grep", "-E", "SigIgn|SigBlk", "/proc/self/status"]
    read, write = os.pipe()
    script = launch(*command, stdout=write)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    assert finish(script) == 0
    # whatever started the suite may ignore signals of its own (nohup, the C library's 32): the
    # guard hands on what it was given, as a shell does
    assert text == subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len(text.splitlines()) == 2


def test_closed_standard_streams_are_no_trap(tmp_path: Path) -> None:
    code = f"""
    import os, sys, pathlib
    for fd in range(3): os.close(fd)
    from underdog.measuring.launch import Script
    script = Script(["sh", "-c", "cat; echo out; echo err >&2; exit 4"], os.environ)
    while script.poll(0.1) is None: pass
    pathlib.Path({str(tmp_path / "code")!r}).write_text(str(script.exit_code))
    """
    subprocess.run([PYTHON, "-c", textwrap.dedent(code)], check=True, timeout=20)
    assert (tmp_path / "code").read_text() == "4"


def test_starts_from_a_thread(launch: Callable[..., Script]) -> None:
    import threading

    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(finish(launch("sh", "-c", "exit 9"))))
    thread.start()
    thread.join(20)
    assert codes == [9]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], "no command"),
        ([""], "no command"),
        (["nosuchprogram"], "'nosuchprogram' was not found"),
        (["/nonexistent/x"], "'/nonexistent/x' was not found"),
        (["/tmp"], "is a folder"),
    ],
)
def test_a_command_that_cannot_start_is_told(command: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_command(command, os.environ)


def test_a_mistyped_script_is_no_workload(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    with pytest.raises(UsageError, match="was not found") as caught:
        check_command([PYTHON, str(tmp_path / "trian.py")], os.environ)
    assert caught.value.hint == f"Did you mean '{tmp_path / 'train.py'}'?"
    check_command([PYTHON, str(tmp_path / "train.py")], os.environ)
    check_command([PYTHON, "train_{size}.py"], os.environ)


def test_a_script_without_its_interpreter_gets_a_hint(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print(1)")
    with pytest.raises(UsageError) as caught:
        check_command([str(script), "--epochs", "1"], os.environ)
    assert caught.value.hint == f"underdog measure -- python {script} --epochs 1"


def test_a_program_without_a_first_line_is_told(tmp_path: Path) -> None:
    script = tmp_path / "run"
    script.write_text("echo 1")
    script.chmod(0o755)
    with pytest.raises(UsageError, match="Exec format error") as caught:
        Script([str(script)], os.environ)
    assert "bash" in str(caught.value)
