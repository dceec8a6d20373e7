"""One Ray cluster for all tests of this folder."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from two_nodes import Cluster

TRIES = 4


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("there is no Ray: pip install -r tests/requirements.txt")
    made = begun()
    yield made
    made.stop()


def begun() -> Cluster:
    """Ray gives each of its nodes half a minute to start, too little on a machine that is busy."""
    for left in reversed(range(TRIES)):
        made = Cluster()
        try:
            made.start()
        except BaseException as error:
            made.stop()
            if not left or not isinstance(error, AssertionError):
                raise
        else:
            return made
    raise AssertionError("the last try returns or raises")
