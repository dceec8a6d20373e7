"""On-demand and reserved prices of EC2 from the price list (GetProducts of AmazonEC2)."""

from __future__ import annotations

from collections.abc import Iterator

from underdog.catalog.hardware import price_of
from underdog.catalog.providers.aws.quotes import (
    HOURS_OF_A_YEAR,
    UPFRONT,
    Quote,
    Quotes,
    amount,
    left_out,
    shown,
)
from underdog.catalog.providers.aws.shapes import (
    Attributes,
    Dimension,
    PriceItem,
    Product,
    Term,
    TermAttributes,
    Terms,
    read,
)
from underdog.catalog.sources import LeftOut, Raw
from underdog.model import Price

NO_PRICE = "the price list has no on-demand price for it"
_YEARS = {"1yr": 1, "3yr": 3}
# field, what it is of a Linux machine that nobody else's contract is in, what another is called
_WANTED = (
    ("operating_system", "Linux", "the price of another operating system: {}"),
    ("tenancy", "Shared", "the price of a machine or host that is not shared: {}"),
)
_WANTED_IF_SAID = (
    ("pre_installed_sw", "NA", "the price with software: {}"),
    ("capacitystatus", "Used", "the price of a capacity reservation: {}"),
    ("marketoption", "OnDemand", "the price of another market: {}"),
    ("location_type", "AWS Region", "the price outside of the region's own zones: {}"),
    ("operation", "RunInstances", "the price of another operation: {}"),
)


def quotes(raw: Raw) -> Quotes:
    """Quotes of the documents ``products``.

    Raises:
        CatalogError: a document has another shape.
    """
    for item in read(raw, "products", PriceItem):
        yield from _quotes(item, raw)


def _quotes(item: PriceItem, raw: Raw) -> Iterator[Quote | LeftOut]:
    product = item.product or Product()
    said = product.attributes or Attributes()
    name, region = (said.instance_type or "").strip(), said.region_code or ""
    reason = _other_product(product.product_family) or _other(said)
    if not name or not region:
        reason = reason or "a price without a type or without a region"
    if reason is not None:
        yield left_out(region, name, reason)
        return
    terms = item.terms or Terms()
    yield from _on_demand(region, name, said, terms.on_demand or {}, raw)
    for term in (terms.reserved or {}).values():
        yield _reserved(region, name, term, raw)


def _other_product(family: str | None) -> str | None:
    if family is None or family.startswith("Compute Instance"):
        return None
    return f"a product that is no machine: {family[:40]}"


def _other(said: Attributes) -> str | None:
    for field, wanted, reason in _WANTED:
        value: str | None = getattr(said, field)
        if value != wanted:
            return reason.format((value or "unsaid")[:40])
    for field, wanted, reason in _WANTED_IF_SAID:
        value = getattr(said, field)
        if value is not None and value != wanted:
            return reason.format(value[:40])
    return None


def _on_demand(
    region: str, name: str, said: Attributes, terms: dict[str, Term], raw: Raw
) -> Iterator[Quote]:
    found = list(on_demand_prices(terms, raw.source, raw.date))
    for price in found or [Price(unknown_reason=NO_PRICE, source=raw.source, date=raw.date)]:
        yield Quote(region=region, instance_type=name, purchase="on-demand", price=price, said=said)


def on_demand_prices(terms: dict[str, Term], source: str, date: str) -> Iterator[Price]:
    """The hourly prices of the on-demand terms of a product."""
    for term in terms.values():
        for part in (term.price_dimensions or {}).values():
            if part.unit != "Hrs":
                continue
            value, foreign = _usd(part)
            if foreign is not None:
                yield Price(unknown_reason=foreign, source=source, date=date)
            else:
                text = None if value is None else str(value)[:40]
                yield price_of(text, source, date, NO_PRICE)


def _usd(part: Dimension) -> tuple[str | float | None, str | None]:
    """The amount in USD, or the reason why there is none."""
    given = part.price_per_unit or {}
    others = sorted(given.keys() - {"USD"})
    if "USD" not in given and others:
        return None, f"the price list gives {others[0][:10]}, not USD"
    return given.get("USD"), None


def _reserved(region: str, name: str, term: Term, raw: Raw) -> Quote | LeftOut:
    said = term.term_attributes or TermAttributes()
    if said.offering_class == "convertible":
        return left_out(region, name, "a convertible reservation; the standard one is kept")
    years = _YEARS.get(said.lease_contract_length or "")
    option = said.purchase_option or ""
    if years is None or option not in UPFRONT:
        return left_out(region, name, "a reservation of unknown length or payment")
    return Quote(
        region=region,
        instance_type=name,
        purchase="reserved",
        term=f"{years}y{UPFRONT[option]}",
        price=_effective(term, option, years, raw),
    )


def _effective(term: Term, option: str, years: int, raw: Raw) -> Price:
    """What an hour costs over the whole term: hourly + upfront / hours of the term."""
    sums: dict[str, float] = {}
    for part in (term.price_dimensions or {}).values():
        value, foreign = _usd(part)
        found = amount(value)
        if found is None:
            reason = foreign or f"the price list gives '{str(value)[:40]}' for a part of it"
            return Price(unknown_reason=reason, source=raw.source, date=raw.date)
        sums[part.unit or ""] = sums.get(part.unit or "", 0.0) + found
    hourly, upfront = sums.get("Hrs", 0.0), sums.get("Quantity", 0.0)
    lacks_hourly = hourly == 0 and option != "All Upfront"
    lacks_upfront = upfront == 0 and option != "No Upfront"
    if lacks_hourly or lacks_upfront or sums.keys() - {"Hrs", "Quantity"}:
        reason = f"the price list lacks a part of the price with {option.lower()}"
        return Price(unknown_reason=reason, source=raw.source, date=raw.date)
    total = hourly + upfront / (years * HOURS_OF_A_YEAR)
    return price_of(shown(total), raw.source, raw.date, "")
