"""Asking AWS through boto3: a real moto server for EC2, recorded answers for the rest."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from aws_server import PAGE, REGION, Aws, Moto, served

from underdog.catalog.http import Http
from underdog.catalog.providers import aws
from underdog.catalog.providers.aws import failures
from underdog.catalog.sources import FetchOptions, LeftOut, Raw
from underdog.errors import CatalogError

pytest.importorskip("boto3")
pytest.importorskip("moto.server", reason="needs moto[server]")

NOW = datetime(2026, 7, 20, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def moto() -> Iterator[Moto]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield Moto(f"http://{host}:{port}")
    server.stop()


@pytest.fixture
def server(moto: Moto, tmp_path: Path) -> Iterator[Aws]:
    with served(moto, tmp_path) as started:
        started.few = True
        yield started


def fetch(*regions: str, **more: Any) -> Raw:
    return aws.fetch(Http(None), FetchOptions(regions=regions, now=NOW, **more))


@pytest.fixture(scope="module")
def whole(
    moto: Moto, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Raw, list[str], list[tuple[int, int | None]]]:
    """All of a region: what was fetched, the calls, and the progress that was told."""
    seen: list[tuple[int, int | None]] = []
    with served(moto, tmp_path_factory.mktemp("aws")) as started:
        raw = fetch(REGION, progress=lambda what, done, total: seen.append((done, total)))
    return raw, started.calls, seen


@pytest.mark.slow
def test_a_region_is_read_whole_and_page_by_page(whole: Any) -> None:
    raw, calls, seen = whole
    counts = {kind: len(documents) for kind, documents in raw.documents.items()}
    assert counts["instance_types"] > PAGE
    assert counts["offerings"] > PAGE
    assert counts["spot"] == counts["offerings"]
    assert counts["products"] == 8  # of Linux on shared machines in the region
    assert counts["sagemaker_products"] == 6
    assert counts["savings_plan_rates"] == 8 + 2
    assert calls.count("GetProducts") == 4 + 3
    assert calls.count("DescribeSavingsPlansOfferingRates") == 3 + 1
    assert calls.count("DescribeInstanceTypes") == -(-counts["instance_types"] // PAGE)
    names = [json.loads(one)["InstanceType"] for one in raw.documents["instance_types"]]
    assert len(names) == len(set(names))
    assert seen == [(n, 6) for n in range(1, 7)]
    assert json.loads(json.dumps(raw.documents)) == raw.documents
    assert (raw.provider, raw.date) == ("aws", "2026-07-20")


@pytest.mark.slow
def test_what_was_fetched_parses_into_true_offers(whole: Any) -> None:
    found = list(aws.parse(whole[0]))
    rows = [one for one in found if not isinstance(one, LeftOut)]
    assert {row["region"] for row in rows} == {REGION, "unknown"}
    offers = {(r["instance_type"], r["purchase"], r["term"], r["zone"]): r for r in rows}
    on_demand = offers["g5.xlarge", "on-demand", None, None]
    assert (on_demand["price_per_hour"], on_demand["accelerator"]) == (1.006, "A10G")
    zone = on_demand["zones"].split(",")[0]
    assert zone.startswith(REGION)
    # moto says one price for all, and that price counts for the whole window
    assert offers["g5.xlarge", "spot", None, zone]["price_per_hour"] == 0.00001
    assert offers["g5.xlarge", "reserved", "savings-plan-1y", None]["price_per_hour"] == 0.729
    assert offers["ml.g5.xlarge", "on-demand", None, None]["price_per_hour"] == 1.4084
    assert not [one for one in rows if one["price_per_hour"] == 0]


def test_types_of_several_regions_are_told_once(server: Aws) -> None:
    raw = fetch(REGION, "eu-west-3")
    (one,) = raw.documents["instance_types"]
    assert json.loads(one)["InstanceType"] == "g5.xlarge"
    places = {json.loads(one)["Location"][:-1] for one in raw.documents["offerings"]}
    assert places == {REGION, "eu-west-3"}


def test_by_default_the_regions_that_the_account_has_enabled(
    server: Aws, monkeypatch: pytest.MonkeyPatch
) -> None:
    from underdog.catalog.providers.aws import api

    asked: list[str] = []

    def calls(clients: Any, region: str, options: FetchOptions) -> Iterator[Any]:
        asked.append(region)
        return iter(())

    monkeypatch.setattr(api, "_calls", calls)
    fetch()
    assert {"us-east-1", REGION, "eu-west-3"} < set(asked)
    assert "ap-east-1" not in asked  # moto gives it as not opted in
    assert asked == sorted(asked)


@pytest.mark.parametrize(
    ("regions", "said"),
    [
        (("us-eats-1",), "AWS has no region 'us-eats-1'.\nDid you mean 'us-east-1'?"),
        (("us-east-1", "eu-wset-3", "nowhere"), "AWS has no region 'eu-wset-3', 'nowhere'."),
        (("ap-east-1",), "has not enabled the region 'ap-east-1'.\naws account enable-region"),
    ],
)
def test_a_region_that_is_none_is_told_before_anything_is_asked(
    server: Aws, regions: tuple[str, ...], said: str
) -> None:
    with pytest.raises(CatalogError) as told:
        fetch(*regions)
    assert said in str(told.value)
    assert server.calls == ["DescribeRegions"]


@pytest.mark.parametrize(
    ("action", "code", "said"),
    [
        ("DescribeRegions", "AuthFailure", "did not accept the credentials"),
        ("DescribeInstanceTypes", "ExpiredToken", "aws sso login"),
        ("GetProducts", "AccessDeniedException", "may not call pricing:GetProducts"),
        ("DescribeSpotPriceHistory", "InternalFault", "could not answer ec2:DescribeSpotPrice"),
    ],
)
def test_one_clear_error(server: Aws, action: str, code: str, said: str) -> None:
    server.errors[action] = code
    with pytest.raises(CatalogError) as told:
        fetch(REGION)
    assert said in str(told.value)
    assert told.value.hint


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("RequestExpired", "have expired"),
        ("ExpiredTokenException", "have expired"),
        ("UnrecognizedClientException", "aws sts get-caller-identity"),
        ("InvalidClientTokenId", "did not accept the credentials"),
        ("UnauthorizedOperation", "may not call ec2:DescribeX"),
        ("OptInRequired", "may not call ec2:DescribeX"),
        ("Throttling", "could not answer ec2:DescribeX"),
    ],
)
def test_every_code_has_its_remedy(code: str, said: str) -> None:
    from botocore.exceptions import ClientError

    error = ClientError({"Error": {"Code": code, "Message": "no"}}, "DescribeX")
    told = failures.told([("ec2:DescribeX", error)])
    assert said in str(told)
    assert told.hint


def test_all_missing_permissions_are_told_at_once(server: Aws) -> None:
    server.errors = {
        "DescribeSpotPriceHistory": "UnauthorizedOperation",
        "GetProducts": "AccessDeniedException",
        "DescribeSavingsPlansOfferingRates": "AccessDeniedException",
    }
    with pytest.raises(CatalogError) as told:
        fetch(REGION)
    assert (
        "may not call ec2:DescribeSpotPriceHistory, pricing:GetProducts, "
        "savingsplans:DescribeSavingsPlansOfferingRates" in str(told.value)
    )


def test_no_credentials(server: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(CatalogError) as told:
        fetch(REGION)
    assert "unable to locate credentials" in str(told.value)
    assert told.value.hint == "aws configure"


def test_half_of_the_credentials(server: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(CatalogError, match="AWS was not asked: partial credentials"):
        fetch(REGION)


def test_a_profile_that_is_none(server: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "wrok")
    with pytest.raises(CatalogError, match=r"wrok.*\naws configure list-profiles"):
        fetch(REGION)


def test_nobody_answers(server: Aws, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore import endpoint

    monkeypatch.setattr(endpoint.time, "sleep", lambda seconds: None)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(CatalogError, match="AWS does not answer ec2:DescribeRegions"):
        fetch(REGION)


@pytest.mark.slow
def test_what_is_asked_is_what_was_told(whole: Any) -> None:
    told = {one.split()[0].partition(":")[2] for one in aws.asks(FetchOptions(regions=(REGION,)))}
    assert told == set(whole[1])


def test_without_boto3_the_message_has_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(CatalogError) as told:
        fetch(REGION)
    assert told.value.hint == "pip install 'underdog[aws]'"
