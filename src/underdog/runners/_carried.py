"""The files of a folder that go along to another machine, and the archive that they travel in."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from underdog.errors import RunnerError, UsageError
from underdog.units import GIB

AT_MOST_GIB = 2.0
_HINT = (
    "Put the data where the machine finds it, name a folder there that has the files already with "
    "'folder' in the offer's table, or carry none: --no-folder."
)


def carried_files(folder: Path, at_most_gib: float = AT_MOST_GIB) -> list[Path]:
    """The files and links of a folder, relative to it: in a Git checkout those not ignored.

    Raises:
        UsageError: they are larger than ``at_most_gib``.
        RunnerError: the folder cannot be read.
    """
    listed = _not_ignored(folder)
    found, size = [], 0
    for path in sorted(_all(folder) if listed is None else listed):
        try:
            size += (folder / path).lstat().st_size
        except (FileNotFoundError, NotADirectoryError):
            continue  # deleted, but still in Git's index
        found.append(path)
    if size > at_most_gib * GIB:
        raise UsageError(
            f"The folder '{folder}' holds {size / GIB:.3g} GiB, and at most {at_most_gib:g} GiB "
            "are carried to another machine.",
            _HINT,
        )
    return found


def _not_ignored(folder: Path) -> list[Path] | None:
    """What Git tracks or does not ignore, in repositories within too; None where it knows none."""
    try:
        done = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    found: list[Path] = []
    for name in {Path(os.fsdecode(name)) for name in done.stdout.split(b"\0") if name}:
        path = folder / name
        if path.is_dir() and not path.is_symlink():  # a repository of its own
            found += [name / inner for inner in _not_ignored(path) or _all(path)]
        else:
            found.append(name)
    return found or None


def _all(folder: Path) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        raise RunnerError(f"The folder '{folder}' cannot be carried: {error}.") from error

    for at, folders, files in os.walk(folder, onerror=unreadable):
        here = Path(at)
        links = [name for name in folders if (here / name).is_symlink()]
        for name in (*files, *links):
            if (here / name).is_symlink() or (here / name).is_file():
                yield (here / name).relative_to(folder)


def send(
    out: IO[bytes], folder: Path | None, into: str, files: list[Path], last: Mapping[str, bytes]
) -> None:
    """Write a tar archive: the files below ``into``, then ``last`` by name in its order.

    Who unpacks knows by the last of them that all is there.

    Raises:
        BrokenPipeError: nobody reads it.
        RunnerError: a file cannot be read.
    """
    with tarfile.open(fileobj=out, mode="w|", bufsize=1 << 18) as archive:
        for path in files:
            assert folder is not None
            try:
                archive.add(
                    folder / path, f"{into}/{path.as_posix()}", recursive=False, filter=_nobodys
                )
            except BrokenPipeError:
                raise
            except OSError as error:
                raise RunnerError(f"'{folder / path}' cannot be carried: {error}.") from error
        for name, content in last.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without the owner of here, who may be another one there."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
