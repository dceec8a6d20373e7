"""The user's own prices: the file, what a machine costs, and the list prices beneath."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from underdog.catalog import own
from underdog.catalog.hardware import Hardware, offer_row
from underdog.catalog.http import Http
from underdog.catalog.providers import static
from underdog.catalog.sources import FetchOptions, Raw
from underdog.core.columns import OFFER_COLUMNS
from underdog.core.table import Table, connect, fill
from underdog.errors import CatalogError
from underdog.model import Price
from underdog.testing.provider import check_provider

FILE = """
[[machine]]
instance_type = "our-a100-box"
vcpus = 128
memory_gib = 1024
accelerator = "A100-80GB"
accelerator_count = 8
purchase_price = 175_200
life_years = 5
utilisation = 0.5
power_w = 6500
electricity_per_kwh = 0.20
hosting_per_month = 730

[[offer]]
provider = "aws"
region = "us-east-1"
instance_type = "p5.48xlarge"
purchase = "reserved"
term = "2y-private"
price_per_hour = 41.5
price_date = 2026-10-01

[[discount]]
name = "enterprise agreement"
where = "provider = 'aws' and purchase = 'on-demand'"
percent = 30
"""


def read(text: str, folder: Path) -> Raw:
    file = folder / "catalog.toml"
    file.write_text(text)
    return static.fetch(Http(), FetchOptions(file=file))


def test_a_mark_of_the_byte_order_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "catalog.toml"
    file.write_text(FILE, encoding="utf-8-sig")
    assert len(rows_of(static.fetch(Http(), FetchOptions(file=file)))) == 2


def test_a_part_of_an_accelerator_has_a_part_of_its_memory(tmp_path: Path) -> None:
    text = FILE.replace("accelerator_count = 8", "accelerator_count = 0.5")
    (box, _) = rows_of(read(text, tmp_path))
    assert (box["accelerator_count"], box["accelerator_memory_gib"]) == (0.5, 40)


def rows_of(raw: Raw) -> list[dict[str, Any]]:
    return [row for row in static.parse(raw) if isinstance(row, dict)]


def listed(price: Price, **fields: Any) -> dict[str, Any]:
    facts = {"vcpus": 192.0, "memory_gib": 2048.0, "accelerator": "H100", "accelerator_count": 8}
    row = offer_row("aws", "us-east-1", "p5.48xlarge", "on-demand", Hardware(**facts), price=price)
    return {**row, **fields}


def table(*rows: dict[str, Any]) -> Any:
    connection = connect()
    fill(connection, {c.name: [row[c.name] for row in rows] for c in OFFER_COLUMNS})
    return connection


def all_of(connection: Any) -> list[dict[str, Any]]:
    found = connection.execute("SELECT * FROM offers ORDER BY ALL")
    names = [part[0] for part in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


LIST = Price(per_hour=98.32, source="AWS price list", date="2026-11-01")


def test_it_keeps_the_promises_of_a_provider(tmp_path: Path) -> None:
    check_provider(static, read(FILE, tmp_path))


def test_an_hour_of_a_machine_of_ones_own(tmp_path: Path) -> None:
    row = rows_of(read(FILE, tmp_path))[0]
    # (175,200 / 43,800 h + 730 / 730 h) / 0.5 + 6.5 kW x 0.20
    assert row["price_per_hour"] == pytest.approx((4 + 1) / 0.5 + 1.3)
    assert (row["provider"], row["region"]) == ("on-premises", "on-premises")
    assert (row["accelerator"], row["accelerator_memory_gib_total"]) == ("A100-80GB", 640)
    assert row["bf16_tflops"]
    assert "175,200 USD over 5 years, in use 50% of the time" in row["price_source"]
    assert "6,500 W at 0.2 USD/kWh" in row["price_source"]


def test_without_power_and_hosting_only_the_purchase_counts() -> None:
    costs = dict.fromkeys(static._COSTS)
    costs |= {"purchase_price": 8760.0, "life_years": 1.0, "utilisation": 1.0}
    assert static.hourly_cost(costs) == 1
    assert static.hourly_cost({**costs, "life_years": None}) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[machine]]\n", ["instance_type", "purchase_price", "life_years", "utilisation"]),
        ("[[machine]]\ninstance_type='m'\npurchase_price=1\nlife_years=0\nutilisation=2\n",
         ["row 1, life_years: 0 is not", "utilisation: '2' is more than 1"]),
        ("[[machine]]\ninstance_type='m'\npurchase_price=1\nlife_years=1\nutilisation=1\n"
         "power_w=5\nprice_per_hour=1\ncolour='red'\n",
         ["power_w: give it together", "price_per_hour: it follows", "colour: there is no such"]),
        ("[[machine]]\ninstance_type='m'\npurchase_price=-1\nlife_years=nan\nutilisation=inf\n",
         ["purchase_price: '-1'", "life_years: 'nan'", "utilisation: 'inf'"]),
        ("[[offer]]\nprovider='aws'\n", ["region: it is missing", "price_per_hour: it is missing"]),
        ("[[offer]]\nprovider='a'\nregion='r'\ninstance_type='t'\nprice_per_hour=0\n",
         ["price_per_hour: 0 is not a value"]),
        ("[[offer]]\nprice=1\n", ["price: there is no such field. Did you mean"]),
        ("[[discount]]\n", ["where: it is missing", "percent: give either percent or factor"]),
        ("[[discount]]\nwhere='price_per_hour'\npercent=100\n",
         ["not a condition", "percent: '100.0' leaves no price"]),
        ("[[discount]]\nwhere='colour = 1'\nfactor=0\n", ["where: ", "colour", "factor: 0 is not"]),
        ("[[discount]]\nwhere='price_per_hour / accelerator_count < 1'\nfactor=0.5\n", ["where: "]),
        ("[discount]\nfactor=1\n", ["write [[discount]], with two brackets"]),
        ("discount=[1]\n", ["'1' is not a table"]),
        ("[[discounts]]\nfactor=1\n", ["no such table. Did you mean 'discount'?"]),
        ("[[discount]]\nwhere='provder = 1'\nfactor=0.5\n", ["Did you mean 'provider'?"]),
        ("[[offer]]\nprovider='a'\nregion='r'\ninstance_type='t'\nprice_per_hour=1\n"
         "price_date='last week'\naccelerator='H100'\naccelerator_count=0\n",
         ["price_date: 'last week' is no day", "accelerator_count: 0, and there is an"]),
        ("[[offer]\n", ["is no TOML"]),
        ("x = '" + "\\0" + "'\n[[", ["is no TOML"]),
    ],
)  # fmt: skip
def test_every_fault_is_named(text: str, said: list[str], tmp_path: Path) -> None:
    with pytest.raises(CatalogError) as told:
        read(text, tmp_path)
    for part in said:
        assert part in str(told.value)


def test_an_offer_that_stands_twice_is_told(tmp_path: Path) -> None:
    twice = FILE[FILE.index("[[offer]]") : FILE.index("[[discount]]")] * 2
    with pytest.raises(CatalogError, match="twice"):
        read(twice, tmp_path)


def test_without_a_file_it_says_where_it_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert f"{tmp_path}/underdog/catalog.toml" in str(static.unready(FetchOptions()))
    with pytest.raises(CatalogError, match="Cannot read your prices"):
        static.fetch(Http(), FetchOptions())


def test_a_discount_leaves_the_list_price_to_be_seen(tmp_path: Path) -> None:
    raw = read(FILE, tmp_path)
    spot = listed(LIST, purchase="spot")
    offers = table(listed(LIST), spot)
    assert own.put_on(offers, [], static.discounts(raw), raw.source) == 1
    cheap, same = all_of(offers)
    assert cheap["price_per_hour"] == pytest.approx(0.7 * 98.32)
    assert cheap["price_source"] == (
        f"own price of '{raw.source}': 0.7 of the list price (enterprise agreement); "
        "list price 98.32 USD/h of AWS price list, 2026-11-01"
    )
    assert same == spot


def test_of_several_discounts_the_first_counts(tmp_path: Path) -> None:
    more = FILE + "[[discount]]\nwhere = \"provider = 'aws'\"\nfactor = 0.5\n"
    raw = read(more, tmp_path)
    offers = table(listed(LIST), listed(LIST, purchase="spot"))
    own.put_on(offers, [], static.discounts(raw), raw.source)
    assert [row["price_per_hour"] / 98.32 for row in all_of(offers)] == pytest.approx([0.7, 0.5])


def test_an_unknown_price_gets_no_discount(tmp_path: Path) -> None:
    raw = read(FILE, tmp_path)
    unknown = listed(Price(unknown_reason="not listed", source="s", date="2026-11-01"))
    offers = table(unknown)
    assert own.put_on(offers, [], static.discounts(raw), raw.source) == 0
    assert all_of(offers) == [unknown]


def test_an_offer_takes_its_hardware_from_the_list(tmp_path: Path) -> None:
    raw = read(FILE, tmp_path)
    offers = table(listed(LIST))
    assert own.put_on(offers, rows_of(raw), static.discounts(raw), raw.source) == 3
    mine = next(row for row in all_of(offers) if row["purchase"] == "reserved")
    assert (mine["price_per_hour"], mine["term"]) == (41.5, "2y-private")
    assert (mine["vcpus"], mine["accelerator"], mine["accelerator_count"]) == (192, "H100", 8)
    assert (mine["price_date"], mine["kg_co2e_per_kwh"]) == (
        "2026-10-01",
        listed(LIST)["kg_co2e_per_kwh"],
    )


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C",)), max_size=20)
PRICES = st.one_of(
    st.builds(
        Price,
        per_hour=st.floats(1e-6, 1e6),
        source=NAMES,
        date=st.dates().map(str),
    ),
    st.builds(
        Price,
        unknown_reason=NAMES.filter(lambda t: "," not in t and t),
        source=NAMES,
        date=st.dates().map(str),
    ),
)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(PRICES, min_size=1, max_size=4),
    st.floats(1e-3, 2),
    st.booleans(),
)
def test_list_prices_come_back_to_the_last_digit(
    prices: list[Price], factor: float, replaced: bool
) -> None:
    rows = [listed(price, region=f"r{number}") for number, price in enumerate(prices)]
    mine = [
        listed(Price(per_hour=1.0, source=static.OWN, date="2026-11-30"), region="r0")
    ] * replaced
    mine.append(listed(Price(per_hour=2.0, source=static.OWN, date="2026-11-30"), region="new"))
    offers = table(*rows)
    before = all_of(offers)
    rule = static.Discount("it's mine", "true", "true", factor)
    own.put_on(offers, mine, [rule], "x; list price 3 USD/h of y, 2020-01-01")
    assert own.put_on.__doc__
    changed = all_of(offers)
    assert len(changed) == len(before) + 1
    assert all(row["price_per_hour"] is None or row["price_per_hour"] > 0 for row in changed)
    own.take_off(offers)
    assert all_of(offers) == before
    Table(offers)
