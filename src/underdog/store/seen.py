"""What the last watch of a store told, so that no notice says it twice."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from underdog import config
from underdog.errors import StoreError


class Seen:
    """By question, a mark of what was told of it; empty where nothing was."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.marks = _read(path)

    def keep(self, marks: Mapping[str, str]) -> None:
        """Remember these marks, and no others; whole or not at all.

        Raises:
            StoreError: the data folder cannot be written.
        """
        text = json.dumps(dict(marks), sort_keys=True)
        try:
            handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=f".{self._path.name}.")
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(name, self._path)
            except OSError:
                os.unlink(name)
                raise
        except OSError as error:
            raise _unwritable(self._path, error) from error
        self.marks = dict(marks)


@contextlib.contextmanager
def seen(store: str | None) -> Iterator[Seen]:
    """What was told of that store, alone with it: two watches do not tell the same at once.

    Args:
        store: its URL or path as the user gave it.

    Raises:
        StoreError: the data folder cannot be written.
    """
    where = hashlib.sha256(config.store_url(store).encode(errors="surrogatepass")).hexdigest()[:16]
    path = config.data_folder() / "watch" / f"{where}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise _unwritable(path, error) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield Seen(path)
    finally:
        os.close(handle)


def _read(path: Path) -> dict[str, str]:
    """The marks of a file; none where there is no file or it is damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"'{path}' cannot be written: {error.strerror}.",
        "$XDG_DATA_HOME says where it is.",
    )
