"""What the bundled snapshot has to offer."""

from __future__ import annotations

from underdog.catalog import snapshot
from underdog.catalog.facts import LINKS, RDMA
from underdog.catalog.hardware import cpu_accelerator_ratio


def distinct(column: str) -> set[str]:
    rows = snapshot.load().table.run(f"SELECT DISTINCT {column} FROM offers").fetchall()
    return {value for (value,) in rows if value is not None}


def test_the_bundled_snapshot_is_large_enough_and_small_enough() -> None:
    bundled = snapshot.load()
    counted = bundled.table.run(
        "SELECT count(DISTINCT provider || instance_type) FROM offers "
        "WHERE vcpus > 0 AND memory_gib > 0 AND price_per_hour > 0"
    ).fetchone()
    assert counted is not None
    assert counted[0] >= 3000
    assert bundled.rows >= 80_000
    assert bundled.path is not None
    assert bundled.path.stat().st_size < 3_000_000


def test_every_provider_has_source_and_date() -> None:
    bundled = snapshot.load()
    sources = {one["provider"]: one for one in bundled.sources}
    assert set(sources) == distinct("provider")
    rows = bundled.table.run(
        "SELECT DISTINCT provider, price_source, price_date FROM offers "
        "WHERE price_per_hour IS NOT NULL"
    ).fetchall()
    assert {provider for provider, _, _ in rows} == set(sources)
    for provider, source, date in rows:
        assert source.startswith(sources[provider]["prices"])
        assert date == sources[provider]["date"]


def test_links_and_networks_are_of_the_closed_lists() -> None:
    assert distinct("accelerator_link") <= set(LINKS)
    assert distinct("network_rdma") <= set(RDMA)


def test_one_accelerator_has_no_link_and_several_have_one_where_the_model_is_known() -> None:
    rows = (
        snapshot.load()
        .table.run(
            "SELECT accelerator_count, accelerator_link FROM offers "
            "WHERE accelerator_count IS NOT NULL AND accelerator NOT LIKE 'FPGA%'"
        )
        .fetchall()
    )
    assert all(link is None for count, link in rows if count <= 1)
    several = [link for count, link in rows if count > 1]
    assert sum(link is not None for link in several) > 0.95 * len(several)


def test_the_ratio_is_of_the_same_row() -> None:
    rows = snapshot.load().table.select()
    assert all(row["cpu_accelerator_ratio"] == cpu_accelerator_ratio(row) for row in rows)
