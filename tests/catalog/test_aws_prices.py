"""AWS's prices: of Linux on a shared machine, by term, by zone, and never a guess."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from underdog.catalog.providers import aws
from underdog.catalog.providers.aws.sagemaker import name_of, rank_of
from underdog.catalog.providers.aws.spot import region_of
from underdog.catalog.sources import LeftOut, Raw

SAMPLES = Path(__file__).parent / "samples"
WINDOW = {"StartTime": "2026-07-19T12:00:00+00:00", "EndTime": "2026-07-20T12:00:00+00:00"}


def sample(kind: str) -> list[Any]:
    found: list[Any] = json.loads((SAMPLES / f"aws_{kind}.json").read_text())
    return found


def texts(kind: str) -> list[str]:
    """As GetProducts gives them."""
    return [json.dumps(one) for one in sample(kind)]


def parsed(**documents: list[Any]) -> tuple[list[dict[str, Any]], list[LeftOut]]:
    raw = Raw(provider="aws", documents=documents, source="AWS", date="2026-07-20")
    found = list(aws.parse(raw))
    rows = [one for one in found if not isinstance(one, LeftOut)]
    return rows, [one for one in found if isinstance(one, LeftOut)]


def everything() -> dict[str, list[Any]]:
    return {
        "instance_types": sample("instance_types"),
        "offerings": sample("offerings"),
        "products": texts("products"),
        "sagemaker_products": texts("sagemaker_products"),
        "savings_plan_rates": sample("savings_plan_rates"),
        "spot": sample("spot"),
        "spot_window": [WINDOW],
    }


@pytest.fixture(scope="module")
def all_of_it() -> tuple[list[dict[str, Any]], list[LeftOut]]:
    return parsed(**everything())


def prices(rows: list[dict[str, Any]], name: str, purchase: str) -> dict[Any, float | None]:
    """By the term of a reserved offer, or the zone of a spot offer."""
    return {
        row["term"] or row["zone"]: row["price_per_hour"]
        for row in rows
        if (row["instance_type"], row["purchase"]) == (name, purchase)
    }


def test_on_demand(all_of_it: Any) -> None:
    rows, _ = all_of_it
    (row,) = [r for r in rows if (r["instance_type"], r["purchase"]) == ("g5.xlarge", "on-demand")]
    assert (row["price_per_hour"], row["region"], row["zone"]) == (1.006, "us-east-1", None)
    assert row["zones"] == "us-east-1a,us-east-1b"
    assert (row["price_source"], row["price_date"], row["currency"]) == ("AWS", "2026-07-20", "USD")
    assert row["accelerator"] == "A10G"


def test_reserved_prices_hold_the_upfront_payment(all_of_it: Any) -> None:
    assert prices(all_of_it[0], "g5.xlarge", "reserved") == {
        "1y": 0.634,
        "1y-partial-upfront": pytest.approx(0.302 + 2645 / 8760),
        "1y-all-upfront": pytest.approx(5184 / 8760),
        "3y": 0.435,
        "3y-partial-upfront": pytest.approx(0.202 + 5300 / 26280),
        "3y-all-upfront": pytest.approx(9963 / 26280),
        "savings-plan-1y": 0.729,
        "savings-plan-1y-partial-upfront": 0.694,
        "savings-plan-1y-all-upfront": 0.68,
        "savings-plan-3y": 0.505,
        "savings-plan-3y-all-upfront": 0.465,
        "instance-savings-plan-1y": 0.634,
        "instance-savings-plan-3y-all-upfront": 0.379,
    }


def test_what_is_no_linux_machine_is_counted_with_its_reason(all_of_it: Any) -> None:
    reasons = Counter(one.reason for one in all_of_it[1])
    other_system = "the price of another operating system"
    not_shared = "the price of a machine or host that is not shared"
    assert reasons == {
        f"{other_system}: Windows": 3,  # price list, savings plans, spot
        f"{other_system}: RHEL": 1,
        f"{not_shared}: Dedicated": 1,
        f"{not_shared}: dedicated": 1,
        "a product that is no machine: Dedicated Host": 1,
        "the price of a capacity reservation: UnusedCapacityReservation": 1,
        "the price of a capacity reservation: AllocatedCapacityReservation": 1,
        "the price of a capacity reservation: savings plan": 1,
        "the price with software: SQL Std": 1,
        "the price of another market: CapacityBlock": 1,
        "the price outside of the region's own zones: AWS Local Zone": 1,
        "in a local zone, whose on-demand price is another than the region's": 1,
        "a convertible reservation; the standard one is kept": 2,
        "a savings-plan rate of no machine: Fargate": 1,
        "the price of another part of SageMaker than the one that is kept": 3,
        "the price of another part of SageMaker: Studio-JupyterLab": 1,
        "a SageMaker product that is no machine": 1,
        "the spot price history gives '0'": 1,
        "a Mac, which runs no Linux": 2,  # as a type, and where it is offered
    }


def test_capacity_blocks_are_reservations_of_unknown_price(all_of_it: Any) -> None:
    rows, _ = all_of_it
    blocks = {r["instance_type"]: r for r in rows if r["term"] == "capacity-block"}
    assert set(blocks) == {"p4d.24xlarge", "p5en.48xlarge", "trn2.48xlarge", "trn2u.48xlarge"}
    for row in blocks.values():
        assert (row["purchase"], row["price_per_hour"]) == ("reserved", None)
        assert "capacity blocks" in row["price_unknown_reason"]
    # what has an on-demand price is sold both ways, what has none as a reservation only
    assert prices(rows, "p4d.24xlarge", "on-demand") == {None: 21.957642}
    assert prices(rows, "p5en.48xlarge", "on-demand") == {}


def test_sagemaker_sells_the_same_hardware_at_another_price(all_of_it: Any) -> None:
    rows, _ = all_of_it
    managed = {r["instance_type"]: r for r in rows if r["service"] and r["term"] is None}
    assert {name: row["price_per_hour"] for name, row in managed.items()} == {
        "ml.g5.xlarge": 1.4084,  # of training
        "ml.inf2.xlarge": 0.99,  # of hosting, since training is not sold
        "ml.p2.16xlarge": 15.84,  # a product without instanceName
    }
    assert all(row["service"] == "sagemaker" for row in managed.values())
    bare = next(r for r in rows if r["instance_type"] == "g5.xlarge")
    same = ("vcpus", "memory_gib", "accelerator", "accelerator_count", "cpu_model", "network_gbps")
    assert [managed["ml.g5.xlarge"][key] for key in same] == [bare[key] for key in same]
    assert "Training" in managed["ml.g5.xlarge"]["price_source"]
    assert prices(rows, "ml.g5.xlarge", "reserved") == {"savings-plan-1y": 1.02}


def test_a_bursting_type_of_sagemaker_bursts_too() -> None:
    item = {"InstanceType": "t3.medium", "VCpuInfo": {"DefaultVCpus": 2}}
    told = texts("sagemaker_products")[1].replace("g5.xlarge", "t3.medium")
    rows, _ = parsed(instance_types=[item], sagemaker_products=[told])
    found = {row["instance_type"]: row["vcpus_sustained"] for row in rows}
    assert found == {"ml.t3.medium": 0.4, "t3.medium": 0.4}


def test_spot_prices_are_by_zone_and_unknown_where_no_history_is(all_of_it: Any) -> None:
    rows, _ = all_of_it
    assert prices(rows, "g5.xlarge", "spot") == {
        "us-east-1a": 0.25,  # 18 hours at 0.2, of which the window saw all, and 6 at 0.4
        "us-east-1b": 0.5,
        "us-west-2-lax-1a": 0.7,
    }
    assert prices(rows, "g6.xlarge", "spot") == {"us-east-1a": 0.325, "us-east-1b": None}
    assert prices(rows, "m5d.large", "spot") == {"us-east-1a": None, "us-east-1b": None}
    unknown = [r for r in rows if r["purchase"] == "spot" and r["price_per_hour"] is None]
    assert all("history of the last day" in row["price_unknown_reason"] for row in unknown)


def test_a_row_without_a_spot_price_stays(all_of_it: Any) -> None:
    rows, _ = all_of_it
    assert prices(rows, "c7g.large", "on-demand") == {None: 0.0725}
    assert set(prices(rows, "c7g.large", "spot").values()) == {None}
    without, _ = parsed(**{k: v for k, v in everything().items() if not k.startswith("spot")})
    assert not [row for row in without if row["purchase"] == "spot"]


def test_what_is_offered_without_a_price_is_unknown(all_of_it: Any) -> None:
    rows, _ = all_of_it
    found = {r["instance_type"]: r for r in rows if r["purchase"] == "on-demand"}
    assert found["t3.micro"]["price_per_hour"] is None
    assert found["t3.micro"]["region"] == "us-east-1"
    assert "no on-demand price" in found["t3.micro"]["price_unknown_reason"]
    assert "gives 0" in found["g4dn.3xlarge"]["price_unknown_reason"]
    assert found["c3.large"]["region"] == "unknown"


def test_a_type_that_only_the_price_list_knows_has_what_it_says(all_of_it: Any) -> None:
    row = next(r for r in all_of_it[0] if r["instance_type"] == "q9.2xlarge")
    assert (row["vcpus"], row["memory_gib"]) == (8, 1952)
    assert (row["accelerator"], row["accelerator_count"]) == (None, None)  # two GPUs, who knows


def test_every_offer_has_its_own_name(all_of_it: Any) -> None:
    keys = ("region", "zone", "instance_type", "purchase", "term")
    names = Counter(tuple(row[key] for key in keys) for row in all_of_it[0])
    assert max(names.values()) == 1


def test_a_host_price_is_not_the_price_of_the_machine_with_its_gpu(all_of_it: Any) -> None:
    """The kind of P4: nothing that is cheaper than the machine may stand for it."""
    rows, _ = all_of_it
    for row in rows:
        if row["accelerator_count"] and row["purchase"] == "on-demand" and row["price_per_hour"]:
            assert row["price_per_hour"] >= 0.5


def product(
    amount: Any, name: str = "g5.xlarge", currency: str = "USD", **terms: Any
) -> dict[str, Any]:
    attributes = {
        "instanceType": name,
        "regionCode": "us-east-1",
        "operatingSystem": "Linux",
        "tenancy": "Shared",
    }
    dimension = {"unit": "Hrs", "pricePerUnit": {currency: amount}}
    on_demand = {"a": {"priceDimensions": {"b": dimension}}}
    return {"product": {"attributes": attributes}, "terms": {"OnDemand": on_demand, **terms}}


BAD = ["", " ", "0", "0.0000000000", "-1", "-0.0", "nan", "NaN", "inf", "-inf", "x", None, -3, 0]


@pytest.mark.parametrize("amount", BAD)
def test_no_price_is_unknown_with_a_reason(amount: Any) -> None:
    (row,), _ = parsed(products=[product(amount)])
    assert row["price_per_hour"] is None
    assert row["price_unknown_reason"]


def test_another_currency_is_not_dollars() -> None:
    (row,), _ = parsed(products=[product("7.5", currency="CNY")])
    assert (row["price_per_hour"], row["currency"]) == (None, "USD")
    assert "CNY" in row["price_unknown_reason"]


@pytest.mark.parametrize("other", ["0.178", "0"])
def test_a_price_that_stands_twice_or_beside_none_is_no_doubt(other: str) -> None:
    (row,), _ = parsed(products=[product("0.178"), product(other)])
    assert (row["price_per_hour"], row["caveats"]) == (0.178, None)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_of_two_prices_the_lower_is_kept(order: tuple[int, ...]) -> None:
    three = [product("0.178"), product("0.086"), product("0")]
    rows, left = parsed(products=[three[n] for n in order])
    assert [(row["price_per_hour"], row["caveats"]) for row in rows] == [(0.086, "two_prices")]
    assert [one.reason for one in left] == ["two prices stand for one type; the lower is kept"] * 2


def reserved(option: str, length: str = "1yr", **dimensions: Any) -> dict[str, Any]:
    """Amounts by unit: ``Hrs``, ``Quantity``."""
    parts = {
        unit: {"unit": unit, "pricePerUnit": {"USD": amount}} for unit, amount in dimensions.items()
    }
    said = {"LeaseContractLength": length, "OfferingClass": "standard", "PurchaseOption": option}
    return {"r": {"priceDimensions": parts, "termAttributes": said}}


@pytest.mark.parametrize(
    ("option", "dimensions"),
    [
        ("No Upfront", {}),
        ("No Upfront", {"Hrs": "0"}),
        ("No Upfront", {"Hrs": "-1"}),
        ("Partial Upfront", {"Hrs": "0.3"}),  # cheap only because the upfront payment is missing
        ("Partial Upfront", {"Quantity": "100"}),
        ("Partial Upfront", {"Hrs": "0.3", "Quantity": "0"}),
        ("Partial Upfront", {"Hrs": "0.3", "Quantity": "nan"}),
        ("Partial Upfront", {"Hrs": "nan", "Quantity": "100"}),
        ("All Upfront", {"Hrs": "0"}),
        ("All Upfront", {"Hrs": "0", "Quantity": "-5"}),
        ("All Upfront", {"Hrs": "0", "Quantity": None}),
        ("All Upfront", {"Hrs": "0", "Quantity": "inf"}),
        ("All Upfront", {"Hrs": "0", "Month": "100"}),
    ],
)
def test_a_reservation_that_lacks_a_part_has_no_price(
    option: str, dimensions: dict[str, Any]
) -> None:
    rows, _ = parsed(products=[product("1", Reserved=reserved(option, **dimensions))])
    (row,) = [row for row in rows if row["purchase"] == "reserved"]
    assert row["price_per_hour"] is None
    assert row["price_unknown_reason"]


def test_all_upfront_needs_no_hourly_price() -> None:
    rows, _ = parsed(products=[product("1", Reserved=reserved("All Upfront", Quantity="876"))])
    assert prices(rows, "g5.xlarge", "reserved") == {"1y-all-upfront": pytest.approx(0.1)}


@pytest.mark.parametrize(("option", "length"), [("Half Upfront", "1yr"), ("No Upfront", "5yr")])
def test_a_reservation_of_unknown_terms_is_told(option: str, length: str) -> None:
    terms = reserved(option, length, Hrs="0.5")
    rows, left = parsed(products=[product("1", Reserved=terms)])
    assert [row["purchase"] for row in rows] == ["on-demand"]
    assert "unknown length or payment" in left[0].reason


@pytest.mark.parametrize("value", BAD)
def test_a_savings_plan_without_a_rate_has_no_price(value: Any) -> None:
    rate = {**sample("savings_plan_rates")[0], "rate": value}
    rows, _ = parsed(savings_plan_rates=[rate])
    (row,) = [row for row in rows if row["purchase"] == "reserved"]
    assert row["price_per_hour"] is None
    assert row["price_unknown_reason"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"currency": "CNY"}, "CNY, not USD"),
        ({"durationSeconds": 86400}, "unknown kind, length or payment"),
        ({"planType": "Database"}, "unknown kind, length or payment"),
        ({"paymentOption": "Later"}, "unknown kind, length or payment"),
    ],
)
def test_a_savings_plan_of_another_kind_is_told(change: dict[str, Any], said: str) -> None:
    rate = sample("savings_plan_rates")[0]
    rows, left = parsed(
        savings_plan_rates=[
            {**rate, "savingsPlanOffering": {**rate["savingsPlanOffering"], **change}}
        ]
    )
    told = left[0].reason if left else rows[0]["price_unknown_reason"]
    assert said in told


@pytest.mark.parametrize(
    ("zone", "region"),
    [
        ("us-east-1a", "us-east-1"),
        ("ap-southeast-2c", "ap-southeast-2"),
        ("us-gov-west-1b", "us-gov-west-1"),
        ("us-west-2-lax-1a", "us-west-2"),
        ("us-east-1-wl1-bos-wlz-1", "us-east-1"),
        ("mexico-central-1a", "mexico-central-1"),
        ("nowhere", None),
    ],
)
def test_the_region_of_a_zone(zone: str, region: str | None) -> None:
    assert region_of(zone) == region


@pytest.mark.parametrize(
    ("text", "name", "rank"),
    [
        ("USE1-Train:ml.p3.2xlarge", "ml.p3.2xlarge", 0),
        ("EUC1-Host:ml.c5.18xlarge", "ml.c5.18xlarge", 1),
        ("ml.p6-b200.48xlarge-Training", "ml.p6-b200.48xlarge", None),
        ("Training", None, 0),
        ("Studio-Notebook", None, 5),
        ("g5.xlarge", None, None),
        ("", None, None),
        (None, None, None),
    ],
)
def test_names_of_sagemaker(text: str | None, name: str | None, rank: int | None) -> None:
    assert name_of(text) == name
    if rank is not None or text in ("", None):
        assert rank_of(text) == rank
