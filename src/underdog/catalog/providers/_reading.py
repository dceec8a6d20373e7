"""Reading the fields of an answer: what has the wrong shape is told by row and field."""

from __future__ import annotations

from typing import Any

from underdog.catalog.hardware import price_of
from underdog.catalog.sources import Raw, number
from underdog.errors import CatalogError
from underdog.model import Price


def optional_text(value: Any, where: str) -> str:
    """A field that is text without blanks around it, or is not there: then empty.

    Raises:
        CatalogError: it is something else.
    """
    if isinstance(value, str):
        return value.strip()
    if value is None:
        return ""
    raise CatalogError(f"{where} is '{str(value)[:40]}', and text was expected.")


def optional_list(value: Any, where: str) -> list[Any]:
    """A field that is a list, or is not there: then empty.

    Raises:
        CatalogError: it is something else.
    """
    if isinstance(value, list):
        return value
    if value is None:
        return []
    raise CatalogError(f"{where} is {type(value).__name__}, and a list was expected.")


def hourly(value: Any, hours: float, raw: Raw, where: str, missing: str) -> Price:
    """The price of an hour, of an amount for so many hours; unknown with a reason where it is none.

    Args:
        value: the amount in USD as the answer has it: a number, or a number as text.
        missing: the reason where there is none.

    Raises:
        CatalogError: it is something else.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise CatalogError(f"{where} is '{str(value)[:40]}', and an amount was expected.")
    amount = number(value)
    shown = _shown(value) if amount is None else repr(amount / hours)
    return price_of(shown, raw.source, raw.date, missing)


def _shown(value: str | int | float | None) -> str | None:
    """A value that is no amount, as text that is none either: a number cut short would be one."""
    if value is None:
        return None
    if isinstance(value, int) and abs(value) > 10**40:
        return "a number beyond all bounds"
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
