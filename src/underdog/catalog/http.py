"""HTTP for the providers: retries, conditional requests, and limits of time and size.

Only GET; a proxy is taken from ``HTTP_PROXY``, ``HTTPS_PROXY`` and ``NO_PROXY``.
"""

from __future__ import annotations

import hashlib
import http
import importlib.metadata
import json
import os
import random
import tempfile
import time
import urllib.parse
import urllib.request
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import urllib3
from urllib3.util import Timeout, make_headers
from urllib3.util.retry import Retry

from underdog.catalog.sources import Progress, silent
from underdog.errors import HttpError

TRIES = 5
REDIRECTS = 5
CHUNK = 1 << 16
_AT_ONCE = 8  # connections to one host that are kept for the next request
# too many requests, or a fault that may pass; all else is an answer
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_MOVED = frozenset({301, 302, 303, 307, 308})
_AGENT = f"underdog/{importlib.metadata.version('underdog')}"
_PRIVATE = ("authorization", "cookie", "x-goog-api-key")


class _PassingError(Exception):
    """A fault that may pass: what it was, its status, and how long the server asks to wait."""

    def __init__(self, what: str, status: int | None = None, wait: float | None = None) -> None:
        super().__init__(what)
        self.status, self.wait = status, wait


class Http:
    """A client; it may be shared by threads.

    Args:
        cache: a folder for answers that carry an ETag or a date, so that they are asked for only
            if changed; None keeps nothing.
        timeout: seconds that one call may take in all, with its retries and waits.
        max_bytes: the most that one answer may hold, unpacked.
        backoff: seconds before the second try, doubled before each further one; a server's
            ``Retry-After`` is waited for instead.
        progress: told the address, the bytes that came over the line, and of how many if known.
    """

    def __init__(
        self,
        cache: Path | None = None,
        *,
        timeout: float = 60,
        max_bytes: int = 256 << 20,
        backoff: float = 1,
        progress: Progress = silent,
    ) -> None:
        self.cache, self.timeout, self.max_bytes = cache, timeout, max_bytes
        self.backoff, self.progress = backoff, progress
        self._direct = urllib3.PoolManager(maxsize=_AT_ONCE)
        self._proxies: dict[str, urllib3.ProxyManager] = {}

    def json(
        self,
        url: str,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """The answer as JSON.

        Raises:
            HttpError: as of ``bytes``, or it is no JSON; NaN and infinity are none.
        """
        content = self.bytes(url, params, headers)
        try:
            return msgspec.json.decode(content)
        except (msgspec.DecodeError, RecursionError) as error:
            said = f"'{harmless(url)}' did not answer with JSON: {error}."
            raise HttpError(said, status=200) from error

    def text(
        self,
        url: str,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> str:
        """The answer as text in UTF-8.

        Raises:
            HttpError: as of ``bytes``, or it is no UTF-8.
        """
        content = self.bytes(url, params, headers)
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            said = f"'{harmless(url)}' did not answer with text in UTF-8."
            raise HttpError(said, status=200) from error

    def bytes(
        self,
        url: str,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> bytes:
        """The answer, unpacked where it is compressed.

        Raises:
            HttpError: no answer within the time limit, one that is too large, cut off, or says
                that the request cannot be served. The message names the address without its
                parameters, which may hold a key.
        """
        full = f"{url}?{urllib.parse.urlencode(params)}" if params else url
        given = {"User-Agent": _AGENT, "Accept-Encoding": "gzip"}
        given |= headers or {}
        kept = _Kept.at(self.cache, full, given)
        call = _Call(self, full, given | kept.conditions(), time.monotonic() + self.timeout)
        for attempt in range(1, TRIES + 1):
            try:
                return call.once(kept)
            except _PassingError as fault:
                wait = fault.wait
                if wait is None:
                    wait = self.backoff * 2 ** (attempt - 1) * random.uniform(0.75, 1.25)
                if attempt == TRIES or wait > call.left():
                    raise _no_answer(url, fault, attempt, wait, call.left()) from fault
                time.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def pool(self, url: str) -> urllib3.PoolManager:
        """The connections for an address: direct, or by the proxy that the environment names."""
        parts = urllib.parse.urlsplit(url)
        proxy = urllib.request.getproxies_environment().get(parts.scheme)
        host = parts.netloc.rpartition("@")[2]
        if not proxy or _bypassed(host):
            return self._direct
        if proxy not in self._proxies:
            self._proxies[proxy] = _proxy_manager(proxy)
        return self._proxies[proxy]


class _Call:
    """One call with its deadline; ``once`` is one attempt."""

    def __init__(self, client: Http, url: str, headers: dict[str, str], deadline: float) -> None:
        self.client, self.url, self.headers, self.deadline = client, url, headers, deadline

    def left(self) -> float:
        return self.deadline - time.monotonic()

    def once(self, kept: _Kept) -> bytes:
        response = self._answer()
        try:
            if response.status == http.HTTPStatus.NOT_MODIFIED and kept.body is not None:
                return kept.body
            if response.status in _PASSING:
                wait = Retry().get_retry_after(response)
                raise _PassingError(_status(response.status), response.status, wait)
            if response.status != http.HTTPStatus.OK:
                raise _refused(self.url, response.status)
            body = self._body(response)
        except urllib3.exceptions.HTTPError as error:
            raise _PassingError(f"the answer broke off ({_reason(error)})") from error
        finally:
            response.release_conn() if response.closed else response.close()
        kept.save(body, response.headers)
        return body

    def _answer(self) -> urllib3.BaseHTTPResponse:
        """The answer after redirects, its body not read."""
        url, headers = self.url, self.headers
        for _ in range(REDIRECTS + 1):
            response = self._send(url, headers)
            location = response.headers.get("Location")
            if response.status not in _MOVED or not location:
                return response
            response.close()
            target = urllib.parse.urljoin(url, location)
            before, after = urllib.parse.urlsplit(url), urllib.parse.urlsplit(target)
            if after.scheme not in ("http", "https") or (before.scheme, after.scheme) == (
                "https",
                "http",
            ):
                raise HttpError(f"'{harmless(self.url)}' leads to '{harmless(target)}'.")
            if before.netloc != after.netloc:
                headers = {k: v for k, v in headers.items() if k.lower() not in _PRIVATE}
            url = target
        raise HttpError(
            f"'{harmless(self.url)}' leads from one address to the next, more than {REDIRECTS} "
            "times."
        )

    def _send(self, url: str, headers: dict[str, str]) -> urllib3.BaseHTTPResponse:
        left = self.left()
        if left <= 0:
            raise self._too_slow()
        if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
            raise HttpError(f"'{harmless(url)}' is no address of http or https.")
        try:
            return self.client.pool(url).request(
                "GET",
                url,
                headers=headers,
                timeout=Timeout(connect=min(left, 10), read=left),
                retries=False,
                redirect=False,
                preload_content=False,
            )
        except urllib3.exceptions.LocationValueError as error:
            raise HttpError(f"'{harmless(url)}' is no address: {_reason(error)}.") from error
        except urllib3.exceptions.HTTPError as error:
            raise _PassingError(f"no connection ({_reason(error)})") from error

    def _body(self, response: urllib3.BaseHTTPResponse) -> bytes:
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isascii() and length.isdigit() else None
        if total is not None and total > self.client.max_bytes:
            raise self._too_large()
        unpack = _Unpacking(response.headers.get("Content-Encoding", ""), self.client.max_bytes)
        address, came = harmless(self.url), 0
        # read1 gives what has come: a server that drips cannot outlast the deadline
        while data := response.read1(CHUNK, decode_content=False):
            unpack.add(data)
            if unpack.size > self.client.max_bytes:
                raise self._too_large()
            if self.left() <= 0:
                raise self._too_slow()
            came += len(data)
            self.client.progress(address, came, total)
        return unpack.body()

    def _too_large(self) -> HttpError:
        return HttpError(
            f"The answer of '{harmless(self.url)}' is larger than "
            f"{self.client.max_bytes / 2**20:,.0f} MiB.",
            status=200,
        )

    def _too_slow(self) -> HttpError:
        return HttpError(
            f"'{harmless(self.url)}' did not answer in full within {self.client.timeout:g} s."
        )


class _Unpacking:
    """A body as it comes, unpacked, never by more than one byte beyond the limit."""

    def __init__(self, encoding: str, limit: int) -> None:
        if encoding.lower() not in ("", "identity", "gzip", "x-gzip"):
            raise _PassingError(f"the answer is packed as '{encoding}', which was not asked for")
        self._gzip = zlib.decompressobj(31) if "gzip" in encoding.lower() else None
        self._parts: list[bytes] = []
        self._limit, self.size = limit, 0

    def add(self, data: bytes) -> None:
        if self._gzip is not None:
            try:
                data = self._gzip.decompress(data, self._limit - self.size + 1)
            except zlib.error as error:
                raise _PassingError(f"the answer cannot be unpacked ({error})") from error
        self._parts.append(data)
        self.size += len(data)

    def body(self) -> bytes:
        if self._gzip is not None and not self._gzip.eof:
            raise _PassingError("the answer broke off")
        return b"".join(self._parts)


class _Kept:
    """The answer to one request as the cache keeps it: a line of JSON, then the body."""

    def __init__(self, file: Path | None, head: Mapping[str, str], body: bytes | None) -> None:
        self.file, self.head, self.body = file, head, body

    @classmethod
    def at(cls, cache: Path | None, url: str, headers: Mapping[str, str]) -> _Kept:
        if cache is None or any(name.lower() in _PRIVATE for name in headers):
            return cls(None, {}, None)
        request = json.dumps([url, sorted(headers.items())])
        file = cache / hashlib.sha256(request.encode()).hexdigest()
        try:
            line, _, body = file.read_bytes().partition(b"\n")
            head = json.loads(line)
            if head["sha256"] == hashlib.sha256(body).hexdigest():
                return cls(file, head, body)
        except (OSError, ValueError, TypeError, KeyError):
            pass  # none there, or a damaged one: it is asked for anew
        return cls(file, {}, None)

    def conditions(self) -> dict[str, str]:
        names = {"ETag": "If-None-Match", "Last-Modified": "If-Modified-Since"}
        return {names[k]: str(v) for k, v in self.head.items() if k in names}

    def save(self, body: bytes, headers: Mapping[str, str]) -> None:
        known = {n: headers[n] for n in ("ETag", "Last-Modified") if n in headers}
        if self.file is None or not known or "no-store" in headers.get("Cache-Control", ""):
            return
        line = json.dumps({**known, "sha256": hashlib.sha256(body).hexdigest()})
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.file.parent)
            try:
                with os.fdopen(handle, "wb") as beside:
                    beside.write(line.encode() + b"\n" + body)
                os.replace(name, self.file)
            except OSError:
                os.unlink(name)
                raise
        except OSError:
            pass  # the cache only saves a transfer; a full disk must not fail a refresh


def harmless(url: str) -> str:
    """An address without what may be secret: parameters, name and password."""
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _bypassed(host: str) -> bool:
    return bool(urllib.request.proxy_bypass_environment(host))  # type: ignore[attr-defined]


def _proxy_manager(proxy: str) -> urllib3.ProxyManager:
    url = proxy if "://" in proxy else f"http://{proxy}"
    parts = urllib.parse.urlsplit(url)
    headers = None
    if parts.username is not None:
        user, word = map(urllib.parse.unquote, (parts.username, parts.password or ""))
        headers = make_headers(proxy_basic_auth=f"{user}:{word}")
    try:
        return urllib3.ProxyManager(url, proxy_headers=headers, maxsize=_AT_ONCE)
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        said = f"The proxy '{harmless(url)}' cannot be used: {error}."
        raise HttpError(said, "HTTP_PROXY and HTTPS_PROXY hold addresses of proxies.") from error


def _refused(url: str, status: int) -> HttpError:
    hint = None
    if status in (401, 403):
        hint = "Check the credentials and their rights."
    return HttpError(f"'{harmless(url)}' answered {_status(status)}.", hint, status)


def _no_answer(
    url: str, fault: _PassingError, attempts: int, wait: float, left: float
) -> HttpError:
    tried = f"{attempts} attempts" if attempts > 1 else "one attempt"
    said = f"'{harmless(url)}' gave no answer in {tried}: {fault}."
    hint = None
    if fault.wait is not None and wait > left:
        hint = f"It asks to wait {wait:.0f} s; try again then."
    return HttpError(said, hint, fault.status)


def _status(status: int) -> str:
    try:
        return f"{status} ({http.HTTPStatus(status).phrase})"
    except ValueError:
        return str(status)


def _reason(error: Exception) -> str:
    """The innermost cause in a few words, without addresses of objects in memory."""
    inner: BaseException = error
    while isinstance(inner.__cause__ or inner.__context__, Exception):
        inner = inner.__cause__ or inner.__context__  # type: ignore[assignment]
    words = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    return " ".join(str(words).split())[:120]
