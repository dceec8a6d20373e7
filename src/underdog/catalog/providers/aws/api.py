"""Asking AWS: the calls, their pages, and the regions. Credentials are boto3's own business."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from underdog.catalog.http import Http
from underdog.catalog.providers.aws.failures import missing_package, told, unknown_regions
from underdog.catalog.sources import FetchOptions, Raw

SOURCE = "AWS price list and EC2 API"
# the Price List and Savings Plans APIs answer for all regions from this one
_HOME = "us-east-1"
_SPOT_WINDOW = timedelta(days=1)
_AT_ONCE = 8
# of the price list: Linux without software on shared machines, bought as it is needed
_EC2_PRODUCTS = {
    "operatingSystem": "Linux",
    "tenancy": "Shared",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
}

Documents = list[str]


@dataclass(frozen=True, slots=True)
class _Call:
    """One call of one region, with all its pages."""

    kind: str
    action: str
    region: str
    ask: Callable[[], Documents]


def asks(options: FetchOptions) -> list[str]:
    """What a refresh asks, as IAM names the actions."""
    regions = ", ".join(options.regions) or "all regions that the account has enabled"
    return [
        "ec2:DescribeRegions",
        f"ec2:DescribeInstanceTypes of {regions}",
        "ec2:DescribeInstanceTypeOfferings of each, by zone",
        "ec2:DescribeSpotPriceHistory of each, of the last day",
        "pricing:GetProducts of each, of AmazonEC2 and AmazonSageMaker",
        "savingsplans:DescribeSavingsPlansOfferingRates of each",
    ]


def fetch(http: Http, options: FetchOptions) -> Raw:
    """Ask AWS for hardware, offerings and prices.

    Args:
        http: not used: boto3 has its own connections, retries and proxy.
        options: ``regions``, by default those that the account has enabled.

    Raises:
        CatalogError: boto3 is not installed, the credentials are missing, expired, refused or lack
            a permission, a region is none, or AWS does not answer.
    """
    try:
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError as error:
        raise missing_package() from error
    failures = (BotoCoreError, ClientError)
    action = "ec2:DescribeRegions"
    try:
        clients = _Clients(boto3.Session())
        known = clients.regions()
        wrong = unknown_regions(options.regions, known)
        if wrong is not None:
            raise wrong
        regions = options.regions or tuple(sorted(name for name, on in known.items() if on))
        calls = [call for region in regions for call in _calls(clients, region, options)]
    except failures as error:
        raise told([(action, error)]) from error
    answers, problems = _all(calls, failures, options)
    if problems:
        raise told(problems) from problems[0][1]
    return Raw(
        provider="aws", documents=_joined(answers, options), source=SOURCE, date=options.date
    )


class _Clients:
    """boto3's clients by service and region."""

    def __init__(self, session: Any) -> None:
        from botocore.config import Config

        self._session = session
        self._made: dict[tuple[str, str], Any] = {}
        self._config = Config(
            retries={"mode": "standard", "total_max_attempts": 6},
            connect_timeout=10,
            read_timeout=60,
            max_pool_connections=_AT_ONCE,
        )

    def get(self, service: str, region: str) -> Any:
        key = (service, region)
        if key not in self._made:
            self._made[key] = self._session.client(service, region_name=region, config=self._config)
        return self._made[key]

    def regions(self) -> dict[str, bool]:
        """All regions, and whether the account has enabled them."""
        client = self.get("ec2", self._session.region_name or _HOME)
        found = client.describe_regions(AllRegions=True)["Regions"]
        return {one["RegionName"]: one.get("OptInStatus") != "not-opted-in" for one in found}


def _calls(clients: _Clients, region: str, options: FetchOptions) -> list[_Call]:
    return [
        *_ec2_calls(clients.get("ec2", region), region, options),
        *_price_calls(clients.get("pricing", _HOME), clients.get("savingsplans", _HOME), region),
    ]


def _ec2_calls(client: Any, region: str, options: FetchOptions) -> Iterator[_Call]:
    in_zones = {"LocationType": "availability-zone"}
    of_linux = {
        "ProductDescriptions": ["Linux/UNIX", "Linux/UNIX (Amazon VPC)"],
        "StartTime": options.now - _SPOT_WINDOW,
        "EndTime": options.now,
    }
    for kind, operation, key, asked in (
        ("instance_types", "DescribeInstanceTypes", "InstanceTypes", {}),
        ("offerings", "DescribeInstanceTypeOfferings", "InstanceTypeOfferings", in_zones),
        ("spot", "DescribeSpotPriceHistory", "SpotPriceHistory", of_linux),
    ):
        ask = partial(_pages, client, operation, key, asked)
        yield _Call(kind, f"ec2:{operation}", region, ask)


def _price_calls(pricing: Any, plans: Any, region: str) -> Iterator[_Call]:
    for kind, service, wanted in (
        ("products", "AmazonEC2", _EC2_PRODUCTS),
        ("sagemaker_products", "AmazonSageMaker", {"productFamily": "ML Instance"}),
    ):
        filters = [
            {"Type": "TERM_MATCH", "Field": field, "Value": value}
            for field, value in {**wanted, "regionCode": region}.items()
        ]
        asked = {"ServiceCode": service, "Filters": filters}
        ask = partial(_pages, pricing, "GetProducts", "PriceList", asked)
        yield _Call(kind, "pricing:GetProducts", region, ask)
    action = "savingsplans:DescribeSavingsPlansOfferingRates"
    yield _Call("savings_plan_rates", action, region, partial(_savings_plan_rates, plans, region))


def _pages(client: Any, operation: str, key: str, asked: dict[str, Any]) -> Documents:
    """All items of an operation; boto3's method has its name in another spelling."""
    name = re.sub(r"(?<!^)([A-Z])", r"_\1", operation).lower()
    pages = client.get_paginator(name).paginate(**asked)
    return [_text(item) for page in pages for item in page.get(key, ())]


def _text(item: Any) -> str:
    """An item as JSON, which takes a third of the memory of Python's dicts."""
    return item if isinstance(item, str) else msgspec.json.encode(item).decode()


def _savings_plan_rates(client: Any, region: str) -> Documents:
    in_region = {"name": "region", "values": [region]}
    linux = {"name": "productDescription", "values": ["Linux/UNIX"]}
    shared = {"name": "tenancy", "values": ["shared"]}
    rates: Documents = []
    for types, product, filters in (
        (["Compute", "EC2Instance"], "EC2", [in_region, linux, shared]),
        (["SageMaker"], "SageMaker", [in_region]),
    ):
        asked: dict[str, Any] = {
            "savingsPlanTypes": types,
            "products": [product],
            "filters": filters,
            "maxResults": 1000,
        }
        while True:  # botocore has no paginator for this call
            page = client.describe_savings_plans_offering_rates(**asked)
            rates += map(_text, page["searchResults"])
            if not page.get("nextToken"):
                break
            asked["nextToken"] = page["nextToken"]
    return rates


def _all(
    calls: list[_Call], failures: tuple[type[Exception], ...], options: FetchOptions
) -> tuple[list[tuple[_Call, Documents]], list[tuple[str, Exception]]]:
    """The answers in the order of the calls, and what failed.

    After a failure only the first region is still asked, so that all permissions that are missing
    are told.
    """
    problems: list[tuple[str, Exception]] = []

    def ask(call: _Call) -> Documents:
        try:
            return [] if problems and call.region != calls[0].region else call.ask()
        except failures as error:
            problems.append((call.action, error))
            return []

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        asked = {pool.submit(ask, call): call for call in calls}
        try:
            for done, future in enumerate(as_completed(asked), start=1):
                call = asked[future]
                what = f"{call.kind.replace('_', ' ')} of {call.region}"
                options.progress(what, done, len(calls))
                future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [(call, future.result()) for future, call in asked.items()], problems


class _Type(msgspec.Struct, rename="pascal"):
    instance_type: str


def _joined(answers: list[tuple[_Call, Documents]], options: FetchOptions) -> dict[str, list[Any]]:
    documents: dict[str, list[Any]] = {}
    types: dict[str, str] = {}
    for call, found in answers:
        if call.kind == "instance_types":  # most are the same in every region
            for one in found:
                types.setdefault(msgspec.json.decode(one, type=_Type).instance_type, one)
        else:
            documents.setdefault(call.kind, []).extend(found)
    documents["instance_types"] = list(types.values())
    start = options.now - _SPOT_WINDOW
    window = {"StartTime": start.isoformat(), "EndTime": options.now.isoformat()}
    documents["spot_window"] = [window]
    return documents
