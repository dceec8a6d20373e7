"""Prices of services: what managed ones add, and the user's own table of API prices."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from underdog.catalog.facts import table
from underdog.core.layers import Service
from underdog.core.problems import Problems
from underdog.core.services import Api
from underdog.errors import CatalogError, did_you_mean

PRICES = (
    "per_million_tokens",
    "per_million_input_tokens",
    "per_million_output_tokens",
    "per_request",
)
FIELDS = ("name", *PRICES, "source", "date")
HINT = "docs/how-to/compare-services.md shows a table of API prices."


def managed() -> list[Service]:
    """The managed services whose prices follow from those of the bare machines."""
    return [Service(name=name, **row) for name, row in table("services.toml").items()]


def apis(path: str | Path) -> list[Api]:
    """The prices of APIs in a TOML file (tables ``[[api]]``) or a CSV file.

    Raises:
        CatalogError: it cannot be read; all faults together, by entry and field.
    """
    path = Path(path)
    problems = Problems(str(path))
    found = [_api(number, row, problems) for number, row in enumerate(_rows(path), start=1)]
    names = [api.name for api in found]
    for number, name in enumerate(names, start=1):
        if name in names[: number - 1]:
            problems.add(number, "name", f"'{name}' stands there twice")
    if problems.count:
        said = problems.text_of_all().replace("cannot be imported", "cannot be taken as API prices")
        raise CatalogError(said, HINT)
    if not found:
        raise CatalogError(f"There is no API in '{path}'.", HINT)
    return found


def _rows(path: Path) -> list[Mapping[str, Any]]:
    try:
        content = path.read_text(encoding="utf-8-sig")
        if path.suffix.lower() != ".toml":
            return list(csv.DictReader(io.StringIO(content, newline=""), strict=True))
        rows = tomllib.loads(content).get("api", [])
    except OSError as error:
        raise CatalogError(f"Cannot read the API prices '{path}': {error.strerror}.") from error
    except (ValueError, csv.Error) as error:
        reason = " ".join(str(error).split())[:200]
        raise CatalogError(f"Cannot read the API prices '{path}': {reason}.", HINT) from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise CatalogError(f"'{path}' has no tables [[api]].", HINT)
    return rows


def _api(number: int, row: Mapping[str, Any], problems: Problems) -> Api:
    for field in row:
        if field not in FIELDS:
            meant = did_you_mean(str(field), FIELDS)
            problems.add(number, str(field), f"there is no such field. {meant}")
    name = problems.text(number, "name", row.get("name"))
    if not name:
        problems.add(number, "name", "it is empty")
    prices = {field: problems.number(number, field, row.get(field)) for field in PRICES}
    split = prices["per_million_input_tokens"] or prices["per_million_output_tokens"]
    if prices["per_million_tokens"] and split:
        problems.add(number, "per_million_tokens", "it is for all tokens, and others are for some")
    if not any(prices.values()):
        problems.add(number, "per_million_tokens", "it has no price at all")
    source, date = (problems.text(number, k, _plain(row.get(k))) for k in ("source", "date"))
    return Api(name=name or "", source=source or "", date=date or "", **prices)


def _plain(value: Any) -> Any:
    """A date of TOML as text."""
    return value.isoformat() if hasattr(value, "isoformat") else value
