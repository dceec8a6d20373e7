"""The weight of the base installation: under 300 MB and 25 packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_base_installation_is_light(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    python = venv / "bin" / "python"
    pip = [python, "-m", "pip"]
    before = size_mb(venv)
    subprocess.run([*pip, "install", "--quiet", str(ROOT)], check=True, timeout=600)
    listed = subprocess.run(
        [*pip, "list", "--format", "json"], capture_output=True, text=True, check=True
    )
    packages = {p["name"] for p in json.loads(listed.stdout)} - {"pip", "setuptools"}
    assert len(packages) < 25, sorted(packages)
    weight = size_mb(venv) - before
    assert weight < 300, f"{weight:.0f} MB"
    # what was installed works without the checkout: the data files travelled with it
    offers = subprocess.run(
        [venv / "bin" / "underdog", "offers", "--limit", "1", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len(json.loads(offers.stdout)) == 1
    # so did the templates, styles and scripts of the pages
    installed = next(venv.glob("lib/python*/site-packages/underdog"))
    assert files(ROOT / "src" / "underdog") <= files(installed)
    assert Path("report/html/templates/report.html") in files(installed)


def files(folder: Path) -> set[Path]:
    """What is not a module, by its path in the folder."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path for path in found if path.suffix not in (".py", ".pyc")}


def size_mb(folder: Path) -> float:
    return sum(p.lstat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6
