"""The archive: every snapshot of the user's, by day and hash, in the user's data folder.

A snapshot is a file of offers and a manifest. The manifest comes last, so that a snapshot of which
the writing was cut off is none; and both are renamed into place, so that a reader sees all or
nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from underdog import config
from underdog.catalog import snapshot
from underdog.catalog.snapshot import Snapshot
from underdog.errors import CatalogError

BUNDLED = "bundled"
LEAST_PREFIX = 4
_SHORT = 12  # letters of the hash in a file's name
_NAME = re.compile(r"(\d{8}T\d{12}Z)-([0-9a-f]{12})\.json")
_STAMP = "%Y%m%dT%H%M%S%fZ"
_HASH = re.compile(rf"[0-9a-f]{{{LEAST_PREFIX},64}}")
_BESIDE = ".new-"
# without handlers of the caller's, Python prints a warning on standard error
_LOG = logging.getLogger(__name__)


class _Name(NamedTuple):
    """A snapshot of the archive by its name alone."""

    made: str
    hash: str  # the first letters
    path: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One snapshot: of the archive, or the bundled one.

    ``made`` is when it was written, UTC, ISO 8601; of the bundled one, the day of its prices.
    ``problem`` says why it cannot be read, where that shows without reading the offers.
    """

    path: Path
    made: str
    hash: str
    rows: int = 0
    sources: tuple[dict[str, Any], ...] = ()
    problem: str | None = None
    bundled: bool = False

    @property
    def day(self) -> str:
        """The day that it was written, ISO 8601."""
        return self.made[:10]


def folder() -> Path:
    """Where the snapshots of the archive are; not created here."""
    return config.data_folder() / "catalog"


def entries() -> list[Entry]:
    """The bundled snapshot and those of the archive, the oldest first; broken ones too."""
    found = [bundled(), *(_entry(name) for name in _names())]
    return sorted(found, key=lambda entry: (entry.made, entry.hash))


def _names() -> list[_Name]:
    """The snapshots of the archive by their names, the oldest first; nothing of them is read."""
    try:
        files = list(folder().iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(_name(match) for file in files if (match := _NAME.fullmatch(file.name)))


def _name(match: re.Match[str]) -> _Name:
    made = datetime.strptime(match[1], _STAMP).isoformat(timespec="microseconds") + "Z"
    return _Name(made, match[2], folder() / f"{match[1]}-{match[2]}.parquet")


def bundled() -> Entry:
    """The snapshot that came with underdog."""
    path = snapshot.bundled_path()
    said = snapshot.manifest(path)
    return Entry(
        path=path,
        made=said["date"],
        hash=said["hash"],
        rows=said["rows"],
        sources=tuple(said["sources"]),
        bundled=True,
    )


def _entry(name: _Name) -> Entry:
    try:
        said = snapshot.manifest(name.path)
        if not name.path.is_file():
            raise CatalogError(f"The offers '{name.path}' are missing.")
    except CatalogError as error:
        return Entry(path=name.path, made=name.made, hash=name.hash, problem=error.message)
    return Entry(
        path=name.path,
        made=name.made,
        hash=said["hash"],
        rows=said["rows"],
        sources=tuple(said["sources"]),
    )


def load(as_of: str | None = None) -> Snapshot:
    """The newest snapshot, or that of a day or a hash. A broken one is logged and passed over.

    Args:
        as_of: a day (``2026-11-30``: the newest of that day or before), the first letters of a
            hash, or ``bundled``.

    Raises:
        CatalogError: there is none of that day or hash, or the one of that hash is broken.
    """
    if as_of is None:
        return _newest(_names(), bundled())
    wanted = as_of.strip().lower()
    if wanted == BUNDLED:
        return snapshot.load()
    day = _day(wanted)
    if day is not None:
        return _newest_of(day)
    if _HASH.fullmatch(wanted):
        return _of_hash(wanted)
    raise CatalogError(
        f"'{as_of}' is neither a day such as 2026-11-30 nor the first letters of a hash.",
        "The snapshots that there are: underdog catalog list",
    )


def _newest(names: Sequence[_Name], base: Entry | None) -> Snapshot:
    """The newest that can be read; the bundled one where none can, or where that is newer.

    Raises:
        CatalogError: none can be read, and the bundled one is none of them.
    """
    for name in reversed(names):
        if base is not None and name.made < base.made:
            break
        try:
            return snapshot.load(name.path)
        except CatalogError as error:
            _LOG.warning("A snapshot is passed over: %s", error.message)
    if base is None:
        raise CatalogError("None of the snapshots can be read.", "underdog catalog list")
    return snapshot.load()


def _newest_of(day: str) -> Snapshot:
    known, base = _names(), bundled()
    before = [name for name in known if name.made[:10] <= day]
    if not before and base.day > day:
        oldest = min([base.day, *(name.made[:10] for name in known)])
        raise CatalogError(
            f"There is no snapshot of '{day}' or before.",
            f"The oldest is of {oldest}: underdog catalog list",
        )
    return _newest(before, base if base.day <= day else None)


def _of_hash(prefix: str) -> Snapshot:
    short = prefix[:_SHORT]
    named = [name for name in _names() if name.hash.startswith(short)]
    found = {name.hash: name.path for name in named}
    base = bundled()
    if base.hash.startswith(prefix):
        return snapshot.load()
    if len(found) > 1:
        listed = ", ".join(sorted(found))
        raise CatalogError(f"The hash '{prefix}' stands for several snapshots: {listed}.")
    loaded = snapshot.load(next(iter(found.values()))) if found else None
    if loaded is None or not loaded.hash.startswith(prefix):
        raise CatalogError(
            f"There is no snapshot with the hash '{prefix}'.",
            "The snapshots that there are: underdog catalog list",
        )
    return loaded


def _day(text: str) -> str | None:
    try:
        return date.fromisoformat(text).isoformat() if "-" in text else None
    except ValueError:
        return None


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """Alone with the archive: what was newest inside is still newest when it is added to.

    Raises:
        CatalogError: the folder cannot be made or written.
    """
    with _told("be opened"):
        folder().mkdir(parents=True, exist_ok=True)
        handle = os.open(folder() / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for left in folder().glob(f"{_BESIDE}*"):  # of a refresh that was killed
            shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(handle)


def add(write: Callable[[Path], str], now: datetime) -> Entry:
    """Add a snapshot, whole or not at all; within ``locked``.

    Args:
        write: writes the offers to a path and the manifest beside it; returns the hash.
        now: the moment of the snapshot; it is later than all that are there in any case.

    Raises:
        CatalogError: the disk is full, or the folder cannot be written.
    """
    with _told("be added to"):
        folder().mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=_BESIDE, dir=folder()))
    try:
        with _told("be added to"):
            made = beside / "snapshot.parquet"
            digest = write(made)
            stamp = _after_all(now).strftime(_STAMP)
            target = folder() / f"{stamp}-{digest[:_SHORT]}.parquet"
            for file in (made, made.with_suffix(".json")):
                _flush(file)
            # the manifest last: without it the offers are not part of the archive
            os.replace(made, target)
            os.replace(made.with_suffix(".json"), target.with_suffix(".json"))
            _flush(folder())
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return next(entry for entry in entries() if entry.path == target)


def _after_all(now: datetime) -> datetime:
    """The moment, or just after the newest snapshot, which may have been begun later."""
    newest = max((name.made for name in _names()), default="")
    moment = now.astimezone(UTC)
    if newest and datetime.fromisoformat(newest) >= moment:
        return datetime.fromisoformat(newest) + timedelta(microseconds=1)
    return moment


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CatalogError(
            f"The archive of snapshots '{folder()}' cannot {what}: {error.strerror}.",
            "$XDG_DATA_HOME says where it is; the last good snapshot stands.",
        ) from error


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
