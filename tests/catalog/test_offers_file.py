"""Offers from a file of the user's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from underdog.catalog import offers_file
from underdog.errors import CatalogError

CSV = """\
offer,provider,region,instance_type,nodes,price_per_hour,vcpus,memory_gib,accelerator,\
accelerator_count,accelerator_memory_gib_total,note
one,mine,here,box,1,2.5,8,64,V100,8,256,a
two,mine,here,part,1,0.2,2,8,L4,0,2.794,b
three,mine,here,plain,4,,4,16,,0,,c
four,mine,here,odd,1,1,4,16,Chip9,2,20,d
"""


GZIPPED = gzip.compress(b"instance_type\na\n", mtime=0)  # the same bytes whenever it is made


def load(folder: Path, text: str, name: str = "offers.csv") -> list[dict[str, Any]]:
    file = folder / name
    file.write_text(text)
    return offers_file.load(file).table.select(order_by=[("price_per_hour", True)])


def test_facts_are_filled_in(tmp_path: Path) -> None:
    box, odd, part, plain = load(tmp_path, CSV)
    assert (box["accelerator"], box["accelerator_count"]) == ("V100-32GB", 8)
    assert (box["accelerator_memory_gib"], box["accelerator_memory_gib_total"]) == (32, 256)
    assert box["fp16_tflops"] == 125
    assert (part["accelerator"], part["accelerator_count"]) == ("L4", 0.125)
    assert part["accelerator_memory_gib"] == 3
    assert (plain["nodes"], plain["accelerator_count"], plain["price_per_hour"]) == (4, 0, None)
    assert plain["price_unknown_reason"] == "the file has no price for it"
    assert (odd["accelerator"], odd["accelerator_memory_gib"]) == ("Chip9", 10)
    assert odd["fp16_tflops"] is None
    assert box["price_source"].endswith("offers.csv")


def test_json_lines_parquet_and_gzip_say_the_same(tmp_path: Path) -> None:
    rows = [{"provider": "p", "instance_type": "i", "price_per_hour": 1.5, "region": "r"}]
    want = load(tmp_path, json.dumps(rows), "a.json")
    lines = "\n".join(json.dumps(row) for row in rows)
    file = tmp_path / "b.parquet"
    duckdb.connect().execute(
        f"COPY (SELECT 'p' AS provider, 'i' AS instance_type, 1.5 AS price_per_hour, 'r' AS region)"
        f" TO '{file}'"
    )
    zipped = tmp_path / "c.json.gz"
    zipped.write_bytes(gzip.compress(lines.encode()))
    for found in (
        load(tmp_path, lines, "a.jsonl"),
        offers_file.load(file).table.select(),
        offers_file.load(zipped).table.select(),
    ):
        different = {k for k in found[0] if found[0][k] != want[0][k]}
        assert different <= {"price_source"}


def test_toml_says_the_same_and_how_to_get_at_it(tmp_path: Path) -> None:
    text = """
        [[offer]]
        offer = "desk"
        price_per_hour = 1.5
        price_date = 2026-11-01
        accelerator = "A100-80GB"
        [offer.ssh]
        host = "me@desk"
    """
    rows = [{"offer": "desk", "price_per_hour": 1.5, "price_date": "2026-11-01"}]
    rows[0]["accelerator"] = "A100-80GB"
    want, got = load(tmp_path, json.dumps(rows), "a.json"), load(tmp_path, text, "a.toml")
    assert [row | {"price_source": ""} for row in got] == [r | {"price_source": ""} for r in want]
    others = offers_file.other_columns(tmp_path / "a.toml")
    assert others == [{"offer": "desk", "ssh": {"host": "me@desk"}}]


def test_a_name_alone_is_enough(tmp_path: Path) -> None:
    (row,) = load(tmp_path, "offer,price_per_hour\naws/us-east-1/g5.xlarge/spot,0.5\n")
    place = (row["provider"], row["region"], row["instance_type"], row["purchase"])
    assert place == ("aws", "us-east-1", "g5.xlarge", "spot")


def test_all_faults_are_told_by_row_and_field(tmp_path: Path) -> None:
    text = (
        "instance_type,price_per_hour,vcpus,memory_gib,accelerator,accelerator_count,purchase\n"
        "a,-1,4,16,,,\n"
        "b,nan,x,45097156608,,,\n"
        "c,0,4,16,,2,spott\n"
        ",inf,4,16,,,\n"
    )
    with pytest.raises(CatalogError) as told:
        load(tmp_path, text)
    message = str(told.value)
    for said in (
        "row 2, price_per_hour: '-1'",
        "row 3, price_per_hour: 'nan'",
        "row 3, vcpus: 'x'",
        "row 3, memory_gib",
        "row 4, price_per_hour: 0",
        "row 4, accelerator: it is empty",
        "row 4, purchase: 'spott'",
        "Did you mean 'spot'?",
        "row 5, instance_type",
        "row 5, price_per_hour: 'inf'",
    ):
        assert said in message


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"", "no offer"),
        ("a.csv", b"instance_type,vcpus\n", "no offer"),
        ("a.csv", b"instance_type,vcpus\na,1,2,3\n", "more fields"),
        ("a.csv", b"instance_type,price_per_hor\na,1\n", "'price_per_hour'"),
        ("a.csv", b'instance_type\n"a\n', "Cannot read"),
        ("a.csv", b"\xff\xfe\x00", "Cannot read"),
        ("a.json", b"", "no offer"),
        ("a.json", b"{", "Cannot read"),
        ("a.json", b"[1]", "not an object"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.toml", b"[[offer]", "Cannot read"),
        ("a.toml", b"", "there is none"),
        ("a.toml", b"[[offers]]\noffer = 'x'", "there is a 'offers'"),
        ("a.toml", b"offer = ['x']", "offer 1 is not a table"),
        ("a.csv", b"instance_type,price_per_hour\na,1e-320\n", "beyond anything"),
        ("a.csv.gz", gzip.compress(b"instance_type\na\n" * 99, mtime=0)[:-20], "Cannot read"),
        ("a.csv.gz", GZIPPED[:12] + b"garbage", "Cannot read"),
        ("a.json", b'[{"instance_type": ["x"]}]', "not text"),
        ("a.parquet", b"PAR1", "Cannot read"),
        ("a.csv.gz", b"no gzip", "Cannot read"),
        ("a.csv", b"instance_type,currency,price_per_hour\na,EUR,1\n", "prices are in USD"),
    ],
)
def test_what_is_no_file_of_offers(name: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CatalogError) as told:
        offers_file.load(tmp_path / name)
    assert said in str(told.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="Cannot read"):
        offers_file.load(tmp_path / "none.csv")
    with pytest.raises(CatalogError, match="Cannot read"):
        offers_file.load(tmp_path)
