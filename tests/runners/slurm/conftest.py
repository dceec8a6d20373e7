"""One Slurm cluster for all tests of this folder."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from slurm_cluster import Cluster, missing


@pytest.fixture(scope="session")
def _cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if missing():
        pytest.skip(f"there is no {missing()[0]}: apt-get install slurm-wlm munge")
    if os.geteuid() != 0:
        pytest.skip("a Slurm cluster is started by root only")
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    began = time.monotonic()
    try:
        made.start()
        assert time.monotonic() - began < 60, "the cluster takes too long to start"
        yield made
    finally:
        made.stop()


@pytest.fixture
def cluster(_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("SLURM_CONF", str(_cluster.config))
    return _cluster
