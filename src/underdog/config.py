"""Where things live, and the UNDERDOG_* variables. Nothing is read before it is asked for."""

from __future__ import annotations

import os
from pathlib import Path

from underdog.errors import UsageError


def data_folder() -> Path:
    """The user's data folder for underdog (not created here); $XDG_DATA_HOME is honoured."""
    base = os.environ.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "underdog"


def cache_folder() -> Path:
    """The user's folder for what can be made again (not created here); $XDG_CACHE_HOME counts."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "underdog"


def store_url(given: str | None = None) -> str:
    """The store's URL: what was given, else $UNDERDOG_STORE, else SQLite in the data folder.

    A plain path is taken as a SQLite file.

    Raises:
        UsageError: it holds a NUL character, which no path and no URL may.
    """
    url = given or os.environ.get("UNDERDOG_STORE") or str(data_folder() / "store.sqlite3")
    if "\0" in url:
        raise UsageError("The store's URL holds a NUL character.")
    if "://" in url:
        return url
    return f"sqlite:///{Path(url).expanduser().resolve()}"
