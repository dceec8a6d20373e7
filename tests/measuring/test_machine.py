"""The machine: what it is by its own files, and by the cloud's metadata service."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from underdog.measuring import machine, metadata
from underdog.measuring.cgroup import Cgroup
from underdog.measuring.metadata import cloud_facts
from underdog.measuring.nvml import Nvml
from underdog.units import GIB

ARM = """\
processor\t: 0
BogoMIPS\t: 243.75
Features\t: fp asimd evtstrm aes
CPU implementer\t: 0x41
CPU part\t: 0xd0c
"""
AMD = """\
processor\t: 0
model name\t: AMD EPYC 7R13 Processor
cpu MHz\t\t: 2650.000
physical id\t: 0
flags\t\t: fpu sse2 avx avx2
processor\t: 1
cpu MHz\t\t: 3600.000
physical id\t: 1
flags\t\t: fpu sse2 avx avx2
"""


def test_this_machine() -> None:
    found = machine.describe(Nvml())
    assert found.vcpus is not None
    assert 0 < found.vcpus <= (psutil.cpu_count() or 1)
    assert found.memory_gib is not None
    assert 0 < found.memory_gib <= psutil.virtual_memory().total / GIB
    assert found.arch in ("x86_64", "arm64")
    assert found.hostname


def test_processors_from_their_file() -> None:
    assert machine.cpu_model(AMD) == "AMD EPYC 7R13 Processor"
    assert machine.vector_bits(AMD) == 256
    assert machine.cpu_sockets(AMD) == 2
    assert machine.cpu_model(ARM) == "Neoverse-N1"
    assert machine.vector_bits(ARM) == 128
    assert machine.cpu_sockets(ARM) is None
    assert machine.cpu_model("") is None
    assert machine.vector_bits("") is None


def test_avx512_is_the_widest() -> None:
    assert machine.vector_bits("flags : sse2 avx avx512f") == 512


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_version_2_limits_of_all_ancestors(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a/cpu.max": "150000 100000\n",
            "a/memory.max": "max\n",
            "a/b/cpu.max": "max 100000\n",
            "a/b/memory.max": f"{3 * GIB}\n",
            "a/b/cpu.stat": "usage_usec 5\nthrottled_usec 2500000\n",
        },
    )
    group = Cgroup(tmp_path, "0::/a/b\n")
    assert group.cpu_quota() == 1.5
    assert group.memory_limit() == 3 * GIB
    assert group.throttled_seconds() == 2.5


def test_version_1_limits(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "cpu/x/cpu.cfs_quota_us": "50000",
            "cpu/x/cpu.cfs_period_us": "100000",
            "cpu/x/cpu.stat": "nr_throttled 3\nthrottled_time 1500000000",
            "memory/x/memory.limit_in_bytes": str(2 * GIB),
            "memory/memory.limit_in_bytes": str(2**63 - 4096),
        },
    )
    group = Cgroup(tmp_path, "4:memory:/x\n1:cpu:/x\n")
    assert group.cpu_quota() == 0.5
    assert group.memory_limit() == 2 * GIB
    assert group.throttled_seconds() == 1.5


def test_a_container_sees_its_group_as_the_root(tmp_path: Path) -> None:
    write(tmp_path, {"cpu.max": "200000 100000", "memory.max": str(GIB)})
    group = Cgroup(tmp_path, "0::/docker/0123456789\n")
    assert group.cpu_quota() == 2
    assert group.memory_limit() == GIB


def test_without_groups_nothing_is_limited(tmp_path: Path) -> None:
    write(tmp_path, {"cpu.max": "garbage", "memory.max": "x"})
    group = Cgroup(tmp_path, "garbage\n::\n0::/\n")
    assert group.cpu_quota() is None
    assert group.memory_limit() is None
    assert group.throttled_seconds() is None


def test_amd_accelerators(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "card0/device/vendor": "0x1002",
            "card0/device/mem_info_vram_total": str(64 * GIB),
            "card0/device/product_name": "AMD Instinct MI210",
            "card0-DP-1/device/vendor": "0x1002",
            "card1/device/vendor": "0x8086",
        },
    )
    (found,) = machine.amd_accelerators(tmp_path)
    assert (found.name, found.memory_gib) == ("AMD Instinct MI210", 64)


def test_neuron_accelerators(tmp_path: Path) -> None:
    files = {f"neuron{i}/info/architecture/device_name": "Trainium1" for i in range(12)}
    found = machine.neuron_accelerators(write(tmp_path, files))
    assert [(a.name, a.index) for a in found] == [("Trainium1", i) for i in range(12)]
    assert found[0].memory_gib is None


def test_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "GIT_LIMIT", 60.0)
    assert machine.commit_of(tmp_path) == (None, None)
    for args in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *args], check=True)
    commit, dirty = machine.commit_of(tmp_path)
    assert commit is not None
    assert len(commit) == 40
    assert dirty is False
    (tmp_path / "new").write_text("x")
    assert machine.commit_of(tmp_path)[1] is False, "an untracked file is no change"
    subprocess.run(["git", "-C", str(tmp_path), "add", "new"], check=True)
    assert machine.commit_of(tmp_path)[1] is True
    assert machine.commit_of(tmp_path / "nonexistent") == (None, None)


# The services are real HTTP servers on the loopback that answer as the clouds document it.

Answer = Callable[[str, str, dict[str, str]], tuple[int, str]]


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], dict[str, str]]]:
    servers: list[ThreadingHTTPServer] = []

    def start(answer: Answer) -> dict[str, str]:
        class Handler(BaseHTTPRequestHandler):
            def reply(self) -> None:
                headers = {k.lower(): v for k, v in self.headers.items()}
                status, text = answer(self.command, self.path, headers)
                try:
                    self.send_response(status)
                    self.end_headers()
                    self.wfile.write(text.encode())
                except OSError:
                    pass  # the client did not wait

            do_GET = do_PUT = reply  # noqa: N815

            def log_message(self, *args: Any) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        url = f"http://127.0.0.1:{server.server_port}"
        return {"UNDERDOG_METADATA": "1", "UNDERDOG_METADATA_URL": url}

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine gets its answer too."""
    monkeypatch.setattr(metadata, "LIMIT", 30.0)


def aws_answer(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    if (method, path) == ("PUT", "/latest/api/token"):
        return (200, "tok") if headers.get("x-aws-ec2-metadata-token-ttl-seconds") else (400, "")
    if headers.get("x-aws-ec2-metadata-token") != "tok":
        return 401, ""
    told = {
        "instance-type": "g5.xlarge",
        "placement/region": "us-east-1",
        "placement/availability-zone": "us-east-1c",
        "instance-life-cycle": "spot",
    }
    text = told.get(path.removeprefix("/latest/meta-data/"))
    return (200, text) if text else (404, "not here")


def azure_answer(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    if headers.get("metadata") != "true" or "api-version=" not in path:
        return 400, ""
    compute = {"vmSize": "Standard_NC6s_v3", "location": "westeurope", "zone": "", "priority": ""}
    return (
        (200, json.dumps(compute)) if path.startswith("/metadata/instance/compute") else (404, "")
    )


def gcp_answer(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    if headers.get("metadata-flavor") != "Google":
        return 403, ""
    instance = {
        "machineType": "projects/1/machineTypes/g2-standard-4",
        "zone": "projects/1/zones/us-central1-a",
        "scheduling": {"preemptible": "TRUE"},
    }
    return (200, json.dumps(instance)) if path.startswith("/computeMetadata") else (404, "")


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        (aws_answer, ("aws", "g5.xlarge", "us-east-1", "us-east-1c", "spot")),
        (azure_answer, ("azure", "Standard_NC6s_v3", "westeurope", None, "on-demand")),
        (gcp_answer, ("gcp", "g2-standard-4", "us-central1", "us-central1-a", "spot")),
    ],
)
def test_clouds(
    serve: Callable[[Answer], dict[str, str]],
    tmp_path: Path,
    patient: None,
    answer: Answer,
    facts: tuple[str | None, ...],
) -> None:
    found = cloud_facts(serve(answer), tmp_path)
    names = ("provider", "instance_type", "region", "zone", "purchase")
    assert tuple(found.get(name) for name in names) == facts


@pytest.mark.parametrize("text", ["", "{", "[]", '"x"', "{}", '{"machineType": 3, "zone": 4}'])
def test_a_service_that_answers_otherwise_tells_nothing(
    serve: Callable[[Answer], dict[str, str]], tmp_path: Path, text: str
) -> None:
    assert cloud_facts(serve(lambda *_: (200, text)), tmp_path).get("region") is None


def test_a_slow_service_is_not_waited_for(
    serve: Callable[[Answer], dict[str, str]], tmp_path: Path
) -> None:
    asked, over = threading.Event(), threading.Event()

    def slow(*_: object) -> tuple[int, str]:
        asked.set()
        over.wait(60)
        return 200, "late"

    env = serve(slow)
    began = time.monotonic()
    try:
        assert cloud_facts(env, tmp_path) == {}
        assert time.monotonic() - began < 20  # of a loaded machine
        assert asked.wait(20)
    finally:
        over.set()


def test_the_network_is_left_alone_unless_a_cloud_sells_the_machine(
    serve: Callable[[Answer], dict[str, str]], tmp_path: Path, patient: None
) -> None:
    asked: list[str] = []

    def count(method: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
        asked.append(path)
        return aws_answer(method, path, headers)

    env = serve(count)
    del env["UNDERDOG_METADATA"]
    assert cloud_facts(env, tmp_path) == {}
    assert asked == []
    write(tmp_path, {"sys_vendor": "Amazon EC2\n"})
    assert cloud_facts(env, tmp_path)["instance_type"] == "g5.xlarge"
    assert cloud_facts({**env, "UNDERDOG_METADATA": "0"}, tmp_path) == {"provider": "aws"}


def test_the_firmware_names_the_type_where_the_service_is_silent(tmp_path: Path) -> None:
    write(tmp_path, {"sys_vendor": "Amazon EC2", "product_name": "m7i.large"})
    env = {"UNDERDOG_METADATA_URL": "http://127.0.0.1:9"}
    assert cloud_facts(env, tmp_path) == {"provider": "aws", "instance_type": "m7i.large"}
