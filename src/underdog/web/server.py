"""The server of the pages: its address, its start and its end."""

from __future__ import annotations

import errno
import logging
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from underdog.errors import UsageError
from underdog.verbs.serving import Reader
from underdog.web.access import Guard, access, is_loopback
from underdog.web.app import application
from underdog.web.rendering import files

PATIENCE_SECONDS = 1  # for answers that are on their way when the server ends


def serve(
    store: str | None,
    *,
    host: str,
    port: int,
    token: str | None = None,
    allow_run: bool = False,
    tell: Callable[[str], None],
) -> None:
    """Serve the pages about a store until a signal ends it.

    Args:
        store: a URL or a path, else ``$UNDERDOG_STORE``, else the user's data folder.
        tell: takes a line for the user, such as the address.

    Raises:
        UsageError: the address cannot be listened on, or the token cannot be taken.
        StoreError: the store cannot be opened.
        KeyboardInterrupt: Ctrl-C ended it.
    """
    reader = Reader(store)
    try:
        reader.store()  # what is wrong with it is told now, not on the first page
        files()
        with listening(host, port) as listener:
            at = int(listener.getsockname()[1])
            demanded = access(host, at, token, allow_run=allow_run)
            tell(f"{_shown(host, at, demanded.token if token is None else None)}  (Ctrl-C ends it)")
            if demanded.token is not None and not is_loopback(host):
                tell("whoever has the token can look, and what is sent is not encrypted")
            run(application(reader, demanded), listener)
    finally:
        reader.close()


def run(app: Guard, listener: socket.socket) -> None:
    """Answer on a socket until a signal comes."""
    _Server(settings(app), app).run(sockets=[listener])


def settings(app: Guard) -> uvicorn.Config:
    """How the pages are served."""
    return uvicorn.Config(
        app,
        log_config=None,  # addresses may hold a token: no request is logged
        access_log=False,
        log_level=logging.ERROR,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=PATIENCE_SECONDS,
    )


class _Server(uvicorn.Server):
    """Ends the streams when it is told to end: they would go on for as long as somebody looks."""

    def __init__(self, config: uvicorn.Config, app: Guard) -> None:
        super().__init__(config)
        self._guard = app

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self._guard.end()


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    Raises:
        UsageError: there is no such address here, or the port is taken or not for everybody.
    """
    try:
        family, kind, proto, _, where = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, proto)
    except (OSError, UnicodeError) as error:
        raise _cannot(host, port, error) from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(where)
        made.listen(128)
    except OSError as error:
        made.close()
        raise _cannot(host, port, error) from None
    return made


def _cannot(host: str, port: int, error: Exception) -> UsageError:
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        hint = f"Take another one: underdog serve --port {port + 1 if port < 65535 else 0}"
        return UsageError(f"The port {port} of '{host}' is taken.", hint)
    if number == errno.EACCES:
        hint = "Take one above 1023: underdog serve --port 8765"
        return UsageError(f"The port {port} may not be listened on by everybody.", hint)
    why = getattr(error, "strerror", None) or error
    hint = "Give an address of this machine, as 127.0.0.1, or 0.0.0.0 for all that it has."
    return UsageError(f"'{host}' cannot be listened on: {why}.", hint)


def _shown(host: str, port: int, token: str | None) -> str:
    """The address for a browser; a token that was made is in it, one that was given is not."""
    everywhere = host in ("0.0.0.0", "::", "")
    name = socket.gethostname() if everywhere else f"[{host}]" if ":" in host else host
    query = f"/?token={token}" if token is not None else "/"
    return f"http://{name}:{port}{query}"
