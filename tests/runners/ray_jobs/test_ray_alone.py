"""What the runner of Ray says and reads without a cluster: requests, addresses, logs, mistakes."""

from __future__ import annotations

import base64
import gzip
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from carried_jobs import job, made
from hypothesis import given
from hypothesis import strategies as st

from underdog.errors import RunnerError, UsageError
from underdog.model import Offer, Price
from underdog.runners import _ray_job
from underdog.runners._ray_cluster import Cluster, _headers, dashboard
from underdog.runners._ray_job import package, told_by
from underdog.runners.ray import TRACE, Target, _fits


def test_rendering_shows_what_is_asked_for_and_connects_to_nothing(tmp_path: Path) -> None:
    target = {
        "address": "nowhere.invalid:8265",
        "cpus": 4,
        "memory_gib": 8,
        "accelerator_type": "A100",
        "resources": {"fast": 2},
        "labels": {"pool": "a"},
        "shell_setup": ["module load cuda"],
    }
    lines = made("ray", tmp_path).render(job(tmp_path, target, folder=tmp_path)).lines
    assert lines[0] == "POST http://nowhere.invalid:8265/api/jobs/"
    body = json.loads(lines[1])
    assert body["entrypoint_num_cpus"] == 4
    assert body["entrypoint_memory"] == 8 * 2**30
    assert body["entrypoint_resources"] == {"fast": 2, "accelerator_type:A100": TRACE}
    assert body["entrypoint_label_selector"] == {"pool": "a"}
    assert any("module load cuda" in line for line in lines)
    assert any(str(tmp_path) in line and line.startswith("with the files") for line in lines)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ({"cpu": 1}, "cpu"),
        ({"cpus": -1}, ">= 0"),
        ({"patience": 0}, "> 0"),
        ({"resources": {"a": "b"}}, "resources"),
        ({"address": "ray://head:10001"}, "not the address of a Ray dashboard"),
        ({"address": "auto"}, "not the address of a Ray dashboard"),
        ({"address": "http://me:secret@head:8265"}, "a user or a password"),
    ],
)
def test_a_target_with_faults_is_named(
    target: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=said) as told:
        made("ray", tmp_path).render(job(tmp_path, target))
    assert "secret" not in str(told.value)


def test_the_address_is_the_given_one_then_that_of_the_environment() -> None:
    both = {"RAY_API_SERVER_ADDRESS": "https://a/ray/", "RAY_ADDRESS": "http://b:1"}
    assert dashboard("c:2", both) == "http://c:2"
    assert dashboard(None, both) == "https://a/ray"
    assert dashboard(None, {"RAY_ADDRESS": "http://b:1"}) == "http://b:1"
    assert dashboard(None, {}) == "http://127.0.0.1:8265"


def test_by_default_a_job_asks_for_the_machine_of_its_offer(tmp_path: Path) -> None:
    offer = Offer(
        provider="mine",
        region="here",
        instance_type="box",
        price=Price(per_hour=1.0, source="me"),
        vcpus=16,
        accelerator_count=4,
    )
    big = job(tmp_path, {}, offer=offer)
    assert Target().asked(big) == {"CPU": 16, "GPU": 4}
    assert Target(resources={"TPU": 4}).asked(big) == {"CPU": 16, "TPU": 4}
    assert Target(cpus=0, gpus=0).asked(big) == {}
    assert Target().asked(job(tmp_path, {})) == {"CPU": 1}


def test_a_node_fits_that_has_all_and_its_labels() -> None:
    node = {"resources_total": {"CPU": 4.0, "fast": 1.0}, "labels": {"pool": "a"}}
    assert _fits(node, Target(), {"CPU": 4.0, "fast": 1.0})
    assert not _fits(node, Target(), {"CPU": 4.0, "GPU": 1.0})
    assert not _fits(node, Target(labels={"pool": "b"}), {})
    assert _fits(node, Target(labels={"pool": "in(a, b)", "zone": "!c"}), {})


def packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content)).decode()


PROGRESS = b'{"elapsed":1.0,"seconds":0.5,"samples_per_second":null,"effective":2,"settled":false}'
WHOLE = "\n".join(
    [
        'Running entrypoint: tell() { echo "underdog:$1 $(gzip -c)"; }',
        f"underdog:progress {packed(b'old')}",
        f"underdog:progress {packed(PROGRESS)}",
        f"underdog:trial {packed(b'the trial')}",
        f"underdog:log {packed(b'words')}",
        "underdog:free 12",
        "underdog:exit 0",
        "",
    ]
)


def test_a_log_tells_the_last_of_each() -> None:
    told = told_by(WHOLE)
    assert (told.trial, told.log, told.exit, told.free_kib) == (b"the trial", "words", "0", 12)
    assert told.look is not None
    assert told.look.elapsed == 1.0


@given(st.integers(0, len(WHOLE)))
def test_a_log_that_was_cut_off_tells_what_is_whole(end: int) -> None:
    told = told_by(WHOLE[:end])
    assert told.trial in (None, b"the trial")
    assert told.log in ("", "words")


def test_the_same_files_are_the_same_package_and_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "a.py").write_text("1")
    first = package(folder, False, tmp_path)
    assert package(folder, False, tmp_path) == first
    assert package(folder, True, tmp_path)[0] != first[0]
    (folder / "a.py").write_text("2")
    assert package(folder, False, tmp_path)[0] != first[0]
    monkeypatch.setattr(_ray_job, "MOST_BYTES", 10)
    with pytest.raises(UsageError, match="Ray takes 0 MiB") as told:
        package(folder, False, tmp_path)
    assert "--no-folder" in (told.value.hint or "")


class Answer(http.server.BaseHTTPRequestHandler):
    """Answers every request with the status of the path."""

    def do_GET(self) -> None:
        self.send_response(int(self.path.split("/")[1]))
        self.end_headers()
        self.wfile.write(b"<html>not Ray</html>")

    do_POST = do_GET  # noqa: N815

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture(scope="module")
def other_server() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("200", "is no Ray dashboard"),
        ("503", "is no Ray dashboard"),
        ("401", "RAY_AUTH_TOKEN"),
        ("403", "RAY_AUTH_TOKEN"),
    ],
)
def test_an_address_of_something_else_is_told(
    path: str, said: str, other_server: str, tmp_path: Path
) -> None:
    runner = made("ray", tmp_path)
    with pytest.raises(RunnerError) as told:
        runner.status(f"ray:{other_server}/{path}:underdog-x")
    assert said in str(told.value)
    with pytest.raises(RunnerError):
        runner.submit(runner.render(job(tmp_path, {"address": f"{other_server}/{path}"})))


def test_an_address_where_nothing_answers_names_the_next_command(tmp_path: Path) -> None:
    runner = made("ray", tmp_path)
    with pytest.raises(RunnerError, match="Connection refused") as told:
        runner.submit(runner.render(job(tmp_path, {"address": "http://127.0.0.1:1"})))
    assert "curl http://127.0.0.1:1/api/version" in (told.value.hint or "")


@pytest.mark.parametrize("handle", ["", "ray:", "ssh:host:1", "ray:name"])
def test_a_handle_of_another_engine_is_told(handle: str, tmp_path: Path) -> None:
    with pytest.raises(RunnerError, match="names no job of Ray"):
        made("ray", tmp_path).status(handle)


def test_headers_and_token_are_those_of_ray(tmp_path: Path) -> None:
    assert "Authorization" not in _headers({})
    assert _headers({"RAY_AUTH_TOKEN": "t"})["Authorization"] == "Bearer t"
    (tmp_path / "token").write_text("kept\n")
    kept = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(tmp_path / "token")}
    assert _headers(kept)["Authorization"] == "Bearer kept"
    given = {"RAY_JOB_HEADERS": '{"Authorization": "own", "A": "b"}', "RAY_AUTH_TOKEN": "t"}
    assert _headers(given) == {"User-Agent": "underdog", "Authorization": "own", "A": "b"}
    with pytest.raises(UsageError, match="RAY_JOB_HEADERS"):
        _headers({"RAY_JOB_HEADERS": "{"})


def test_waiting_is_counted_by_the_clock_of_the_cluster() -> None:
    cluster = Cluster("http://127.0.0.1:1")
    assert cluster.waited({"start_time": 1000}) == 0.0  # not known yet
    cluster._date = "Thu, 01 Jan 1970 00:01:00 GMT"
    assert cluster.waited({"start_time": 1000}) == 59.0
    assert cluster.waited({"start_time": 100_000}) == 0.0
