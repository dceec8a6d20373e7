"""Build the bundled snapshot from recorded price and hardware tables.

Reads ``prices.csv.gz`` and ``instance_types.csv.gz`` of the folder given, by default
``shared/data/catalog`` beside the checkout, and writes ``src/underdog/data/snapshot.parquet`` with
its manifest. The same tables give the same bytes.
"""

from __future__ import annotations

import argparse
import collections
import csv
import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from underdog import plugins
from underdog.catalog import snapshot
from underdog.catalog.sources import LeftOut, Raw

ROOT = Path(__file__).resolve().parent.parent

# The day of each provider's price table; of the youngest, only the month is known.
PRICES = {
    "aws": ("price table of karpenter-provider-aws, us-east-1", "2026-07-20"),
    "azure": ("price table of karpenter-provider-azure", "2026-06-18"),
    "gcp": ("price table of karpenter-provider-gcp", "2026-08-01"),
}
HARDWARE = {
    "aws": "EC2 API as moto 5.2.5 records it (Apache-2.0)",
    "azure": "Azure VM size pages; karpenter-provider-azure (Apache-2.0)",
    "gcp": "Cyclenerd/google-cloud-pricing-cost-calculator (Apache-2.0)",
}


def read(path: Path, key: str, provider: str) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from (row for row in csv.DictReader(file) if row[key] == provider)


def raw(folder: Path, provider: str) -> Raw:
    """The recorded tables of one provider."""
    source, date = PRICES[provider]
    return Raw(
        prices=list(read(folder / "prices.csv.gz", "vendor", provider)),
        types=list(read(folder / "instance_types.csv.gz", "provider", provider)),
        source=source,
        date=date,
    )


def summary(left_out: Iterable[LeftOut]) -> list[dict[str, Any]]:
    """What was left out, counted by provider and reason, with the names."""
    groups: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for one in left_out:
        groups[(one.provider, one.reason)].append(one.instance_type)
    return [
        {"provider": provider, "reason": reason, "rows": len(names), "names": sorted(set(names))}
        for (provider, reason), names in sorted(groups.items())
    ]


def build(folder: Path, target: Path) -> None:
    rows: list[dict[str, Any]] = []
    left_out: list[LeftOut] = []
    for provider in PRICES:
        module = plugins.load("underdog.catalog.providers", "underdog.providers", provider)
        for one in module.parse(raw(folder, provider)):
            (left_out if isinstance(one, LeftOut) else rows).append(one)
    sources = [
        {
            "provider": provider,
            "prices": source,
            "date": date,
            "licence": "Apache-2.0",
            "hardware": HARDWARE[provider],
        }
        for provider, (source, date) in PRICES.items()
    ]
    date = max(date for _, date in PRICES.values())
    digest = snapshot.write(target, rows, date=date, sources=sources, left_out=summary(left_out))
    print(
        f"{len(rows):,} offers, {len(left_out):,} rows left out, {digest[:12]}, "
        f"{target.stat().st_size / 1e6:.2f} MB: {target}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "catalog")
    parser.add_argument(
        "--output", type=Path, default=ROOT / "src" / "underdog" / "data" / snapshot.FILE_NAME
    )
    given = parser.parse_args()
    build(given.data, given.output)
