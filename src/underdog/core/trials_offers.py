"""The offers that come with a file of trials: what each machine is, and its price of then."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from underdog.core.problems import Problems, shown
from underdog.errors import did_you_mean
from underdog.model import UNKNOWN, Accelerator, Caveat, Machine, Offer, Price

Row = tuple[int, Mapping[str, Any]]

PURCHASES = ("on-demand", "spot", "reserved")
_MANY = 1024  # no machine has more accelerators; a larger count is a fault, not a list to build


class Known(NamedTuple):
    """One offer of the file."""

    offer: Offer
    machine: Machine
    caveats: tuple[Caveat, ...] = ()
    ambiguous: bool = False  # other offers of the file have the same id


def bare(name: str, source: str) -> Known:
    """An offer of which only the name is known; our own spelling of an id is taken apart."""
    parts = name.split("/")
    price = Price(source=source, unknown_reason="the file has no price")
    if len(parts) == 4 and parts[3].partition(":")[0] in PURCHASES and all(parts):
        provider, region, shape, sold = parts
        purchase, _, term = sold.partition(":")
        count, by, rest = shape.partition("x")
        clustered = bool(by) and count.isascii() and count.isdigit() and int(count) > 1
        offer = Offer(
            provider=provider,
            region=region,
            instance_type=rest if clustered else shape,
            purchase=purchase,
            term=term or None,
            nodes=int(count) if clustered else 1,
            price=price,
        )
    else:
        offer = Offer(provider=UNKNOWN, region=UNKNOWN, instance_type=name, price=price)
    return Known(offer, _machine(offer, {}))


def parse_offers(rows: Iterable[Row], problems: Problems, source: str) -> dict[str, Known]:
    """The offers by their name in the file. Faults go to ``problems``.

    Args:
        rows: row number and fields: ``offer`` and any of ``underdog.core.columns``;
            ``accelerator_memory_gib_total`` is over all accelerators of a machine.
        source: where the prices are said to come from where no ``price_source`` tells.
    """
    rows = list(rows)
    each_gib = _memory_of_each(rows)
    found: dict[str, Known] = {}
    for number, row in rows:
        name = problems.text(number, "offer", row.get("offer"))
        if name is None:
            problems.add(number, "offer", "it is empty")
        elif name in found:
            problems.add(number, "offer", f"{shown(name)} is there twice")
        else:
            found[name] = _known(number, row, name, problems, source, each_gib=each_gib)
    return _mark_ambiguous(found)


def _mark_ambiguous(found: dict[str, Known]) -> dict[str, Known]:
    times: dict[str, int] = {}
    for known in found.values():
        times[known.offer.id] = times.get(known.offer.id, 0) + 1
    return {n: k._replace(ambiguous=times[k.offer.id] > 1) for n, k in found.items()}


def _known(
    number: int,
    row: Mapping[str, Any],
    name: str,
    problems: Problems,
    source: str,
    *,
    each_gib: dict[str, float],
) -> Known:
    def text(field: str) -> str | None:
        return problems.text(number, field, row.get(field))

    def value(field: str, zero: bool = False) -> float | None:
        return problems.number(number, field, row.get(field), zero=zero)

    guess = bare(name, source).offer
    purchase = text("purchase") or guess.purchase
    if purchase not in PURCHASES:
        problems.add(number, "purchase", f"{shown(purchase)}: {did_you_mean(purchase, PURCHASES)}")
    nodes = value("nodes") or guess.nodes
    if nodes != int(nodes):
        problems.add(number, "nodes", f"{nodes:g} is not a whole number")
    accelerator = text("accelerator")
    count, memory, caveats = _accelerators(number, row, accelerator, problems, each_gib)
    offer = Offer(
        provider=text("provider") or guess.provider,
        region=text("region") or guess.region,
        zone=text("zone"),
        instance_type=text("instance_type") or guess.instance_type,
        purchase=purchase,
        term=text("term") or guess.term,
        nodes=int(nodes),
        price=_price(number, row, problems, source),
        vcpus=value("vcpus"),
        memory_gib=value("memory_gib"),
        arch=text("arch"),
        accelerator=accelerator,
        accelerator_count=count,
        accelerator_memory_gib=memory,
        accelerator_usable_gib=value("accelerator_usable_gib"),
    )
    facts = {"cpu_model": text("cpu_model"), "cpu_ghz": value("cpu_ghz")}
    return Known(offer, _machine(offer, facts), caveats)


def _price(number: int, row: Mapping[str, Any], problems: Problems, source: str) -> Price:
    amount = problems.number(number, "price_per_hour", row.get("price_per_hour"))
    source = problems.text(number, "price_source", row.get("price_source")) or source
    date = problems.text(number, "price_date", row.get("price_date")) or ""
    currency = problems.text(number, "currency", row.get("currency")) or "USD"
    if currency.upper() != "USD":
        problems.add(number, "currency", f"{shown(currency)}: a price per hour is in USD")
    if amount is not None:
        return Price(per_hour=amount, source=source, date=date)
    reason = problems.text(number, "price_unknown_reason", row.get("price_unknown_reason"))
    return Price(source=source, date=date, unknown_reason=reason or "the file has no price")


def _accelerators(
    number: int,
    row: Mapping[str, Any],
    name: str | None,
    problems: Problems,
    each_gib: dict[str, float],
) -> tuple[float, float | None, tuple[Caveat, ...]]:
    """Count, memory of each in GiB, caveats."""
    count = problems.number(number, "accelerator_count", row.get("accelerator_count"), zero=True)
    field = "accelerator_memory_gib"
    each = problems.number(number, field, row.get(field))
    total = problems.number(number, f"{field}_total", row.get(f"{field}_total"))
    if name is None:
        if count:
            problems.add(number, "accelerator", f"it is empty, with a count of {count:g}")
        return 0, None, ()
    if count is not None and count > _MANY:
        problems.add(number, "accelerator_count", f"{count:g} is more than any machine has")
        return 0, None, ()
    if count:
        return count, each or (total / max(count, 1) if total else None), ()
    # a count of 0 or none beside a name: some sources write a part of an accelerator so
    memory = each or total
    whole = each_gib.get(name)
    parts = round(whole / memory) if whole and memory else 0
    if memory and whole and parts > 1 and abs(memory * parts / whole - 1) < 0.05:
        return 1 / parts, memory, ()
    caveat = Caveat(
        code="accelerator_count_unknown",
        message=f"The file names the accelerator {name} without saying how many, or which part.",
        remedy="Give accelerator_count in the offers file; 0.125 is an eighth of one.",
    )
    return 0, memory, (caveat,)


def _memory_of_each(rows: Iterable[Row]) -> dict[str, float]:
    """GiB of one whole accelerator of each name: the median of the rows that have whole ones."""
    seen: dict[str, list[float]] = {}
    quiet = Problems("")  # faults are told when the row itself is read
    for number, row in rows:
        name = quiet.text(number, "", row.get("accelerator"))
        count = quiet.number(number, "", row.get("accelerator_count"))
        total = quiet.number(number, "", row.get("accelerator_memory_gib_total"))
        each = quiet.number(number, "", row.get("accelerator_memory_gib"))
        if name and count and count >= 1 and (each or total):
            seen.setdefault(name, []).append(each or (total or 0) / count)
    return {name: statistics.median(sizes) for name, sizes in seen.items()}


def _machine(offer: Offer, facts: dict[str, Any]) -> Machine:
    listed: list[Accelerator] = []
    if offer.accelerator:
        one = Accelerator(name=offer.accelerator, memory_gib=offer.accelerator_memory_gib)
        listed = [one] * max(1, int(offer.accelerator_count))
    known = UNKNOWN not in (offer.provider, offer.region)
    return Machine(
        provider=offer.provider if known else None,
        region=offer.region if known else None,
        zone=offer.zone,
        instance_type=offer.instance_type,
        purchase=offer.purchase,
        arch=offer.arch,
        vcpus=offer.vcpus,
        memory_gib=offer.memory_gib,
        accelerators=listed,
        **facts,
    )
