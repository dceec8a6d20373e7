"""Azure and Google Cloud over HTTP: a real server with pages, tokens and misbehaviour."""

from __future__ import annotations

import datetime
import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from underdog.catalog.http import Http
from underdog.catalog.providers import azure, gcp
from underdog.catalog.providers.azure import retail
from underdog.catalog.providers.gcp import api
from underdog.catalog.sources import FetchOptions, LeftOut
from underdog.errors import CatalogError

SAMPLES = Path(__file__).parent / "samples"
NOW = datetime.datetime(2026, 11, 30, tzinfo=datetime.UTC)
Query = dict[str, str]
# What a path answers with: JSON, or a status, headers and bytes.
Answer = Callable[[Query, dict[str, str]], Any]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        asked = dict(urllib.parse.parse_qsl(query))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.asked.append((path, asked, headers))
        found = self.server.paths[path](asked, headers)
        if not isinstance(found, tuple):
            found = (200, {"Content-Type": "application/json"}, json.dumps(found).encode())
        status, extra, body = found
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **extra}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *args: object) -> None:
        """Silent."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.paths: dict[str, Answer] = {}
        self.asked: list[tuple[str, Query, dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.02,))
    thread.start()
    monkeypatch.setattr(retail, "URL", f"{made.url}/retail")
    monkeypatch.setattr(api, "COMPUTE", f"{made.url}/compute")
    monkeypatch.setattr(api, "BILLING", f"{made.url}/billing")
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def sample(name: str) -> list[Any]:
    found: list[Any] = json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return found


def client(timeout: float = 5) -> Http:
    return Http(timeout=timeout, backoff=0.01)


def options(*regions: str, seen: list[Any] | None = None) -> FetchOptions:
    def progress(what: str, done: int, total: int | None) -> None:
        if seen is not None:
            seen.append((what, done))

    return FetchOptions(regions=regions, progress=progress, now=NOW)


def retail_pages(server: Server, size: int = 5) -> Answer:
    """The sample by pages, as the API filters and links them."""

    def answer(asked: Query, _: dict[str, str]) -> Any:
        kind = asked["$filter"].split("priceType eq '")[1].split("'")[0]
        items = [item for item in sample("azure_retail") if item["type"] == kind]
        skip = int(asked.get("$skip", 0))
        more = {**asked, "$skip": str(skip + size)}
        link = f"{server.url}/retail?{urllib.parse.urlencode(more)}"
        page = items[skip : skip + size]
        last = skip + size >= len(items)
        return {
            "BillingCurrency": "USD",
            "CustomerEntityType": "Retail",
            "Items": page,
            "NextPageLink": None if last else link,
            "Count": len(page),
        }

    return answer


def test_all_pages_of_azure_are_read(server: Server) -> None:
    server.paths["/retail"] = retail_pages(server)
    seen: list[Any] = []
    raw = azure.fetch(client(), options(seen=seen))
    assert raw.date == "2026-11-30"
    assert [len(raw.items("retail")), seen[-1][1]] == [25, 25]  # without development and test
    first = server.asked[0][1]
    assert first["$filter"] == "serviceName eq 'Virtual Machines' and priceType eq 'Consumption'"
    assert first["meterRegion"] == "'primary'"
    rows = [one for one in azure.parse(raw) if not isinstance(one, LeftOut)]
    prices = {(r["instance_type"], r["term"]): r["price_per_hour"] for r in rows}
    assert prices["Standard_D2s_v5", "1y"] == pytest.approx(594 / 8760)
    assert prices["Standard_D2s_v5", "savings-plan-3y"] == 0.0552


def test_only_the_regions_that_are_wanted_are_asked_for(server: Server) -> None:
    server.paths["/retail"] = retail_pages(server, 100)
    azure.fetch(client(), options("westeurope", "eastus"))
    filters = [asked["$filter"] for _, asked, _ in server.asked]
    assert [f.endswith("armRegionName eq 'eastus'") for f in filters] == [False] * 2 + [True] * 2


def test_a_name_that_is_no_region_is_told(server: Server) -> None:
    with pytest.raises(CatalogError, match="'x' or 1 eq 1' is no region"):
        azure.fetch(client(), options("x' or 1 eq 1"))
    assert server.asked == []


def page(link: Any, items: Any = ({},)) -> dict[str, Any]:
    return {"Items": list(items), "NextPageLink": link}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (page("SELF/retail?a=1"), "from page to page without end"),
        (page("SELF/retail?a=2", ()), "from page to page without end"),
        (page("http://example.invalid/retail"), "leads to 'example.invalid', another server"),
        (page("file:///etc/passwd"), "another server"),
        ({"Items": None}, "Items of the answer is no list"),
        ({"Items": {}}, "Items of the answer is no list"),
        ([], "the answer is list"),
        ({"error": "no"}, "Items of the answer is no list"),
        (page(None, ()), "has no price of a virtual machine in any region"),
    ],
)
def test_answers_that_are_not_in_the_shape(server: Server, answer: Any, said: str) -> None:
    text = json.dumps(answer).replace("SELF", server.url).encode()
    server.paths["/retail"] = lambda asked, _: (200, {}, text)
    with pytest.raises(CatalogError, match=said):
        azure.fetch(client(), options())


def test_a_link_that_is_new_each_time_ends_too(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retail, "MOST_PAGES", 20)
    server.paths["/retail"] = lambda asked, _: page(
        f"{server.url}/retail?{int(asked.get('n', 0)) + 1}&n={int(asked.get('n', 0)) + 1}"
    )
    with pytest.raises(CatalogError, match="without end"):
        azure.fetch(client(), options())
    assert len(server.asked) <= 22


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b'{"Items": [{"retailPrice": 0.', "did not answer with JSON"),
        (200, b"<html>sign in</html>", "did not answer with JSON"),
        (200, b'{"Items": [{"retailPrice": NaN}]}', "did not answer with JSON"),
        (404, b"", "404"),
    ],
)
def test_what_is_no_answer(server: Server, status: int, body: bytes, said: str) -> None:
    server.paths["/retail"] = lambda asked, _: (status, {"Content-Type": "text/html"}, body)
    with pytest.raises(CatalogError, match=said):
        azure.fetch(client(), options())


def test_a_server_that_is_busy_is_asked_again(server: Server) -> None:
    pages, busy = retail_pages(server), [2]

    def answer(asked: Query, headers: dict[str, str]) -> Any:
        if busy[0]:
            busy[0] -= 1
            return 429, {"Retry-After": "0"}, b""
        return pages(asked, headers)

    server.paths["/retail"] = answer
    assert len(azure.fetch(client(), options()).items("retail")) == 25


def credentials(server: Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service account whose tokens the server gives, as application default credentials."""
    pytest.importorskip("google.auth")
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    rsa = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.rsa")
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    account = {
        "type": "service_account",
        "project_id": "project",
        "private_key_id": "1",
        "private_key": key.decode(),
        "client_email": "underdog@project.iam.gserviceaccount.com",
        "token_uri": f"{server.url}/token",
    }
    file = folder / "account.json"
    file.write_text(json.dumps(account), encoding="utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    server.paths["/token"] = lambda asked, _: {"access_token": "secret", "expires_in": 3600}


def compute(kind: str, name: str) -> Answer:
    """A list by zones, in two pages."""

    def answer(asked: Query, headers: dict[str, str]) -> Any:
        assert headers["authorization"] == "Bearer secret"
        items: dict[str, Any] = {}
        for item in sample(name):
            zone = f"zones/{item['zone'].rpartition('/')[2]}"
            items.setdefault(zone, {kind: []})[kind].append(item)
        items["zones/us-east7-a"] = {"warning": {"code": "NO_RESULTS_ON_PAGE"}}
        zones = sorted(items)
        if "pageToken" in asked:
            assert asked["pageToken"] == "two"
            return {"kind": "compute#list", "items": {zone: items[zone] for zone in zones[1:]}}
        first = {zones[0]: items[zones[0]]}
        return {"kind": "compute#list", "items": first, "nextPageToken": "two"}

    return answer


def billing(asked: Query, headers: dict[str, str]) -> Any:
    assert headers.get("authorization") == "Bearer secret" or headers["x-goog-api-key"] == "key"
    skus, start = sample("gcp_skus"), int(asked.get("pageToken") or 0)
    more = str(start + 20) if start + 20 < len(skus) else ""
    return {"skus": skus[start : start + 20], "nextPageToken": more}


@pytest.fixture
def google(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    credentials(server, tmp_path, monkeypatch)
    listing = "/compute/projects/project/aggregated"
    server.paths[f"{listing}/machineTypes"] = compute("machineTypes", "gcp_machine_types")
    server.paths[f"{listing}/acceleratorTypes"] = compute(
        "acceleratorTypes", "gcp_accelerator_types"
    )
    server.paths["/billing/services/6F81-5844-456A/skus"] = billing
    server.paths["/billing/services/E000-3F24-B8AA/skus"] = lambda asked, _: {"skus": []}
    return server


def test_all_pages_of_google_are_read(google: Server) -> None:
    raw = gcp.fetch(client(), options())
    assert len(raw.items("machine_types")) == len(sample("gcp_machine_types"))
    assert len(raw.items("accelerator_types")) == len(sample("gcp_accelerator_types"))
    # licences and traffic are no parts of machines, and stay behind
    assert len(raw.items("skus")) == len(sample("gcp_skus")) - 2
    rows = [one for one in gcp.parse(raw) if not isinstance(one, LeftOut)]
    (row,) = (
        r
        for r in rows
        if (r["instance_type"], r["region"], r["purchase"])
        == ("n1-standard-8+1xT4", "us-central1", "on-demand")
    )
    assert row["price_per_hour"] == pytest.approx(0.729998)


def test_only_the_zones_of_wanted_regions_are_kept(google: Server) -> None:
    raw = gcp.fetch(client(), options("europe-west4"))
    assert {item["zone"] for item in raw.items("machine_types")} == {"europe-west4-a"}


def test_an_api_key_serves_for_the_billing_catalog(
    google: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", "key")
    gcp.fetch(client(), options())
    headers = [h for path, _, h in google.asked if path.startswith("/billing")]
    assert all(h["x-goog-api-key"] == "key" and "authorization" not in h for h in headers)
    assert all("key" not in asked for _, asked, _ in google.asked)


def test_a_token_of_pages_that_comes_again_is_told(google: Server) -> None:
    google.paths["/billing/services/6F81-5844-456A/skus"] = lambda asked, _: {
        "skus": sample("gcp_skus")[:1],
        "nextPageToken": "again",
    }
    with pytest.raises(CatalogError, match="from page to page without end"):
        gcp.fetch(client(), options())


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("machineTypes", [], "is list, and an object was expected"),
        ("machineTypes", {"items": []}, "no machine with a price"),
        ("machineTypes", {"items": [1]}, "items of machineTypes is list"),
        ("machineTypes", {"items": {"zones/a": 3}}, "zones/a is int"),
        ("machineTypes", {"items": {}, "nextPageToken": 4}, "nextPageToken is '4'"),
        ("acceleratorTypes", {"items": {"zones/a": {"acceleratorTypes": {}}}}, "a list was"),
    ],
)
def test_lists_that_are_not_in_the_shape(google: Server, kind: str, answer: Any, said: str) -> None:
    google.paths[f"/compute/projects/project/aggregated/{kind}"] = lambda asked, _: answer
    with pytest.raises(CatalogError, match=said):
        gcp.fetch(client(), options())


def test_without_credentials_the_way_to_them_is_told(
    google: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(CatalogError) as told:
        gcp.fetch(client(), options())
    assert told.value.hint == "gcloud auth application-default login"


def test_a_refused_token_is_told(google: Server) -> None:
    google.paths["/token"] = lambda asked, _: (400, {}, b'{"error": "invalid_grant"}')
    with pytest.raises(CatalogError, match="invalid_grant"):
        gcp.fetch(client(), options())


def test_without_the_package_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "google.auth", None)
    with pytest.raises(CatalogError) as told:
        gcp.fetch(client(), options())
    assert told.value.hint == "pip install 'underdog[gcp]'"


def test_what_a_refresh_would_ask_is_told_without_asking(server: Server) -> None:
    assert azure.asks(options("eastus")) == [
        f"GET {server.url}/retail for virtual machines in eastus, page by page"
    ]
    lists, *catalog = gcp.asks(options())
    assert lists.startswith(f"GET {server.url}/compute/projects/<project>/aggregated/machineTypes")
    assert len(catalog) == 2
    assert server.asked == []
