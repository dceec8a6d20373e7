"""Lets the tests of this folder import its helpers, and the offers and trials of the core's."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "core"))
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, with a store and a place for temporary files of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNDERDOG_STORE", str(tmp_path / "store.sqlite3"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path
