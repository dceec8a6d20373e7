"""SageMaker's prices of ``ml.*`` types: a purchase option of the same hardware."""

from __future__ import annotations

import re

from underdog.catalog.providers.aws.ec2_prices import NO_PRICE, on_demand_prices
from underdog.catalog.providers.aws.quotes import Quote, Quotes, left_out
from underdog.catalog.providers.aws.shapes import Attributes, PriceItem, Product, Terms, read
from underdog.catalog.sources import Raw
from underdog.model import Price

SERVICE = "sagemaker"
# the parts of SageMaker that sell a machine, by the beginnings of their names in the price list
# and in usage types; the first that has a price stands for the type
_PARTS = ("train", "host", "process", "batchtransform", "bttransform", "notebook", "notebk")
OTHER_PART = "the price of another part of SageMaker: {}"


def name_of(text: str | None) -> str | None:
    """``ml.g5.xlarge`` of ``ml.g5.xlarge-Training`` or ``USE1-Train:ml.g5.xlarge``."""
    found = re.search(r"ml\.[a-z0-9-]+\.[a-z0-9]+", text or "")
    return found[0] if found else None


def rank_of(part: str | None) -> int | None:
    """The place of a part of SageMaker, 0 for training; None where it is none of those above.

    Args:
        part: its name, or a usage type such as ``USE1-Train:ml.g5.xlarge``.
    """
    plain = (part or "").partition(":")[0].rpartition("-")[2].lower()
    return next((n for n, start in enumerate(_PARTS) if plain.startswith(start)), None)


def quotes(raw: Raw) -> Quotes:
    """Quotes of the documents ``sagemaker_products``.

    Raises:
        CatalogError: a document has another shape.
    """
    for item in read(raw, "sagemaker_products", PriceItem):
        product = item.product or Product()
        said = product.attributes or Attributes()
        name = name_of(said.instance_name) or name_of(said.instance_type)
        region = said.region_code
        if product.product_family != "ML Instance" or name is None or not region:
            yield left_out(region, name, "a SageMaker product that is no machine")
            continue
        part = said.component or said.usagetype
        rank = rank_of(part)
        if rank is None or said.location_type not in (None, "AWS Region"):
            yield left_out(region, name, OTHER_PART.format((part or "unsaid")[:40]))
            continue
        terms = (item.terms or Terms()).on_demand or {}
        source = f"{raw.source} (SageMaker {said.component or 'instances'})"
        found = list(on_demand_prices(terms, source, raw.date))
        for price in found or [Price(unknown_reason=NO_PRICE, source=source, date=raw.date)]:
            yield Quote(
                region=region,
                instance_type=name,
                purchase="on-demand",
                service=SERVICE,
                rank=rank,
                price=price,
            )
