"""One OpenSSH server for all tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from ssh_server import Server, program


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if program() is None:
        pytest.skip("there is no sshd: apt-get install openssh-server")
    made = Server(tmp_path_factory.mktemp("sshd"))
    made.prepare()
    made.start()
    yield made
    made.stop()
