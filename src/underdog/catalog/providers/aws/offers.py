"""Offers from AWS's answers: each type at each place, with every way to pay for it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from underdog.catalog.hardware import Hardware, known_machine, offer_row, sustained_vcpus
from underdog.catalog.providers.aws import ec2_prices, sagemaker, savings_plans, spot
from underdog.catalog.providers.aws.machines import (
    Machine,
    from_price_list,
    is_mac,
    machine,
    retired,
)
from underdog.catalog.providers.aws.quotes import Quote, left_out, lowest
from underdog.catalog.providers.aws.shapes import Attributes, InstanceType, Offering, read
from underdog.catalog.sources import LeftOut, Raw
from underdog.model import Price

BLOCKS = "sold as capacity blocks, reserved in advance, without a list price"
NOWHERE = "unknown"

Place = tuple[str, str]  # region, instance type


@dataclass(slots=True)
class _World:
    """What the answers say, put together."""

    raw: Raw
    machines: dict[str, Machine] = field(default_factory=retired)
    told: set[str] = field(default_factory=set)  # types that the API tells of
    macs: set[str] = field(default_factory=set)
    zones: dict[Place, set[str]] = field(default_factory=lambda: defaultdict(set))
    quotes: dict[tuple[str, ...], Quote] = field(default_factory=dict)

    def unknown(self, reason: str) -> Price:
        return Price(unknown_reason=reason, source=self.raw.source, date=self.raw.date)


def parse(raw: Raw) -> Iterator[dict[str, Any] | LeftOut]:
    """Offers of AWS's answers, and what is no offer, with the reason.

    Documents by kind, each an item of the answer or the JSON text of one:

    ``instance_types`` (DescribeInstanceTypes), ``offerings`` (DescribeInstanceTypeOfferings by
    availability zone), ``products`` and ``sagemaker_products`` (GetProducts),
    ``savings_plan_rates`` (DescribeSavingsPlansOfferingRates), ``spot``
    (DescribeSpotPriceHistory) and ``spot_window``, the times that it was asked for.

    Raises:
        CatalogError: a document has another shape; names row and field.
    """
    world = _World(raw)
    yield from _read_machines(world)
    yield from _read_offerings(world)
    sources = (ec2_prices, savings_plans, spot, sagemaker)
    found = chain.from_iterable(source.quotes(raw) for source in sources)
    yield from lowest(found, world.quotes)
    places = _places(world)
    for quote in chain(world.quotes.values(), _without_price(world, places)):
        if quote.instance_type in world.macs:
            yield left_out(quote.region, quote.instance_type, "a Mac, which runs no Linux")
        else:
            row = _row(world, quote)
            row["caveats"] = quote.doubt
            yield row


def _read_machines(world: _World) -> Iterator[LeftOut]:
    for item in read(world.raw, "instance_types", InstanceType):
        name = item.instance_type
        if name in world.told or name in world.macs:
            continue
        if is_mac(item):
            world.macs.add(name)
            yield left_out("", name, "a Mac, which runs no Linux")
            continue
        found = world.machines[name] = machine(item)
        world.told.add(name)
        if found.doubt is not None:
            yield left_out("", name, found.doubt)


def _read_offerings(world: _World) -> Iterator[LeftOut]:
    for item in read(world.raw, "offerings", Offering):
        region = spot.region_of(item.location)
        if region is not None and re.fullmatch(r"[a-z]", item.location.removeprefix(region)):
            world.zones[region, item.instance_type].add(item.location)
        else:
            reason = "in a local zone, whose on-demand price is another than the region's"
            yield left_out(region or item.location[:40], item.instance_type, reason)


def _places(world: _World) -> set[Place]:
    """Where each bare type is sold; a type that is sold nowhere is at an unknown place."""
    sold = {
        (quote.region, quote.instance_type)
        for quote in world.quotes.values()
        if quote.service is None and quote.zone is None
    }
    places = sold | set(world.zones)
    return places | {(NOWHERE, name) for name in world.told - {name for _, name in places}}


def _without_price(world: _World, places: set[Place]) -> Iterator[Quote]:
    """What is sold and has no price: capacity blocks, and types and zones that no list has."""
    spot_was_asked = bool(world.raw.items("spot") or world.raw.items("spot_window"))
    for region, name in sorted(places):
        found = world.machines.get(name)
        usage = found.usage if found else frozenset()
        if "capacity-block" in usage:
            yield Quote(
                region=region,
                instance_type=name,
                purchase="reserved",
                term="capacity-block",
                price=world.unknown(BLOCKS),
            )
        elif (region, "", name, "on-demand", "") not in world.quotes:
            price = world.unknown(ec2_prices.NO_PRICE)
            yield Quote(region=region, instance_type=name, purchase="on-demand", price=price)
        if not spot_was_asked or "spot" not in usage:
            continue
        for zone in sorted(world.zones.get((region, name), ())):
            if (region, zone, name, "spot", "") not in world.quotes:
                yield Quote(
                    region=region,
                    zone=zone,
                    instance_type=name,
                    purchase="spot",
                    price=world.unknown(spot.NO_HISTORY),
                )


def _row(world: _World, quote: Quote) -> dict[str, Any]:
    if quote.service is not None:
        return _managed_row(world, quote)
    zones = world.zones.get((quote.region, quote.instance_type), set()) if not quote.zone else ()
    return offer_row(
        "aws",
        quote.region,
        quote.instance_type,
        quote.purchase,
        _hardware(world, quote.instance_type, quote.said),
        price=quote.price,
        zone=quote.zone,
        zones=",".join(sorted(zones)) or None,
        term=quote.term,
    )


def _managed_row(world: _World, quote: Quote) -> dict[str, Any]:
    """Of SageMaker: the tables of facts know the type by its bare name."""
    bare = quote.instance_type.removeprefix("ml.")
    hardware = known_machine("aws", bare, _hardware(world, bare, None))
    row = offer_row(
        "aws",
        quote.region,
        quote.instance_type,
        quote.purchase,
        hardware,
        price=quote.price,
        term=quote.term,
        service=quote.service,
    )
    row["vcpus_sustained"] = sustained_vcpus("aws", bare, hardware.vcpus)
    return row


def _hardware(world: _World, name: str, said: Attributes | None) -> Hardware:
    if name not in world.machines and said is not None:
        world.machines[name] = from_price_list(name, said)
    found = world.machines.get(name)
    return found.hardware if found else Hardware(accelerator_count=None)
