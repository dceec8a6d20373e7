"""What every provider's ``fetch`` is given, what its ``parse`` takes, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from underdog.errors import CatalogError

Row = Mapping[str, str]
Progress = Callable[[str, int, int | None], None]


def silent(what: str, done: int, total: int | None) -> None:
    """A progress that tells nobody."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """What a provider answered, as it was: JSON-able, so that it can be recorded and replayed.

    Args:
        provider: the name of the provider module.
        documents: by kind, such as ``prices``; each element in the shape of the provider's own
            response items.
        source: what is said to be the source of a price, such as ``AWS price list``.
        date: the day of the fetch, ISO 8601.
    """

    provider: str
    documents: dict[str, list[Any]]
    source: str
    date: str

    def items(self, kind: str) -> list[Any]:
        """The documents of a kind; none where the answer has no such kind."""
        return self.documents.get(kind, [])


@dataclass(frozen=True, kw_only=True, slots=True)
class FetchOptions:
    """What a refresh asks of a provider.

    Args:
        regions: only these; the provider's default where empty.
        file: a file or folder of the user's instead of the web, for providers that read one.
        only: parts of the provider's answer that were asked for by name, such as the clouds of
            ``skypilot``; the provider's default where empty.
        accept: sellers whose answer is taken although the rules reject it as a whole.
        progress: told what is being fetched, how many of it are here, and of how many if known.
        now: the moment of the refresh.
    """

    regions: tuple[str, ...] = ()
    file: Path | None = None
    only: tuple[str, ...] = ()
    accept: tuple[str, ...] = ()
    progress: Progress = silent
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def date(self) -> str:
        """The day of the refresh in UTC, ISO 8601."""
        return self.now.astimezone(UTC).date().isoformat()


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row of a source that is not an offer, with the reason."""

    provider: str
    region: str
    instance_type: str
    reason: str


def mapping(value: Any, where: str) -> Mapping[str, Any]:
    """A document, or a part of one, that must be an object.

    Args:
        where: which row and field, for the message, such as ``aws: prices[3].product``.

    Raises:
        CatalogError: it is something else.
    """
    if not isinstance(value, dict):
        raise CatalogError(f"{where} is {type(value).__name__}, and an object was expected.")
    return value


def text(value: Any, where: str) -> str:
    """A field that must be text and not empty, without blanks around it.

    Raises:
        CatalogError: it is missing, empty, or something else.
    """
    if not isinstance(value, str) or not value.strip():
        shown = "missing" if value is None else f"'{str(value)[:40]}'"
        raise CatalogError(f"{where} is {shown}, and a name was expected.")
    return value.strip()


def number(value: Any) -> float | None:
    """A positive number of a table, or None where the field is empty, 0 or no number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        found = float(value or "")
    except (ValueError, OverflowError):
        return None
    return found if 0 < found < float("inf") else None
