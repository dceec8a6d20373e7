"""The user's own prices: machines that they own, offers that they negotiated, and discounts.

All in one TOML file; ``docs/reference/static.md`` describes it.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from underdog import config
from underdog.catalog.http import Http
from underdog.catalog.offers_file import offer_of
from underdog.catalog.sources import FetchOptions, LeftOut, Raw
from underdog.core.columns import BY_NAME
from underdog.core.expression import parse as parse_expression
from underdog.core.problems import Problems, shown
from underdog.errors import CatalogError, UnderdogError, did_you_mean

FILE_NAME = "catalog.toml"
HOURS_PER_YEAR = 8760
HOURS_PER_MONTH = HOURS_PER_YEAR / 12
OWN = "own price"
_TABLES = ("machine", "offer", "discount")
_COSTS = (
    "purchase_price",
    "life_years",
    "utilisation",
    "power_w",
    "electricity_per_kwh",
    "hosting_per_month",
)
_DISCOUNT = ("name", "where", "percent", "factor")


@dataclass(frozen=True, slots=True)
class Discount:
    """A rule: the offers that satisfy ``sql`` cost ``factor`` of their list price."""

    name: str
    where: str
    sql: str
    factor: float


def file(given: Path | None = None) -> Path:
    """The file: the one given, else ``catalog.toml`` in the user's data folder."""
    return given or config.data_folder() / FILE_NAME


def unready(options: FetchOptions) -> str | None:
    """Why it cannot be asked: there is no file."""
    path = file(options.file)
    return None if path.exists() else f"there is no file '{path}' with prices of your own"


def asks(options: FetchOptions) -> list[str]:
    """What a refresh reads."""
    return [f"reads '{file(options.file)}'"]


def fetch(http: Http, options: FetchOptions) -> Raw:
    """Read the file; nothing is asked of the web.

    Raises:
        CatalogError: it cannot be read, is no TOML, or holds faults, all of which are named.
    """
    path = file(options.file)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CatalogError(
            f"Cannot read your prices '{path}': {error.strerror}.",
            "docs/reference/static.md shows what such a file looks like.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise CatalogError(f"'{path}' is no TOML: {error}.") from error
    plain = json.loads(json.dumps(content, default=str))  # days are text, as in JSON
    raw = Raw(provider="static", documents={"file": [plain]}, source=str(path), date=options.date)
    list(parse(raw))
    return raw


def parse(raw: Raw) -> Iterator[dict[str, Any] | LeftOut]:
    """The user's machines and offers. ``discounts`` gives the rest of the file.

    Raises:
        CatalogError: names every fault by its table, number and field.
    """
    problems = Problems(raw.source)
    rows = []
    for content in raw.items("file"):
        tables = _tables(content, problems)
        rows += [_machine(number, entry, raw, problems) for number, entry in tables["machine"]]
        rows += [_offer(number, entry, raw, problems) for number, entry in tables["offer"]]
        for number, entry in tables["discount"]:
            _discount(number, entry, problems)
    _raise_if_any(problems)
    seen: set[tuple[Any, ...]] = set()
    for row in rows:
        key = identity(row)
        if key in seen:
            raise CatalogError(f"'{raw.source}' has the offer '{'/'.join(map(str, key))}' twice.")
        seen.add(key)
    yield from rows


def discounts(raw: Raw) -> list[Discount]:
    """The rules, in the order of the file.

    Raises:
        CatalogError: names every fault.
    """
    problems = Problems(raw.source)
    found = [
        _discount(number, entry, problems)
        for content in raw.items("file")
        for number, entry in _tables(content, problems)["discount"]
    ]
    _raise_if_any(problems)
    return [one for one in found if one is not None]


def identity(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells two offers apart."""
    names = ("provider", "region", "zone", "instance_type", "purchase", "term", "service")
    return tuple(row[name] for name in names)


def _raise_if_any(problems: Problems) -> None:
    if problems.count:
        text = problems.text_of_all().replace("cannot be imported", "cannot be taken")
        raise CatalogError(text, "docs/reference/static.md describes every field.")


def _tables(content: Any, problems: Problems) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {name: [] for name in _TABLES}
    if not isinstance(content, dict):
        problems.add(1, "file", f"{shown(content)} is not a table")
        return found
    for name, entries in content.items():
        if name not in _TABLES:
            problems.add(1, str(name), f"there is no such table. {did_you_mean(name, _TABLES)}")
        elif not isinstance(entries, list):
            problems.add(1, name, f"write [[{name}]], with two brackets")
        else:
            for number, entry in enumerate(entries, start=1):
                if isinstance(entry, dict):
                    found[name].append((number, entry))
                else:
                    problems.add(number, name, f"{shown(entry)} is not a table")
    return found


def _known(
    number: int, entry: Mapping[str, Any], names: tuple[str, ...], problems: Problems
) -> None:
    for name in entry:
        if name not in names:
            problems.add(number, str(name), f"there is no such field. {did_you_mean(name, names)}")


def _offer(number: int, entry: dict[str, Any], raw: Raw, problems: Problems) -> dict[str, Any]:
    _known(number, entry, tuple(BY_NAME), problems)
    for name in ("provider", "region", "instance_type", "price_per_hour"):
        if entry.get(name) in (None, ""):
            problems.add(number, name, "it is missing")
    dated = {**entry, "price_date": entry.get("price_date") or raw.date}
    try:
        date.fromisoformat(str(dated["price_date"]))
    except ValueError:
        problems.add(number, "price_date", f"{shown(dated['price_date'])} is no day: 2026-11-30")
    row = offer_of(number, dated, problems)
    return {**row, "price_source": f"{OWN} of '{raw.source}'"}


def _machine(number: int, entry: dict[str, Any], raw: Raw, problems: Problems) -> dict[str, Any]:
    _known(number, entry, (*BY_NAME, *_COSTS), problems)
    if entry.get("instance_type") in (None, ""):
        problems.add(number, "instance_type", "it is missing: the machine's name")
    if "price_per_hour" in entry:
        problems.add(number, "price_per_hour", "it follows from what the machine costs")
    costs = {name: problems.number(number, name, entry.get(name)) for name in _COSTS}
    for name in ("purchase_price", "life_years", "utilisation"):
        if name not in entry:
            problems.add(number, name, "it is missing")
    if (costs["utilisation"] or 0) > 1:
        problems.add(number, "utilisation", f"{shown(entry['utilisation'])} is more than 1")
    if (costs["power_w"] is None) != (costs["electricity_per_kwh"] is None):
        problems.add(number, "power_w", "give it together with electricity_per_kwh, or neither")
    given = {name: value for name, value in entry.items() if name in BY_NAME}
    place = {"provider": "on-premises", "region": "on-premises", "price_date": raw.date}
    price = hourly_cost(costs)
    made = {**place, **{k: v for k, v in given.items() if v != ""}, "price_per_hour": price}
    row = offer_of(number, made, problems)
    return {**row, "price_source": f"{OWN} of '{raw.source}': {_told(costs)}"}


def hourly_cost(costs: Mapping[str, float | None]) -> float | None:
    """USD for an hour of use, None where something that it needs is unknown.

    (purchase price / (life x 8760 h) + hosting per month / 730 h) / utilisation + power x price of
    electricity. What the machine costs whether it works or not is borne by the hours in which it
    works; power is what it draws in those.

    Args:
        costs: USD, years, a share, W, USD/kWh, USD per month.
    """
    price, years, share = (costs[n] for n in ("purchase_price", "life_years", "utilisation"))
    if price is None or years is None or share is None:
        return None
    standing = price / (years * HOURS_PER_YEAR)
    standing += (costs["hosting_per_month"] or 0) / HOURS_PER_MONTH
    power, electricity = costs["power_w"], costs["electricity_per_kwh"]
    running = 0.0 if power is None or electricity is None else power / 1000 * electricity
    return standing / share + running


def _told(costs: Mapping[str, float | None]) -> str:
    parts = [
        f"{costs['purchase_price'] or 0:,.0f} USD over {costs['life_years'] or 0:g} years",
        f"in use {costs['utilisation'] or 0:.0%} of the time",
    ]
    if costs["hosting_per_month"] is not None:
        parts.append(f"hosting {costs['hosting_per_month']:,g} USD a month")
    if costs["power_w"] is None or costs["electricity_per_kwh"] is None:
        parts.append("without electricity")
    else:
        parts.append(f"{costs['power_w']:,g} W at {costs['electricity_per_kwh']:g} USD/kWh")
    return ", ".join(parts)


def _discount(number: int, entry: dict[str, Any], problems: Problems) -> Discount | None:
    _known(number, entry, _DISCOUNT, problems)
    name = problems.text(number, "name", entry.get("name")) or f"discount {number}"
    where = problems.text(number, "where", entry.get("where"))
    percent = problems.number(number, "percent", entry.get("percent"))
    factor = problems.number(number, "factor", entry.get("factor"))
    if ("percent" in entry) == ("factor" in entry):
        problems.add(number, "percent", "give either percent or factor")
    if percent is not None and percent >= 100:
        problems.add(number, "percent", f"{shown(percent)} leaves no price")
    if where is None:
        problems.add(number, "where", "it is missing: which offers the discount is for")
        return None
    try:
        expression = parse_expression(where, BY_NAME)
    except UnderdogError as error:
        problems.add(number, "where", " ".join(filter(None, (error.message, error.hint))))
        return None
    for fault in expression.faults[:1]:
        problems.add(number, "where", f"{shown(where)} {fault.what}: {fault.remedy}")
    kept = factor if percent is None else 1 - percent / 100
    return None if kept is None else Discount(name, where, expression.sql, kept)
