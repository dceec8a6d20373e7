"""Google Cloud's billing catalog: what each SKU is the rate of.

Source: Cloud Billing Catalog API, services.skus (name, category, pricingInfo), and the
descriptions of the SKUs of Compute Engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from underdog.catalog.providers._reading import optional_list, optional_text
from underdog.catalog.sources import LeftOut, mapping, number

# Google's month, by which a rate per GiB and month becomes one per hour.
HOURS_OF_MONTH = 730
ON_DEMAND, SPOT = "OnDemand", "Preemptible"
COMMITTED = {"Commit1Yr": "cud-1y", "Commit3Yr": "cud-3y"}
USAGES = {ON_DEMAND: "on-demand", SPOT: "spot", **COMMITTED}
_UNITS = {"h": 1.0, "GiBy.h": 1.0, "GiBy.mo": 1 / HOURS_OF_MONTH, "mo": 1 / HOURS_OF_MONTH}

# What is sold beside plain machines, by a word of the description.
_OTHERS = (
    ("sole tenancy", "a price of sole-tenant nodes"),
    ("sole-tenancy", "a price of sole-tenant nodes"),
    ("extended", "a price of extended memory"),
    ("custom", "a price of custom machine types"),
    ("reserved ", "a price of calendar reservations"),
    ("dws ", "a price of the Dynamic Workload Scheduler"),
    ("calendar mode", "a price of calendar reservations"),
    ("virtual workstation", "a price of virtual workstations"),
    ("vws", "a price of virtual workstations"),
    ("confidential", "a surcharge of confidential machines"),
    ("overcommit", "a surcharge of overcommitted nodes"),
    ("suspended", "a price of suspended machines"),
    ("licens", "a licence, such as of Windows"),
    ("windows", "a price of Windows"),
)
_COMMITMENT = re.compile(
    r"Commitment(?: v\d+)?: (?P<what>.+?)(?: running)?(?: in .+)? for [13] years?", re.IGNORECASE
)
_RUNNING = re.compile(
    r"(?:(?:Spot )?Preemptible )?(?P<what>.+?)(?: attached to (?:Spot )?Preemptible VMs)?"
    r"(?: running)?(?: in .+)?",
    re.IGNORECASE,
)
_SERIES = re.compile(
    r"([A-Z]\d+[A-Za-z0-9]*)(?: (?:Predefined|AMD|Arm|Memory-optimized))*(?: Instance)?"
)
_TPU = re.compile(r"(?:Cloud )?TPU[ -]?v?(\d+)([ep]?)x?(?: .*)?", re.IGNORECASE)


class Resource(NamedTuple):
    """What a rate is of: a kind (core, ram, gpu, slice, ssd, tpu, machine) and a family of it."""

    kind: str
    family: str


class Rate(NamedTuple):
    """USD per hour of one unit (a vCPU, a GiB, an accelerator) in a region."""

    resource: Resource
    usage: str
    region: str
    per_hour: float


def rates(sku: Any, place: int) -> Iterator[Rate | LeftOut]:
    """The rates of one SKU, one for each of its regions, or why it has none.

    Raises:
        CatalogError: a field has the wrong shape.
    """
    where = f"gcp: skus[{place}]"
    row = mapping(sku, where)
    said = optional_text(row.get("description"), f"{where}.description")
    category = mapping(row.get("category") or {}, f"{where}.category")
    words = {
        name: optional_text(category.get(name), f"{where}.category.{name}")
        for name in ("resourceFamily", "resourceGroup", "usageType")
    }
    found = resource_of(said, words)
    if isinstance(found, str):
        # the place is cut off: it would make each of these a name of its own for each region
        bare = re.sub(r"(?: running)? in .+", "", said)
        yield LeftOut("gcp", "", bare or words["resourceGroup"], found)
        return
    regions = optional_list(row.get("serviceRegions"), f"{where}.serviceRegions")
    amount = _per_hour(row, where)
    if isinstance(amount, str):
        yield LeftOut("gcp", "", said, amount)
        return
    for nth, region in enumerate(regions):
        name = optional_text(region, f"{where}.serviceRegions[{nth}]")
        yield Rate(found, words["usageType"], name, amount)


def resource_of(said: str, category: Mapping[str, str]) -> Resource | str:
    """What an SKU is the rate of, or the reason why it is none of a machine's."""
    family, group = category["resourceFamily"], category["resourceGroup"]
    if family != "Compute" and group != "LocalSSD":
        return f"of the family '{family[:40]}', not a part of a machine"
    if category["usageType"] not in USAGES:
        return f"of the usage '{category['usageType'][:40]}'"
    lower = said.lower()
    for word, reason in _OTHERS:
        if word in lower:
            return reason
    committed = category["usageType"] in COMMITTED
    found = (_COMMITMENT if committed else _RUNNING).fullmatch(said)
    if found is None:
        return "an SKU of unknown wording"
    return _named(found["what"], group) or "an SKU of unknown wording"


def _named(what: str, group: str) -> Resource | None:
    """The resource of the words of a description that are left without place and term."""
    if sliced := re.fullmatch(r"(?:A\d\w* )?(.+?) \(1 gpu slice\)", what, re.IGNORECASE):
        return Resource("slice", plain(sliced[1]))
    if group == "GPU":
        return Resource("gpu", plain(what))
    if tpu := _TPU.fullmatch(what):
        return None if "pod" in what.lower() else Resource("tpu", f"v{tpu[1]}{tpu[2].lower()}")
    if ssd := re.fullmatch(
        r"(?:SSD backed Local Storage|(?:(C\w+)(?: Instance)? )?Local SSD)", what
    ):
        return Resource("ssd", (ssd[1] or "").lower())
    if what == "Micro Instance with burstable CPU":
        return Resource("machine", "f1-micro")
    if what == "Small Instance with 1 VCPU":
        return Resource("machine", "g1-small")
    head, _, last = what.rpartition(" ")
    kind = {"core": "core", "cpu": "core", "ram": "ram"}.get(last.lower())
    series = _series(head)
    return None if kind is None or series is None else Resource(kind, series)


def _series(words: str) -> str | None:
    """The machine series of the words before "Core" or "Ram"; commitments of N1 have none."""
    named = {
        "": "n1",
        "Compute optimized": "c2",
        "Compute optimized Instance": "c2",
        "Memory-optimized": "m1",
        "Memory-optimized Instance": "m1",
        "Memory Optimized Upgrade Premium for Memory-optimized": "m2-upgrade",
        "Memory Optimized Upgrade Premium for Memory-optimized Instance": "m2-upgrade",
    }
    if words in named:
        return named[words]
    found = _SERIES.fullmatch(words)
    return found[1].lower() if found else None


def plain(name: str) -> str:
    """An accelerator's name without its maker, such as ``h10080gb``."""
    return re.sub(r"nvidia|tesla|gpu|[^a-z0-9]", "", name.lower())


def _per_hour(row: Mapping[str, Any], where: str) -> float | str:
    """The price of an hour of one unit in USD, or the reason why there is none."""
    infos = optional_list(row.get("pricingInfo"), f"{where}.pricingInfo")
    if not infos:
        return "an SKU without a price"
    at = f"{where}.pricingInfo[{len(infos) - 1}]"
    expression = mapping(mapping(infos[-1], at).get("pricingExpression") or {}, at)
    unit = optional_text(expression.get("usageUnit"), f"{at}.usageUnit")
    if unit not in _UNITS:
        return f"sold by '{unit[:40]}', not by the hour"
    tiers = optional_list(expression.get("tieredRates"), f"{at}.tieredRates")
    for nth, tier in enumerate(tiers):
        given = mapping(tier, f"{at}.tieredRates[{nth}]").get("unitPrice") or {}
        price = mapping(given, f"{at}.tieredRates[{nth}].unitPrice")
        currency = price.get("currencyCode")
        if currency not in (None, "USD"):
            return f"in '{str(currency)[:8]}', not in USD"
        amount = _money(price)
        # a tier of price 0 is a free amount below the ordinary price
        if amount is not None:
            return amount * _UNITS[unit]
    return "the source gives 0, which stands for no price"


def _money(price: Mapping[str, Any]) -> float | None:
    """Whole units and billionths of one as an amount; None unless it is positive."""
    units, nanos = price.get("units") or 0, price.get("nanos") or 0
    parts = [number(part) if part not in (0, "0") else 0.0 for part in (units, nanos)]
    if parts[0] is None or parts[1] is None:
        return None
    return number(parts[0] + parts[1] / 1e9)
