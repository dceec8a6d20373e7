"""Where the store lives: the flag, then the variable, then the user's data folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from underdog.config import store_url
from underdog.errors import UsageError


def test_order_of_precedence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("UNDERDOG_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert store_url() == f"sqlite:///{tmp_path}/underdog/store.sqlite3"
    monkeypatch.setenv("UNDERDOG_STORE", "postgresql://host/trials")
    assert store_url() == "postgresql://host/trials"
    assert store_url("/a/b.sqlite3") == "sqlite:////a/b.sqlite3"


def test_a_nul_is_refused() -> None:
    with pytest.raises(UsageError, match="NUL"):
        store_url("a\0b")
