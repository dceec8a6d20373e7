"""Azure: the Retail Prices API, which takes no credentials, and hardware by the names of sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from underdog.catalog.hardware import offer_row
from underdog.catalog.http import Http
from underdog.catalog.providers.azure import retail
from underdog.catalog.providers.azure.retail import Meter, meters, pages
from underdog.catalog.providers.azure.sizes import machine, not_a_size, size_of
from underdog.catalog.sources import FetchOptions, LeftOut, Raw
from underdog.errors import CatalogError

__all__ = ["asks", "fetch", "machine", "not_a_size", "parse", "size_of"]


def asks(options: FetchOptions) -> list[str]:
    """What a refresh reads."""
    regions = ", ".join(options.regions) or "all regions"
    return [f"GET {retail.URL} for virtual machines in {regions}, page by page"]


def fetch(http: Http, options: FetchOptions) -> Raw:
    """All meters of virtual machines in the regions given, by default everywhere.

    Returns:
        ``documents["retail"]`` holds the items of the API.

    Raises:
        CatalogError: the API did not answer, or not in its shape, or has no price at all.
    """
    for region in options.regions:
        if not re.fullmatch(r"[a-z0-9-]{2,40}", region):
            raise CatalogError(f"'{region}' is no region of Azure.", "Such as 'westeurope'.")
    items: list[Any] = []
    for region in options.regions or ("",):
        where = f" and armRegionName eq '{region}'" if region else ""
        for kind in ("Consumption", "Reservation"):
            wanted = f"serviceName eq 'Virtual Machines' and priceType eq '{kind}'{where}"
            pages(http, wanted, options, items)
    if not items:
        names = ", ".join(f"'{region}'" for region in options.regions) or "any region"
        raise CatalogError(f"Azure has no price of a virtual machine in {names}.")
    source = "Azure Retail Prices API"
    return Raw(provider="azure", documents={"retail": items}, source=source, date=options.date)


def parse(raw: Raw) -> Iterator[dict[str, Any] | LeftOut]:
    """Offers on demand, spot, and reserved; a meter that is none of these is left out.

    Of two prices for one offer the lower is kept, with a caveat.

    Raises:
        CatalogError: an item has the wrong shape; row and field are named.
    """
    kept: dict[tuple[Any, ...], Meter] = {}
    twice: set[tuple[Any, ...]] = set()
    for place, item in enumerate(raw.items("retail")):
        for one in meters(item, place, raw):
            if isinstance(one, LeftOut):
                yield one
                continue
            other = kept.get(one[:4])
            if other is None or _amount(one) < _amount(other):
                kept[one[:4]] = one
            if other is not None:
                if len({one.price.per_hour, other.price.per_hour, None}) == 3:
                    twice.add(one[:4])
                reason = "two prices stand for one type; the lower is kept"
                yield LeftOut("azure", one.region, one.size, reason)
    for region, size, purchase, term, price in kept.values():
        row = offer_row("azure", region, size, purchase, machine(size), price=price, term=term)
        row["caveats"] = "two_prices" if (region, size, purchase, term) in twice else None
        yield row


def _amount(meter: Meter) -> float:
    amount = meter.price.per_hour
    return float("inf") if amount is None else amount
