"""An answer as a page or as its twin in JSON; every text of a store is escaped."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
import msgspec
from starlette.responses import Response

from underdog.report.html import environment, static_files, themes
from underdog.web.addresses import address, query

FOLDER = Path(__file__).parent
PLACES = {
    "trial": "trials",
    "study": "studies",
    "decision": "decisions",
    "workload": "workloads",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a page has found.

    Attributes:
        data: what its twin says: a record, or a dict of records.
        template: of the page.
        title: of the page, plain text.
        more: what only the page needs.
        charts: gives the specifications of Vega-Lite by name, None where there is nothing to draw.
        lasting: what the page is made from, where that says all: one of the same is kept.
    """

    data: Any
    template: str
    title: str
    more: dict[str, Any] = field(default_factory=dict)
    charts: Callable[[], dict[str, Any]] = dict
    status: int = 200
    lasting: Hashable | None = None


def twin(data: Any, status: int = 200) -> Response:
    """JSON; what is no finite number is null."""
    return Response(json_bytes(data), status, media_type="application/json")


def json_bytes(data: Any) -> bytes:
    """A record, or a dict of records, as JSON in UTF-8."""
    try:
        return msgspec.json.encode(data)
    except UnicodeEncodeError:  # halves of surrogate pairs, as names of files may have: escaped
        return json.dumps(_finite(msgspec.to_builtins(data))).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def html(template: str, **values: Any) -> bytes:
    """A template of ours, filled."""
    text = templates().get_template(template).render(**values)
    # halves of surrogate pairs are no UTF-8: they are spelled out
    return text.encode("utf-8", "backslashreplace")


def page(text: bytes, status: int = 200) -> Response:
    """A filled template as a response."""
    return Response(text, status, media_type="text/html")


@functools.cache
def templates() -> jinja2.Environment:
    """The templates of the page, and those that it shares with the report."""
    made = environment(jinja2.FileSystemLoader(FOLDER / "templates"))
    made.globals |= {
        "address": address,
        "file": lambda name: f"/static/{name}?v={versions()[name]}",
        "href": lambda kind, name: address(PLACES[kind], name),
        "query": query,
        "themes": themes(),
    }
    made.filters |= {"minute": minute, "clock": clock, "named": named}
    return made


def named(name: str) -> str:
    """A name that can be seen, and so be clicked."""
    return name if any(not letter.isspace() for letter in name) else "(no name)"


def minute(text: str | None) -> str:
    """A moment in ISO 8601 as a list shows it, to the minute; what is none stays as it is."""
    try:
        return datetime.fromisoformat(text or "").strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return text or "–"


def clock(at: float) -> str:
    """The time of day of a moment, Unix time."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")


@functools.cache
def files() -> Mapping[str, bytes]:
    """The files that the pages refer to, by name."""
    own = {path.name: path.read_bytes() for path in (FOLDER / "static").iterdir()}
    return {**static_files(), **own}


@functools.cache
def versions() -> Mapping[str, str]:
    """What sets each file apart from that of another version."""
    return {name: hashlib.sha256(content).hexdigest()[:12] for name, content in files().items()}
