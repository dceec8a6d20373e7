"""The twins give what ``/openapi.json`` says of them, whatever is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from underdog.verbs.serving import Reader
from underdog.web.access import Access
from underdog.web.addresses import address
from underdog.web.app import application
from web.stores import HOSTILE, fill

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
positive_data_acceptance = pytest.importorskip(
    "schemathesis.specs.openapi.checks"
).positive_data_acceptance

PATHS = 12
EXAMPLES = 5


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("described")
    # half of a surrogate pair is escaped, which a strict reader of JSON does not take
    names = [name for name in HOSTILE if "\udc80" not in name]
    fill(folder / "store.sqlite3", folder / "offers.csv", names)
    app = application(
        Reader(str(folder / "store.sqlite3")), Access(names=None)
    )  # the host is that of schemathesis
    return schemathesis.openapi.from_asgi("/openapi.json", app)


def operations(schema: Any) -> Iterator[Any]:
    for found in schema.get_all_operations():
        yield found.ok()


def test_every_twin_keeps_to_its_description(described: Any) -> None:
    seen = 0
    for operation in operations(described):
        seen += 1

        @settings(
            max_examples=EXAMPLES,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:
            answer = case.call()
            assert answer.status_code < 500
            # what a condition may say is more than a schema can
            case.validate_response(answer, excluded_checks=[positive_data_acceptance])

        ask()
    assert seen == PATHS


@settings(max_examples=20, database=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["trials", "decisions", "studies", "workloads"]),
    st.one_of(st.text(max_size=60), st.sampled_from(HOSTILE), st.integers().map(str)),
    st.dictionaries(
        st.sampled_from(["page", "size", "where", "sort", "find", "whole", "status"]),
        st.one_of(st.text(max_size=30), st.integers().map(str), st.just("9" * 5000)),
    ),
)
def test_hostile_addresses_get_an_answer(
    client: TestClient, kind: str, name: str, asked: dict[str, str]
) -> None:
    for twin in (True, False):
        answer = client.get(address(kind, name, twin=twin), params=asked)
        assert answer.status_code in (200, 400, 404)
        assert "Traceback" not in answer.text
    answer = client.get("/catalog.json", params=asked)
    assert answer.status_code in (200, 400)
