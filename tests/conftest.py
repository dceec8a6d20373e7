"""What all tests start from."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["browser"]

# how long an example takes says more of what else the machine does than of what is tested
slow = [HealthCheck.too_slow]
settings.register_profile("underdog", deadline=None, suppress_health_check=slow)
# the same examples in every run, so that a check fails only for what was changed
settings.register_profile("repeatable", settings.get_profile("underdog"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "underdog"))

# A suite that is started in the background may have inherited "ignore Ctrl-C", and so would all
# that it starts; the tests that send one expect a terminal's behaviour.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A suite that runs in several processes is given a width that nobody asked for.
os.environ.pop("COLUMNS", None)

# the store, the snapshots and the prices of who runs the tests are not for the tests
_data = tempfile.mkdtemp(prefix="underdog-tests-")
atexit.register(shutil.rmtree, _data, ignore_errors=True)
os.environ["XDG_DATA_HOME"] = _data


# What starts a server of its own, an engine or a browser: the tests of a group share one, so they
# stay in one process where the suite runs in several.
SHARING = {
    "tests/catalog/test_aws_fetch.py": "aws",
    "tests/report/html": "browser",
    "tests/runners/ray_jobs": "ray",
    "tests/runners/skypilot": "skypilot",
    "tests/runners/slurm": "slurm",
    "tests/runners/ssh": "ssh",
    "tests/store": "store",
    "tests/web": "browser",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        path = item.path.relative_to(config.rootpath).as_posix()
        for folder, group in SHARING.items():
            if path.startswith(folder):
                item.add_marker(pytest.mark.xdist_group(group))


@pytest.fixture(scope="session")
def _part_of_the_catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from underdog.catalog import snapshot
    from underdog.core.columns import BY_NAME
    from underdog.core.expression import parse

    path = tmp_path_factory.mktemp("bundled") / snapshot.FILE_NAME
    whole = snapshot.load()
    rows = [
        row
        for provider in ("aws", "azure", "gcp")
        for kind in ("accelerator_count > 0", "accelerator_count = 0")
        for row in whole.table.select(
            parse(f"provider = '{provider}' and {kind}", BY_NAME), limit=150
        )
    ]
    snapshot.write(path, rows, date=whole.date, sources=whole.sources, left_out=whole.left_out)
    return path


@pytest.fixture
def small_catalog(_part_of_the_catalog: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A part of the bundled snapshot in its place: a refresh takes seconds with all of it."""
    from underdog.catalog import snapshot

    monkeypatch.setattr(snapshot, "bundled_path", lambda: _part_of_the_catalog)
    snapshot._bundled.cache_clear()
    yield
    snapshot._bundled.cache_clear()
