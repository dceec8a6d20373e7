"""The recorded table of Azure's prices in the shape of the Retail Prices API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from underdog.catalog.sources import Raw, Row


def recorded(prices: Iterable[Row], types: Iterable[Row], source: str, date: str) -> Raw:
    """Each row of the table as a meter of Linux on demand.

    The table of types holds twenty sizes, whose hardware the names and ``azure.toml`` give too.
    """
    del types
    items = [item(row) for row in prices]
    return Raw(provider="azure", documents={"retail": items}, source=source, date=date)


def item(row: Row) -> dict[str, Any]:
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": row["usd_per_hour_ondemand"] or None,
        "armRegionName": row["region"],
        "armSkuName": row["instance"],
        "serviceName": "Virtual Machines",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
    }
