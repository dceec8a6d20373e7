"""Google Cloud: machine types and accelerators of Compute Engine, prices of the billing catalog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from underdog.catalog.hardware import offer_row
from underdog.catalog.http import Http
from underdog.catalog.providers._reading import hourly, optional_text
from underdog.catalog.providers.gcp import api
from underdog.catalog.providers.gcp.machines import (
    Machine,
    accelerator_of,
    machine_of,
    takes,
    with_accelerators,
)
from underdog.catalog.providers.gcp.prices import Rates, keep_lower, prices
from underdog.catalog.providers.gcp.skus import Rate, rates
from underdog.catalog.sources import FetchOptions, LeftOut, Raw, mapping, number, text
from underdog.errors import CatalogError
from underdog.model import Price

__all__ = ["accelerator_of", "asks", "fetch", "parse"]

# What is sold: the machine and the zones of each region that have it.
Sold = dict[tuple[str, str], tuple[Machine, list[str]]]


def asks(options: FetchOptions) -> list[str]:
    """What a refresh reads."""
    regions = ", ".join(options.regions) or "all regions"
    lists = f"{api.COMPUTE}/projects/<project>/aggregated"
    return [
        f"GET {lists}/machineTypes and acceleratorTypes, page by page, of {regions}",
        *(f"GET {api.BILLING}/services/{service}/skus" for service in api.SERVICES.values()),
    ]


def fetch(http: Http, options: FetchOptions) -> Raw:
    """Machine types, accelerator types and SKUs of the regions given, by default everywhere.

    Returns:
        ``documents`` of the kinds ``machine_types``, ``accelerator_types`` and ``skus``, each with
        the items of the API.

    Raises:
        CatalogError: google-auth, credentials or the project are missing; an API did not answer,
            or not in its shape.
    """
    headers, project = api.signed_in(http)
    documents = {
        "machine_types": api.aggregated(http, "machineTypes", project, headers, options),
        "accelerator_types": api.aggregated(http, "acceleratorTypes", project, headers, options),
        "skus": api.skus(http, api.billing_headers(headers), options),
    }
    if not documents["machine_types"] or not documents["skus"]:
        names = ", ".join(f"'{region}'" for region in options.regions) or "any region"
        raise CatalogError(f"Google Cloud has no machine with a price in {names}.")
    source = "Compute Engine API and Cloud Billing catalog"
    return Raw(provider="gcp", documents=documents, source=source, date=options.date)


def parse(raw: Raw) -> Iterator[dict[str, Any] | LeftOut]:
    """Offers on demand, spot and by commitment of all machine types, and of N1 with accelerators.

    A document of ``machine_prices`` is a price of a whole machine, as tables have it: ``region``,
    ``machineType``, ``onDemand`` and ``spot`` in USD per hour. What has no price in these and no
    SKUs for all of its parts has an unknown price, with the reason.

    Raises:
        CatalogError: an item has the wrong shape; row and field are named.
    """
    types, sold = _machine_types(raw)
    yield from (one for one in types.values() if isinstance(one, LeftOut))
    machines = {name: one for name, one in types.items() if isinstance(one, Machine)}
    sold.update(_attached(raw, sold))
    known: Rates = {}
    for place, sku in enumerate(raw.items("skus")):
        for one in rates(sku, place):
            if isinstance(one, Rate):
                if keep_lower(known, one):
                    continue
                name = " ".join(one.resource)
                reason = "two rates stand for one resource; the lower is kept"
                one = LeftOut("gcp", one.region, name, reason)
            yield one
    for (_, region), (machine, zones) in sold.items():
        names = ",".join(sorted(set(zones)))
        for purchase, term, price in prices(machine, region, known, raw):
            yield _offer(machine, region, purchase, price, zones=names, term=term)
    yield from _whole_machines(raw, machines, {name for name, _ in sold})


def _machine_types(raw: Raw) -> tuple[dict[str, Machine | LeftOut], Sold]:
    """The machine types by name, and where they are sold: they are the same in all zones."""
    types: dict[str, Machine | LeftOut] = {}
    sold: Sold = {}
    for place, item in enumerate(raw.items("machine_types")):
        where = f"gcp: machine_types[{place}]"
        name = text(mapping(item, where).get("name"), f"{where}.name")
        if name not in types:
            types[name] = machine_of(item, where)
        machine = types[name]
        zone = optional_text(item.get("zone"), f"{where}.zone").rpartition("/")[2]
        if zone and isinstance(machine, Machine):
            region = zone.rpartition("-")[0]
            sold.setdefault((name, region), (machine, []))[1].append(zone)
    return types, sold


def _attached(raw: Raw, sold: Sold) -> Sold:
    """The N1 machines with each number of accelerators that the provider sells in their zones."""
    zones_of: dict[str, dict[str, float]] = defaultdict(dict)
    for place, item in enumerate(raw.items("accelerator_types")):
        where = f"gcp: accelerator_types[{place}]"
        row = mapping(item, where)
        zone = optional_text(row.get("zone"), f"{where}.zone").rpartition("/")[2]
        most = number(row.get("maximumCardsPerInstance")) or float("inf")
        zones_of[text(row.get("name"), f"{where}.name")][zone] = most
    found: Sold = {}
    for (_, region), (machine, zones) in sold.items():
        for kind, most_of in zones_of.items():
            for count in (1, 2, 4, 8):
                here = [zone for zone in zones if most_of.get(zone, 0) >= count]
                if here and takes(machine, kind, count):
                    joined = with_accelerators(machine, kind, count)
                    found[joined.name, region] = (joined, here)
    return found


def _whole_machines(
    raw: Raw, machines: dict[str, Machine], sold: set[str]
) -> Iterator[dict[str, Any] | LeftOut]:
    """Offers of the prices of whole machines, and the types that have a price nowhere."""
    kept: dict[tuple[str, str, str], Price] = {}
    twice: set[tuple[str, str, str]] = set()
    for place, item in enumerate(raw.items("machine_prices")):
        where = f"gcp: machine_prices[{place}]"
        row = mapping(item, where)
        name = text(row.get("machineType"), f"{where}.machineType")
        region = text(row.get("region"), f"{where}.region")
        for purchase, field in (("on-demand", "onDemand"), ("spot", "spot")):
            missing = f"the price table has no {purchase} price for it"
            price = hourly(row.get(field), 1, raw, f"{where}.{field}", missing)
            other = kept.get((region, name, purchase))
            if other is not None and len({price.per_hour, other.per_hour, None}) == 3:
                twice.add((region, name, purchase))
            if other is None or (price.per_hour or _NEVER) < (other.per_hour or _NEVER):
                kept[region, name, purchase] = price
            if other is not None and purchase == "on-demand":
                reason = "two prices stand for one type; the lower is kept"
                yield LeftOut("gcp", region, name, reason)
    for (region, name, purchase), price in kept.items():
        machine = machines.get(name) or machine_of({"name": name}, "gcp: machine_prices")
        if isinstance(machine, LeftOut):
            yield machine
        else:
            row = _offer(machine, region, purchase, price)
            row["caveats"] = "two_prices" if (region, name, purchase) in twice else None
            yield row
    for name in sorted(machines.keys() - sold - {name for _, name, _ in kept}):
        reason = "the price table has no price for it"
        price = Price(unknown_reason=reason, source=raw.source, date=raw.date)
        yield _offer(machines[name], "unknown", "on-demand", price)


_NEVER = float("inf")


def _offer(
    machine: Machine,
    region: str,
    purchase: str,
    price: Price,
    *,
    zones: str | None = None,
    term: str | None = None,
) -> dict[str, Any]:
    hardware = machine.hardware
    return offer_row(
        "gcp", region, machine.name, purchase, hardware, price=price, zones=zones, term=term
    )
