"""Offers from a file of the user's: CSV, JSON, JSON lines, TOML or Parquet, also gzipped.

Its columns are those of ``underdog.core.columns``, and ``offer``, a name that stands for what is
missing of provider, region and instance type. What is known of an accelerator or a processor by its
name is filled in; what the file says stands.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import hashlib
import io
import json
import tomllib
import zlib
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import duckdb

from underdog.catalog.facts import accelerator_named, accelerators, part_of, processor_of_family
from underdog.catalog.hardware import Hardware, offer_row
from underdog.catalog.providers import azure
from underdog.catalog.snapshot import Snapshot
from underdog.core.columns import BY_NAME, OFFER_COLUMNS
from underdog.core.problems import Problems, shown
from underdog.core.table import Table, connect
from underdog.core.trials_offers import PURCHASES, bare
from underdog.errors import CatalogError, did_you_mean
from underdog.model import Price
from underdog.progress import track

# Above this, a host memory in GiB is a number of bytes or MiB under a wrong name.
MOST_MEMORY_GIB = 65536
Row = tuple[int, Mapping[str, Any]]


def load(path: str | Path, of_trials: bool = False) -> Snapshot:
    """The offers of a file.

    Args:
        of_trials: it is a file of trials that says in its rows what their offers are.

    Raises:
        CatalogError: it cannot be read, holds no offer, or some rows are faulty; all faults are
            told by row and field.
    """
    content, rows = _offers(Path(path), of_trials)
    made = [row for row, _ in rows]
    table = Table.from_arrays({c.name: [row[c.name] for row in made] for c in OFFER_COLUMNS})
    return Snapshot(
        table=table,
        hash=hashlib.sha256(content).hexdigest(),
        date=max((row["price_date"] or "" for row in made), default=""),
        sources=({"name": str(path)},),
        left_out=(),
        rows=len(made),
    )


def entries(
    path: str | Path, of_trials: bool = False
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each offer, in the order of the file, with what stands in columns that are not ours.

    Args:
        of_trials: as in ``load``; of the columns that are not ours only ``offer`` is one of it.

    Raises:
        CatalogError: as ``load``.
    """
    return _offers(Path(path), of_trials)[1]


def other_columns(path: str | Path, of_trials: bool = False) -> list[dict[str, Any]]:
    """Of each offer, in the order of ``load``, what stands in columns that are not ours."""
    return [other for _, other in entries(path, of_trials)]


def _offers(
    path: Path, of_trials: bool
) -> tuple[bytes, list[tuple[dict[str, Any], dict[str, Any]]]]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise CatalogError(f"Cannot read the offers '{path}': {error.strerror}.") from error
    problems = Problems(str(path))
    given = _rows(path, content, problems)
    given = _described(given) if of_trials else given
    named = track(given, f"offers of {path.name}")
    rows = [offer_of(number, row, problems) for number, row in named]
    if problems.count:
        lines = problems.text_of_all().replace("cannot be imported", "cannot be taken as offers")
        raise CatalogError(lines, "docs/reference/columns.md says what each column holds.")
    if not rows:
        raise CatalogError(f"There is no offer in '{path}'.", "The first line names the columns.")
    others = [{k: v for k, v in row.items() if k not in BY_NAME} for _, row in given]
    return content, list(zip(rows, others, strict=True))


def _described(rows: list[Row]) -> list[Row]:
    """Of rows of trials the first of each offer, without what is of the trial."""
    found: dict[str, Row] = {}
    for number, row in rows:
        name = str(row.get("offer") or "").strip()
        kept = {k: v for k, v in row.items() if k in BY_NAME or k == "offer"}
        found.setdefault(name, (number, kept))
    return list(found.values())


def _rows(path: Path, content: bytes, problems: Problems) -> list[Row]:
    """The rows of a file with their numbers: the line of a CSV file, the place in a list."""
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    try:
        if kind == "parquet":
            found = list(track(_parquet(path), f"rows of {path.name}"))
        else:
            text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode(
                "utf-8-sig"
            )
            read = {"json": _json, "jsonl": _json, "toml": _toml}.get(kind, _csv)
            found = list(track(read(text), f"rows of {path.name}"))
    except RecursionError as error:
        raise CatalogError(f"Cannot read '{path}' as {kind}: it is nested too deeply.") from error
    except (ValueError, OSError, EOFError, zlib.error, csv.Error, duckdb.Error) as error:
        reason = " ".join(str(error).split())[:200]
        raise CatalogError(f"Cannot read '{path}' as {kind or 'CSV'}: {reason}") from error
    names = dict.fromkeys(str(name) for _, row in found for name in row)
    for name in names:
        close = difflib.get_close_matches(name, BY_NAME, n=1, cutoff=0.85)
        if name not in BY_NAME and close:
            problems.add(1, name, f"there is no such column. Did you mean '{close[0]}'?")
    return found


def _csv(text: str) -> Iterator[Row]:
    reader = csv.DictReader(io.StringIO(text, newline=""), strict=True)
    for row in reader:
        if None in row:
            raise ValueError(f"line {reader.line_num} has more fields than the first line")
        yield reader.line_num, row


def _json(text: str) -> Iterator[Row]:
    if text.lstrip().startswith("["):
        values = json.loads(text)
    else:
        values = [json.loads(line) for line in text.splitlines() if line.strip()]
    for place, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise ValueError(f"entry {place} is not an object")
        yield place, value


def _toml(text: str) -> Iterator[Row]:
    told = tomllib.loads(text)
    others = [name for name in told if name != "offer"]
    values = told.get("offer")
    if others or not isinstance(values, list):
        what = f"there is a '{others[0]}'" if others else "there is none"
        raise ValueError(f"its offers stand in [[offer]] tables, and {what}")
    for place, value in enumerate(values, start=1):
        if not isinstance(value, dict):
            raise ValueError(f"offer {place} is not a table")
        yield place, {k: str(v) if isinstance(v, date) else v for k, v in value.items()}


def _parquet(path: Path) -> Iterator[Row]:
    found = connect().execute("SELECT * FROM read_parquet(?)", [str(path)])
    names = [part[0] for part in found.description or ()]
    for place, values in enumerate(found.fetchall(), start=1):
        yield place, dict(zip(names, values, strict=True))


def offer_of(number: int, row: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """The offer of one row as a dict of all columns; faults go to ``problems``."""
    given: dict[str, Any] = {}
    for column in OFFER_COLUMNS:
        value = row.get(column.name)
        if column.kind == "number":
            zero = column.name in ("accelerator_count", "local_disk_gb", "kg_co2e_per_kwh")
            given[column.name] = problems.number(number, column.name, value, zero=zero)
        else:
            given[column.name] = problems.text(number, column.name, value)
    guess = bare(str(row.get("offer") or given["instance_type"] or ""), "").offer
    name = given["instance_type"] or guess.instance_type
    if not name:
        problems.add(number, "instance_type", "it is empty, and so is offer")
    purchase = given["purchase"] or guess.purchase
    if purchase not in PURCHASES:
        problems.add(number, "purchase", f"{shown(purchase)}: {did_you_mean(purchase, PURCHASES)}")
    if (given["currency"] or "USD") != "USD":
        problems.add(number, "currency", f"{shown(given['currency'])}: prices are in USD")
    if (given["memory_gib"] or 0) > MOST_MEMORY_GIB:
        problems.add(number, "memory_gib", f"{shown(given['memory_gib'])} GiB is no host's memory")
    provider = given["provider"] or guess.provider
    made = offer_row(
        provider,
        given["region"] or guess.region,
        name,
        purchase,
        _hardware(number, provider, name, given, problems),
        price=_price(given, problems.file),
    )
    kept = {"accelerator", "accelerator_count", "accelerator_memory_gib_total"}
    stands = {k: v for k, v in given.items() if v is not None and k not in kept}
    return {**made, "nodes": guess.nodes, **stands}


def _price(given: Mapping[str, Any], file: str) -> Price:
    source, date = given["price_source"] or file, given["price_date"] or ""
    if given["price_per_hour"] is None:
        reason = given["price_unknown_reason"] or "the file has no price for it"
        return Price(unknown_reason=reason, source=source, date=date)
    return Price(per_hour=given["price_per_hour"], source=source, date=date)


def _hardware(
    number: int, provider: str, name: str, given: Mapping[str, Any], problems: Problems
) -> Hardware:
    accelerator, count = given["accelerator"], given["accelerator_count"]
    if count and accelerator is None:
        problems.add(number, "accelerator", f"it is empty, and accelerator_count is {count:g}")
    if accelerator is None:
        each = None
    else:
        accelerator, count, each = _accelerator(accelerator, count, given)
        if count == 0:
            said = "0, and there is an accelerator; of a part of one, say the share, such as 0.25"
            problems.add(number, "accelerator_count", said)
    return Hardware(
        vcpus=given["vcpus"],
        memory_gib=given["memory_gib"],
        arch=given["arch"],
        processor=_processor(provider, name),
        cpu_ghz=given["cpu_ghz"],
        accelerator=accelerator,
        accelerator_count=count,
        accelerator_memory_gib=each,
        accelerator_usable_gib=given["accelerator_usable_gib"],
        network_gbps=given["network_gbps"],
        local_disk_gb=given["local_disk_gb"],
    )


def _accelerator(
    name: str, count: float | None, given: Mapping[str, Any]
) -> tuple[str, float | None, float | None]:
    """Its short name, the count (below 1 for a part of one) and the nominal GiB of each.

    A part of an accelerator has the count 0 in some tables, and its memory in the total.
    """
    each, total = given["accelerator_memory_gib"], given["accelerator_memory_gib_total"]
    if each is None and total is not None:
        each = total / max(count or 1.0, 1.0)
    named = accelerator_named(name, each) or accelerator_named(name)
    if named is None:
        return name, count, each
    facts = accelerators()[named.key]
    part = part_of(facts, each) if each is not None and (count or 0) <= 1 else None
    if named.fraction < 1:
        part = named.fraction
    if part is not None:
        return named.key, part, facts.memory_gib * part
    count = 1.0 if count is None else count
    nominal = facts.memory_gib * min(count, 1.0)
    return named.key, count, given["accelerator_memory_gib"] or nominal


def _processor(provider: str, name: str) -> str | None:
    if provider == "azure":
        return azure.machine(name).processor
    separator = "." if provider == "aws" else "-"
    return processor_of_family(provider).get(name.partition(separator)[0])
