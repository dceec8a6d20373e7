"""What a job leaves behind it: its files between two marks, and the trial that they make."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import io
import tarfile
from collections.abc import Mapping

import msgspec

from underdog.core.caveats import caveat
from underdog.errors import RunnerError
from underdog.model import Price, Trial
from underdog.runners._remote import cancelled_trial
from underdog.runners._skytask import BEGIN, END, TAIL


def unpacked(said: str) -> dict[str, bytes]:
    """The files between the marks in what was printed, also with a prefix on each line."""
    words: list[str] | None = None
    for line in said.splitlines():
        word = line.split()[-1] if line.split() else ""
        if word == BEGIN:
            words = []
        elif word == END and words is not None:
            break
        elif words is not None:
            words.append(word)
    if not words:
        return {}
    try:
        packed = base64.b64decode("".join(words), validate=True)
        with tarfile.open(fileobj=io.BytesIO(packed), mode="r:gz") as archive:
            files = {m.name: archive.extractfile(m) for m in archive.getmembers() if m.isfile()}
            return {name: file.read() for name, file in files.items() if file is not None}
    except (binascii.Error, tarfile.TarError, EOFError, OSError):
        return {}


def doubted(content: bytes, left: str) -> bytes:
    """The trial with the doubt that its machine is still there."""
    trial = msgspec.json.decode(content, type=Trial)
    caveats = [*trial.caveats, caveat("machine_left", left)]
    return msgspec.json.encode(dataclasses.replace(trial, caveats=caveats))


def taken_away(cluster: str, workload: str) -> bytes:
    """The trial of a spot machine that is gone."""
    reason = f"the spot machine of '{cluster}' was taken away, or its time was over"
    trial = msgspec.json.decode(cancelled_trial(workload), type=Trial)
    return msgspec.json.encode(
        dataclasses.replace(trial, reason=reason, price=Price(unknown_reason=reason))
    )


def lost(cluster: str, records: Mapping[str, bytes]) -> RunnerError:
    """The error of a job that left no trial."""
    if not records:
        return RunnerError(
            f"The job is lost: there is no cluster '{cluster}' any more.",
            "It was taken down by someone, or its time was over.",
        )
    said = records.get(TAIL, b"").decode(errors="replace")
    lines = [line for line in said.splitlines() if line.strip()][-5:]
    why = "the measurement ended without a result" if lines else "it was killed"
    return RunnerError("\n".join([f"The job on '{cluster}' is lost: {why}.", *lines]))
