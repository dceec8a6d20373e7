"""The HTTP client against a real server on loopback that misbehaves in every way asked of it."""

from __future__ import annotations

import gzip
import http.server
import json
import socketserver
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from underdog.catalog.http import TRIES, Http, harmless
from underdog.errors import HttpError

Serve = Callable[[http.server.BaseHTTPRequestHandler], None]


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """Serves by a function for each path; notes what it was asked."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.paths: dict[str, Serve] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.done = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is what these tests are about."""


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append((self.path, dict(self.headers.items())))
        path = self.path.partition("?")[0]
        if path.startswith("http://"):  # asked as a proxy
            path = "/proxied"
        self.server.paths[path](self)

    def log_message(self, *args: object) -> None:
        """Silent."""


def answer(
    handler: http.server.BaseHTTPRequestHandler, status: int, body: bytes = b"", **headers: str
) -> None:
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    yield made
    made.done.set()
    made.shutdown()
    thread.join()
    made.server_close()


def client(cache: Path | None = None, **settings: float) -> Http:
    return Http(cache, **({"backoff": 0.01} | settings))  # type: ignore[arg-type]


def times(server: Server, path: str) -> int:
    return sum(asked.partition("?")[0] == path for asked, _ in server.asked)


def test_json_text_and_parameters(server: Server) -> None:
    server.paths["/a"] = lambda h: answer(h, 200, '{"name": "é"}'.encode())
    assert client().json(server.url + "/a", {"q": "x y&z"}) == {"name": "é"}
    assert client().text(server.url + "/a") == '{"name": "é"}'
    assert server.asked[0][0] == "/a?q=x+y%26z"
    assert server.asked[0][1]["User-Agent"].startswith("underdog/")


def test_a_changed_answer_only_is_sent_again(server: Server, tmp_path: Path) -> None:
    def serve(handler: http.server.BaseHTTPRequestHandler) -> None:
        if handler.headers.get("If-None-Match") == '"1"':
            answer(handler, 304)
        else:
            answer(handler, 200, b"[1]", ETag='"1"', Last_Modified="Mon, 30 Nov 2026 10:00:00 GMT")

    server.paths["/a"] = serve
    for _ in range(2):
        assert client(tmp_path).json(server.url + "/a") == [1]
    assert "If-None-Match" not in server.asked[0][1]
    assert server.asked[1][1]["If-Modified-Since"].startswith("Mon, 30 Nov")
    (kept,) = tmp_path.iterdir()
    kept.write_bytes(kept.read_bytes()[:-1] + b"9")  # damaged: asked for anew
    assert client(tmp_path).json(server.url + "/a") == [1]
    assert "If-None-Match" not in server.asked[2][1]


@pytest.mark.parametrize(
    ("headers", "asked"),
    [
        ({"Cache_Control": "no-store", "ETag": "1"}, {}),
        ({}, {}),
        ({"ETag": "1"}, {"Authorization": "x"}),
    ],
)
def test_what_is_private_or_has_no_date_is_not_kept(
    headers: dict[str, str], asked: dict[str, str], server: Server, tmp_path: Path
) -> None:
    server.paths["/a"] = lambda h: answer(h, 200, b"1", **headers)
    assert client(tmp_path).json(server.url + "/a", headers=asked) == 1
    assert not list(tmp_path.iterdir())


def test_a_cache_that_cannot_be_written_fails_nothing(server: Server, tmp_path: Path) -> None:
    server.paths["/a"] = lambda h: answer(h, 200, b"1", ETag="1")
    (tmp_path / "file").touch()
    assert client(tmp_path / "file" / "cache").json(server.url + "/a") == 1


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_fault_that_passes_is_tried_again(status: int, server: Server) -> None:
    server.paths["/a"] = lambda h: answer(h, status if times(server, "/a") < 3 else 200, b"1")
    assert client().json(server.url + "/a") == 1
    assert times(server, "/a") == 3


def test_it_waits_as_long_as_it_is_asked_to(server: Server) -> None:
    server.paths["/a"] = lambda h: (
        answer(h, 429, Retry_After="1") if times(server, "/a") == 1 else answer(h, 200, b"1")
    )
    began = time.monotonic()
    assert client().json(server.url + "/a") == 1
    assert time.monotonic() - began >= 1


def test_it_does_not_wait_beyond_its_time_limit(server: Server) -> None:
    server.paths["/a"] = lambda h: answer(h, 429, Retry_After="3600")
    began = time.monotonic()
    with pytest.raises(HttpError, match=r"429.*\nIt asks to wait 3600 s") as told:
        client(timeout=60).json(server.url + "/a")
    assert time.monotonic() - began < 30
    assert told.value.status == 429


def test_a_fault_that_stays_is_told(server: Server) -> None:
    server.paths["/a"] = lambda h: answer(h, 503)
    with pytest.raises(
        HttpError, match=rf"no answer in {TRIES} attempts: 503 \(Service Unav"
    ) as told:
        client().json(server.url + "/a", {"key": "secret"})
    assert "secret" not in str(told.value)
    assert times(server, "/a") == TRIES


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 204, 206, 304])
def test_an_answer_that_is_final_is_not_tried_again(status: int, server: Server) -> None:
    server.paths["/a"] = lambda h: answer(h, status)
    with pytest.raises(HttpError, match=str(status)) as told:
        client().bytes(server.url + "/a")
    assert told.value.status == status
    assert times(server, "/a") == 1


@pytest.mark.parametrize("body", [b"", b"{", b"<html>", b"NaN", b'"\xff"', b"[" * 100_000])
def test_what_is_no_json_is_told(body: bytes, server: Server) -> None:
    server.paths["/a"] = lambda h: answer(h, 200, body)
    with pytest.raises(HttpError, match="did not answer with JSON"):
        client().json(server.url + "/a")


def test_what_is_no_text_is_told(server: Server) -> None:
    server.paths["/a"] = lambda h: answer(h, 200, b"\xff\xfe")
    with pytest.raises(HttpError, match="text in UTF-8"):
        client().text(server.url + "/a")


def test_a_slow_drip_ends_at_the_time_limit(server: Server) -> None:
    def serve(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        while not server.done.wait(0.05):
            handler.wfile.write(b"x")

    server.paths["/a"] = serve
    began = time.monotonic()
    with pytest.raises(HttpError, match=r"did not answer in full within 0\.5 s"):
        client(timeout=0.5).bytes(server.url + "/a")
    assert time.monotonic() - began < 30  # the whole of it would take 50 s


def test_a_server_that_says_nothing_is_not_waited_for_longer(server: Server) -> None:
    server.paths["/a"] = lambda h: server.done.wait(60) and None
    began = time.monotonic()
    with pytest.raises(HttpError, match="no answer in one attempt: no connection"):
        client(timeout=0.5).bytes(server.url + "/a")
    assert time.monotonic() - began < 30


def test_a_body_that_never_ends_is_cut_at_the_size_limit(server: Server) -> None:
    def serve(handler: http.server.BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        while not server.done.is_set():
            handler.wfile.write(b"x" * 65536)

    server.paths["/a"] = serve
    with pytest.raises(HttpError, match="is larger than 1 MiB"):
        client(max_bytes=1 << 20).bytes(server.url + "/a")


def test_a_size_that_is_announced_is_not_read(server: Server) -> None:
    server.paths["/a"] = lambda h: answer(h, 200, b"x" * 2000)
    with pytest.raises(HttpError, match="is larger than"):
        client(max_bytes=1000).bytes(server.url + "/a")


def test_gzip_is_unpacked_and_a_bomb_is_not(server: Server) -> None:
    small, bomb = gzip.compress(b"[1, 2]"), gzip.compress(bytes(50 << 20))
    server.paths["/small"] = lambda h: answer(h, 200, small, Content_Encoding="gzip")
    server.paths["/bomb"] = lambda h: answer(h, 200, bomb, Content_Encoding="gzip")
    assert client().json(server.url + "/small") == [1, 2]
    tracemalloc.start()
    with pytest.raises(HttpError, match="is larger than 1 MiB"):
        client(max_bytes=1 << 20).bytes(server.url + "/bomb")
    assert tracemalloc.get_traced_memory()[1] < 5 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("packed", [False, True])
def test_a_truncated_body_is_asked_for_again(packed: bool, server: Server) -> None:
    body = gzip.compress(json.dumps(list(range(9999))).encode())

    def serve(handler: http.server.BaseHTTPRequestHandler) -> None:
        whole = times(server, "/a") > 1
        handler.send_response(200)
        handler.send_header("Content-Encoding", "gzip")
        if packed:  # without a length, only the packing tells that the end is missing
            handler.send_header("Connection", "close")
        else:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body if whole else body[: len(body) // 2])
        handler.close_connection = True

    server.paths["/a"] = serve
    assert client().json(server.url + "/a") == list(range(9999))
    assert times(server, "/a") == 2


def test_redirects_are_followed_and_a_loop_is_not(server: Server) -> None:
    server.paths["/a"] = lambda h: answer(h, 302, Location="/b")
    server.paths["/b"] = lambda h: answer(h, 301, Location=f"{server.url}/c")
    server.paths["/c"] = lambda h: answer(h, 200, b"1")
    server.paths["/loop"] = lambda h: answer(h, 302, Location="/loop")
    server.paths["/file"] = lambda h: answer(h, 302, Location="file:///etc/passwd")
    assert client().json(server.url + "/a") == 1
    with pytest.raises(HttpError, match="from one address to the next"):
        client().json(server.url + "/loop")
    with pytest.raises(HttpError, match="leads to 'file:"):
        client().json(server.url + "/file")


def test_a_key_does_not_follow_to_another_host(server: Server) -> None:
    other = server.url.replace("127.0.0.1", "localhost")
    server.paths["/a"] = lambda h: answer(h, 302, Location=f"{other}/b")
    server.paths["/b"] = lambda h: answer(h, 200, b"1")
    assert client().json(server.url + "/a", headers={"Authorization": "secret"}) == 1
    assert [asked[1].get("Authorization") for asked in server.asked] == ["secret", None]


def test_a_proxy_is_used_and_passed_by(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.paths["/proxied"] = lambda h: answer(h, 200, b'"by proxy"')
    server.paths["/a"] = lambda h: answer(h, 200, b'"direct"')
    monkeypatch.setenv("HTTP_PROXY", server.url.replace("//", "//user:pass%20word@"))
    assert client().json("http://prices.invalid/a", {"q": "1"}) == "by proxy"
    path, headers = server.asked[0]
    headers = {name.title(): value for name, value in headers.items()}
    assert path == "http://prices.invalid/a?q=1"
    assert headers["Proxy-Authorization"] == "Basic dXNlcjpwYXNzIHdvcmQ="
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,example.org")
    assert client().json(server.url + "/a") == "direct"


def test_a_proxy_that_is_none_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(HttpError, match="The proxy 'socks5:"):
        client().json(server.url + "/a")


def test_no_server_and_no_address_are_told() -> None:
    with pytest.raises(HttpError, match=f"{TRIES} attempts: no connection .*refused"):
        client().json("http://127.0.0.1:9/a")
    for address in ("", "nowhere", "ftp://127.0.0.1/a", "http://"):
        with pytest.raises(HttpError):
            client().json(address)


def test_progress_is_told(server: Server) -> None:
    server.paths["/a"] = lambda h: answer(h, 200, b"x" * 100_000)
    told: list[tuple[str, int, int | None]] = []
    Http(progress=lambda *what: told.append(what)).bytes(server.url + "/a", {"key": "secret"})
    assert told[-1] == (f"{server.url}/a", 100_000, 100_000)


def test_an_address_is_shown_without_secrets() -> None:
    assert harmless("https://me:secret@host:8/a/b?key=secret#x") == "https://host:8/a/b"
