"""What runs, once a second, to all who look: a stream of values and one of the page's part.

Whoever looks asks the reader, which asks the store once a second for all; nothing runs for those
who went away, and nothing is kept of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from underdog.errors import UnderdogError
from underdog.verbs.serving import EVERY_SECONDS, Now, Reader
from underdog.web.pages import live_parts
from underdog.web.rendering import html, json_bytes

QUIET_SECONDS = 15.0  # after which a sign of life is sent though nothing has changed


class Live:
    """The streams of one server."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._page: tuple[int, bytes] = (0, b"")
        self._ending = asyncio.Event()

    def end(self) -> None:
        """End all streams at once, from the thread of the server."""
        self._ending.set()

    def values(self) -> StreamingResponse:
        """The twin of the live page, whenever it has changed."""
        return self._stream(json_bytes)

    def page(self) -> StreamingResponse:
        """The moving part of the live page, whenever it has changed."""
        return self._stream(self._rendered)

    def _rendered(self, now: Now) -> bytes:
        number, text = self._page
        if number != now.number:
            text = html("_live.html", **live_parts(now))
            self._page = now.number, text
        return text

    def _stream(self, say: Callable[[Now], bytes]) -> StreamingResponse:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._events(say), media_type="text/event-stream", headers=headers)

    async def _events(self, say: Callable[[Now], bytes]) -> AsyncIterator[bytes]:
        last, quiet = 0, 0.0
        while not self._ending.is_set():
            try:
                now = await run_in_threadpool(self._reader.now)
            except UnderdogError:
                return  # who looks asks again, and the page says what is wrong
            if now.number != last:
                last, quiet = now.number, 0.0
                yield event(await run_in_threadpool(say, now))
            elif quiet >= QUIET_SECONDS:
                quiet = 0.0
                yield b":\n\n"
            try:
                await asyncio.wait_for(self._ending.wait(), EVERY_SECONDS)
            except TimeoutError:
                quiet += EVERY_SECONDS


def event(data: bytes) -> bytes:
    """One event of a stream that carries a text of several lines."""
    # splitlines would break a text at characters that are no end of a line here
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"".join(b"data: " + line + b"\n" for line in lines) + b"\n"
