"""Every page and its twin: what they hold, what is answered where something is wrong."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from starlette.testclient import TestClient

from underdog.verbs.serving import Reader
from underdog.web.addresses import address, query
from web.stores import HOSTILE, SCRIPT, STATUSES

LISTS = ["/", "/live", "/studies", "/decisions", "/trials", "/catalog", "/compare"]


class Tags(HTMLParser):
    """Collects the attributes of a page that would run something."""

    def __init__(self) -> None:
        super().__init__()
        self.active: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name.startswith("on") or name == "style" or "javascript:" in (value or "")[:20]:
                self.active.append(f"{tag} {name}={value}")


def twin_of(path: str) -> str:
    return "/index.json" if path == "/" else f"{path}.json"


def things(reader: Reader) -> list[tuple[str, str]]:
    """Of every kind all names that there are in the store."""
    trials = reader.trials(limit=500).lines
    found = [("trials", one.id) for one in trials]
    found += [("workloads", one.workload) for one in reader.workloads()]
    found += [("studies", one.id) for one in reader.studies()]
    return found + [("decisions", one.id) for one in reader.decisions()]


@pytest.mark.parametrize("path", LISTS)
def test_a_list_and_its_twin(client: TestClient, path: str) -> None:
    page, twin = client.get(path), client.get(twin_of(path))
    assert page.status_code == twin.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert twin.headers["content-type"] == "application/json"
    assert twin.json() is not None
    assert f'href="{twin_of(path)}"' in page.text
    assert client.head(path).status_code == 200


@pytest.mark.parametrize("path", LISTS)
def test_a_store_with_nothing_in_it(empty: TestClient, path: str) -> None:
    assert empty.get(path).status_code == 200
    assert empty.get(twin_of(path)).status_code == 200


@pytest.fixture(scope="module")
def every(client: TestClient, reader: Reader) -> dict[tuple[str, str], str]:
    """The page of every thing that there is."""
    found = {}
    for kind, name in things(reader):
        page = client.get(address(kind, name))
        assert page.status_code == 200, (kind, name, page.text)
        found[kind, name] = page.text
    return found


def test_every_thing_has_a_page_and_a_twin(
    client: TestClient, every: dict[tuple[str, str], str]
) -> None:
    assert len(every) > 40
    for kind, name in every:
        said = client.get(address(kind, name, twin=True)).json()
        told = said["history"]["workload"] if kind == "workloads" else said["id"]
        assert told == name


def test_every_link_of_a_page_leads_somewhere(
    client: TestClient, every: dict[tuple[str, str], str]
) -> None:
    known = {address(*one) for one in every}
    lists = [client.get(path).text for path in LISTS]
    seen: set[str] = set()
    for said in (*lists, *every.values()):
        seen |= {link.replace("&amp;", "&") for link in re.findall(r'href="(/[^"#]*)"', said)}
    assert known <= seen
    for link in {re.sub(r"(?<=[?&]a=).*", "x", link) for link in seen - known}:
        if link.endswith("=x"):
            continue  # to compare this one with another
        assert client.get(link).status_code == 200, link


def test_no_markup_of_a_store_becomes_markup(every: dict[tuple[str, str], str]) -> None:
    for said in every.values():
        assert SCRIPT not in said
        assert "<img" not in said
        assert "49{%" not in said
        own = [tag for tag in re.findall(r"<script[^>]*>", said) if "type=" not in tag]
        assert all(re.fullmatch(r'<script src="/static/[^"]+" defer>', tag) for tag in own), own
        tags = Tags()
        tags.feed(said)
        assert not tags.active


@pytest.mark.parametrize("status", STATUSES)
def test_a_trial_that_failed(client: TestClient, status: str) -> None:
    found = client.get("/trials.json", params={"status": status}).json()
    assert [line["id"] for line in found["trials"]] == [f"trial-{status}"]
    assert found["trials"][0]["samples_per_second"] is None
    page = client.get(f"/trials/trial-{status}")
    assert page.status_code == 200
    assert "it ended &lt;script&gt;" in page.text


def test_trials_are_filtered_and_come_in_parts(client: TestClient) -> None:
    every = client.get("/trials.json?size=500").json()
    dates = [line["started_at"] for line in every["trials"]]
    assert every["total"] == len(dates)
    parts = [
        line
        for page in range(1, -(-len(dates) // 7) + 1)
        for line in client.get(f"/trials.json?size=7&page={page}").json()["trials"]
    ]
    assert parts == every["trials"]
    of_one = client.get("/trials.json", params={"workload": SCRIPT}).json()
    assert [line["workload"] for line in of_one["trials"]] == [SCRIPT]
    of_study = client.get("/trials.json?study=study-1").json()
    assert of_study["total"] == 4


def test_the_catalog_takes_what_where_takes(client: TestClient) -> None:
    where = "accelerator_memory_gib >= 24 and price_per_hour < 2"
    found = client.get("/catalog.json", params={"where": where, "sort": "-price_per_hour"}).json()
    prices = [offer["price_per_hour"] for offer in found["offers"]]
    assert found["total"] > 50
    assert prices == sorted(prices, reverse=True)
    assert max(prices) < 2
    last = client.get("/catalog.json", params={"where": where, "page": found["pages"]}).json()
    assert len(last["offers"]) == found["total"] - 50 * (found["pages"] - 1)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"where": "acelerator_memory_gib > 2"}, "Did you mean 'accelerator_memory_gib'?"),
        ({"where": "price_per_hour <"}, "it ends too early"),
        ({"where": "1 / (vcpus - vcpus) > 1"}, "divides by zero"),
        ({"where": "'"}, "expression"),
        ({"sort": "prise"}, "There is no column 'prise'"),
    ],
)
def test_a_fault_of_the_catalog_is_told_beside_its_field(
    client: TestClient, asked: dict[str, str], told: str
) -> None:
    twin, page = client.get("/catalog.json", params=asked), client.get("/catalog", params=asked)
    assert twin.status_code == page.status_code == 400
    error = twin.json()["error"]
    assert told in f"{error['message']} {error['hint']}"
    fault = re.search(r'id="where-fault".*?>(.*?)</p>', page.text, re.S)
    assert fault
    assert told.replace("'", "&#39;") in re.sub("<[^>]+>", "", fault[1])


def test_a_condition_that_is_being_typed_is_no_failure(client: TestClient) -> None:
    asked = {"where": "price_per_hour <"}
    answer = client.get("/catalog", params=asked, headers={"hx-request": "true"})
    assert answer.status_code == 200
    assert "it ends too early" in answer.text


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/trails", 404, "Did you mean '/trials'?"),
        ("/trials/trial-faled", 404, "Did you mean 'trial-failed'?"),
        ("/studies/study-2", 404, "Did you mean 'study-1'?"),
        ("/workloads/gtp", 404, "Did you mean 'gpt'?"),
        ("/decisions/none", 404, "There is no decision 'none'"),
        ("/trials/trial-failed/more", 404, "There is no page"),
        ("/trials?page=0", 400, "'0' is no page"),
        ("/trials?page=99", 400, "'99' is no page of a list that has 1"),
        ("/trials?page=1e3", 400, "'1e3' is no page"),
        ("/trials?page=٣", 400, "is no page"),
        ("/trials?size=100000", 400, "'100000' is no size"),
        ("/trials?status=broken", 400, "There is no status 'broken'"),
        ("/compare?a=trial-failed&b=nothing", 404, "There is no trial or decision 'nothing'"),
    ],
)
def test_what_cannot_be_is_told(client: TestClient, path: str, status: int, told: str) -> None:
    before, mark, after = path.partition("?")
    page, twin = client.get(path), client.get(f"{before}.json{mark}{after}")
    assert page.status_code == twin.status_code == status
    error: dict[str, Any] = twin.json()["error"]
    assert told in f"{error['message']} {error['hint']}"
    assert told.replace("'", "&#39;") in page.text
    assert "Traceback" not in page.text


def test_the_ledger_of_a_decision(client: TestClient, reader: Reader) -> None:
    decision = next(one.id for one in reader.decisions() if one.study)
    path = address("decisions", decision, more="/ledger")
    whole = client.get(f"{path}.json").json()
    assert whole["whole"] is True
    assert (
        whole["total"] == client.get(f"{address('decisions', decision)}.json").json()["candidates"]
    )
    some = client.get(f"{path}.json", params={"find": "G5 xlarge"}).json()
    assert "aws/us-east-1/g5.xlarge/on-demand" in [line["offer"] for line in some["lines"]]
    none = client.get(f"{path}.json", params={"find": "g5.xlarge spot"}).json()
    assert (none["total"], none["lines"]) == (0, [])
    said = some["lines"][0]["verdict"]
    same = client.get(f"{path}.json", params={"verdict": said}).json()
    assert {line["verdict"] for line in same["lines"]} == {said}
    assert client.get(path, params={"find": "nothing like it"}).status_code == 200


def test_two_of_a_kind_are_compared(client: TestClient, reader: Reader) -> None:
    a, b = (one.id for one in reader.trials(study="study-1").lines[:2])
    found = client.get("/compare.json", params={"a": a, "b": b}).json()
    rows = {row["name"]: row for row in found["rows"]}
    assert rows["offer"]["differs"] is True
    assert rows["workload"] == {"name": "workload", "a": "gpt", "b": "gpt", "differs": False}
    same = client.get("/compare.json", params={"a": a, "b": a}).json()
    assert not any(row["differs"] for row in same["rows"])
    decisions = [one.id for one in reader.decisions()]
    both = client.get("/compare.json", params={"a": decisions[0], "b": decisions[-1]}).json()
    assert any(row["name"] == "ranked by" and row["differs"] for row in both["rows"])
    mixed = client.get("/compare.json", params={"a": a, "b": decisions[0]})
    assert mixed.status_code == 400
    assert client.get(f"/compare?{query({'a': a, 'b': b})}").text.count('class="differs"') > 2


def test_the_charts_of_a_page_are_in_it(client: TestClient, reader: Reader) -> None:
    trial = reader.trials(study="study-1").lines[0].id
    for path, names in (
        (address("trials", trial), {"throughput", "phases", "machine"}),
        (address("studies", "study-1"), {"search"}),
        (address("workloads", "gpt"), {"history"}),
    ):
        assert set(re.findall(r'data-name="(\w+)"', client.get(path).text)) == names


def test_files_are_lasting_and_only_those_there_are(client: TestClient) -> None:
    for path in re.findall(r'(?:src|href)="(/static/[^"]+)"', client.get("/").text):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
    for path in ("/static/none.js", "/static/..%2Fapp.py", "/static/%2e%2e/app.py", "/static/"):
        assert client.get(path).status_code == 404


def test_a_fault_of_ours_is_one_sentence(
    reader: Reader, clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("secret of the inside")

    other = Reader(reader.url)
    monkeypatch.setattr(other, "workloads", broken)
    client = clients(other)
    client._transport.raise_server_exceptions = False
    for path in ("/", "/index.json"):
        answer = client.get(path)
        assert answer.status_code == 500
        assert "secret" not in answer.text
        assert "RuntimeError" not in answer.text
        assert "default-src" in answer.headers["content-security-policy"]


def test_hostile_names_are_as_many_as_were_put_in(reader: Reader) -> None:
    assert {one.workload for one in reader.workloads()} == {"gpt", *HOSTILE}


def test_the_description_names_every_twin(client: TestClient) -> None:
    said = client.get("/openapi.json").json()
    assert {twin_of(path) for path in LISTS} < set(said["paths"])
    assert json.dumps(said).count("TrialView") > 1
