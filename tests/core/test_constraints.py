"""Hard constraints: what they take from trials, and that any text is safe in their SQL."""

from __future__ import annotations

import dataclasses

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st
from offers_and_trials import PROFILE, offer, table, trial

from underdog.core import constraints as limits
from underdog.core.choosing import Request, choose
from underdog.core.columns import BY_NAME
from underdog.core.evidence import gather
from underdog.core.expression import parse
from underdog.core.utility import parse_utility
from underdog.model import Software


def names(trials: list, stacks: tuple[str, ...] | None = None) -> list[str]:  # type: ignore[type-arg]
    return [c.name for c in limits.from_trials(gather(trials), stacks)]


def test_what_training_holds_at_once() -> None:
    assert limits.resident_gib(PROFILE) == pytest.approx(16.0)
    known = dataclasses.replace(PROFILE, activation_bytes=2**30)
    assert limits.resident_gib(known) == pytest.approx(17.0)
    assert limits.resident_gib(dataclasses.replace(PROFILE, gradient_bytes=None)) is None


def test_nothing_known_rules_nothing_out() -> None:
    assert names([trial(software=Software())]) == []


def test_each_fact_makes_its_constraint() -> None:
    assert names([trial(software=Software(), profile=PROFILE)]) == ["memory", "memory"]
    assert names([trial(peak_memory_gib={"accelerator": 3.0})]) == ["memory", "software"]
    half = dataclasses.replace(PROFILE, number_format="bfloat16")
    assert "number format" in names([trial(profile=half)])
    assert names([trial(software=Software())], ("neuron",)) == ["software"]


def test_the_least_of_several_peaks_counts() -> None:
    trials = [trial(id=str(p), peak_memory_gib={"accelerator": p}) for p in (20.0, 12.0, 30.0)]
    (memory,) = [c for c in limits.from_trials(gather(trials), None) if c.name == "memory"]
    assert "12 GiB" in memory.met


@pytest.mark.parametrize("name", ["o'ffer", 'a"b', "{0}", "100%", "x; DROP TABLE offers", "é\\n"])
def test_any_name_is_text(name: str) -> None:
    rows = [offer(name), offer("g5.xlarge", accelerator=name), offer("same.memory")]
    failed = trial(name, None, status="out_of_memory")
    where = parse("instance_type <> 'it''s {0} 100%'", BY_NAME)
    request = Request(utility=parse_utility("samples_per_dollar"), where=where)
    choice = choose(table(rows), gather([trial(), failed]), request)
    lines = {line["offer"]: line for line in choice.ledger()}
    assert lines[f"aws/us-east-1/{name}/on-demand"]["cause"] == "memory"
    assert lines["aws/us-east-1/same.memory/on-demand"]["cause"] == "memory"
    # it ran there, so that it fits there
    assert lines["aws/us-east-1/g5.xlarge/on-demand"]["verdict"] == "best"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_figures_read_alike_in_sql_and_in_python(value: float) -> None:
    sql = limits.figure(f"{value!r}::DOUBLE")
    found = duckdb.connect().execute(f"SELECT {sql}").fetchone()
    assert found is not None
    # both round to the nearest, but a tie may fall either way
    assert found[0] == limits.shown(value) or abs(value) % 1 == 0.5
