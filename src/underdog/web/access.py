"""Who may ask what: names of the host, the token, methods, and the origin of a form.

A page of somebody else's must not reach a server on this machine: a name that is not ours is
refused (DNS rebinding), what changes anything is a POST from our own page, and headers forbid
frames and foreign scripts.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from underdog.errors import UsageError

SHORTEST_TOKEN = 16  # characters
METHODS = ("GET", "HEAD", "POST")
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Access:
    """What a server demands of those who ask.

    Attributes:
        names: of the host, as an address in a browser may give them; None takes any.
        token: what must be shown; None demands none.
        allow_run: whether a form may start anything.
        cookie: the name of the one that holds the token.
        form_key: what every form of our own pages carries.
    """

    names: frozenset[str] | None = LOOPBACK_NAMES
    token: str | None = None
    allow_run: bool = False
    cookie: str = "underdog"
    form_key: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    def is_form_key(self, given: object) -> bool:
        """Whether a form came from one of our own pages."""
        return isinstance(given, str) and _same(given, self.form_key)


def access(host: str, port: int, token: str | None = None, *, allow_run: bool = False) -> Access:
    """What a server at ``host`` demands; one that others can reach demands a token.

    Where a token is demanded any name of the host will do: a foreign page does not know it.

    Raises:
        UsageError: the token is so short that it can be guessed, or cannot be sent.
    """
    if token is not None:
        if len(token) < SHORTEST_TOKEN:
            raise UsageError(
                f"The token has {len(token)} characters and can be guessed; at least "
                f"{SHORTEST_TOKEN} are needed.",
                "Without --token one is made, where one is needed.",
            )
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise UsageError("The token holds a character that an address cannot have.")
    elif not is_loopback(host):
        token = secrets.token_urlsafe(24)
    names = LOOPBACK_NAMES | {host.lower()} if token is None else None
    return Access(names=names, token=token, allow_run=allow_run, cookie=f"underdog-{port}")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Refuses what may not be asked, and puts the headers on every answer.

    ``end`` ends all answers that would go on, when the server is told to end.
    """

    def __init__(self, app: ASGIApp, access: Access, end: Callable[[], None]) -> None:
        self._app, self._access, self.end = app, access, end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refused = self._refused(scope)
        await (refused or self._app)(scope, receive, with_headers)

    def _refused(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["method"] not in METHODS:
            allowed = {"allow": ", ".join(METHODS)}
            return PlainTextResponse("Only GET, HEAD and POST are known here.\n", 405, allowed)
        name = host_name(headers.get("host", ""))
        if self._access.names is not None and name not in self._access.names:
            text = "This server answers to localhost and to the address that it was started with.\n"
            return PlainTextResponse(text, 421)
        if self._access.token is not None:
            refused = self._without_token(scope, headers)
            if refused is not None:
                return refused
        if scope["method"] == "POST" and not same_origin(headers):
            return PlainTextResponse("A form of another site starts nothing here.\n", 403)
        return None

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """The answer to who shows no token; a redirection with a cookie to who shows it first."""
        wanted = self._access.token or ""
        if _same(_cookie(headers, self._access.cookie), wanted):
            return None
        kind, _, shown = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and _same(shown.strip(), wanted):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if scope["method"] != "POST" and _same(dict(query).get("token", ""), wanted):
            rest = urlencode([pair for pair in query if pair[0] != "token"])
            path = scope.get("raw_path", b"/").decode("ascii", "replace").partition("?")[0]
            # one slash: with two, the address would name another host
            answer = RedirectResponse(f"/{path.lstrip('/')}{'?' if rest else ''}{rest}", 303)
            answer.set_cookie(self._access.cookie, wanted, httponly=True, samesite="lax")
            return answer
        text = "Open the address with the token that underdog serve printed when it was started.\n"
        return PlainTextResponse(text, 401, {"www-authenticate": "Bearer"})


def host_name(said: str) -> str:
    """The name in a Host header, without its port and brackets; empty where it is none."""
    try:
        return (urlsplit(f"//{said}").hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


def same_origin(headers: Headers) -> bool:
    """Whether a request comes from a page of this server, by what the browser says of it."""
    site = headers.get("sec-fetch-site")
    if site is not None and site != "same-origin":
        return False
    origin = headers.get("origin")
    if origin is None:
        return False
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""
    except ValueError:
        return False


def _cookie(headers: Headers, name: str) -> str:
    """The value of a cookie, whatever others the browser has of this host."""
    pairs = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
    return next((value for key, _, value in pairs if key == name), "")


def _same(given: str, wanted: str) -> bool:
    """In a time that does not tell how much of it is right."""
    return hmac.compare_digest(given.encode(errors="replace"), wanted.encode())
