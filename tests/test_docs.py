"""The docs are true: every command, flag and link that they name exists, and the reverse."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def reference() -> ModuleType:
    path = ROOT / "tools" / "write_reference.py"
    spec = importlib.util.spec_from_file_location("write_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def console_lines(page: Path) -> list[str]:
    """The commands after ``$`` in the page's console blocks, continued lines joined."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.S)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [line[2:].strip() for line in joined.splitlines() if line.startswith("$ ")]


def test_the_page_of_commands_is_what_the_commands_say() -> None:
    module = reference()
    assert module.PAGE.read_text() == module.page(), "run: python tools/write_reference.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_flags_in_the_docs_exist(page: Path) -> None:
    options = {
        name: {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
        for name, command in reference().commands()
    }
    for line in console_lines(page):
        words = shlex.split(line.split(" | ")[0], comments=True)
        if words[:1] != ["underdog"]:
            continue
        own = words[1 : words.index("--")] if "--" in words else words[1:]
        names = [w for w in own if not w.startswith("-")]
        name = " ".join(names[:2]) if " ".join(names[:2]) in options else (names or [""])[0]
        flags = {w.split("=")[0] for w in own if w.startswith("--")}
        unknown = flags - options.get(name, set()) - {"--help", "--version", "--debug"}
        assert not unknown, f"{line}: {unknown}"
        assert name in options or flags & {"--help", "--version"}, line


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_error_is_in_the_page_of_errors() -> None:
    from underdog import errors

    text = (ROOT / "docs" / "reference" / "errors.md").read_text()
    named = set(re.findall(r"`(\w+Error)`", text))
    real = {n for n, v in vars(errors).items() if isinstance(v, type) and issubclass(v, Exception)}
    assert named == real


def shortened(line: str) -> str:
    """The same command, measuring for less time than a reader would."""
    short = re.sub(r"--for \S+", "--for 12s", line)
    return (
        short
        if "--for" in short
        else short.replace("underdog measure", "underdog measure --for 12s")
    )


@pytest.mark.slow
@pytest.mark.frameworks
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["README.md", "docs/tutorial.md"])
def test_commands_of_the_page_run(name: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {**os.environ, "PATH": path, "UNDERDOG_STORE": str(tmp_path / "store.sqlite3")}
    ran = 0
    for line in console_lines(ROOT / name):
        if not line.startswith("underdog"):
            continue
        done = subprocess.run(
            ["bash", "-c", shortened(line)],
            cwd=ROOT,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=280,
        )
        assert done.returncode == 0, f"$ {line}\n{done.stdout}\n{done.stderr}"
        ran += 1
    assert ran >= 3


def test_every_public_name_is_in_the_page_of_python() -> None:
    import underdog

    text = (ROOT / "docs" / "reference" / "python.md").read_text()
    named = set(re.findall(r"^\| `underdog\.(\w+)\(", text, flags=re.M))
    assert named == set(underdog.__all__) - {"__version__"}
