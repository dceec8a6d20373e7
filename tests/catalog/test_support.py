"""The table of the support matrix: whole, plausible, and true to the table of accelerators."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from underdog.catalog import support as matrix
from underdog.catalog.facts import FORMATS, accelerators, table
from underdog.core.support import COLUMNS, KINDS, STACKS, plain, state_sql
from underdog.core.versions import release
from underdog.verbs import support as verb

ROOT = Path(__file__).parents[2]
NEEDS = matrix.needs()
CAPABILITIES = {facts.compute_capability for facts in accelerators().values()} - {None}


@pytest.mark.parametrize("key", sorted(NEEDS))
def test_every_need_is_whole(key: str) -> None:
    need = NEEDS[key]
    assert need.title
    assert need.kind in KINDS
    assert need.on
    assert need.column is None or need.column in COLUMNS
    for row in need.on:
        assert row.source
        assert row.stack in STACKS
        assert row.reach in ("yes", "no", "unknown")
        assert set(row.accelerators) <= set(accelerators()), row.named
        assert (row.since is None and row.until is None) or row.stack == "cuda"
        assert row.until is None or row.since is None or row.since <= row.until
        assert not row.types or need.service
        assert not row.extensions or row.stack == "cpu"
        assert set(row.minimum) <= {"torch", "cuda", "jax", "tensorflow"}
        assert all(release(least) for least in row.minimum.values())
        # a row that can never be the first to cover a machine says nothing
        before = need.on[: need.on.index(row)]
        assert row not in before


def test_names_mean_one_thing() -> None:
    meant: dict[str, set[str]] = {}
    for need in NEEDS.values():
        for word in (need.key, *need.aliases):
            meant.setdefault(plain(word), set()).add(need.key)
    assert {word: keys for word, keys in meant.items() if len(keys) > 1} == {}


def test_chips_of_a_target_have_its_stack() -> None:
    groups = table("support.toml")["architecture"]
    chips = [chip for group in groups.values() for chip in group]
    assert len(chips) == len(set(chips))
    for name, group in groups.items():
        stack = "rocm" if name.startswith("gfx") else "neuron"
        assert all(stack in accelerators()[chip].software for chip in group), name
    reached = {chip for chip, facts in accelerators().items() if "rocm" in facts.software}
    assert reached <= set(chips)


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_with_a_published_rate_is_reached(name: str) -> None:
    """Fp64 besides: of that a real rate is asked for."""
    key = "fp64-any" if name == "fp64" else name
    sql = f"SELECT accelerator FROM offers WHERE {state_sql(NEEDS[key])} = 'yes'"
    reached = {row[0] for row in matrix.machines().run(sql).fetchall()}
    assert {chip for chip, facts in accelerators().items() if name in facts.tflops} <= reached


def test_bfloat16_agrees_with_the_constraint_on_what_was_measured() -> None:
    from underdog.core.constraints import UNITS_SINCE

    for key, name in (("bf16", "bfloat16"), ("fp8", "float8")):
        assert (
            min(row.since or 0 for row in NEEDS[key].on if row.stack == "cuda") == UNITS_SINCE[name]
        )


def test_builds_are_plausible() -> None:
    for build in matrix.builds():
        assert build.source
        low, high = build.span
        assert low <= high
        for text in (build.since, build.below, build.cuda, build.cuda_below):
            assert text is None or release(text)
        assert any(low <= c <= high for c in CAPABILITIES if c is not None)


def test_pace_of_fp64_agrees_with_the_datasheets() -> None:
    """Where a rate is published, the table by capability would say the same within rounding."""
    paces = NEEDS["fp64"].paces
    compared = 0
    for facts in accelerators().values():
        rates, capability = facts.tflops, facts.compute_capability
        if capability in paces and "fp64" in rates:
            compared += 1
            assert rates["fp64"] / rates["fp32"] == pytest.approx(paces[capability], rel=0.1)
    assert compared >= 4


def test_the_page_is_what_the_table_says() -> None:
    path = ROOT / "tools" / "write_support.py"
    spec = importlib.util.spec_from_file_location("write_support", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text() == module.page(), "run: python tools/write_support.py"


def test_rows_as_plain_values() -> None:
    (row,) = verb.needs(["fa3"])
    assert row["name"] == "flash-attention-3"
    assert row["accelerators"]["yes"][0] == "H20"
    assert sum(map(len, row["accelerators"].values())) == len(accelerators())
    assert row["on"][0]["source"].startswith("flash-attention README")
    assert {one["kind"] for one in verb.needs(kind="attention")} == {"attention"}
    told = {line["name"]: line for line in verb.of_accelerator("Tesla T4")}
    assert set(told) == set(NEEDS)
    assert told["bf16"]["state"] == "no"
    assert "T4 has 7.5" in told["bf16"]["why"]
