"""The bundled snapshot, and snapshots that are damaged."""

from __future__ import annotations

import errno
import json
import shutil
from pathlib import Path

import pytest

from underdog import catalog
from underdog.catalog import snapshot
from underdog.core.columns import BY_NAME, OFFER_COLUMNS
from underdog.core.expression import parse
from underdog.errors import CatalogError

BUNDLED = Path(snapshot.__file__).parent.parent / "data" / snapshot.FILE_NAME


def count(where: str) -> int:
    return snapshot.load().table.count(parse(where, BY_NAME))


def copied(folder: Path) -> Path:
    target = folder / "offers.parquet"
    shutil.copy(BUNDLED, target)
    shutil.copy(BUNDLED.with_suffix(".json"), target.with_suffix(".json"))
    return target


def test_it_is_small_and_large() -> None:
    assert BUNDLED.stat().st_size < 3e6
    assert snapshot.load().rows > 80_000
    shapes = "SELECT count(DISTINCT (provider, instance_type)) FROM offers WHERE"
    known = "vcpus IS NOT NULL AND memory_gib IS NOT NULL AND price_per_hour IS NOT NULL"
    row = snapshot.load().table.run(f"{shapes} {known}").fetchone()
    assert row is not None
    assert row[0] >= 3000


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_disk_is_called_so() -> None:
    with pytest.raises(OSError, match="No space left on device") as caught:
        snapshot.write(Path("/dev/full"), [], date="2026-11-30", sources=[], left_out=[])
    assert caught.value.errno == errno.ENOSPC


def test_its_columns_are_the_documented_ones() -> None:
    (row,) = snapshot.load().table.select(limit=1)
    assert list(row) == [column.name for column in OFFER_COLUMNS]


@pytest.mark.parametrize(
    "where",
    [
        "(price_per_hour is null) = (price_unknown_reason is null)",
        "price_per_hour <= 0",
        "price_source is null or price_date is null or currency <> 'USD'",
        "provider is null or region is null or instance_type is null or purchase is null",
        "purchase not in ('on-demand', 'spot', 'reserved')",
        "arch not in ('x86_64', 'arm64')",
        "vcpus <= 0 or memory_gib <= 0 or memory_gib > 40000",
        "accelerator_count > 0 and accelerator is null",
        "accelerator is not null and coalesce(accelerator_count, 0) = 0",
        "accelerator_count > 0 and accelerator_memory_gib is null",
        "accelerator_usable_gib > accelerator_memory_gib * 1.03",
        "accelerator_memory_gib_total < accelerator_memory_gib",
        # host memory that is the accelerators' memory in the wrong column
        "accelerator_memory_gib >= 24 and memory_gib = accelerator_memory_gib "
        "and instance_type not in ('trn1.2xlarge', 'g7.2xlarge')",
        # a machine with an accelerator at the price of a bare host
        "accelerator in ('A100-40GB', 'A100-80GB', 'H100', 'H200') and purchase = 'on-demand' "
        "and provider in ('aws', 'azure', 'gcp') and price_per_hour / accelerator_count < 1.5",
    ],
)
def test_no_offer_is_faulty(where: str) -> None:
    guarded = where.replace("/ accelerator_count", "/ nullif(accelerator_count, 0)")
    assert count(guarded) == 0


def test_one_row_for_each_offer() -> None:
    row = (
        snapshot.load()
        .table.run(
            "SELECT count(*) FROM (SELECT 1 FROM offers "
            "GROUP BY provider, region, instance_type, purchase HAVING count(*) > 1)"
        )
        .fetchone()
    )
    assert row == (0,)


def test_prices_have_source_and_date() -> None:
    price = catalog.machine_price("gcp", "us-central1", "a2-highgpu-1g")
    assert price.per_hour == pytest.approx(3.673385)
    assert price.source
    assert price.date == "2026-08-01"
    in_zone = catalog.machine_price("gcp", "us-central1-b", "a2-highgpu-1g", "spot")
    assert in_zone.per_hour == pytest.approx(1.92802)
    assert catalog.machine_price("aws", "us-east-1c", "g5.xlarge").per_hour == 1.006


def test_a_price_that_is_not_known_has_a_reason() -> None:
    assert "has no on-demand price" in str(
        catalog.machine_price("aws", "mars", "g5.xlarge").unknown_reason
    )
    azure = catalog.machine_price("azure", "eastus", "Standard_M128bds_1_v4")
    assert azure.per_hour is None
    assert "gives 0" in str(azure.unknown_reason)


def test_what_was_left_out_is_counted() -> None:
    left = snapshot.load().left_out
    assert sum(one["rows"] for one in left) == 4221
    assert all(one["reason"] and one["names"] for one in left)


def test_a_copy_is_the_same(tmp_path: Path) -> None:
    found = snapshot.load(copied(tmp_path))
    assert found.hash == snapshot.load().hash
    assert found.table.count() == found.rows


def test_writing_is_repeatable(tmp_path: Path) -> None:
    rows = snapshot.load().table.select(limit=200)
    hashes = set()
    for name in ("a.parquet", "b.parquet"):
        ordered = rows if name == "a.parquet" else rows[::-1]
        hashes.add(
            snapshot.write(tmp_path / name, ordered, date="2026-01-02", sources=[], left_out=[])
        )
    assert len(hashes) == 1
    again = snapshot.load(tmp_path / "a.parquet")
    assert (again.date, again.rows) == ("2026-01-02", 200)
    assert again.table.select() == sorted(
        rows, key=lambda r: (r["provider"], r["region"], r["instance_type"], r["purchase"])
    )


def test_a_file_cut_in_half_is_told(tmp_path: Path) -> None:
    file = copied(tmp_path)
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(CatalogError, match="is damaged"):
        snapshot.load(file)


def test_garbage_is_told_even_with_its_hash(tmp_path: Path) -> None:
    import hashlib

    file = copied(tmp_path)
    file.write_bytes(b"PAR1 garbage")
    manifest = json.loads(file.with_suffix(".json").read_text())
    manifest["hash"] = hashlib.sha256(file.read_bytes()).hexdigest()
    file.with_suffix(".json").write_text(json.dumps(manifest))
    with pytest.raises(CatalogError, match="cannot be read"):
        snapshot.load(file)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 99}, "pip install --upgrade underdog"),
        ({"hash": "0" * 64}, "is damaged"),
        ({"rows": 3}, "offers, not 3"),
        ({"rows": "many"}, "is no manifest"),
        ({"sources": None}, "is no manifest"),
    ],
)
def test_a_manifest_that_does_not_fit_is_told(
    change: dict[str, object], said: str, tmp_path: Path
) -> None:
    file = copied(tmp_path)
    manifest = json.loads(file.with_suffix(".json").read_text())
    file.with_suffix(".json").write_text(json.dumps({**manifest, **change}))
    with pytest.raises(CatalogError) as told:
        snapshot.load(file)
    assert said in str(told.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"x"', "[" * 100_000])
def test_a_manifest_that_is_none_is_told(text: str, tmp_path: Path) -> None:
    file = copied(tmp_path)
    file.with_suffix(".json").write_text(text)
    with pytest.raises(CatalogError, match="manifest"):
        snapshot.load(file)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="Cannot read"):
        snapshot.load(tmp_path / "none.parquet")
    file = copied(tmp_path)
    file.unlink()
    with pytest.raises(CatalogError, match="Cannot read"):
        snapshot.load(file)
