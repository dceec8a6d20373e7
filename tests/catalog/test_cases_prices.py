"""Prices in the catalog: real answers that tools get wrong, P1 to P15, and their kinds."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from offers_and_trials import chosen, offer, trial
from provider_answers import (
    DATE,
    Row,
    ec2_gpu,
    ec2_product,
    ec2_type,
    gce_type,
    gpu_info,
    meter,
    parsed,
    sku,
    sky,
)

from underdog.catalog import quality
from underdog.catalog.hardware import price_of
from underdog.model import Price
from underdog.store import open_store

NO_PRICES: list[Any] = [None, "", "0", "0.0", "-1", "nan", "inf", "x"]


def rules(rows: list[Row], **more: Any) -> list[str]:
    return [one.rule for one in quality.check(rows, **more)]


def price(row: Row) -> tuple[float | None, bool]:
    """The price, and whether there is a reason why it is unknown."""
    return row["price_per_hour"], bool(row["price_unknown_reason"])


def a4000(count: int, usd: float, **more: Any) -> Row:
    """A pod with so many cards."""
    return offer(
        f"{count}x_A4000",
        usd,
        provider="runpod",
        accelerator="RTX-A4000",
        accelerator_count=count,
        accelerator_memory_gib=16,
        accelerator_usable_gib=15.7,
        vcpus=8 * count,
        memory_gib=31 * count,
        purchase="spot",
        **more,
    )


@pytest.mark.parametrize("usd", [None, 0, 0.0, "0", "", "nan", -1.0])
def test_p1_a_price_that_azure_does_not_give(usd: Any) -> None:
    rows, left = parsed("azure", retail=[meter("Standard_NC40ads_H100_v5", usd)])
    assert left == []
    assert [price(row) for row in rows] == [(None, True)]


def test_p1_what_has_no_price_is_never_ranked_by_cost() -> None:
    rows = [offer("g5.xlarge", 1.0), offer("g5.2xlarge", None)]
    choice = chosen(rows, [trial("g5.xlarge", 100), trial("g5.2xlarge", 900)])
    assert [entry["offer"]["instance_type"] for entry in choice.ranking()] == ["g5.xlarge"]
    causes = {line["offer"]: line["cause"] for line in choice.ledger()}
    assert causes["aws/us-east-1/g5.2xlarge/on-demand"] == "price unknown"


@pytest.mark.parametrize("name", ["p5e.48xlarge", "p5en.48xlarge"])
def test_p2_capacity_blocks_have_no_list_price(name: str) -> None:
    gpus = ec2_gpu("NVIDIA", 8, 144384)
    item = ec2_type(name, gpus, usage=("capacity-block",))
    rows, _ = parsed("aws", instance_types=[item], products=[ec2_product("m5.large", "0.096")])
    (row,) = (row for row in rows if row["instance_type"] == name)
    assert (row["purchase"], row["term"]) == ("reserved", "capacity-block")
    assert price(row) == (None, True)
    assert "capacity block" in row["price_unknown_reason"]


@pytest.mark.parametrize("usd", NO_PRICES)
def test_p3_a_price_of_zero_is_none_in_a_table_of_machines(usd: Any) -> None:
    whole = {"region": "us-central1", "machineType": "n2-standard-2", "onDemand": usd, "spot": usd}
    rows, _ = parsed("gcp", machine_types=[gce_type("n2-standard-2", 2, 8)], machine_prices=[whole])
    found = [price(row) for row in rows if row["region"] == "us-central1"]
    assert found
    assert set(found) == {(None, True)}


def test_p3_a_part_that_costs_nothing_makes_no_machine_cheap() -> None:
    skus = [
        sku("N2 Instance Core running in Americas", 0.031611),
        sku("N2 Instance Ram running in Americas", 0.0, group="RAM", unit="GiBy.h"),
    ]
    rows, _ = parsed("gcp", machine_types=[gce_type("n2-standard-2", 2, 8)], skus=skus)
    assert rows
    assert {price(row) for row in rows} == {(None, True)}


def a2(*more: Row) -> Row:
    """``a2-highgpu-1g`` on demand, with the rates of its host and those given."""
    skus = [
        sku("A2 Instance Core running in Americas", 0.031611),
        sku("A2 Instance Ram running in Americas", 0.004237, group="RAM", unit="GiBy.h"),
        *more,
    ]
    types = [gce_type("a2-highgpu-1g", 12, 85, "nvidia-tesla-a100", 1)]
    rows, _ = parsed("gcp", machine_types=types, skus=skus)
    (row,) = (row for row in rows if row["purchase"] == "on-demand")
    return row


def test_p4_a_host_without_its_accelerator_has_no_price() -> None:
    assert price(a2()) == (None, True)
    gpu = sku("Nvidia Tesla A100 GPU running in Americas", 2.933908, group="GPU")
    assert a2(gpu)["price_per_hour"] == pytest.approx(3.673, abs=0.01)


def test_p4_a_host_price_of_a_file_is_taken_out() -> None:
    _, left = sky("gcp", {"InstanceType": "a2-highgpu-1g", "Price": 0.94})
    assert "without its accelerators" in left[0].reason
    place = {"provider": "gcp", "region": "us-central1"}
    plain = [
        offer(
            f"n2-highmem-{n}", 0.0655 * n, vcpus=n, memory_gib=8 * n,
            **place | dict.fromkeys(("accelerator", "accelerator_memory_gib")),
            accelerator_count=0,
        )
        for n in (8, 16)
    ]  # fmt: skip
    card = {"accelerator": "A100-40GB", "accelerator_memory_gib": 40, "vcpus": 12}
    host_only = offer("a2-highgpu-1g", 0.94, memory_gib=85, **card, **place)
    whole = offer("a2-highgpu-1g", 3.67, memory_gib=85, **card, **place | {"region": "asia-east1"})
    other = offer("p4d.24xlarge", 22.0, **card | {"accelerator_count": 8, "vcpus": 96})
    findings = quality.check([*plain, whole, host_only, other])
    taken = [(one.rule, one.row) for one in findings if one.severity == "quarantine"]
    assert taken == [("host_only_price", 3)]


def test_p5_p14_a_spot_price_above_on_demand_is_told_and_not_chosen() -> None:
    rows = [offer(price=0.44), offer(price=0.49, purchase="spot")]
    (finding,) = (f for f in quality.check(rows) if f.rule == "spot_above_on_demand")
    assert (finding.row, finding.severity) == (1, "caveat")
    assert finding.message == "0.49 USD/h, and on demand 0.44"
    kept, left = quality.apply(rows, quality.check(rows))
    assert left == []
    for by in ("samples_per_dollar", "samples_per_second", "dollars_per_million_samples"):
        choice = chosen(kept, [trial()], by)
        assert [e["offer"]["purchase"] for e in choice.ranking()] == ["on-demand"], by
    (out,) = (line for line in choice.ledger() if line["verdict"] == "excluded")
    assert (out["offer"].split("/")[-1], out["cause"]) == ("spot", "spot price")
    told = quality.doubts([{"id": "it", "caveats": kept[1]["caveats"]}])
    assert (
        "dearer as spot" in told[[one.code for one in told].index("spot_above_on_demand")].message
    )


@pytest.mark.parametrize(("count", "shown", "billed"), [(8, 1.28, 10.24), (4, 0.6, 2.4)])
def test_p6_the_price_of_one_accelerator_for_all(count: int, shown: float, billed: float) -> None:
    one = a4000(1, billed / count)
    assert "price_of_one_accelerator" in rules([one, a4000(count, shown)])
    assert "price_of_one_accelerator" not in rules([one, a4000(count, billed)])


def test_p7_of_two_prices_the_lower_stands_with_a_caveat() -> None:
    one = {"InstanceType": "Standard_D2as_v5"}
    rows, _ = sky("hyperstack", {**one, "Price": 0.178}, {**one, "Price": 0.086})
    (row,) = (row for row in rows if row["purchase"] == "on-demand")
    assert (row["price_per_hour"], row["caveats"]) == (0.086, "two_prices")
    rows = [offer(price=0.178), offer(price=0.086)]
    kept, left = quality.apply(rows, quality.check(rows))
    assert [row["price_per_hour"] for row in kept] == [0.086]
    assert "two_prices" in kept[0]["caveats"]
    assert [one.reason.partition(":")[0] for one in left] == ["duplicate_offer"]


@pytest.mark.parametrize("provider", ["aws", "azure", "gcp"])
def test_p7_no_provider_raises_at_two_prices(provider: str) -> None:
    whole = {"region": "eastus", "machineType": "n2-standard-2", "spot": None}
    documents: dict[str, list[Any]] = {
        "aws": {"products": [ec2_product("m5.large", usd, "eastus") for usd in ("0.178", "0.086")]},
        "azure": {"retail": [meter("Standard_D2as_v5", usd) for usd in (0.178, 0.086)]},
        "gcp": {"machine_prices": [{**whole, "onDemand": usd} for usd in (0.178, 0.086)]},
    }[provider]
    rows, left = parsed(provider, **documents)
    here = [r for r in rows if r["region"] == "eastus" and r["purchase"] == "on-demand"]
    assert [row["price_per_hour"] for row in here] == [0.086]
    assert any("two prices" in one.reason for one in left)


@pytest.mark.parametrize(
    "more",
    [
        {"meterName": "D2as v5 Win"},
        {"skuName": "D2as v5 Win"},
        {"productName": "Virtual Machines Dasv5 Series Windows"},
    ],
)
def test_p8_a_windows_price_is_left_out(more: Row) -> None:
    items = [meter("Standard_D2as_v5", 0.178, **more), meter("Standard_D2as_v5", 0.086)]
    for order in (items, items[::-1]):
        rows, left = parsed("azure", retail=order)
        assert [row["price_per_hour"] for row in rows] == [0.086]
        assert [one.reason for one in left] == ["a Windows price"]


def test_p8_a_windows_price_under_the_name_of_linux_is_taken_out() -> None:
    sizes = {2: 0.178, 4: 0.172, 8: 0.344, 16: 0.688, 32: 1.376}  # of a real table, eastus
    items = [meter(f"Standard_D{size}as_v5", usd) for size, usd in sizes.items()]
    rows, _ = parsed("azure", retail=items)
    _, left = quality.apply(rows, quality.check(rows))
    assert [one.instance_type for one in left] == ["Standard_D2as_v5"]
    assert left[0].reason.startswith("windows_price")


def test_p9_a_bid_floor_is_no_price() -> None:
    row = {
        "AcceleratorName": "H100",
        "AcceleratorCount": 1,
        "GpuInfo": gpu_info("H100", 1, 81920, 81920),
    }
    prices = {"a": 3.45, "b": 3.1, "c": 0.01, "d": 0.4}
    rows, _ = sky(
        "vast", *({**row, "InstanceType": f"1x-{k}", "Price": p} for k, p in prices.items())
    )
    rows = [row for row in rows if row["purchase"] == "on-demand"]
    kept, left = quality.apply(rows, quality.check(rows))
    assert [one.instance_type for one in left] == ["1x-c"]
    assert left[0].reason.startswith("accelerator_price_too_low")
    assert {row["price_per_hour"] for row in kept} == {3.45, 3.1, 0.4}


def test_p10_a_machine_without_a_spot_price_stays() -> None:
    rows, _ = sky(
        "verda",
        {"InstanceType": "1A100", "Price": 1.5, "SpotPrice": 0.6},
        {"InstanceType": "1H100", "Price": 2.5, "SpotPrice": ""},
    )
    found = {(row["instance_type"], row["purchase"]): price(row) for row in rows}
    assert found["1H100", "on-demand"] == (2.5, False)
    assert found["1H100", "spot"] == (None, True)
    whole = {"region": "r", "machineType": "n2-standard-2", "onDemand": "0.097", "spot": None}
    rows, _ = parsed("gcp", machine_types=[gce_type("n2-standard-2", 2, 8)], machine_prices=[whole])
    found = {row["purchase"]: price(row) for row in rows if row["region"] == "r"}
    assert found == {"on-demand": (0.097, False), "spot": (None, True)}


def test_p11_more_accelerators_for_less_are_told() -> None:
    rows = [a4000(1, 0.3), a4000(2, 0.6), a4000(4, 1.2), a4000(8, 1.0)]
    findings = [f for f in quality.check(rows) if f.rule == "more_for_less"]
    assert [(one.row, one.severity) for one in findings] == [(3, "caveat")]
    assert "the smaller 4x_A4000 1.2" in findings[0].message


def spot(*points: tuple[str, str]) -> list[Row]:
    history = [
        {
            "AvailabilityZone": "us-east-1a",
            "InstanceType": "g5.xlarge",
            "ProductDescription": "Linux/UNIX",
            "SpotPrice": usd,
            "Timestamp": f"{DATE}T{clock}:00+00:00",
        }
        for clock, usd in points
    ]
    day = {"StartTime": f"{DATE}T00:00:00+00:00", "EndTime": f"{DATE}T12:00:00+00:00"}
    zone = {
        "InstanceType": "g5.xlarge",
        "LocationType": "availability-zone",
        "Location": "us-east-1a",
    }
    rows, _ = parsed(
        "aws",
        instance_types=[ec2_type("g5.xlarge", usage=("on-demand", "spot"))],
        offerings=[zone],
        spot=history,
        spot_window=[day],
    )
    return [row for row in rows if row["purchase"] == "spot"]


def test_p12_a_spot_history_that_is_empty_is_an_unknown_price() -> None:
    assert [price(row) for row in spot()] == [(None, True)]


def test_p12_one_point_is_the_price() -> None:
    (row,) = spot(("06:00", "0.42"))
    assert (row["price_per_hour"], row["zone"]) == (0.42, "us-east-1a")


@pytest.mark.parametrize("first", ["0.40", "0.60"])
def test_p12_two_points_of_one_moment_are_a_finite_price(first: str) -> None:
    other = "0.60" if first == "0.40" else "0.40"
    (row,) = spot(("06:00", first), ("06:00", other))
    assert 0.4 <= row["price_per_hour"] <= 0.6


def test_p12_prices_count_by_their_time_and_the_newest_counts() -> None:
    (row,) = spot(("00:00", "0.40"), ("09:00", "0.80"))
    assert row["price_per_hour"] == pytest.approx((9 * 0.4 + 3 * 0.8) / 12)
    (last,) = spot(("00:00", "0.40"), ("12:00", "0.80"))
    assert 0.4 < last["price_per_hour"] < 0.8


@given(st.lists(st.tuples(st.integers(0, 12), st.floats(0.01, 9)), max_size=6))
@settings(max_examples=30, deadline=None)
def test_p12_a_mean_lies_among_its_prices(points: list[tuple[int, float]]) -> None:
    rows = spot(*((f"{hour:02}:00", f"{usd:.4f}") for hour, usd in points))
    for row in rows:
        if row["price_per_hour"] is not None:
            prices = [usd for _, usd in points]
            assert min(prices) - 1e-3 <= row["price_per_hour"] <= max(prices) + 1e-3
    assert bool(points) == any(row["price_per_hour"] is not None for row in rows)


def test_p13_the_price_of_an_old_run_stands_with_it(tmp_path: Path) -> None:
    then = Price(per_hour=1.2, source="the catalog of its day", date="2024-03-01")
    url = str(tmp_path / "store.sqlite3")
    with open_store(url) as store:
        store.save(trial(price=then))
    # whatever the machine costs now, and also where nobody sells it any more
    for now in ([offer(price=9.9)], [offer("g6.xlarge")]):
        with open_store(url) as store:
            (kept,) = store.trials(workload="gpt")
        chosen(now, [kept])
        assert kept.price == then


def test_p15_google_attaches_only_what_it_sells() -> None:
    rows, _ = parsed(
        "gcp",
        machine_types=[gce_type("n1-highmem-8", 8, 52)],
        accelerator_types=[
            {"name": name, "zone": "us-central1-a", "maximumCardsPerInstance": 8}
            for name in ("nvidia-tesla-t4", "nvidia-rtx-pro-6000", "nvidia-l4", "nvidia-h100-80gb")
        ],
    )
    assert {row["accelerator"] for row in rows} == {None, "T4"}
    assert rules([row for row in rows if row["accelerator"]]) == []


@pytest.mark.parametrize(
    ("machine", "model", "sold"),
    [
        ("n1-highmem-8", "RTX-PRO-6000", False),
        ("n1-highmem-8", "H100", False),
        ("n2-standard-8", "T4", False),
        ("g2-standard-8", "A100-40GB", False),
        ("n1-highmem-8", "T4", True),
        ("g2-standard-8", "L4", True),
        ("g4-standard-48", "RTX-PRO-6000", True),
    ],
)
def test_p15_pairs_that_are_not_sold_are_taken_out(machine: str, model: str, sold: bool) -> None:
    card = {"AcceleratorName": model, "AcceleratorCount": 1, "Price": 2.5}
    rows, _ = sky("gcp", {"InstanceType": machine, **card})
    assert rows
    assert all(row["accelerator"] == model for row in rows)
    assert ("impossible_pair" not in rules(rows)) == sold


def test_no_case_is_left_out() -> None:
    names = [name for name in globals() if name.startswith("test_p")]
    named = {int(number) for name in names for number in re.findall(r"_p(\d+)(?=_)", name)}
    assert named == set(range(1, 16))


@given(st.one_of(st.none(), st.text(max_size=12), st.floats().map(repr), st.integers().map(str)))
@settings(max_examples=60, deadline=None)
def test_p1_to_p10_no_text_makes_a_price_of_what_is_none(text: str | None) -> None:
    found = price_of(text, "a list", DATE, "no price")
    if found.per_hour is None:
        assert found.unknown_reason
    else:
        assert text is not None
        assert 0 < found.per_hour == float(text)
        assert math.isfinite(found.per_hour)
