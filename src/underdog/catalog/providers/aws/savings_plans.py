"""Rates of savings plans: what an hour costs who commits to so many dollars an hour.

A rate is per hour of use whatever is paid upfront, since that is part of the commitment.
"""

from __future__ import annotations

import re

from underdog.catalog.hardware import price_of
from underdog.catalog.providers.aws import sagemaker
from underdog.catalog.providers.aws.quotes import (
    HOURS_OF_A_YEAR,
    UPFRONT,
    Quote,
    Quotes,
    left_out,
)
from underdog.catalog.providers.aws.shapes import Plan, PlanRate, read
from underdog.catalog.sources import Raw
from underdog.model import Price

_TERMS = {
    "Compute": "savings-plan",
    "EC2Instance": "instance-savings-plan",
    "SageMaker": "savings-plan",
}


def quotes(raw: Raw) -> Quotes:
    """Quotes of the documents ``savings_plan_rates``.

    Raises:
        CatalogError: a document has another shape.
    """
    for item in read(raw, "savings_plan_rates", PlanRate):
        said = {one.name: one.value for one in item.properties or ()}
        region = said.get("region")
        plan = item.savings_plan_offering or Plan()
        term = _term(plan)
        name, rank, reason = _machine(item, said)
        if reason is None and (name is None or not region):
            reason = "a savings-plan rate without a type or without a region"
        if reason is None and term is None:
            reason = "a savings plan of unknown kind, length or payment"
        if reason is not None or name is None or not region:
            yield left_out(region, name, str(reason))
            continue
        yield Quote(
            region=region,
            instance_type=name,
            purchase="reserved",
            term=term,
            service=sagemaker.SERVICE if item.product_type == "SageMaker" else None,
            rank=rank,
            price=_price(item, plan, raw),
        )


def _term(plan: Plan) -> str | None:
    kind = _TERMS.get(plan.plan_type or "")
    years = (plan.duration_seconds or 0) / (HOURS_OF_A_YEAR * 3600)
    if kind is None or years not in (1, 3) or plan.payment_option not in UPFRONT:
        return None
    return f"{kind}-{years:.0f}y{UPFRONT[plan.payment_option or '']}"


def _machine(
    item: PlanRate, said: dict[str | None, str | None]
) -> tuple[str | None, int, str | None]:
    """The type, the rank among SageMaker's parts, and why the rate is not of a Linux machine."""
    if item.product_type == "SageMaker":
        name = sagemaker.name_of(item.usage_type) or sagemaker.name_of(said.get("instanceType"))
        rank = sagemaker.rank_of(item.usage_type)
        part = sagemaker.OTHER_PART.format((item.usage_type or "unsaid").partition(":")[0][:40])
        return name, rank or 0, part if rank is None else None
    name = said.get("instanceType") or (item.usage_type or "").partition(":")[2] or None
    reason = _other_machine(item, said)
    return name, 0, reason


def _other_machine(item: PlanRate, said: dict[str | None, str | None]) -> str | None:
    if item.product_type != "EC2":
        return f"a savings-plan rate of no machine: {(item.product_type or 'unsaid')[:40]}"
    if said.get("productDescription") != "Linux/UNIX":
        system = said.get("productDescription") or "unsaid"
        return f"the price of another operating system: {system[:40]}"
    if said.get("tenancy") != "shared":
        tenancy = said.get("tenancy") or "unsaid"
        return f"the price of a machine or host that is not shared: {tenancy[:40]}"
    if not re.search(r"(^|-)BoxUsage(:|$)", item.usage_type or "BoxUsage"):
        return "the price of a capacity reservation: savings plan"
    return None


def _price(item: PlanRate, plan: Plan, raw: Raw) -> Price:
    reason = None
    if plan.currency not in (None, "USD"):
        reason = f"the savings plan is in {plan.currency[:10]}, not USD"
    elif item.unit not in (None, "Hrs"):
        reason = f"the savings plan is per {item.unit[:20]}, not per hour"
    if reason is not None:
        return Price(unknown_reason=reason, source=raw.source, date=raw.date)
    shown = None if item.rate is None else str(item.rate)[:40]
    return price_of(shown, raw.source, raw.date, "the savings plan has no rate for it")
