"""``underdog offers``, as people and scripts call it."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

import underdog
from underdog.cli.group import run
from underdog.core.columns import OFFER_COLUMNS
from underdog.errors import UsageError

WHERE = (
    "accelerator_memory_gib >= 24 and region like 'us-%' and price_per_hour < 2 "
    "and provider in ('aws', 'gcp')"
)


@pytest.fixture
def offers(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*args: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = run(["offers", *args])
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def test_a_table_on_stdout_and_talk_on_stderr(offers: Any) -> None:
    status, out, err = offers("--where", WHERE)
    assert status == 0
    assert "instance type" in out
    assert "g2-standard-4" in out
    assert err.startswith("20 of 94 offers, prices of 2026-06-01 to 2026-09-18")
    assert "--limit" in err


def test_a_narrow_terminal_cuts_nothing_off(offers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = offers("--where", "accelerator = 'H200' and provider = 'azure'", "--limit", "1")
    for part in ("GiB each", "azure", "Standar", "8× H200", "1,850", "141"):
        assert part in out
    assert max(len(line) for line in out.splitlines()) <= 80
    _, out, _ = offers("--limit", "1", "--columns", "all")
    assert "kg_co2e_per_kwh" in out


def test_json_has_every_documented_field_of_every_offer(offers: Any) -> None:
    status, out, err = offers("--where", WHERE, "--json")
    rows = json.loads(out)
    assert (status, err, len(rows)) == (0, "", 94)
    assert all(list(row) == [column.name for column in OFFER_COLUMNS] for row in rows)
    assert all(row["price_per_hour"] < 2 and row["accelerator_memory_gib"] >= 24 for row in rows)
    prices = [row["price_per_hour"] for row in rows]
    assert prices == sorted(prices)


def test_an_unknown_price_is_null_with_a_reason(offers: Any) -> None:
    _, out, _ = offers("--where", "instance_type = 'p5e.48xlarge'", "--json")
    (row,) = json.loads(out)
    assert row["price_per_hour"] is None
    assert "capacity blocks" in row["price_unknown_reason"]
    _, out, _ = offers("--where", "instance_type = 'p5e.48xlarge'")
    assert "?" in out


def test_a_part_of_an_accelerator_is_told(offers: Any) -> None:
    _, out, _ = offers("--where", "instance_type in ('g6f.large', 'Standard_NV6ads_A10_v5')")
    assert "1/8× L4" in out
    assert "1/6× A10" in out


def test_sort_limit_and_columns(offers: Any) -> None:
    _, out, _ = offers(
        *("--where", "accelerator = 'H100'", "--sort", "-price_per_hour", "--limit", "3", "--json"),
        *("--columns", "instance_type, price_per_hour"),
    )
    rows = json.loads(out)
    assert len(rows) == 3
    assert list(rows[0]) == ["instance_type", "price_per_hour"]
    assert rows[0]["price_per_hour"] >= rows[1]["price_per_hour"] >= rows[2]["price_per_hour"]


def test_no_offer_is_an_empty_list(offers: Any) -> None:
    assert offers("--where", "provider = 'nobody'", "--json")[1].split() == ["[]"]
    status, out, err = offers("--where", "provider = 'nobody'")
    assert (status, out) == (0, "")
    assert re.match(r"none of [\d,]+ offers satisfies it", err)


def test_markdown(offers: Any) -> None:
    _, out, _ = offers("--limit", "2", "--format", "markdown")
    lines = out.splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {11}


def test_csv_runs_no_formula(offers: Any, tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text(
        "provider,region,instance_type,price_per_hour\n"
        '"=1+1",@r,"-x, ""y""",0.5\np,"\x1b[31mr",+i,1\n'
    )
    _, out, _ = offers("--offers", str(file), "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["provider"] for row in rows] == ["'=1+1", "p"]
    assert (rows[0]["region"], rows[0]["instance_type"]) == ("'@r", '\'-x, "y"')
    assert rows[0]["price_per_hour"] == "0.5"
    assert rows[1]["instance_type"] == "'+i"
    _, out, _ = offers("--offers", str(file))
    assert "\x1b" not in out


def test_left_out_is_told(offers: Any) -> None:
    status, out, _ = offers("--left-out")
    assert status == 0
    assert "dedicated host" in out
    _, out, _ = offers("--left-out", "--json")
    assert sum(one["rows"] for one in json.loads(out)) == 4221


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--where", "accelerator_memory > 2"], "'accelerator_memory_gib'"),
        (["--where", "price_per_hour / accelerator_count < 1"], "nullif(accelerator_count, 0)"),
        (["--where", ""], "nothing in it"),
        (["--sort", "pric_per_hour"], "'price_per_hour'"),
        (["--columns", "regio"], "'region'"),
        (["--columns", ","], "names no column"),
        (["--limit", "0"], "0"),
        (["--limit", "x"], "x"),
        (["--format", "xml"], "xml"),
        (["--offers", "/nowhere.csv"], "'/nowhere.csv'"),
    ],
)
def test_bad_input_is_one_message_and_exit_2(offers: Any, args: list[str], said: str) -> None:
    status, out, err = offers(*args)
    assert (status, out) == (2, "")
    assert said in err
    assert "Traceback" not in err


def test_the_python_api_is_the_same(offers: Any) -> None:
    _, out, _ = offers("--where", WHERE, "--json")
    assert underdog.offers(WHERE) == json.loads(out)
    assert len(underdog.offers(sort=["-vcpus", "price_per_hour"], limit=5)) == 5
    with pytest.raises(UsageError):
        underdog.offers(limit=-1)
