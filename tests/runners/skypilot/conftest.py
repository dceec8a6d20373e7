"""What the tests of this folder share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "slurm"))
sys.path.insert(0, str(Path(__file__).parents[1] / "ssh"))
sys.path.insert(0, str(Path(__file__).parent))

from folder_cloud import FolderCloud


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderCloud]:
    """A cloud of folders in SkyPilot's place."""
    from underdog.runners import skypilot

    folder = tmp_path / "cloud"
    folder.mkdir()
    made = FolderCloud(folder)
    monkeypatch.setattr(skypilot, "Client", lambda: made)
    monkeypatch.setattr(skypilot, "PAUSE", 0.0)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    yield made
    made.close()
