"""Which files of a folder go along, and the archive that they travel in."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from underdog.errors import RunnerError, UsageError
from underdog.runners._carried import carried_files, send
from underdog.units import GIB


def git(folder: Path, *words: str) -> None:
    own = ["-c", "user.name=me", "-c", "user.email=me@example.org"]
    subprocess.run(["git", *own, "-C", str(folder), *words], check=True, capture_output=True)


def names(folder: Path) -> list[str]:
    return [path.as_posix() for path in carried_files(folder)]


def test_outside_of_git_all_files_and_links_go(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "it's").write_text("x")
    (tmp_path / "to-folder").symlink_to("a")
    (tmp_path / "dangling").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    assert names(tmp_path) == ["a/b/it's", "dangling", "to-folder"]


def test_in_a_checkout_what_git_ignores_stays_also_of_repositories_within(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "lib"):
        folder.mkdir(exist_ok=True)
        git(folder, "init")
        (folder / ".gitignore").write_text("*.bin\n")
        (folder / "x.bin").write_text("")
        (folder / "x.py").write_text("")
        git(folder, "add", ".gitignore")
    (tmp_path / "removed").write_text("")
    git(tmp_path, "add", "removed")
    (tmp_path / "removed").unlink()
    assert names(tmp_path) == [".gitignore", "lib/.gitignore", "lib/x.py", "x.py"]


def test_a_folder_that_git_ignores_as_a_whole_goes_whole(tmp_path: Path) -> None:
    git(tmp_path, "init")
    (tmp_path / ".gitignore").write_text("build\n")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "x").write_text("")
    assert names(tmp_path / "build") == ["x"]


def test_too_much_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with (tmp_path / "data").open("wb") as file:
        file.truncate(int(2.1 * GIB))
    with pytest.raises(UsageError, match=r"2\.1 GiB, and at most 2 GiB") as caught:
        carried_files(tmp_path)
    assert "--no-folder" in (caught.value.hint or "")


def test_the_last_of_an_archive_comes_last_and_names_no_owner(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("content")
    (tmp_path / "x").chmod(0o755)
    out = io.BytesIO()
    send(out, tmp_path, "files", carried_files(tmp_path), {"early": b"1", "job.sh": b"22"})
    out.seek(0)
    with tarfile.open(fileobj=out) as archive:
        found = archive.getmembers()
    assert [member.name for member in found] == ["files/x", "early", "job.sh"]
    assert [member.size for member in found] == [7, 1, 2]
    assert found[0].mode & 0o777 == 0o755
    assert {(member.uid, member.uname) for member in found} == {(0, "")}


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="missing"):
        send(io.BytesIO(), tmp_path, "files", [Path("missing")], {})
