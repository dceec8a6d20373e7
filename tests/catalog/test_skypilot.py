"""SkyPilot's catalog: the shapes of its files, and the faults that they had."""

from __future__ import annotations

import copy
import csv
import io
import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from underdog.catalog.http import Http
from underdog.catalog.providers import skypilot
from underdog.catalog.sources import FetchOptions, LeftOut, Raw
from underdog.errors import CatalogError, HttpError
from underdog.testing.provider import check_provider, check_row

SAMPLE = Path(__file__).parent / "samples" / "skypilot.json"
HEADER = [
    *("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "Price"),
    *("Region", "AvailabilityZone", "GpuInfo", "SpotPrice"),
]


def sample() -> Raw:
    return Raw(**json.loads(SAMPLE.read_text()))


def offers(raw: Raw | None = None) -> list[dict[str, Any]]:
    return [row for row in skypilot.parse(raw or sample()) if not isinstance(row, LeftOut)]


def left_out(raw: Raw | None = None) -> dict[str, str]:
    found = [one for one in skypilot.parse(raw or sample()) if isinstance(one, LeftOut)]
    return {one.instance_type or one.provider: one.reason for one in found}


def offer(name: str, purchase: str = "on-demand", raw: Raw | None = None) -> dict[str, Any]:
    found = [r for r in offers(raw) if (r["instance_type"], r["purchase"]) == (name, purchase)]
    assert found, name
    return found[0]


def file_of(*rows: dict[str, str], cloud: str = "lambda") -> Raw:
    """A file of one cloud; what a row does not say is empty."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, HEADER, restval="", lineterminator="\n")
    writer.writeheader()
    plain = {"InstanceType": "t", "Region": "r", "vCPUs": "8", "MemoryGiB": "64", "Price": "1.0"}
    writer.writerows([{**plain, **row} for row in rows])
    files = [{"cloud": cloud, "text": text.getvalue()}]
    return Raw(provider="skypilot", documents={"files": files}, source="s", date="2026-11-29")


def test_it_keeps_the_promises_of_a_provider() -> None:
    check_provider(skypilot, sample())


def test_an_inconsistent_total_is_a_caveat() -> None:  # G16
    row = offer("gpu_8x_v100")
    assert (row["accelerator"], row["accelerator_count"]) == ("V100-16GB", 8)
    assert (row["accelerator_memory_gib"], row["accelerator_memory_gib_total"]) == (16, 128)
    assert row["caveats"] == "total_memory_differs"


@pytest.mark.parametrize(
    ("name", "model", "count", "each"),
    [
        ("1x_A100-80GB_SECURE", "A100-80GB", 1, 80),  # the memory in GB
        ("2x-RTX_5090-32-65536", "RTX-5090", 2, 32),  # that of both
        ("8x-Tesla_V100-32-65536", "V100-16GB", 8, 16),  # of all, and of a model with two sizes
        ("2x-A100_SXM4-32-65536", "A100-40GB", 2, 40),
        ("nebius__8xH200_141GB__128__1600", "H200", 8, 141),  # in JSON
        ("n3-L40x2", "L40", 2, 48),  # neither Python nor JSON
        ("gpu_4x_a6000", "RTX-A6000", 4, 48),  # another name
    ],
)
def test_the_memory_is_of_each(name: str, model: str, count: float, each: float) -> None:
    row = offer(name)
    assert (row["accelerator"], row["accelerator_count"]) == (model, count)
    assert row["accelerator_memory_gib"] == each
    assert row["accelerator_memory_gib_total"] == each * count
    assert row["accelerator_usable_gib"] == pytest.approx(each, rel=0.1)


def test_memory_that_is_not_that_of_the_model_is_no_offer() -> None:
    said = left_out()["1x-RTX_4090-32-65536"]
    assert said == "47.99 GiB is not the memory of one RTX-4090, which has 24"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"AcceleratorCount": "4"}, "an accelerator without a name"),  # G12
        ({"AcceleratorName": "L4"}, "the accelerator L4, and the row does not say how many"),
        ({"AcceleratorName": "L4", "AcceleratorCount": "0"}, "does not say how many"),
        ({"MemoryGiB": "1000000"}, "1e+06 GiB is of no known unit"),
        ({"Region": " , "}, "names no region"),
    ],
)
def test_a_row_that_is_no_offer_says_why(row: dict[str, str], said: str) -> None:
    assert said in left_out(file_of(row))["t"]
    assert not offers(file_of(row))


@pytest.mark.parametrize(
    ("name", "mib", "model"),
    [
        ("H100_SXM5", 81920, "H100"),
        ("H100_PCIE_BAREMETAL", 81920, "H100-PCIe"),
        ("A100-80G-PCIe-NVLink", 81920, "A100-80GB-PCIe"),
        ("RTX5090_PCIE", 32768, "RTX-5090"),
        ("L40S_PCIE_BAREMETAL", 49152, "L40S"),
        ("H100", 95830, "H100-NVL"),
        ("H100", None, "H100"),
        ("A100", None, "A100"),  # of 40 or of 80 GB: not known
        ("Chip9", 1 << 20, "Chip9"),
    ],
)
def test_a_model_is_known_by_many_names(name: str, mib: int | None, model: str) -> None:
    info = "" if mib is None else f"{{'Gpus': [{{'MemoryInfo': {{'SizeInMiB': {mib}}}}}]}}"
    raw = file_of({"AcceleratorName": name, "AcceleratorCount": "1", "GpuInfo": info})
    row = offer("t", raw=raw)
    assert (row["accelerator"], row["accelerator_count"]) == (model, 1)


@pytest.mark.parametrize(
    ("kind", "name", "mib", "model"),
    [
        ("gpu_1x_h100_pcie", "H100", 81920, "H100-PCIe"),
        ("gpu_1x_h100_sxm5", "H100", 81920, "H100"),
        ("a100-PCIe.2", "A100", 40960, "A100-40GB-PCIe"),
        ("NC_A100_PCIE_1", "A100-80GB", 81920, "A100-80GB-PCIe"),
        ("1x_pcie", "A100-SXM", 81920, "A100-80GB"),  # its own name is the nearer word
        ("1x_pcie", "A10", 24576, "A10"),
        ("1xpcies_h100", "H100", 81920, "H100"),
    ],
)
def test_a_card_may_be_named_by_its_machine_alone(
    kind: str, name: str, mib: int, model: str
) -> None:
    info = f"{{'Gpus': [{{'MemoryInfo': {{'SizeInMiB': {mib}}}}}]}}"
    given = {"AcceleratorName": name, "AcceleratorCount": "1", "GpuInfo": info}
    others = {**given, "InstanceType": "plain"}  # of the same shape, and not the same model
    raw = file_of(others, {**given, "InstanceType": kind}, others)
    assert offer(kind, raw=raw)["accelerator"] == model
    assert "PCIe" not in offer("plain", raw=raw)["accelerator"]


def test_bytes_in_a_column_of_gib_are_converted() -> None:  # G18
    assert offer("bytes")["memory_gib"] == 42


@pytest.mark.parametrize("given", ["", "0", "0.00", "nan", "inf", "-1", "-inf", "free", "1e400"])
def test_no_price_is_unknown_with_a_reason(given: str) -> None:  # P1, P3
    row = offer("t", raw=file_of({"Price": given}))
    assert row["price_per_hour"] is None
    assert row["price_unknown_reason"]


def test_of_two_prices_the_lower_stands_with_a_caveat() -> None:  # P7
    row = offer("twice")
    assert (row["price_per_hour"], row["caveats"]) == (0.086, "two_prices")
    assert "two on-demand prices" in left_out()["twice"]


def test_a_spot_price_that_is_missing_is_unknown() -> None:  # P10
    assert offer("2x_A100-80GB_SECURE")["price_per_hour"] == 2.78
    assert offer("2x_A100-80GB_SECURE", "spot")["price_per_hour"] is None
    # where no type of a cloud has one, it sells none
    assert {row["purchase"] for row in offers() if row["provider"] == "vast"} == {"on-demand"}


def test_an_accelerator_without_its_machine_is_no_offer() -> None:  # P4, P15
    raw = file_of(
        {"InstanceType": "", "AcceleratorName": "A100", "AcceleratorCount": "1", "Price": "2.9"},
        {"InstanceType": "a2-highgpu-1g", "Price": "0.94"},
        {"InstanceType": "n1-standard-8", "Price": "0.38"},
        cloud="gcp",
    )
    assert [row["instance_type"] for row in offers(raw)] == ["n1-standard-8"]
    assert "without a machine" in left_out(raw)["gcp"]
    assert "without its accelerators" in left_out(raw)["a2-highgpu-1g"]


def test_zones_at_one_price_are_one_offer() -> None:
    row = offer("1x_A100-80GB_SECURE")
    assert (row["region"], row["zone"], row["zones"]) == ("US", None, "US-CA-1,US-KS-1")
    spot = [r for r in offers() if r["region"] == "SE" and r["purchase"] == "spot"]
    assert [(r["zone"], r["price_per_hour"]) for r in spot] == [("EU-SE-1", 0.8), ("EU-SE-2", 0.7)]


def test_a_place_keeps_its_parts() -> None:
    assert offer("2x-RTX_5090-32-65536")["region"] == "US, NA"


def test_the_price_says_its_source_and_day() -> None:
    row = offer("cpu_4x_general")
    assert (row["price_source"], row["price_date"]) == ("SkyPilot catalog, lambda", "2026-11-29")


def test_a_fraction_of_an_accelerator_is_one() -> None:
    info = "{'Gpus': [{'Name': 'A10', 'Count': 0.1667, 'MemoryInfo': {'SizeInMiB': 4096}}]}"
    raw = file_of(
        {"AcceleratorName": "A10", "AcceleratorCount": "0.1667", "GpuInfo": info}, cloud="azure"
    )
    row = offer("t", raw=raw)
    assert row["accelerator_count"] == 0.1667
    assert row["accelerator_memory_gib"] == pytest.approx(4, rel=0.01)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("a,b\n1,2\n", "no column InstanceType, Price, Region"),
        ("InstanceType,Price,Region\n", "is empty"),
        ('InstanceType,Price,Region\n"t,1,r' + "x" * 200_000, "cannot be read as CSV"),
    ],
)
def test_a_file_that_is_none_leaves_its_cloud_without_offers(text: str, said: str) -> None:
    raw = Raw(
        provider="skypilot",
        documents={"files": [{"cloud": "lambda", "text": text}]},
        source="s",
        date="2026-11-29",
    )
    assert said in left_out(raw)["lambda"]


def test_a_cloud_that_did_not_answer_is_told() -> None:
    assert "404" in left_out()["scp"]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_sample_however_broken_makes_a_false_price(data: st.DataObject) -> None:
    documents = copy.deepcopy(sample().documents)
    for file in documents["files"]:
        lines = file["text"].splitlines()
        body = data.draw(st.permutations(lines[1:]))
        body = body[: data.draw(st.integers(0, len(body)))] * data.draw(st.integers(1, 2))
        text = "\n".join([lines[0], *body]) + "\n"
        cut = data.draw(st.integers(0, len(text)))
        odd = data.draw(
            st.sampled_from(["", "nan", "-1", "0", "inf", '"', ",", "\x00", "é", "1e999"])
        )
        file["text"] = text[:cut] + odd + text[cut + len(odd) :] or " x"
    raw = Raw(provider="skypilot", documents=documents, source="s", date="2026-11-29")
    for row in offers(raw):
        check_row(row)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=100, deadline=None)
@given(st.lists(JSON | st.fixed_dictionaries({"cloud": JSON, "text": JSON}), max_size=3))
def test_documents_of_another_shape_are_told_by_place(found: list[Any]) -> None:
    raw = Raw(provider="skypilot", documents={"files": found}, source="s", date="2026-11-29")
    told = None
    try:
        list(skypilot.parse(raw))
    except CatalogError as error:
        told = error.message
    assert told is None or "files[" in told


class Web:
    """The web as far as ``fetch`` sees it: files by address."""

    def __init__(self, files: dict[str, str], status: int | None = 404) -> None:
        self.files, self.status, self.asked = files, status, [""][:0]

    def text(self, url: str) -> str:
        self.asked.append(url)
        if url not in self.files:
            raise HttpError(f"'{url}' answered nothing.", status=self.status)
        return self.files[url]


def fetch(web: Web, **options: Any) -> Raw:
    return skypilot.fetch(cast("Http", web), FetchOptions(**options))


def test_files_come_from_the_web(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNDERDOG_SKYPILOT_URL", "http://mirror/v8/")
    text = sample().documents["files"][0]["text"]
    web = Web({"http://mirror/v8/lambda/vms.csv": text})
    raw = fetch(web)
    assert [file["cloud"] for file in raw.documents["files"]] == ["lambda"]
    assert len(raw.documents["failed"]) == len(skypilot.CLOUDS) - 1
    assert not {"aws", "azure", "gcp"} & {url.split("/")[-2] for url in web.asked}
    assert fetch(Web({"http://mirror/v8/aws/vms.csv": text}), only=("aws",)).documents["files"]


def test_without_a_network_the_cache_of_an_installed_skypilot_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skypilot, "CACHE", tmp_path / "none")
    web = Web({}, status=None)
    with pytest.raises(CatalogError, match=r"cannot be fetched.*\n.*--file FOLDER"):
        fetch(web)
    assert len(web.asked) == 1  # the others would not come either
    for file in sample().documents["files"]:
        folder = tmp_path / file["cloud"]
        folder.mkdir()
        (folder / "vms.csv").write_text(file["text"])
    (tmp_path / "aws").mkdir()
    (tmp_path / "aws" / "vms.csv").write_text("InstanceType,Price,Region\nt,1,r\n")
    monkeypatch.setattr(skypilot, "CACHE", tmp_path)
    raw = fetch(Web({}, status=None))
    assert "aws" not in {file["cloud"] for file in raw.documents["files"]}
    assert len(offers(raw)) == len(offers())
    only = fetch(Web({}), file=tmp_path, only=("aws",))
    assert [row["provider"] for row in offers(only)] == ["aws"]
    with pytest.raises(CatalogError, match=r"no file <cloud>/vms\.csv"):
        fetch(Web({}), file=tmp_path / "none")
