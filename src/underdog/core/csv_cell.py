"""Texts in the cells of a CSV file, so that no spreadsheet takes one for a formula.

A cell that begins with a sign of a formula gets an apostrophe before it (OWASP, CSV injection);
reading takes it off again, so that the text comes back as it was.
"""

from __future__ import annotations

from typing import Any

_STARTS = ("=", "+", "-", "@", "\t", "\r")


def guarded(value: Any) -> Any:
    """A cell to write; what is no text is left as it is, and so is a number."""
    return f"'{value}" if isinstance(value, str) and _computes(value) else value


def unguarded(text: str) -> str:
    """The text of a cell that ``guarded`` made, or of any other."""
    return text[1:] if text.startswith("'") and _computes(text) else text


def _computes(text: str) -> bool:
    bare = text.lstrip("'")
    if not bare.startswith(_STARTS):
        return False
    try:
        float(bare)
    except ValueError:
        return True
    return False
