"""A page as JSON: what ``report -o page.json``, ``show --json`` and the twins of pages give."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec


def to_json(value: Any) -> str:
    """A page, or any view, as JSON; NaN and infinity become null."""
    try:
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    except UnicodeEncodeError:  # half of a surrogate pair, of a file name that is no UTF-8
        return json.dumps(_finite(msgspec.to_builtins(value)), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
