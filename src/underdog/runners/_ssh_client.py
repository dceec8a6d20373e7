"""OpenSSH's own client: one script on another machine per call, and its errors in words."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import tempfile
from collections.abc import Callable
from typing import IO, Annotated

import msgspec
from msgspec import Meta

from underdog.errors import RunnerError

CONNECT = 10  # seconds
LONGEST = 60.0  # seconds that a script may take which carries nothing
_OWN_ERROR = 255  # the exit status by which ssh tells an error of its own
_BEGIN = b"\nunderdog:\n"  # what login files print comes before it
_SAY_BEGIN = "printf '\\nunderdog:\\n'\n"
_OPTIONS = (
    "BatchMode=yes",  # a question would wait for ever
    f"ConnectTimeout={CONNECT}",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=4",
    "ClearAllForwardings=yes",
    "RemoteCommand=none",
)
# The first that is found in what ssh says decides; {host} is as the user wrote it.
_WORDS: tuple[tuple[str, str, str], ...] = (
    (
        r"REMOTE HOST IDENTIFICATION HAS CHANGED|host key .{0,80}has changed",
        "The host key of '{host}' is not the one that is known of it.",
        "If the machine was set up anew, forget the old key: ssh-keygen -R {name}",
    ),
    (
        r"Host key verification failed|No \S+ host key is known",
        "The host key of '{host}' is not known here.",
        "Connect once by hand and compare it: ssh {host}",
    ),
    (
        r"Permission denied|Too many authentication failures|no mutual signature",
        "'{host}' refused the login.",
        "Give it your key, once: ssh-copy-id {host}. Another key than the usual one: identity = …",
    ),
    (
        r"Could not resolve hostname",
        "There is no host '{host}'.",
        "Write it as ssh takes it: user@address, or a Host of ~/.ssh/config.",
    ),
    (
        r"Connection refused|No route to host|Network is unreachable|timed out"
        r"|banner exchange|Host is down",
        "'{host}' cannot be reached.",
        "See whether it is on and takes logins: ssh {host} true",
    ),
    (
        r"[Bb]ad configuration option|[Uu]nsupported option|command-line.* line \d+|terminating, \d"
        r"|Can't open user config file|percent_expand|missing argument",
        "ssh cannot be used with the options given for '{host}'.",
        "Correct 'options' or 'config' in [offer.ssh]; 'man ssh_config' has them.",
    ),
)


class LostError(RunnerError):
    """The connection broke; what was begun over it may go on."""


class Connection(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """How ssh gets to a machine.

    Attributes:
        host: as ``ssh`` takes it: ``user@address`` or a ``Host`` of its configuration.
        port: TCP port.
        identity: file of the private key.
        config: another configuration file than ``~/.ssh/config``.
        options: ``Name=value``, as ``ssh -o`` takes them.
    """

    host: Annotated[str, Meta(pattern=r"^[^-\s]\S*$")]
    port: Annotated[int, Meta(ge=1, le=65535)] | None = None
    identity: str | None = None
    config: str | None = None
    options: tuple[str, ...] = ()

    def command(self) -> list[str]:
        """The words before the remote command."""
        words = ["ssh", "-T", "-x"]
        for option in (_OPTIONS[0], *self.options, *_OPTIONS[1:]):  # the first of a name counts
            words += ["-o", option]
        for flag, value in (("-p", self.port), ("-i", self.identity), ("-F", self.config)):
            words += [] if value is None else [flag, str(value)]
        return [*words, "--", self.host]

    def run(self, script: str, send: Callable[[IO[bytes]], None] | None = None) -> bytes:
        """Run a script of POSIX shell there; what it prints.

        Args:
            send: writes what the script reads on its standard input.

        Raises:
            LostError: the connection broke.
            RunnerError: it could not be made, or the script ended with an error of its own.
        """
        # Any login shell takes this line, whatever its rules of quoting; sh reads the script from
        # the input, byte by byte, and leaves the rest of it to the script.
        code = (_SAY_BEGIN + script).encode()
        remote = f"sh -c 'eval \"$(dd bs=1 count={len(code)} 2>/dev/null)\"'"
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
            try:
                process = subprocess.Popen(
                    [*self.command(), remote], stdin=subprocess.PIPE, stdout=out, stderr=said
                )
            except FileNotFoundError as error:
                raise RunnerError(
                    "This machine has no 'ssh'.", "Install OpenSSH: apt install openssh-client"
                ) from error
            with process:
                try:
                    _write(process, code, send)
                    status = process.wait(None if send else LONGEST)
                except subprocess.TimeoutExpired:
                    process.kill()
                    raise LostError(
                        f"'{self.host}' did not answer within {LONGEST:.0f} s."
                    ) from None
                except BaseException:
                    process.kill()
                    _close(process)
                    raise
            for file in (out, said):
                file.seek(0)
            printed, words = out.read(), said.read().decode(errors="replace").strip()
        if status or _BEGIN not in printed:
            raise self._error(status, words, begun=_BEGIN in printed)
        return printed.partition(_BEGIN)[2]

    def _error(self, status: int, words: str, begun: bool) -> RunnerError:
        said = "\n".join(words.splitlines()[-5:])
        if status != _OWN_ERROR:
            what = "could not do it" if begun else "gives no POSIX shell"
            return RunnerError(f"'{self.host}' {what}: {said or f'exit {status}'}")
        for pattern, message, hint in _WORDS if not begun else ():
            if re.search(pattern, words):
                name = self.host.rpartition("@")[2]
                return RunnerError(
                    f"{message.format(host=self.host)} ssh says: {said}",
                    hint.format(host=shlex.quote(self.host), name=shlex.quote(name)),
                )
        return LostError(f"The connection to '{self.host}' was lost. ssh says: {said}")


def _write(
    process: subprocess.Popen[bytes], code: bytes, send: Callable[[IO[bytes]], None] | None
) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it ended, and says why
        process.stdin.write(code)
        if send is not None:
            send(process.stdin)
        process.stdin.flush()
    _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # what is left to write has no reader
        process.stdin.close()
