"""A record as a JSON document and back, with nothing lost and nothing turned into something else.

Two things JSON cannot hold: a number that is not finite, which is refused, and half of a surrogate
pair (what Python makes of a file name that is no UTF-8), which is written behind a mark.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from numbers import Integral, Real
from typing import Any, TypeVar

import msgspec

from underdog.core.attempts import Attempt
from underdog.errors import StoreError
from underdog.model import Decision, Timeline, Trial

_T = TypeVar("_T", Trial, Decision, Attempt, Timeline)

_MARK = "\uffff"  # Unicode keeps this one free for a program's own use
_TO_ESCAPE = re.compile("[\ud800-\udfff\uffff]")
_ESCAPED = re.compile("\uffff([0-9a-f]{4})")
_KEY_TO_ESCAPE = re.compile("[\x00\\\\\ud800-\udfff]")
_FIELDS: dict[type, list[tuple[str, bool]]] = {}  # of records: name, None by default
_KEY_LENGTH = 200  # PostgreSQL indexes values of up to some 2,700 bytes


class _UnstorableError(Exception):
    """A value that JSON cannot hold, and the path to it, innermost first."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.path: list[str] = []


def encode(record: Trial | Decision | Attempt) -> str:
    """The record as JSON. Fields that are None by default and None now are left out.

    The timeline of a trial is left out too: ``encode_timeline`` has it.

    Raises:
        StoreError: it holds NaN, infinity, or an object that is no JSON value; names the field.
    """
    if isinstance(record, Trial) and record.timeline is not None:
        record = dataclasses.replace(record, timeline=None)
    return _json(record, record)


def encode_timeline(trial: Trial) -> str | None:
    """The timeline of a trial as JSON, None where it has none.

    Raises:
        StoreError: as ``encode``.
    """
    return None if trial.timeline is None else _json(trial.timeline, trial)


def _json(value: Any, record: Trial | Decision | Attempt) -> str:
    try:
        return msgspec.json.encode(_plain(value)).decode()
    except _UnstorableError as error:
        where = ".".join(reversed(error.path))
        raise StoreError(
            f"The {type(record).__name__.lower()} {_shown(record.id)} cannot be kept: "
            f"{where} is {error}.",
            "A store keeps finite numbers, text, lists and tables of them; None for unknown.",
        ) from None


def decode(kind: type[_T], document: str) -> _T:
    """What was encoded; fields that this version does not know are passed over.

    Raises:
        StoreError: the document is not one of that kind.
    """
    try:
        if _MARK in document:
            return msgspec.convert(_unmarked(json.loads(document)), kind)
        return msgspec.json.decode(document, type=kind)
    except (msgspec.MsgspecError, ValueError) as error:
        raise StoreError(
            f"A {kind.__name__.lower()} in the store cannot be read: {error}. "
            f"It begins {document[:60]!r}.",
            "It was changed by hand, or written by a newer underdog: pip install -U underdog",
        ) from None


def key(text: str) -> str:
    """What stands for ``text`` in an indexed column: itself, unless a database would refuse it.

    Two texts have the same key only where they are equal.
    """
    safe = _KEY_TO_ESCAPE.sub(lambda found: f"\\{ord(found[0]):04x}", text)
    if len(safe) <= _KEY_LENGTH:
        return safe
    digest = hashlib.sha256(safe.encode()).hexdigest()
    return f"{safe[:_KEY_LENGTH]}\\…{digest}"


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return _marked(value) if not value.isascii() else value
    if kind is float:
        if not math.isfinite(value):
            raise _UnstorableError(f"{value}, which is not a finite number")
        return value
    if value is None or kind is int or kind is bool:
        return value
    if kind in _FIELDS or dataclasses.is_dataclass(kind):
        return _plain_record(value, kind)
    if isinstance(value, dict):
        return _plain_dict(value)
    if isinstance(value, list | tuple):
        if _finite_numbers(value):  # a column of a timeline: the short way
            return value
        return [_at(str(i), item) for i, item in enumerate(value)]
    if isinstance(value, str):
        return _plain(str(value))
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return _plain(float(value))
    raise _UnstorableError(f"of the kind '{kind.__name__}'")


def _plain_record(record: Any, kind: type[Any]) -> dict[str, Any]:
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = _FIELDS[kind] = [(f.name, f.default is None) for f in dataclasses.fields(kind)]
    plain: dict[str, Any] = {}
    for name, optional in fields:
        value = getattr(record, name)
        if value is None:
            if not optional:
                plain[name] = None
        elif type(value) is str and value.isascii():  # most fields: the short way
            plain[name] = value
        else:
            plain[name] = _at(name, value)
    return plain


def _plain_dict(value: dict[Any, Any]) -> dict[str, Any]:
    if not value:
        return {}
    odd = next((k for k in value if not isinstance(k, str)), None)
    if odd is not None:
        raise _UnstorableError(f"a table with the key {odd!r}, which is no text")
    return {_marked(k): _at(k, v) for k, v in value.items()}


def _finite_numbers(values: list[Any] | tuple[Any, ...]) -> bool:
    """True only where each is a finite float or None; a sum of finite ones may overflow too."""
    known = [value for value in values if value is not None]
    return all(type(value) is float for value in known) and math.isfinite(sum(known))


def _at(name: str, value: Any) -> Any:
    try:
        return _plain(value)
    except _UnstorableError as error:
        error.path.append(_shown(name))
        raise


def _marked(text: str) -> str:
    return _TO_ESCAPE.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text)


def _unmarked(value: Any) -> Any:
    if isinstance(value, str):
        return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value)
    if isinstance(value, list):
        return [_unmarked(item) for item in value]
    if isinstance(value, dict):
        return {_unmarked(k): _unmarked(v) for k, v in value.items()}
    return value


def _shown(text: str) -> str:
    """Text as an error message can print it."""
    if text.isidentifier() and text.isascii():
        return text
    return ascii(text if len(text) <= 60 else text[:60] + "…")
