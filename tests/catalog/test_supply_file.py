"""A table of what is told of places: its columns, and its faults."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from underdog.catalog.supply_file import load
from underdog.core.availability import FIRST_RATE
from underdog.errors import CatalogError

TABLE = """\
provider,region,zone,instance_type,purchase,placement_score,interruption_band,offered,wait_seconds
aws,us-east-1,us-east-1a,g5.xlarge,,3,5-10%,,
aws,us-east-1,us-east-1b,g5.xlarge,spot,,>20%,no,
aws,us-east-1,,g5.xlarge,on-demand,,,true,90
"""


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_of_places(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "told.csv"
    path.write_text(TABLE)
    if kind == "parquet":
        given, path = path, tmp_path / "told.parquet"
        duckdb.connect().execute(f"COPY (FROM read_csv('{given}')) TO '{path}'")
    first, second, third = load(path)
    assert (first.place.zone, first.place.purchase) == ("us-east-1a", "spot")
    assert first.chance == pytest.approx(0.3)
    assert first.interruptions == pytest.approx(FIRST_RATE * 7.5 / 20)
    assert (first.offered, second.offered, third.offered) == (None, False, True)
    assert second.interruptions == pytest.approx(FIRST_RATE * 25 / 20)
    assert (third.place.purchase, third.wait, third.interruptions) == ("on-demand", 90.0, None)


def test_what_is_said_outright_goes_before_scores_and_bands(tmp_path: Path) -> None:
    path = tmp_path / "told.csv"
    path.write_text(
        "provider,region,instance_type,chance,placement_score,interruptions_per_hour,"
        "interruption_band,price_low,price_high\naws,r,x,0,9,0.25,<5%,0.3,0.5\n"
    )
    (told,) = load(path)
    assert told.prices == (0.3, 0.5)
    assert (told.chance, told.interruptions) == (0.0, 0.25)


def test_all_faults_are_told(tmp_path: Path) -> None:
    path = tmp_path / "told.csv"
    path.write_text(
        "provider,region,instance_type,purchase,chance,placement_score,interruption_band,offered,"
        "price_low\naws,,x,spott,2,11,often,perhaps,3\n"
    )
    with pytest.raises(CatalogError) as raised:
        load(path)
    for said in (
        "row 2, region: it is missing",
        "purchase: 'spott': Did you mean 'spot'?",
        "chance: '2' is not within 0 and 1",
        "placement_score: '11.0' is not within 1 and 10",
        "interruption_band: 'often' is none of",
        "offered: 'perhaps' is neither true nor false",
        "price_low: it stands beside a price_high that is no lower",
    ):
        assert said in raised.value.message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("provider,region,instance_type,scores\naws,r,x,1\n", "unknown column 'scores'"),
        ("provider,region\naws,r\n", "has no column 'instance_type'"),
        ("provider,region,instance_type\n", "has no row"),
    ],
)
def test_columns_that_are_wrong_or_missing(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "told.csv"
    path.write_text(text)
    with pytest.raises(CatalogError, match=said):
        load(path)
    with pytest.raises(CatalogError, match="There is no file"):
        load(tmp_path / "absent.csv")
