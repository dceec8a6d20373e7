"""Azure: what each meter of the Retail Prices API is a price of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from underdog.catalog.providers import azure
from underdog.catalog.sources import LeftOut, Raw
from underdog.errors import CatalogError

SAMPLE = Path(__file__).parent / "samples" / "azure_retail.json"
D2 = "Standard_D2s_v5"


def sample() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(SAMPLE.read_text(encoding="utf-8"))
    return found


def meter(name: str = D2, price: Any = 0.1, **more: Any) -> dict[str, Any]:
    """An item of the API, the first of the sample with the changes given."""
    return {**sample()[0], "savingsPlan": [], "armSkuName": name, "retailPrice": price, **more}


def parsed(
    items: list[Any], date: str = "2026-11-30"
) -> tuple[list[dict[str, Any]], list[LeftOut]]:
    raw = Raw(provider="azure", documents={"retail": items}, source="the API", date=date)
    found = list(azure.parse(raw))
    left = [one for one in found if isinstance(one, LeftOut)]
    return [one for one in found if not isinstance(one, LeftOut)], left


def test_the_ways_to_buy_one_size() -> None:
    rows, _ = parsed(sample())
    found = {
        (r["purchase"], r["term"]): r["price_per_hour"] for r in rows if r["instance_type"] == D2
    }
    assert found == {
        ("on-demand", None): 0.115,
        ("spot", None): 0.0236,
        ("reserved", "1y"): pytest.approx(594 / 8760),
        ("reserved", "3y"): pytest.approx(1147 / 26280),
        ("reserved", "savings-plan-1y"): 0.0805,
        ("reserved", "savings-plan-3y"): 0.0552,
    }


def test_a_reservation_is_cheaper_than_on_demand_and_not_by_thousands() -> None:
    rows, _ = parsed(sample())
    for row in rows:
        if row["instance_type"] == D2 and row["purchase"] == "reserved":
            assert 0.2 * 0.115 < row["price_per_hour"] < 0.115


@pytest.mark.parametrize(("second", "caveat"), [(0.086, "two_prices"), (0.178, None), (0, None)])
def test_of_two_prices_the_lower_stands_with_a_caveat(  # P7
    second: float, caveat: str | None
) -> None:
    rows, left = parsed([meter(price=0.178), meter(price=second)])
    low = second or 0.178
    assert [(row["price_per_hour"], row["caveats"]) for row in rows] == [(low, caveat)]
    assert len(left) == 1


def test_what_is_no_offer_is_told() -> None:
    _, left = parsed(sample())
    found = sorted((one.instance_type, one.reason) for one in left)
    assert found == sorted(
        [
            (D2, "a low-priority price of Azure Batch"),
            (D2, "a Windows price"),
            (D2, "a Windows price"),
            (D2, "a Windows price"),  # and for development and test
            (D2, "in 'EUR', not in USD"),
            ("Dsv3_Type1", "a dedicated host, not a virtual machine"),
            ("Standard_D2_v2", "a price of Cloud Services, not a virtual machine"),
            ("Standard_D2_v2", "an expired meter"),
            ("Standard_E4s_v5", "two prices stand for one type; the lower is kept"),
            (
                "Standard_E8s_v5",
                "a meter that nothing is billed by: not the primary one of its region",
            ),
            ("Standard_E16s_v5", "a price that is not valid yet"),
            ("Standard_E32s_v5", "a price that is no longer valid"),
            ("Standard_E48s_v5", "sold by '1/Month', not by the hour"),
            ("vCPU", "a meter without the name of a size"),
            (
                "Standard_E64s_v5",
                "of the service 'Virtual Machines Licenses', not a virtual machine",
            ),
        ]
    )


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"type": "DevTestConsumption"}, "development and test"),
        ({"type": "Premium"}, "a meter of the type 'Premium'"),
        ({"type": "Reservation", "reservationTerm": "2 Weeks"}, "of the term '2 Weeks'"),
        ({"skuName": "D2s v5 Win"}, "Windows"),
        ({"armSkuName": "Standard_D2_v5 Win"}, "Windows"),
        ({"productName": "Virtual Machines BS Series Windows"}, "Windows"),
        ({"skuName": "D2s v5 Low Priority", "meterName": "D2s v5"}, "low-priority"),
        ({"productName": "Ddsv5 Dedicated Host Reservation"}, "dedicated host"),
        ({"armSkuName": "Ebdsv5-Type1"}, "dedicated host"),
        ({"armSkuName": "ARM_SKU_NAME_PLACEHOLDER"}, "placeholder"),
        ({"armSkuName": "L192isv4"}, "not the name"),
        ({"tierMinimumUnits": 100.0}, "large amounts"),
        ({"unitOfMeasure": "0 Hours"}, "sold by '0 Hours'"),
        ({"armRegionName": ""}, "without a region"),
        ({"currencyCode": None}, "in '', not in USD"),
    ],
)
def test_meters_that_are_told_apart(more: dict[str, Any], reason: str) -> None:
    rows, left = parsed([meter(**{"name": more.pop("armSkuName", D2), **more})])
    assert rows == []
    assert reason in left[0].reason


def test_a_price_by_a_hundred_hours() -> None:
    rows, _ = parsed(sample())
    (row,) = (r for r in rows if r["instance_type"] == "Standard_E20s_v5")
    assert row["price_per_hour"] == pytest.approx(1.52)


@pytest.mark.parametrize("price", [None, 0, 0.0, -1, float("nan"), float("inf"), "", "x", 10**400])
@pytest.mark.parametrize("kind", ["Consumption", "Reservation"])
def test_no_price_is_unknown_with_a_reason(price: Any, kind: str) -> None:
    name = "Standard_NC40ads_H100_v5"
    rows, _ = parsed([meter(name, price, type=kind, reservationTerm="1 Year")])
    (row,) = rows
    assert row["price_per_hour"] is None
    assert row["price_unknown_reason"]
    assert row["accelerator"] == "H100-NVL"


def test_of_two_prices_the_lower_is_kept() -> None:
    rows, left = parsed([meter(price=price) for price in (0.178, 0.086, 0)])
    assert [row["price_per_hour"] for row in rows] == [0.086]
    assert len(left) == 2


def test_a_repeated_answer_gives_the_same_offers() -> None:
    once, _ = parsed(sample())
    twice, left = parsed(sample() + sample()[::-1])
    assert sorted(once, key=str) == sorted(twice, key=str)
    assert len(left) > len(once)


@pytest.mark.parametrize(
    ("item", "where"),
    [
        ("text", r"azure: retail\[1\] is str"),
        (None, r"azure: retail\[1\] is NoneType"),
        (meter(armSkuName=7), r"azure: retail\[1\]\.armSkuName is '7'"),
        (meter(price=[1]), r"azure: retail\[1\]\.retailPrice is '\[1\]'"),
        (meter(price=True), r"azure: retail\[1\]\.retailPrice is 'True'"),
        (meter(savingsPlan={}), r"azure: retail\[1\]\.savingsPlan is dict"),
        (meter(savingsPlan=[3]), r"azure: retail\[1\]\.savingsPlan\[0\] is int"),
    ],
)
def test_a_broken_item_is_told_by_row_and_field(item: Any, where: str) -> None:
    with pytest.raises(CatalogError, match=where):
        parsed([meter(), item])


def test_a_savings_plan_of_another_term_is_left_out() -> None:
    plans = [{"term": "7 Years", "retailPrice": 0.01}, {"term": "5 Years", "retailPrice": None}]
    rows, left = parsed([meter(savingsPlan=plans)])
    assert {(row["term"], row["price_per_hour"]) for row in rows} == {
        (None, 0.1),
        ("savings-plan-5y", None),
    }
    assert [one.reason for one in left] == ["a savings plan of '7 Years'"]


def test_blanks_around_a_name_are_cut() -> None:
    rows, _ = parsed([meter("Standard_NM16ads_MA35D  ")])
    assert rows[0]["instance_type"] == "Standard_NM16ads_MA35D"
