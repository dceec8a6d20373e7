"""Azure's Retail Prices API: the pages of it, and what each of its meters is a price of.

Source: Azure Retail Prices overview (Microsoft Learn, Cost Management).
"""

from __future__ import annotations

import functools
import re
import sys
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from underdog.catalog.http import Http
from underdog.catalog.providers._reading import hourly, optional_list, optional_text
from underdog.catalog.providers.azure.sizes import not_a_size
from underdog.catalog.sources import FetchOptions, LeftOut, Raw, mapping, number
from underdog.errors import CatalogError
from underdog.model import Price

URL = "https://prices.azure.com/api/retail/prices"
# this version has savings plans, and can leave out the meters that nothing is billed by
_VERSION = {"api-version": "2023-01-01-preview", "meterRegion": "'primary'"}
# a page has 1,000 items, and all meters of virtual machines are about 500 pages
MOST_PAGES = 3000
HOURS = {"1 Year": 8760, "3 Years": 26280, "5 Years": 43800}
_SHORT = {"1 Year": "1y", "3 Years": "3y", "5 Years": "5y"}
_TEXTS = (
    "armRegionName",
    "armSkuName",
    "currencyCode",
    "effectiveEndDate",
    "effectiveStartDate",
    "meterName",
    "productName",
    "reservationTerm",
    "serviceName",
    "skuName",
    "type",
    "unitOfMeasure",
)
# What of an item is read, and so kept.
_FIELDS = (*_TEXTS, "isPrimaryMeterRegion", "retailPrice", "savingsPlan", "tierMinimumUnits")


class Meter(NamedTuple):
    """A price of a size: where, how it is bought, and for how long."""

    region: str
    size: str
    purchase: str
    term: str | None
    price: Price


def pages(http: Http, wanted: str, options: FetchOptions, found: list[Any]) -> None:
    """Add all items of a filter to ``found``, each with the fields that ``meters`` reads.

    Raises:
        CatalogError: an answer is not in the API's shape, or leads from page to page without end.
    """
    url, params = URL, {**_VERSION, "$filter": wanted}
    seen: set[str] = set()
    while True:
        answer = mapping(http.json(url, params), "azure: the answer")
        items = answer.get("Items")
        if not isinstance(items, list):
            raise CatalogError("azure: Items of the answer is no list of prices.")
        found.extend(_kept(item) for item in items)
        options.progress("Azure retail prices", len(found), None)
        link = answer.get("NextPageLink")
        if not link:
            return
        if not items or link in seen or len(seen) >= MOST_PAGES:
            raise CatalogError("The Azure retail prices lead from page to page without end.")
        seen.add(link)
        url, params = _next(link), {}


def _next(link: Any) -> str:
    there, here = urllib.parse.urlsplit(str(link)), urllib.parse.urlsplit(URL)
    if (there.scheme, there.hostname) != (here.scheme, here.hostname):
        raise CatalogError(f"azure: NextPageLink leads to '{there.hostname}', another server.")
    return str(link)


def _kept(item: Any) -> Any:
    """The fields of an item that are read; equal texts share their memory."""
    if not isinstance(item, dict):
        return item
    return {
        name: sys.intern(value) if type(value) is str else value
        for name in _FIELDS
        if (value := item.get(name)) is not None
    }


def meters(item: Any, place: int, raw: Raw) -> Iterator[Meter | LeftOut]:
    """What one item is a price of: one meter, and one for each of its savings plans.

    Raises:
        CatalogError: a field has the wrong shape.
    """
    where = f"azure: retail[{place}]"
    row = mapping(item, where)
    text = {
        # the address of a field is made only where it is told: there are millions of them
        name: value.strip() if type(value := row.get(name)) is str else _odd(value, where, name)
        for name in _TEXTS
    }
    region, size = text["armRegionName"], text["armSkuName"]
    reason = _not_an_offer(text, row, raw.date)
    if reason is not None:
        yield LeftOut("azure", region, size or text["skuName"], reason)
        return
    hours = _hours(text["unitOfMeasure"])
    purchase, term = "on-demand", None
    if text["type"] == "Reservation":
        # the amount is that of the whole term, though its unit is said to be an hour
        hours, purchase = HOURS[text["reservationTerm"]], "reserved"
        term = _SHORT[text["reservationTerm"]]
    elif _says(text, "Spot"):
        purchase = "spot"
    missing = "the price table has no price for it"
    price = hourly(row.get("retailPrice"), hours, raw, f"{where}.retailPrice", missing)
    yield Meter(region, size, purchase, term, price)
    plans = optional_list(row.get("savingsPlan"), f"{where}.savingsPlan")
    for nth, plan in enumerate(plans if purchase == "on-demand" else []):
        at = f"{where}.savingsPlan[{nth}]"
        fields = mapping(plan, at)
        years = optional_text(fields.get("term"), f"{at}.term")
        price = hourly(fields.get("retailPrice"), hours, raw, f"{at}.retailPrice", missing)
        if years in HOURS:
            yield Meter(region, size, "reserved", f"savings-plan-{_SHORT[years]}", price)
        else:
            yield LeftOut("azure", region, size, f"a savings plan of '{years}'")


def _odd(value: Any, where: str, name: str) -> str:
    return optional_text(value, f"{where}.{name}")


@functools.cache
def _hours(unit: str) -> int:
    """The hours of a unit of measure such as ``1 Hour`` or ``100 Hours``; 0 where it has none."""
    found = re.fullmatch(r"(\d{1,6}) Hours?", unit)
    return int(found[1]) if found else 0


def _says(text: Mapping[str, str], word: str) -> bool:
    return word in text["meterName"] or word in text["skuName"]


def _not_an_offer(text: Mapping[str, str], row: Mapping[str, Any], today: str) -> str | None:
    """Why a meter is no offer of a Linux machine, or None where it is one."""
    return (
        _other_product(text)
        or _other_terms(text, row, today)
        or not_a_size(text["armSkuName"])
        or (None if text["armRegionName"] else "without a region")
    )


def _other_product(text: Mapping[str, str]) -> str | None:
    """Why it is a meter of something else than a machine with Linux, or None."""
    product = text["productName"]
    if text["serviceName"] != "Virtual Machines":
        return f"of the service '{text['serviceName'][:40]}', not a virtual machine"
    windows = product.endswith(" Windows") or " Windows " in product
    if windows or _of_windows(text["meterName"], text["skuName"], text["armSkuName"]):
        return "a Windows price"
    if "cloudservices" in product.replace(" ", "").lower():
        return "a price of Cloud Services, not a virtual machine"
    if "dedicated host" in product.lower():
        return "a dedicated host, not a virtual machine"
    if not text["armSkuName"]:
        return "a meter without the name of a size"
    return None


def _of_windows(*names: str) -> bool:
    return any(name.endswith((" Win", " Windows")) for name in names)


def _other_terms(text: Mapping[str, str], row: Mapping[str, Any], today: str) -> str | None:
    """Why nobody pays this price for a machine now, or None."""
    kind, term = text["type"], text["reservationTerm"]
    if text["currencyCode"] != "USD":
        return f"in '{text['currencyCode'][:8]}', not in USD"
    if kind == "DevTestConsumption":
        return "a price for development and test subscriptions"
    if kind not in ("Consumption", "Reservation"):
        return f"a meter of the type '{kind[:40]}'"
    if kind == "Reservation" and term not in HOURS:
        return f"a reservation of the term '{term[:40]}'"
    if not _hours(text["unitOfMeasure"]):
        return f"sold by '{text['unitOfMeasure'][:40]}', not by the hour"
    if _says(text, "Low Priority"):
        return "a low-priority price of Azure Batch"
    if _says(text, "Expired"):
        return "an expired meter"
    if row.get("isPrimaryMeterRegion") is False:
        return "a meter that nothing is billed by: not the primary one of its region"
    if number(row.get("tierMinimumUnits")) is not None:
        return "a price for large amounts only"
    if text["effectiveStartDate"][:10] > today:
        return "a price that is not valid yet"
    if text["effectiveEndDate"] and text["effectiveEndDate"][:10] < today:
        return "a price that is no longer valid"
    return None
