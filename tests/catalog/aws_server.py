"""A server that boto3 asks instead of AWS: EC2 from a real moto server, its answers cut into pages,
and recorded answers for what moto lacks (the Price List and Savings Plans APIs)."""

from __future__ import annotations

import json
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

SAMPLES = Path(__file__).parent / "samples"
REGION = "eu-north-1"  # one of moto's smaller ones
PAGE = 300  # items in a page of EC2's answers
FEW = {
    "DescribeInstanceTypes": {"InstanceType.1": "g5.xlarge"},
    "DescribeSpotPriceHistory": {"InstanceType.1": "g5.xlarge"},
    "DescribeInstanceTypeOfferings": {
        "Filter.1.Name": "instance-type",
        "Filter.1.Value.1": "g5.xlarge",
    },
}


def sample(kind: str) -> list[Any]:
    found: list[Any] = json.loads((SAMPLES / f"aws_{kind}.json").read_text())
    return found


class Moto:
    """A moto server; of each question the answer is kept, since it takes seconds to write."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, str], list[bytes]] = {}

    def pages(self, body: bytes, headers: dict[str, str], *, few: bool) -> list[bytes]:
        region = headers["Authorization"].split("/")[2]
        asked = dict(urllib.parse.parse_qsl(body.decode()))
        asked.pop("NextToken", None)
        if few:
            asked |= FEW.get(asked["Action"], {})
        key = (region, urllib.parse.urlencode(asked))
        with self._lock:
            if key not in self._answers:
                request = urllib.request.Request(self._url, key[1].encode(), headers)
                with urllib.request.urlopen(request, timeout=120) as reply:
                    self._answers[key] = paged(reply.read())
            return self._answers[key]


class Aws(ThreadingHTTPServer):
    """EC2 from moto in pages, the other APIs from recorded answers, and errors on demand."""

    def __init__(self, moto: Moto) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.moto = moto
        self.calls: list[str] = []
        self.few = False  # one type of EC2's, where the others would only take time
        self.errors: dict[str, str] = {}  # error code by action

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Aws

    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        target = self.headers.get("X-Amz-Target", "")
        if target.endswith("GetProducts"):
            self._json("GetProducts", body)
        elif self.path == "/DescribeSavingsPlansOfferingRates":
            self._json("DescribeSavingsPlansOfferingRates", body)
        else:
            self._ec2(body)

    def _json(self, action: str, body: bytes) -> None:
        self.server.calls.append(action)
        code = self.server.errors.get(action)
        if code is not None:
            self._send(400, json.dumps({"__type": code, "message": "no"}).encode(), code)
            return
        asked = json.loads(body)
        answer = products(asked) if action == "GetProducts" else rates(asked)
        self._send(200, json.dumps(answer).encode())

    def _ec2(self, body: bytes) -> None:
        asked = dict(urllib.parse.parse_qsl(body.decode()))
        self.server.calls.append(asked["Action"])
        code = self.server.errors.get(asked["Action"])
        if code is not None:
            error = f"<Error><Code>{code}</Code><Message>no</Message></Error>"
            text = f"<Response><Errors>{error}</Errors><RequestID>1</RequestID></Response>"
            self._send(400, text.encode())
            return
        kept = ("Authorization", "Content-Type", "X-Amz-Date", "X-Amz-Security-Token")
        headers = {name: self.headers[name] for name in kept if self.headers[name]}
        pages = self.server.moto.pages(body, headers, few=self.server.few)
        self._send(200, pages[int(asked.get("NextToken", "0"))])

    def _send(self, status: int, content: bytes, error: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        if error:
            self.send_header("x-amzn-ErrorType", error)
        self.end_headers()
        self.wfile.write(content)


def paged(content: bytes) -> list[bytes]:
    """An XML answer cut into pages, each with the token of the next."""
    root = ElementTree.fromstring(content)
    space = root.tag.partition("}")[0] + "}"
    found = next(node for node in root if node.find(f"{space}item") is not None)
    items = list(found)
    pages = []
    for number, start in enumerate(range(0, len(items), PAGE), start=1):
        found[:] = items[start : start + PAGE]
        token = None
        if start + PAGE < len(items):
            token = ElementTree.SubElement(root, f"{space}nextToken")
            token.text = str(number)
        pages.append(ElementTree.tostring(root))
        if token is not None:
            root.remove(token)
    return pages


def products(asked: dict[str, Any]) -> dict[str, Any]:
    """GetProducts: what matches all filters, two a page, each as JSON text."""
    kind = "products" if asked["ServiceCode"] == "AmazonEC2" else "sagemaker_products"
    wanted = {one["Field"]: one["Value"] for one in asked["Filters"]}
    wanted["regionCode"] = "us-east-1" if wanted["regionCode"] == REGION else "none"
    found = [
        json.dumps(one).replace("us-east-1", REGION)
        for one in sample(kind)
        if all(
            {**one["product"]["attributes"], **one["product"]}.get(name) == value
            for name, value in wanted.items()
        )
    ]
    start = int(asked.get("NextToken", "0"))
    answer: dict[str, Any] = {"FormatVersion": "aws_v1", "PriceList": found[start : start + 2]}
    return {**answer, "NextToken": str(start + 2)} if start + 2 < len(found) else answer


def rates(asked: dict[str, Any]) -> dict[str, Any]:
    """DescribeSavingsPlansOfferingRates: what matches all filters, three a page."""
    wanted = {one["name"]: one["values"] for one in asked["filters"]}
    wanted["region"] = ["us-east-1"] if wanted["region"] == [REGION] else []
    found = []
    for one in sample("savings_plan_rates"):
        said = {item["name"]: item["value"] for item in one["properties"]}
        if one["productType"] in asked["products"] and all(
            said.get(name) in values for name, values in wanted.items()
        ):
            found.append(json.loads(json.dumps(one).replace("us-east-1", REGION)))
    start = int(asked.get("nextToken", "0"))
    token = str(start + 3) if start + 3 < len(found) else None
    return {"searchResults": found[start : start + 3], "nextToken": token}


@contextmanager
def served(moto: Moto, folder: Path) -> Iterator[Aws]:
    """A server that boto3 asks instead of AWS, with credentials of nobody."""
    with pytest.MonkeyPatch.context() as patch, Aws(moto) as started:
        for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "no-secret")
        patch.setenv("AWS_CONFIG_FILE", str(folder / "config"))
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(folder / "credentials"))
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.setenv("AWS_ENDPOINT_URL", started.url)
        thread = threading.Thread(target=started.serve_forever, daemon=True)
        thread.start()
        yield started
        started.shutdown()
        thread.join()
