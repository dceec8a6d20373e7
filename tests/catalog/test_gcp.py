"""Google Cloud: machines from the Compute Engine API, their prices from the billing catalog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from underdog.catalog.facts import accelerators, table
from underdog.catalog.providers import gcp
from underdog.catalog.providers.gcp.skus import Resource, resource_of
from underdog.catalog.sources import LeftOut, Raw
from underdog.errors import CatalogError

SAMPLES = Path(__file__).parent / "samples"
KINDS = ("machine_types", "accelerator_types", "skus")
Row = dict[str, Any]


def documents() -> dict[str, list[Any]]:
    return {
        kind: json.loads((SAMPLES / f"gcp_{kind}.json").read_text(encoding="utf-8"))
        for kind in KINDS
    }


def parsed(given: dict[str, list[Any]]) -> tuple[list[Row], list[LeftOut]]:
    raw = Raw(provider="gcp", documents=given, source="the API", date="2026-11-30")
    found = list(gcp.parse(raw))
    left = [one for one in found if isinstance(one, LeftOut)]
    return [one for one in found if not isinstance(one, LeftOut)], left


def offer(rows: list[Row], name: str, purchase: str = "on-demand", term: Any = None) -> Row:
    (found,) = (
        row
        for row in rows
        if row["region"] == "us-central1"
        and (row["instance_type"], row["purchase"], row["term"]) == (name, purchase, term)
    )
    return found


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return parsed(documents())[0]


# The rates of the sample are those of us-central1 in 2026; the sums, what machines cost there.
@pytest.mark.parametrize(
    ("name", "price"),
    [
        ("n1-standard-8", 0.379998),
        ("n1-highmem-96", 5.678544),
        ("n1-standard-1", 0.04749975),
        ("e2-micro", 0.0083764275),  # billed for a quarter of a vCPU
        ("f1-micro", 0.0076),
        ("a2-highgpu-1g", 3.673385),  # and not the 0.94 of the host alone
        ("a2-ultragpu-1g", 5.06879789041096),  # with 375 GiB of disk
        ("c4-standard-4-lssd", 0.279861780821918),  # with a disk of the series' own rate
        ("g2-standard-4", 0.706832255),
    ],
)
def test_a_price_is_the_sum_of_the_parts(rows: list[Row], name: str, price: float) -> None:
    assert offer(rows, name)["price_per_hour"] == pytest.approx(price, rel=1e-4)


def test_parts_of_accelerators_slices_and_chips(rows: list[Row]) -> None:
    eighth = offer(rows, "g4-standard-6")
    assert eighth["price_per_hour"] == pytest.approx(6 * 0.04 + 22 * 0.005 + 2.0 / 8)
    assert (eighth["accelerator_count"], eighth["accelerator_memory_gib"]) == (0.125, 12)
    # a slice and a chip come with their share of the machine
    assert offer(rows, "a4-highgpu-8g")["price_per_hour"] == pytest.approx(8 * 16.11)
    assert offer(rows, "ct5lp-hightpu-4t")["price_per_hour"] == pytest.approx(4 * 1.2)


def test_memory_optimised_machines_pay_the_surcharge(rows: list[Row]) -> None:
    want = 208 * (0.0348 + 0.0094) + 5888 * (0.0051 + 0.0014)
    assert offer(rows, "m2-ultramem-208")["price_per_hour"] == pytest.approx(want)


def test_spot_and_commitments_are_offers_of_their_own(rows: list[Row]) -> None:
    name = "n1-standard-8"
    assert offer(rows, name, "spot")["price_per_hour"] == pytest.approx(0.08438)
    year = offer(rows, name, "reserved", "cud-1y")
    assert year["price_per_hour"] == pytest.approx(8 * 0.019915 + 30 * 0.002669)
    three = offer(rows, name, "reserved", "cud-3y")  # the sample has no rate of the memory
    assert three["price_per_hour"] is None
    assert "cud-3y rate of its memory" in three["price_unknown_reason"]
    terms = {row["term"] for row in rows if row["instance_type"] == "t2a-standard-4"}
    assert terms == {None}


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("n2-standard-2", "vCPUs"),  # the catalog gives 0 for them
        ("a3-ultragpu-8g", "accelerators"),
        ("n9-standard-2", "vCPUs and memory"),
    ],
)
def test_a_machine_without_one_part_has_no_price(rows: list[Row], name: str, missing: str) -> None:
    row = offer(rows, name)
    assert row["price_per_hour"] is None
    assert f"rate of its {missing}" in row["price_unknown_reason"]


def test_no_accelerator_is_ever_free(rows: list[Row]) -> None:
    abroad = [r for r in rows if r["region"] == "europe-west4" and r["accelerator"] == "A100-40GB"]
    assert {row["price_per_hour"] for row in abroad} == {None}
    for sku in range(len(documents()["skus"])):
        fewer = documents()
        del fewer["skus"][sku]
        for row in parsed(fewer)[0]:
            if row["accelerator"] == "A100-40GB" and row["price_per_hour"] is not None:
                assert row["price_per_hour"] == pytest.approx(3.673385)


def test_accelerators_are_attached_where_they_are_sold(rows: list[Row]) -> None:
    joined = {row["instance_type"] for row in rows if "+" in row["instance_type"]}
    assert joined == {
        *(f"n1-standard-8+{count}xT4" for count in (1, 2, 4)),
        *(f"n1-standard-8+{count}xV100" for count in (1, 2, 4, 8)),
        *(f"n1-standard-1+{count}xV100" for count in (1, 2, 4, 8)),
        "n1-highmem-96+4xT4",
    }
    row = offer(rows, "n1-standard-8+1xT4")
    assert row["price_per_hour"] == pytest.approx(0.379998 + 0.35)
    assert (row["accelerator"], row["accelerator_count"], row["vcpus"]) == ("T4", 1, 8)
    assert row["zones"] == "us-central1-a"
    assert offer(rows, "n1-standard-8+1xT4", "spot")["price_per_hour"] == pytest.approx(0.22438)
    assert not any("RTX" in name or "L4" in name for name in joined)


def test_zones_are_told_and_prices_are_of_the_region(rows: list[Row]) -> None:
    assert offer(rows, "n1-standard-8")["zones"] == "us-central1-a,us-central1-b"
    places = {r["region"] for r in rows if r["instance_type"] == "n1-standard-8"}
    assert places == {"us-central1", "europe-west4"}


def test_what_is_no_offer_is_told() -> None:
    _, left = parsed(documents())
    reasons = {one.instance_type: one.reason for one in left}
    assert reasons == {
        "x1-standard-4": "an accelerator of unknown name, 'nvidia-z999'",
        "n1-standard-4-old": "a machine type that is gone",
        "N2 Instance Core running in Americas": "the source gives 0, which stands for no price",
        "N1 Predefined Sole Tenancy Instance Core": "a price of sole-tenant nodes",
        "N2 Custom Instance Core": "a price of custom machine types",
        "N1 Custom Extended Instance Ram": "a price of extended memory",
        "Reserved A2 Instance Core": "a price of calendar reservations",
        "DWS Defined Duration A2 Instance Core": "a price of the Dynamic Workload Scheduler",
        "Nvidia Tesla T4 Virtual Workstation GPU": "a price of virtual workstations",
        "Licensing Fee for Windows Server 2019 Datacenter Edition (CPU cost)": (
            "of the family 'License', not a part of a machine"
        ),
        "Network Internet Egress from Americas to Africa": (
            "of the family 'Network', not a part of a machine"
        ),
        "E2 Instance Core running in Americas": "in 'EUR', not in USD",
        "core e2": "two rates stand for one resource; the lower is kept",
        "N1 Predefined Instance Core running in Americas": "sold by 'count', not by the hour",
    }


@pytest.mark.parametrize(
    ("said", "group", "want"),
    [
        ("N2D AMD Instance Core running in Tokyo", "CPU", "core n2d"),
        ("Compute optimized Core running in Tokyo", "CPU", "core c2"),
        ("C4A Arm Instance Ram running in Tokyo", "RAM", "ram c4a"),
        ("M3 Memory-optimized Instance Ram running in Iowa", "RAM", "ram m3"),
        ("M4Ultramem224 Instance Core running in Iowa", "CPU", "core m4ultramem224"),
        ("Spot Preemptible Compute optimized Core running in Iowa", "CPU", "core c2"),
        ("Preemptible N1 Predefined Instance Ram running in Iowa", "N1Standard", "ram n1"),
        ("Commitment v1: Cpu in Iowa for 1 Year", "CPU", "core n1"),
        ("Commitment v1: N2D AMD Ram in Iowa for 3 Years", "RAM", "ram n2d"),
        ("Commitment: Compute optimized Cpu in Iowa for 1 Year", "CPU", "core c2"),
        ("Commitment v1: Local SSD in Iowa for 1 Year", "LocalSSD", "ssd "),
        ("Commitment v1: C4D Local SSD in Iowa for 1 Year", "LocalSSD", "ssd c4d"),
        ("Nvidia H100 80GB Mega GPU running in Iowa", "GPU", "gpu h10080gbmega"),
        (
            "RTX 6000 96GB attached to Spot Preemptible VMs running in Iowa",
            "GPU",
            "gpu rtx600096gb",
        ),
        ("SSD backed Local Storage attached to Spot Preemptible VMs in Iowa", "LocalSSD", "ssd "),
        ("Cloud TPU v5p running in Iowa", "TPU", "tpu v5p"),
        ("TpuV6e running in Iowa", "TPU", "tpu v6e"),
    ],
)
def test_the_wording_of_skus(said: str, group: str, want: str) -> None:
    usage = "Preemptible" if "Preemptible" in said else "OnDemand"
    if said.startswith("Commitment"):
        usage = "Commit1Yr"
    category = {"resourceFamily": "Compute", "resourceGroup": group, "usageType": usage}
    assert resource_of(said, category) == Resource(*want.split(" "))


@pytest.mark.parametrize(
    ("kind", "memory"),
    [
        ("nvidia-h200-141gb", 141),
        ("nvidia-h100-80gb", 80),
        ("nvidia-h100-mega-80gb", 80),
        ("nvidia-l4", 24),
        ("nvidia-tesla-t4", 16),
        ("nvidia-tesla-a100", 40),
        ("nvidia-a100-80gb", 80),
        ("nvidia-rtx-pro-6000", 96),
    ],
)
def test_the_memory_of_an_accelerator_type(kind: str, memory: float) -> None:
    item = {
        "name": "z9-standard-8",
        "guestCpus": 8,
        "memoryMb": 32768,
        "accelerators": [{"guestAcceleratorType": kind, "guestAcceleratorCount": 2}],
    }
    ((row,), _) = parsed({"machine_types": [item]})
    assert (row["accelerator_memory_gib"], row["accelerator_count"]) == (memory, 2)
    assert row["accelerator_memory_gib_total"] == 2 * memory
    assert (row["region"], row["price_per_hour"]) == ("unknown", None)


def test_the_table_names_known_accelerators() -> None:
    for model, _ in table("gcp.toml")["accelerator"].values():
        assert model in accelerators()
    assert table("gcp.toml")["attached"].keys() <= table("gcp.toml")["accelerator"].keys()


@pytest.mark.parametrize(
    ("name", "want"),
    [
        ("a2-highgpu-8g", ("A100-40GB", 8)),
        ("a2-ultragpu-1g", ("A100-80GB", 1)),
        ("a3-edgegpu-8g-nolssd", ("H100", 8)),
        ("a3-ultragpu-8g", ("H200", 8)),
        ("g2-standard-24", ("L4", 2)),
        ("g2-standard-32", ("L4", 1)),
        ("g4-standard-12", ("RTX-PRO-6000", 0.25)),
        ("g4-standard-384", ("RTX-PRO-6000", 8)),
        ("ct5lp-hightpu-8t", ("TPU-v5e", 8)),
        ("n2-standard-8", (None, 0)),
        ("g1-small", (None, 0)),
        ("a2-highgpu-x", (None, None)),
        ("g2-standard-5", (None, None)),
    ],
)
def test_accelerators_in_names(name: str, want: tuple[Any, ...]) -> None:
    assert gcp.accelerator_of(name) == want


@pytest.mark.parametrize(
    ("name", "gib"),
    [
        ("a3-highgpu-8g", 6000),
        ("a3-ultragpu-8g-nolssd", 0),
        ("c4d-highmem-384-lssd", 12000),
        ("z3-highmem-14-standardlssd", 3000),
        ("n2-standard-8", 0),
        ("z9-highmem-8-lssd", None),
        ("ct5p-hightpu-4t", None),
    ],
)
def test_the_disk_that_comes_with_a_machine(name: str, gib: float | None) -> None:
    item = {"name": name, "guestCpus": 8, "memoryMb": 32768}
    ((row,), _) = parsed({"machine_types": [item]})
    want = None if gib is None else pytest.approx(gib * 2**30 / 1e9, abs=0.06)
    assert row["local_disk_gb"] == want


def price(region: str, name: str, on_demand: Any, spot: Any = None) -> Row:
    return {"region": region, "machineType": name, "onDemand": on_demand, "spot": spot}


@pytest.mark.parametrize("text", [None, "", "0", "0.0", "-1", "nan", "inf", "x", 0, -2.5])
def test_no_price_of_a_machine_is_unknown_with_a_reason(text: Any) -> None:
    rows, _ = parsed({"machine_prices": [price("here", "n2-standard-2", text, text)]})
    assert [row["purchase"] for row in rows] == ["on-demand", "spot"]
    assert all(row["price_per_hour"] is None and row["price_unknown_reason"] for row in rows)


def test_of_two_prices_of_a_machine_the_lower_is_kept() -> None:
    three = [price("here", "n2-standard-2", text) for text in ("0.178", "0.086", "0")]
    rows, left = parsed({"machine_prices": three})
    assert [r["price_per_hour"] for r in rows if r["purchase"] == "on-demand"] == [0.086]
    assert len(left) == 2


def test_spot_of_a_machine_is_an_offer_of_its_own() -> None:
    given = [price("us-central1", "n2-standard-2", "0.44", "0.49"), price("a", "b", "1")]
    rows, _ = parsed({"machine_prices": given})
    assert {(row["region"], row["purchase"]): row["price_per_hour"] for row in rows} == {
        ("us-central1", "on-demand"): 0.44,
        ("us-central1", "spot"): 0.49,
        ("a", "on-demand"): 1,
        ("a", "spot"): None,
    }


@pytest.mark.parametrize(
    ("kind", "item", "where"),
    [
        ("machine_types", 3, r"gcp: machine_types\[0\] is int"),
        ("machine_types", {}, r"gcp: machine_types\[0\]\.name is missing"),
        (
            "machine_types",
            {"name": "a9", "accelerators": {}},
            r"gcp: machine_types\[0\]\.accelerators is dict",
        ),
        ("accelerator_types", {"name": None}, r"gcp: accelerator_types\[0\]\.name is missing"),
        ("skus", [], r"gcp: skus\[0\] is list"),
        ("skus", {"description": 4}, r"gcp: skus\[0\]\.description is '4'"),
        ("machine_prices", {"machineType": "a"}, r"gcp: machine_prices\[0\]\.region is missing"),
        ("machine_prices", price("a", "b", [1]), r"gcp: machine_prices\[0\]\.onDemand is '\[1\]'"),
    ],
)
def test_a_broken_item_is_told_by_row_and_field(kind: str, item: Any, where: str) -> None:
    with pytest.raises(CatalogError, match=where):
        parsed({kind: [item]})
