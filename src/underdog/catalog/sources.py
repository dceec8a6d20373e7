"""What every provider's ``parse`` takes and what it leaves behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

Row = Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Raw:
    """Recorded tables of one provider.

    ``prices`` has ``region, instance, usd_per_hour_ondemand, usd_per_hour_spot``; ``types`` has
    ``instance_type, vcpus, memory_gib, arch, cpu_ghz, api_accelerator, api_accelerator_count,
    api_accelerator_memory_mib, network, local_disk_gb``. An empty text is a missing value.
    """

    prices: Iterable[Row]
    types: Iterable[Row] = field(default_factory=tuple)
    source: str
    date: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A row of a source that is not an offer, with the reason."""

    provider: str
    region: str
    instance_type: str
    reason: str


def cheapest(prices: Iterable[Row], provider: str) -> Iterator[Row | LeftOut]:
    """One row for each region and instance type: of two that stand, the lower price."""
    kept: dict[tuple[str, str], Row] = {}
    for row in prices:
        place = (row["region"], row["instance"].strip())
        other = kept.get(place)
        if other is None or _amount(row) < _amount(other):
            kept[place] = row
        if other is not None:
            yield LeftOut(provider, *place, "two prices stand for one type; the lower is kept")
    yield from kept.values()


def _amount(row: Row) -> float:
    try:
        amount = float(row["usd_per_hour_ondemand"])
    except ValueError:
        return float("inf")
    return amount if amount > 0 else float("inf")


def number(text: str | None) -> float | None:
    """A positive number of a table, or None where the field is empty, 0 or no number."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 < value < float("inf") else None
