"""The way in: invisible, whatever the user's own start-up is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from observed import read

from underdog.measuring import injection


def old_pythons() -> list[str]:
    """Those of this machine, by name or beside each other in a version manager's folder."""
    versions = ("2.7", "3.6", "3.8", "3.9")
    named = [shutil.which(f"python{v}") or "" for v in versions]
    kept = [str(p) for v in versions for p in Path.home().glob(f".pyenv/versions/{v}*/bin/python")]
    return [p for p in named + kept if p and works(p)]


def works(python: str) -> bool:
    return subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode == 0


OLD_PYTHONS = old_pythons()
NEW_ENOUGH = [p for p in OLD_PYTHONS if "2.7" not in p and "3.6" not in p]


def run(
    records: Path,
    code: str,
    *flags: str,
    path: str | None = None,
    python: str = sys.executable,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    records.mkdir(exist_ok=True)
    base = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "UNDERDOG"))}
    if path is not None:
        base["PYTHONPATH"] = path
    return subprocess.run(
        [python, *flags, "-c", textwrap.dedent(code)],
        env=injection.environment(records, base=base),
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )


def test_only_a_sitecustomize_joins_the_path() -> None:
    child = injection.environment("/tmp", base={"PYTHONPATH": f"/a{os.pathsep}/b"})
    first, *rest = child["PYTHONPATH"].split(os.pathsep)
    assert [p.name for p in Path(first).glob("*.py")] == ["sitecustomize.py"]
    assert rest == ["/a", "/b"]
    again = injection.environment("/tmp", base=child)
    assert again["PYTHONPATH"] == child["PYTHONPATH"]


def test_the_script_sees_the_path_it_would_have(tmp_path: Path) -> None:
    code = "import sys, json; print(json.dumps(sys.path))"
    done = run(tmp_path / "r", code, path="/a")
    plain = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": "/a"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == json.loads(plain.stdout)
    assert done.stderr == ""


def test_it_loads_next_to_nothing(tmp_path: Path) -> None:
    code = "import sys; print(*sys.modules)"
    base = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    plain = subprocess.run(
        [sys.executable, "-c", code], env=base, capture_output=True, text=True, check=True
    )
    added = set(run(tmp_path / "r", code).stdout.split()) - set(plain.stdout.split())
    ours = {name for name in added if name.startswith("underdog_probe")}
    assert ours == {"underdog_probe", "underdog_probe.startup", "underdog_probe.importing"}
    assert not {"json", "threading", "typing", "platform", "atexit"} & added
    assert list((tmp_path / "r").iterdir()) == []


def test_the_users_sitecustomize_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.mine = __file__")
    done = run(
        tmp_path / "r",
        "import sys, sitecustomize; print(sys.mine == sitecustomize.__file__, end='')",
        path=str(tmp_path),
    )
    assert (done.stdout, done.stderr) == ("True", "")


def test_an_error_in_the_users_sitecustomize_reads_as_ever(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise RuntimeError('mine')")
    done = run(tmp_path / "r", "print('on')", path=str(tmp_path))
    assert done.stdout == "on\n"
    assert "RuntimeError: mine" in done.stderr
    assert "underdog" not in done.stderr
    (tmp_path / "sitecustomize.py").write_text("import not_there")
    assert "not_there" in run(tmp_path / "r", "print('on')", path=str(tmp_path)).stderr


@pytest.mark.parametrize("flag", ["-S", "-I", "-E"])
def test_flags_that_keep_it_out_do_no_harm(flag: str, tmp_path: Path) -> None:
    done = run(tmp_path / "r", "print('on')", flag)
    assert (done.stdout, done.stderr) == ("on\n", "")


@pytest.mark.parametrize("python", OLD_PYTHONS)
def test_old_pythons_start(python: str, tmp_path: Path) -> None:
    done = run(
        tmp_path / "r",
        "import sys; print('underdog_probe' in sys.modules)",
        "-B",  # the oldest would write beside the file
        python=python,
    )
    assert done.stderr == ""
    assert done.stdout.strip() == str(python in NEW_ENOUGH)


@pytest.mark.parametrize("python", NEW_ENOUGH)
def test_old_pythons_can_be_tracked(python: str, tmp_path: Path) -> None:
    done = run(tmp_path / "r", TRACKED, python=python)
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = (tmp_path / "r").glob("*.jsonl")
    assert [s[2] for s in read(file).steps] == [3, 3, 1]


TRACKED = """
    import underdog
    seen = list(underdog.track([[1, 2, 3], [4, 5, 6], [7]]))
    assert seen == [[1, 2, 3], [4, 5, 6], [7]]
"""


def test_track_without_a_framework_and_without_underdog(tmp_path: Path) -> None:
    """Each batch is a step; the environment of the script has no underdog."""
    done = run(tmp_path / "r", TRACKED, python=bare_python(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    (file,) = (tmp_path / "r").glob("*.jsonl")
    process = read(file)
    assert [s[2] for s in process.steps] == [3, 3, 1]
    assert process.of("end")


def test_an_underdog_of_the_users_own_goes_first(tmp_path: Path) -> None:
    (tmp_path / "underdog.py").write_text("track = 'mine'")
    done = run(tmp_path / "r", "import underdog; print(underdog.track)", path=str(tmp_path))
    assert done.stdout == "mine\n"


def bare_python(folder: Path) -> str:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True
    )
    return str(folder / "venv" / "bin" / "python")


def test_a_hook_that_fails_is_told_and_goes_no_further(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("value = 3")  # a torch that is none
    done = run(tmp_path / "r", "import torch; print(torch.value)", path=str(tmp_path))
    assert done.stdout == "3\n"
    assert "cannot observe 'torch'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_framework_that_is_not_there_stays_so(tmp_path: Path) -> None:
    done = run(
        tmp_path / "r",
        """
        for _ in range(2):
            try:
                import torch
            except ModuleNotFoundError as error:
                print(error)
        """,
        python=bare_python(tmp_path),
    )
    assert done.stdout == "No module named 'torch'\n" * 2


def test_a_module_keeps_its_loader(tmp_path: Path) -> None:
    (tmp_path / "keras.py").write_text("import inspect, sys\n")
    done = run(
        tmp_path / "r",
        """
        import keras, inspect
        print(type(keras.__loader__).__name__, 'exec_module' in vars(keras.__loader__))
        print(inspect.getsource(keras), end='')
        """,
        path=str(tmp_path),
    )
    assert done.stdout == "SourceFileLoader False\nimport inspect, sys\n"
