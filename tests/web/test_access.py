"""Who may ask what: hosts, tokens, methods, and where a form comes from."""

from __future__ import annotations

import hmac

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from underdog.errors import UsageError
from underdog.web.access import Access, Guard, access, host_name, is_loopback

TOKEN = "a-token-of-sixteen-and-more"


def guarded(demanded: Access, origin: str = "http://localhost:8765") -> TestClient:
    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"{request.method} {request.url.query}")

    app = Starlette(routes=[Route("/{rest:path}", answer, methods=["GET", "POST"])])
    guard = Guard(app, demanded, lambda: None)
    return TestClient(guard, base_url=origin, follow_redirects=False)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "LOCALHOST", "localhost."])
def test_the_own_names_are_answered(host: str) -> None:
    client = guarded(access("127.0.0.1", 8765))
    assert client.get("/", headers={"host": f"{host}:8765"}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "@"]
)
def test_another_name_is_refused(host: str) -> None:
    """A page of another site whose name leads here by now."""
    client = guarded(access("127.0.0.1", 8765))
    answer = client.get("/", headers={"host": host})
    assert answer.status_code == 421
    assert "evil" not in answer.text


@pytest.mark.parametrize(
    ("said", "name"),
    [("a:1", "a"), ("[::1]:8", "::1"), ("A.B", "a.b"), ("[", ""), ("", ""), ("u@a", "a")],
)
def test_the_name_of_a_host(said: str, name: str) -> None:
    assert host_name(said) == name


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods_are_refused(method: str) -> None:
    answer = guarded(access("127.0.0.1", 8765)).request(method, "/")
    assert answer.status_code == 405
    assert answer.headers["allow"] == "GET, HEAD, POST"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://localhost:8765"}, 200),
        ({"origin": "http://localhost:8765", "sec-fetch-site": "same-origin"}, 200),
        ({}, 403),
        ({"origin": "http://localhost:8766"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://["}, 403),
        ({"origin": "http://localhost:8765", "sec-fetch-site": "cross-site"}, 403),
        ({"origin": "http://localhost:8765", "sec-fetch-site": "same-site"}, 403),
    ],
)
def test_a_form_must_be_of_the_own_pages(headers: dict[str, str], status: int) -> None:
    client = guarded(access("127.0.0.1", 8765))
    assert client.post("/", headers=headers).status_code == status


def test_headers_are_on_every_answer() -> None:
    client = guarded(access("127.0.0.1", 8765))
    refused = client.get("/", headers={"host": "evil.example"})
    for answer in (client.get("/"), refused, client.put("/")):
        policy = answer.headers["content-security-policy"]
        for part in (
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ):
            assert part in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"


def test_a_token_is_demanded_where_others_reach_it() -> None:
    assert access("127.0.0.1", 1).token is None
    assert access("::1", 1).token is None
    made = access("0.0.0.0", 1).token
    assert made is not None
    assert len(made) >= 24
    assert made != access("0.0.0.0", 1).token


@pytest.mark.parametrize("token", ["", "short", "a" * 15, "a b" * 8, "ä" * 20, "a\n" * 10])
def test_a_token_that_will_not_do(token: str) -> None:
    with pytest.raises(UsageError):
        access("127.0.0.1", 1, token)


@pytest.mark.parametrize(
    "other", ['foo={"a":1,"b":2}', "just-a-word", 'x="unterminated', "weird[0]=1", "a=b c", "=1"]
)
def test_the_cookies_of_other_programs_lock_nobody_out(other: str) -> None:
    client = guarded(access("0.0.0.0", 8765, TOKEN))
    cookie = f"{other}; underdog-8765={TOKEN}; {other}"
    assert client.get("/", headers={"cookie": cookie}).status_code == 200


def test_the_token_opens_the_page_once_and_a_cookie_from_then_on() -> None:
    client = guarded(access("0.0.0.0", 8765, TOKEN), "http://box.lan:8765")
    assert client.get("/trials").status_code == 401
    first = client.get(f"/trials?status=ok&token={TOKEN}")
    assert first.status_code == 303
    assert first.headers["location"] == "/trials?status=ok"
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert client.get("/trials?status=ok").text == "GET status=ok"


def test_the_token_as_programs_show_it() -> None:
    client = guarded(access("0.0.0.0", 8765, TOKEN))
    assert client.get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.get("/", headers={"authorization": f"Basic {TOKEN}"}).status_code == 401
    assert client.get("/", headers={"authorization": f"Bearer {TOKEN}x"}).status_code == 401


@pytest.mark.parametrize("wrong", ["", "x", TOKEN[:-1], TOKEN + "x", "\udc80", "ä" * 27])
def test_a_wrong_token_opens_nothing(wrong: str) -> None:
    client = guarded(access("0.0.0.0", 8765, TOKEN))
    answer = client.get("/", params={"token": wrong.encode(errors="replace")})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers
    client.cookies.set("underdog-8765", "wrong")
    assert client.get("/").status_code == 401


def test_the_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    client = guarded(access("0.0.0.0", 8765, TOKEN))
    assert client.get(f"/?token={TOKEN}").status_code == 401
    assert (TOKEN.encode(), TOKEN.encode()) in compared


def test_the_redirection_leads_to_no_other_host() -> None:
    client = guarded(access("0.0.0.0", 8765, TOKEN))
    answer = client.get(f"http://localhost:8765//evil.example/x?token={TOKEN}")
    assert answer.headers["location"].startswith("/evil.example")


@pytest.mark.parametrize(
    ("host", "own"),
    [("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True)]
    + [(host, False) for host in ("0.0.0.0", "::", "10.0.0.1", "box.lan", "")],
)
def test_what_only_this_machine_reaches(host: str, own: bool) -> None:
    assert is_loopback(host) is own
