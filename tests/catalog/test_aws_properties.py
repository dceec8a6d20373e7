"""Whatever AWS answers, parsing gives offers, reasons, or one error that names row and field."""

from __future__ import annotations

import copy
import json
import math
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from underdog.catalog.providers import aws
from underdog.catalog.sources import LeftOut, Raw
from underdog.core.columns import OFFER_COLUMNS
from underdog.errors import CatalogError
from underdog.testing.provider import check_provider

SAMPLES = Path(__file__).parent / "samples"
KINDS = (
    "instance_types",
    "offerings",
    "products",
    "sagemaker_products",
    "savings_plan_rates",
    "spot",
)
ANSWERS: dict[str, list[Any]] = {
    kind: json.loads((SAMPLES / f"aws_{kind}.json").read_text()) for kind in KINDS
}
ANSWERS["spot_window"] = [
    {"StartTime": "2026-07-19T12:00:00+00:00", "EndTime": "2026-07-20T12:00:00+00:00"}
]
COLUMNS = {column.name for column in OFFER_COLUMNS}
WHOLE = Raw(provider="aws", documents=ANSWERS, source="AWS", date="2026-07-20")

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["0", "-1", "nan", "inf", "1e999", "NA", "9" * 60, "0.0000000000"]),
    st.just([]),
    st.just({}),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def parse(documents: dict[str, list[Any]]) -> list[dict[str, Any] | LeftOut]:
    return list(
        aws.parse(Raw(provider="aws", documents=documents, source="AWS", date="2026-07-20"))
    )


def checked(documents: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """The offers; every one has a true price or a reason, and every one left out a reason."""
    found = parse(documents)
    rows = [one for one in found if not isinstance(one, LeftOut)]
    for row in rows:
        assert row.keys() == COLUMNS
        price = row["price_per_hour"]
        assert (price is None) != (row["price_unknown_reason"] is None)
        assert price is None or (math.isfinite(price) and price > 0)
        count = row["accelerator_count"]
        assert count is None or (math.isfinite(count) and count >= 0)
        for name in ("vcpus", "memory_gib", "network_gbps", "cpu_ghz"):
            assert row[name] is None or (math.isfinite(row[name]) and row[name] > 0)
    assert all(one.reason for one in found if isinstance(one, LeftOut))
    return rows


def told_by(documents: dict[str, list[Any]]) -> str:
    """The error of answers that cannot be read; empty where they give offers."""
    try:
        checked(documents)
    except CatalogError as error:
        return str(error)
    return ""


def same(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a document."""
    inner = node.items() if isinstance(node, dict) else enumerate(node)
    found = []
    for key, value in inner:
        found.append((*path, key))
        if isinstance(value, dict | list):
            found += places(value, (*path, key))
    return found


PLACES = {kind: places(documents) for kind, documents in ANSWERS.items()}


@st.composite
def broken(draw: Any) -> dict[str, list[Any]]:
    """The answers with some values replaced or taken out."""
    answers = copy.deepcopy(ANSWERS)
    for kind in draw(st.lists(st.sampled_from(list(ANSWERS)), min_size=1, max_size=3, unique=True)):
        path = draw(st.sampled_from(PLACES[kind]))
        parent: Any = answers[kind]
        for key in path[:-1]:
            parent = parent[key]
        if isinstance(parent, dict) and draw(st.booleans()):
            del parent[path[-1]]
        else:
            parent[path[-1]] = draw(ODD)
    return answers


def test_the_promises_of_every_provider() -> None:
    check_provider(aws, WHOLE, rounds=60)


@settings(deadline=None, max_examples=150)
@given(broken())
def test_broken_answers_give_offers_or_one_error_with_row_and_field(answers: Any) -> None:
    assert re.search(r"^(aws: row \d+ of '\w+'.*|)$", told_by(answers))


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(KINDS), st.integers(0, 5), ODD)
def test_a_document_of_another_kind_is_told_by_its_row(kind: str, row: int, odd: Any) -> None:
    answers = copy.deepcopy(ANSWERS)
    answers[kind][row] = odd
    assert re.search(rf"^(aws: row {row} of '{kind}'.*|)$", told_by(answers))


@settings(deadline=None, max_examples=25)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_documents_does_not_matter(chance: random.Random) -> None:
    answers = copy.deepcopy(ANSWERS)
    for documents in answers.values():
        chance.shuffle(documents)
    assert same(checked(answers)) == same(checked(ANSWERS))


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_documents_that_come_twice_change_no_offer(data: Any) -> None:
    answers = copy.deepcopy(ANSWERS)
    for kind in KINDS:
        again = data.draw(st.lists(st.sampled_from(answers[kind]), max_size=4))
        answers[kind] += again
    assert same(checked(answers)) == same(checked(ANSWERS))


@settings(deadline=None, max_examples=25)
@given(st.data())
def test_fewer_documents_give_no_other_prices(data: Any) -> None:
    answers = {
        kind: documents[: data.draw(st.integers(0, len(documents)))]
        for kind, documents in ANSWERS.items()
    }
    key = ("region", "zone", "instance_type", "purchase", "term")
    whole = {tuple(row[name] for name in key): row for row in checked(ANSWERS)}
    for row in checked(answers):
        if row["price_per_hour"] is None or row["purchase"] == "spot" or row["service"]:
            continue  # with less of the history, or with another part of SageMaker
        assert whole[tuple(row[name] for name in key)]["price_per_hour"] == row["price_per_hour"]


@pytest.mark.parametrize("kind", ["products", "sagemaker_products"])
@given(length=st.integers(0, 3000))
@settings(deadline=None, max_examples=40)
def test_json_text_that_is_cut_off_is_told(kind: str, length: int) -> None:
    whole = json.dumps(ANSWERS[kind][0])
    text = whole[: min(length, len(whole) - 1)]
    with pytest.raises(CatalogError, match=f"aws: row 0 of '{kind}'"):
        parse({kind: [text]})


@pytest.mark.parametrize(
    ("kind", "document", "field"),
    [
        ("instance_types", {"InstanceType": "a.b", "MemoryInfo": 8}, "MemoryInfo"),
        ("instance_types", {"MemoryInfo": {}}, "InstanceType"),
        (
            "instance_types",
            {"InstanceType": "a.b", "GpuInfo": {"Gpus": [{"Count": "8"}]}},
            "GpuInfo.Gpus[0].Count",
        ),
        ("offerings", {"InstanceType": "a.b", "Location": 1}, "Location"),
        ("products", '{"product": {"attributes": {"vcpu": 4}}}', "product.attributes.vcpu"),
        ("products", '{"terms": {"OnDemand": []}}', "terms.OnDemand"),
        ("savings_plan_rates", {"properties": [{"name": 1}]}, "properties[0].name"),
        (
            "spot",
            {"InstanceType": "a.b", "AvailabilityZone": "us-east-1a", "Timestamp": "yesterday"},
            "Timestamp",
        ),
        ("spot_window", {"StartTime": "x", "EndTime": "y"}, "StartTime"),
    ],
)
def test_the_error_names_row_and_field(kind: str, document: Any, field: str) -> None:
    with pytest.raises(CatalogError) as told:
        parse({kind: [document]})
    assert f"row 0 of '{kind}'" in str(told.value)
    assert f"field '{field}'" in str(told.value)


def test_documents_that_are_no_list_are_told() -> None:
    with pytest.raises(CatalogError, match="'spot' is dict, no list of documents"):
        parse({"spot": {}})  # type: ignore[dict-item]
