"""Build the bundled snapshot from recorded price and hardware tables.

Reads ``prices.csv.gz`` and ``instance_types.csv.gz`` of the folder given, by default
``shared/data/catalog`` beside the checkout, and ``recorded/specialised.csv`` beside this file, and
writes ``src/underdog/data/snapshot.parquet`` with its manifest. Each provider's tables become an
answer in that provider's own shape (``recorded/<provider>.py``), so that the same ``parse`` and the
same rules of quality make the bundled snapshot and a refresh. The same tables give the same bytes.
"""

from __future__ import annotations

import argparse
import collections
import csv
import datetime
import gzip
import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from underdog import plugins
from underdog.catalog import quality, snapshot
from underdog.catalog.quality import limits
from underdog.catalog.sources import LeftOut, Raw

TOOLS = Path(__file__).resolve().parent
SPECIALISED = TOOLS / "recorded" / "specialised.csv"


class Source(NamedTuple):
    """Where the rows of one provider come from; ``module`` is the provider that reads them."""

    module: str
    prices: str
    date: str
    hardware: str
    licence: str = "Apache-2.0"


# The day of each provider's price table; of Google Cloud's, only the month is known.
SOURCES = {
    "aws": Source(
        "aws",
        "price table of karpenter-provider-aws, us-east-1",
        "2026-07-20",
        "EC2 API as moto 5.2.5 records it (Apache-2.0)",
    ),
    "azure": Source(
        "azure",
        "price table of karpenter-provider-azure",
        "2026-06-18",
        "Azure VM size pages; karpenter-provider-azure (Apache-2.0)",
    ),
    "gcp": Source(
        "gcp",
        "price table of karpenter-provider-gcp",
        "2026-08-01",
        "Cyclenerd/google-cloud-pricing-cost-calculator (Apache-2.0)",
    ),
}


def read(path: Path, key: str, provider: str) -> Iterator[dict[str, str]]:
    """The rows of a table, compressed or not, in which a column names the provider."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as file:
        yield from (row for row in csv.DictReader(file) if row[key] == provider)


def all_sources() -> dict[str, Source]:
    """The sources of all providers; those of the specialised clouds stand in their own table."""
    with SPECIALISED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return SOURCES | {
        row["cloud"]: Source("skypilot", row["source"], row["date"], "the same file")
        for row in rows
    }


def raw(folder: Path, provider: str, source: Source) -> Raw:
    """The recorded tables of one provider, in the shape of its own answer."""
    spec = importlib.util.spec_from_file_location(
        f"recorded_{source.module}", TOOLS / "recorded" / f"{source.module}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    prices = read(folder / "prices.csv.gz", "vendor", provider)
    if source.module == "skypilot":
        prices = read(SPECIALISED, "cloud", provider)
    types = read(folder / "instance_types.csv.gz", "provider", provider)
    made: Raw = module.recorded(list(prices), list(types), source.prices, source.date)
    return made


def summary(left_out: Iterable[LeftOut]) -> list[dict[str, Any]]:
    """What was left out, counted by provider and reason, with the names."""
    groups: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for one in left_out:
        groups[(one.provider, one.reason)].append(one.instance_type)
    return [
        {"provider": provider, "reason": reason, "rows": len(names), "names": sorted(set(names))}
        for (provider, reason), names in sorted(groups.items())
    ]


def parsed(
    folder: Path, sources: Mapping[str, Source], oldest: str
) -> tuple[list[dict[str, Any]], list[LeftOut]]:
    """The offers of all providers before the rules of quality, and what is no offer.

    A price from before the day ``oldest`` is none: on a market that falls it would win.
    """
    rows: list[dict[str, Any]] = []
    left_out: list[LeftOut] = []
    for provider, source in sources.items():
        module = plugins.load("underdog.catalog.providers", "underdog.providers", source.module)
        for one in module.parse(raw(folder, provider, source)):
            if isinstance(one, LeftOut):
                left_out.append(one)
            elif source.date < oldest:
                reason = f"its price is of {source.date}"
                left_out.append(LeftOut(provider, one["region"], one["instance_type"], reason))
            else:
                rows.append(one)
    return rows, left_out


def build(folder: Path, target: Path) -> None:
    """Write the snapshot and say what is in it."""
    read_from = all_sources()
    date = max(source.date for source in read_from.values())
    year_before = datetime.date.fromisoformat(date) - datetime.timedelta(days=limits.STALE_DAYS)
    rows, left_out = parsed(folder, read_from, year_before.isoformat())
    # the age of a price is of the day of its use: no caveat of the snapshot
    findings = quality.check(rows)
    refused = quality.rejected(findings)
    if refused:
        raise SystemExit("\n".join(quality.explain(f) for fs in refused.values() for f in fs))
    kept, quarantined = quality.apply(rows, findings)
    sources = [
        {
            "provider": provider,
            "prices": source.prices,
            "date": source.date,
            "licence": source.licence,
            "hardware": source.hardware,
        }
        for provider, source in read_from.items()
        if source.date >= year_before.isoformat()
    ]
    out = summary([*left_out, *quarantined])
    digest = snapshot.write(target, kept, date=date, sources=sources, left_out=out)
    doubted = sum(1 for row in kept if row["caveats"])
    print(
        f"{len(kept):,} offers ({doubted:,} with a caveat), {len(left_out):,} rows left out, "
        f"{len(quarantined):,} quarantined, {digest[:12]}, "
        f"{target.stat().st_size / 1e6:.2f} MB: {target}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    root = TOOLS.parent
    parser.add_argument("--data", type=Path, default=root.parent / "shared" / "data" / "catalog")
    parser.add_argument(
        "--output", type=Path, default=root / "src" / "underdog" / "data" / snapshot.FILE_NAME
    )
    given = parser.parse_args()
    build(given.data, given.output)
