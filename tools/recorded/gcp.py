"""Google Cloud's recorded tables: machine types in the API's shape, prices of whole machines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from underdog.catalog.sources import Raw, Row


def recorded(prices: Iterable[Row], types: Iterable[Row], source: str, date: str) -> Raw:
    """The tables as documents; the one of types does not tell the zones."""
    documents = {
        "machine_types": [machine_type(row) for row in types],
        "machine_prices": [machine_price(row) for row in prices],
    }
    return Raw(provider="gcp", documents=documents, source=source, date=date)


def machine_type(row: Row) -> dict[str, Any]:
    return {
        "name": row["instance_type"],
        "guestCpus": int(row["vcpus"]),
        "memoryMb": round(float(row["memory_gib"]) * 1024),
    }


def machine_price(row: Row) -> dict[str, Any]:
    return {
        "region": row["region"],
        "machineType": row["instance"],
        "onDemand": row["usd_per_hour_ondemand"] or None,
        "spot": row["usd_per_hour_spot"] or None,
    }
