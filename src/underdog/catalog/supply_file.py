"""A table of what is told of getting machines and keeping them: CSV or Parquet, one place a row.

``docs/reference/availability.md`` describes its columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb

from underdog.core.attempts import PURCHASES, Place
from underdog.core.availability import FIRST_RATE, Told
from underdog.core.problems import Problems, shown
from underdog.core.table import connect
from underdog.errors import CatalogError, did_you_mean

_TEXTS = ("provider", "region", "zone", "instance_type", "purchase", "source")
_NEEDED = ("provider", "region", "instance_type")
_FACTS = (
    "offered",
    "chance",
    "placement_score",
    "wait_seconds",
    "interruptions_per_hour",
    "interruption_band",
    "price_low",
    "price_high",
)
COLUMNS = (*_TEXTS, *_FACTS)
# The records behind FIRST_RATE are of machines in the highest bands of AWS's Spot Instance Advisor:
# a band is taken as its middle over that of theirs. A judgement: the bands are shares of machines
# in a month, whatever time each of them ran.
_BAND_OF_FIRST_RATE = 20.0
_BANDS = {"<5": 2.5, "5-10": 7.5, "10-15": 12.5, "15-20": 17.5, ">20": 25.0}
_FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def load(path: str | Path) -> list[Told]:
    """The places of a file.

    Raises:
        CatalogError: it cannot be read, lacks a column, or some rows are faulty; all faults are
            told by row and field.
    """
    path = Path(path)
    rows = _rows(path)
    problems = Problems(str(path))
    # the first line of a CSV file names the columns
    found = [_told(number, row, problems) for number, row in enumerate(rows, start=2)]
    if problems.count:
        raise CatalogError(
            problems.text_of_all(), "docs/reference/availability.md has the columns."
        )
    if not rows:
        raise CatalogError(f"'{path}' has no row.", "Each row tells of one place.")
    return [told for told in found if told is not None]


def _rows(path: Path) -> list[dict[str, Any]]:
    reader = "read_parquet(?)" if path.suffix == ".parquet" else "read_csv(?, all_varchar = true)"
    if not path.is_file():
        hint = "docs/reference/availability.md says what it holds."
        raise CatalogError(f"There is no file '{path}'.", hint)
    try:
        read = connect().execute(f"SELECT * FROM {reader}", [str(path)])
        names = [str(column[0]).strip().lower() for column in read.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in read.fetchall()]
    except duckdb.Error as error:
        reason = str(error).partition("\n")[0]
        raise CatalogError(f"'{path}' cannot be read: {reason}") from None
    for name in names:
        if name not in COLUMNS:
            raise CatalogError(
                f"'{path}' has an unknown column '{name}'.", did_you_mean(name, COLUMNS)
            )
    for name in _NEEDED:
        if name not in names:
            raise CatalogError(f"'{path}' has no column '{name}'.", did_you_mean(name, names))
    return rows


def _told(number: int, row: Mapping[str, Any], problems: Problems) -> Told | None:
    before = problems.count
    text = {name: problems.text(number, name, row.get(name)) or "" for name in _TEXTS}
    for name in _NEEDED:
        if not text[name]:
            problems.add(number, name, "it is missing")
    purchase = text["purchase"] or "spot"
    if purchase not in PURCHASES:
        problems.add(number, "purchase", f"{shown(purchase)}: {did_you_mean(purchase, PURCHASES)}")
    numbers = {
        name: problems.number(number, name, row.get(name), zero=name == "chance")
        for name in _FACTS
        if name not in ("offered", "interruption_band")
    }
    low, high = numbers["price_low"], numbers["price_high"]
    if (low is None) != (high is None) or (low is not None and high is not None and low > high):
        problems.add(number, "price_low", "it stands beside a price_high that is no lower")
    chance, score = numbers["chance"], numbers["placement_score"]
    if chance is not None and chance > 1:
        problems.add(number, "chance", f"{shown(row['chance'])} is not within 0 and 1")
    if score is not None and not 1 <= score <= 10:
        problems.add(number, "placement_score", f"{shown(score)} is not within 1 and 10")
    band = _band(number, row.get("interruption_band"), problems)
    offered = _flag(number, row.get("offered"), problems)
    if problems.count > before:
        return None
    place = Place(
        provider=text["provider"],
        region=text["region"],
        zone=text["zone"],
        instance_type=text["instance_type"],
        purchase=purchase,
    )
    return Told(
        place=place,
        offered=offered,
        chance=score / 10 if chance is None and score is not None else chance,
        wait=numbers["wait_seconds"],
        interruptions=numbers["interruptions_per_hour"] or band,
        prices=None if low is None or high is None else (low, high),
        source=text["source"],
    )


def _band(number: int, given: Any, problems: Problems) -> float | None:
    """Interruptions per hour of a band such as ``5-10%``."""
    text = re.sub(r"[\s%]", "", str(given or "")).replace("–", "-")
    if not text:
        return None
    if text not in _BANDS:
        problems.add(
            number, "interruption_band", f"{shown(given)} is none of {', '.join(_BANDS)} %"
        )
        return None
    return FIRST_RATE * _BANDS[text] / _BAND_OF_FIRST_RATE


def _flag(number: int, given: Any, problems: Problems) -> bool | None:
    if given is None or given == "":
        return None
    found = _FLAGS.get(str(given).strip().lower())
    if found is None:
        problems.add(number, "offered", f"{shown(given)} is neither true nor false")
    return found
