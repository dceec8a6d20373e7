"""What the providers answer: fetched or replayed, recorded, and read into columns."""

from __future__ import annotations

import contextlib
import gc
import gzip
import operator
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np

from underdog import plugins
from underdog.catalog import quality
from underdog.catalog.http import Http
from underdog.catalog.sources import FetchOptions, LeftOut, Raw
from underdog.core.columns import OFFER_COLUMNS
from underdog.core.problems import SHOWN
from underdog.errors import (
    CatalogError,
    MissingPackageError,
    NotSetUpError,
    UnderdogError,
    UsageError,
    did_you_mean,
)

Arrays = dict[str, "np.ndarray[Any, Any]"]
STATIC = "static"
RECORDED = ".json.gz"
_NAMES = [column.name for column in OFFER_COLUMNS]
_NUMBERS = frozenset(column.name for column in OFFER_COLUMNS if column.kind == "number")
_CHUNK = 5000


@dataclass(frozen=True, slots=True)
class Asked:
    """A provider, and the parts of its answer that were asked for by name."""

    provider: str
    only: tuple[str, ...] = ()


@dataclass(slots=True)
class Answer:
    """Offers as columns of one length, what is no offer, and where both come from.

    ``sellers`` are the values of the column ``provider``: one, or the clouds of a list of many.
    """

    provider: str
    source: str
    date: str
    offers: Arrays
    sellers: set[str]
    left_out: list[LeftOut]
    raw: Raw | None = None  # of the user's own prices only: it is kept with the snapshot


@dataclass(frozen=True, slots=True)
class Failed:
    """A provider that gave no answer, and why; ``skipped`` where that was to be expected."""

    provider: str
    reason: str
    hint: str | None = None
    skipped: bool = False


class Columns:
    """Offers that come as dicts, kept as arrays: a dict of each would fill the memory."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._parts: list[list[np.ndarray[Any, Any]]] = [[] for _ in _NAMES]
        self._values = operator.itemgetter(*_NAMES)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add an offer, a dict of all ``OFFER_COLUMNS``."""
        self._rows.append(self._values(row))
        if len(self._rows) >= _CHUNK:
            self._pack()

    def _pack(self) -> None:
        columns = zip(*self._rows, strict=True) if self._rows else [()] * len(_NAMES)
        for name, parts, values in zip(_NAMES, self._parts, columns, strict=True):
            parts.append(_array(name, values))
        self._rows = []

    def arrays(self) -> Arrays:
        """All of them; numbers are floats with NaN for unknown, texts are objects."""
        self._pack()
        return {
            name: np.concatenate(parts) for name, parts in zip(_NAMES, self._parts, strict=True)
        }


def _array(name: str, values: tuple[Any, ...]) -> np.ndarray[Any, Any]:
    if name in _NUMBERS:
        return np.array(values, dtype=float)  # None becomes NaN
    made = np.empty(len(values), dtype=object)
    made[:] = values
    return made


def joined(answers: list[Answer]) -> Arrays:
    """The offers of all answers in one, taken out of the answers: they would be there twice."""
    parts = [one.offers for one in answers] or [Columns().arrays()]
    for one in answers:
        one.offers = {}
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in _NAMES}


def module(name: str) -> ModuleType:
    """A provider by its name.

    Raises:
        UsageError: there is none; the message names the nearest.
    """
    return plugins.load("underdog.catalog.providers", "underdog.providers", name)


def asked(names: tuple[str, ...]) -> list[Asked]:
    """The providers of names: ``aws``, ``skypilot``, ``skypilot:lambda`` or just ``lambda``.

    Raises:
        UsageError: names that stand for none, all of them.
    """
    from underdog.catalog.providers.skypilot import CLOUDS

    known = plugins.names("underdog.catalog.providers", "underdog.providers")
    found: dict[str, list[str]] = {}
    problems = []
    for name in names:
        provider, _, part = name.partition(":")
        if provider in CLOUDS and provider not in known and not part:
            provider, part = "skypilot", provider
        if provider not in known:
            hint = did_you_mean(provider, [*known, *CLOUDS])
            problems.append(f"There is no '{provider}' among the providers.\n{hint}")
            continue
        found.setdefault(provider, []).extend([part] if part else [])
    if problems:
        raise UsageError("\n".join(problems))
    return [Asked(provider, tuple(parts)) for provider, parts in found.items()]


def everyone() -> list[Asked]:
    """All providers that there are."""
    names = plugins.names("underdog.catalog.providers", "underdog.providers")
    return [Asked(name) for name in names]


def recorded(folder: Path) -> list[Asked]:
    """The providers whose answers were recorded in a folder.

    Raises:
        CatalogError: there are none.
    """
    names = sorted(file.name.removesuffix(RECORDED) for file in folder.glob(f"*{RECORDED}"))
    if not names:
        raise CatalogError(
            f"There are no recorded answers in '{folder}'.",
            f"Record some where there is a network: underdog catalog refresh --record {folder}",
        )
    return [Asked(name) for name in names]


def options_for(one: Asked, options: FetchOptions) -> FetchOptions:
    """The options of one provider: a folder is SkyPilot's, a file that of the user's prices."""
    file = options.file
    if file is not None and file.is_dir() == (one.provider == STATIC):
        file = None
    return replace(options, only=one.only, file=file)


def unready(one: Asked, options: FetchOptions) -> str | None:
    """Why a provider cannot be asked here, as far as it can tell without asking."""
    tell = getattr(module(one.provider), "unready", None)
    reason: str | None = tell(options_for(one, options)) if tell else None
    return reason


def asks(one: Asked, options: FetchOptions) -> list[str]:
    """What a refresh would ask of whom."""
    provider = module(one.provider)
    tell = getattr(provider, "asks", None)
    if tell is None:
        return [(provider.__doc__ or one.provider).strip().partition("\n")[0]]
    return list(tell(options_for(one, options)))


def ask(one: Asked, options: FetchOptions, http: Http) -> Raw | Failed:
    """What a provider answers now."""
    try:
        raw: Raw = module(one.provider).fetch(http, options_for(one, options))
    except (MissingPackageError, NotSetUpError) as error:
        return Failed(one.provider, error.message, error.hint, skipped=True)
    except UnderdogError as error:
        return Failed(one.provider, error.message, error.hint)
    return raw


def record(raw: Raw, folder: Path) -> None:
    """Write an answer into a folder, to be replayed.

    Raises:
        CatalogError: it cannot be written.
    """
    target = folder / f"{raw.provider}{RECORDED}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.compress(msgspec.json.encode(raw), 6, mtime=0))
    except OSError as error:
        raise CatalogError(f"Cannot record into '{target}': {error.strerror}.") from error


def replay(one: Asked, folder: Path) -> Raw | Failed:
    """What a provider answered when it was recorded."""
    file = folder / f"{one.provider}{RECORDED}"
    try:
        return msgspec.json.decode(gzip.decompress(file.read_bytes()), type=Raw)
    except OSError as error:
        return Failed(one.provider, f"Cannot replay '{file}': {error.strerror or error}.")
    except (EOFError, zlib.error, msgspec.MsgspecError, RecursionError) as error:
        return Failed(one.provider, f"'{file}' is no recorded answer: {error}.")


def read(raw: Raw, options: FetchOptions) -> Answer | Failed:
    """The offers of an answer."""
    if raw.provider == STATIC:
        return _own(raw)
    columns, left_out = Columns(), []
    try:
        with _uncollected():
            for found in _counted(raw, options):
                if isinstance(found, LeftOut):
                    left_out.append(found)
                else:
                    columns.add(found)
            offers = columns.arrays()
    except UnderdogError as error:
        return Failed(raw.provider, error.message, error.hint)
    if not len(offers["provider"]):
        why = f": {left_out[0].reason}" if left_out else ""
        return Failed(raw.provider, f"The answer of {raw.source} holds no offer{why}.")
    if options.regions:
        places = set(offers["region"].tolist())
        keep = np.isin(offers["region"].astype(str), options.regions)
        offers = {name: values[keep] for name, values in offers.items()}
        if not keep.any():
            wanted = ", ".join(f"'{region}'" for region in options.regions)
            hint = did_you_mean(options.regions[0], places)
            return Failed(raw.provider, f"It has no offer in {wanted}.", hint)
    sellers = set(offers["provider"].tolist())
    return Answer(raw.provider, raw.source, raw.date, offers, sellers, left_out)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without the search for cycles: it takes a quarter of the time, and rows have none."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _own(raw: Raw) -> Answer | Failed:
    try:
        rows = list(module(STATIC).parse(raw))
        module(STATIC).discounts(raw)
    except UnderdogError as error:
        return Failed(raw.provider, error.message, error.hint)
    if faults := quality.impossible(rows):
        lines = [f"\n  {one.offer}: {one.message}" for one in faults[:SHOWN]]
        more = f"\n  and {len(faults) - SHOWN:,} more" if len(faults) > SHOWN else ""
        return Failed(STATIC, f"'{raw.source}' cannot be taken:{''.join(lines)}{more}")
    return Answer(STATIC, raw.source, raw.date, Columns().arrays(), set(), [], raw)


def _counted(raw: Raw, options: FetchOptions) -> Iterator[dict[str, Any] | LeftOut]:
    for number, found in enumerate(module(raw.provider).parse(raw)):
        if number % 10_000 == 0:
            options.progress("rows", number, None)
        yield found
