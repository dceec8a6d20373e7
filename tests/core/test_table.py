"""The table of offers: order, unknowns, and that it is locked."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import pytest

from underdog.core.columns import BY_NAME, OFFER_COLUMNS
from underdog.core.expression import parse
from underdog.core.table import Table
from underdog.errors import CatalogError, ExpressionError


def table() -> Table:
    return Table.from_arrays(
        {
            "provider": ["aws", "aws", "aws"],
            "instance_type": ["b", "a", "c"],
            "price_per_hour": np.array([2.0, np.nan, 1.0]),
            "vcpus": [None, 4, 8],
        }
    )


def names(rows: list[dict[str, object]]) -> list[object]:
    return [row["instance_type"] for row in rows]


def test_rows_have_every_column_in_its_order() -> None:
    (row,) = table().select(limit=1)
    assert list(row) == [column.name for column in OFFER_COLUMNS]
    assert row["nodes"] == 1
    assert row["region"] is None


def test_not_a_number_is_unknown() -> None:
    assert table().select(parse("price_per_hour is null", BY_NAME))[0]["price_per_hour"] is None
    assert table().count(parse("price_per_hour > 0", BY_NAME)) == 2


@pytest.mark.parametrize(("down", "order"), [(False, ["c", "b", "a"]), (True, ["b", "c", "a"])])
def test_the_unknown_comes_last_either_way(down: bool, order: list[str]) -> None:
    assert names(table().select(order_by=[("price_per_hour", down)])) == order


def test_ties_have_one_order() -> None:
    assert names(table().select()) == ["a", "b", "c"]


def test_a_table_of_nothing() -> None:
    assert Table.from_arrays({}).select() == []
    assert Table.from_arrays({"provider": []}).count() == 0


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"price": [1.0]}, "no column 'price'"),
        ({"vcpus": [1.0], "nodes": [1.0, 2.0]}, "differ in length"),
        ({"vcpus": [float("inf")]}, "infinite"),
    ],
)
def test_what_is_no_table(columns: dict[str, list[float]], said: str) -> None:
    with pytest.raises(CatalogError, match=said):
        Table.from_arrays(columns)


def test_an_unknown_column_to_sort_by_names_the_nearest() -> None:
    with pytest.raises(ExpressionError, match="'vcpus'"):
        table().select(order_by=[("vcpu", False)])


def test_a_number_is_no_condition() -> None:
    with pytest.raises(ExpressionError, match="not a condition"):
        table().select(parse("vcpus", BY_NAME, "number"))


def test_check_looks_only_where_it_is_told() -> None:
    expression = parse("1 / (vcpus - 4)", BY_NAME, "number")
    table().check(expression, where="vcpus > 4")
    with pytest.raises(ExpressionError, match="vcpus is 4"):
        table().check(expression)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM read_csv('{file}')",
        "COPY offers TO '{file}.out'",
        "ATTACH '{file}.db'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET memory_limit = '1TB'",
    ],
)
def test_the_connection_reaches_nothing_outside(sql: str, tmp_path: Path) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a\n1\n")
    with pytest.raises(duckdb.Error):
        table().connection.execute(sql.format(file=file))
    assert [path.name for path in tmp_path.iterdir()] == ["secret.csv"]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_the_parts_of_a_list_are_the_list(size: int) -> None:
    whole = table()
    order = [("price_per_hour", True)]
    parts = [
        row
        for offset in range(0, 3, size)
        for row in whole.select(order_by=order, limit=size, offset=offset)
    ]
    assert parts == whole.select(order_by=order)
    assert whole.select(order_by=order, offset=1) == parts[1:]
    assert whole.select(limit=size, offset=9) == []
