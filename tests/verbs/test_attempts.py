"""Recording attempts, bringing them in, and what choosing makes of them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from underdog.core.attempts import Attempt
from underdog.errors import TrialsError, UsageError
from underdog.store import open_store
from underdog.verbs.attempts import (
    add,
    attempts,
    import_attempts,
    named,
    next_step,
    place_of,
    plain,
    record,
)

SPOT = place_of("aws/us-east-1/g5.xlarge/spot", "us-east-1a")
TABLE = """\
offer,zone,at,got,waited_seconds,held_seconds,interrupted,words
aws/us-east-1/g5.xlarge/spot,us-east-1a,2026-11-30T10:00:00Z,true,90,18000,true,
aws/us-east-1/g5.xlarge/spot,us-east-1a,2026-11-30T10:00:00Z,false,600,,,no capacity now
aws/us-east-1/p5.48xlarge,,1796032800,no,0,,,VcpuLimitExceeded: you have
"""


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.sqlite3")


def test_one_attempt_from_asking_to_its_end(store: str) -> None:
    with open_store(store) as opened:
        got = record(opened, Attempt(place=SPOT, at=time.time(), got=True, waited=30.0))
        assert got.id
        record(opened, replace(got, held=7200.0, interrupted=True))
        (kept,) = opened.attempts()
    assert (kept.id, kept.held, kept.interrupted) == (got.id, 7200.0, True)


def test_a_refusal_is_classified_and_leads_on(store: str) -> None:
    words = "VcpuLimitExceeded: You have requested more vCPU capacity than your limit of 0"
    kept = add(Attempt(place=SPOT, at=0.0, got=False, words=words), store)
    assert kept.refusal == "quota"
    assert "'All G and VT Spot Instance Requests (L-3819A6DF)'" in next_step(kept)
    assert plain(kept)["next_step"] == next_step(kept)
    known = add(Attempt(place=SPOT, at=1.0, got=False, refusal="not_offered"), store)
    assert next_step(known) == "try another zone or region: this one does not sell it"
    assert next_step(replace(kept, got=True, refusal=None)) == ""


def test_the_same_moment_twice_has_two_ids() -> None:
    one = Attempt(place=SPOT, at=5.0, got=True)
    assert named(one).id == named(one).id != named(one, 1).id
    assert named(replace(one, id="mine")).id == "mine"


def test_a_table_comes_in_whole_and_once(store: str, tmp_path: Path) -> None:
    path = tmp_path / "seen.csv"
    path.write_text(TABLE)
    assert (import_attempts(path, store).added, import_attempts(path, store).added) == (3, 0)
    got, short, quota = attempts(store)
    assert (got.waited, got.held, got.interrupted, got.place) == (90.0, 18000.0, True, SPOT)
    assert (short.got, short.refusal) == (False, None or short.refusal)
    assert short.at == got.at
    assert short.id != got.id
    assert (quota.refusal, quota.place.purchase, quota.source) == ("quota", "on-demand", "seen.csv")
    assert attempts(store, instance_type="p5.48xlarge") == [quota]
    # what is printed can be brought in elsewhere
    printed = tmp_path / "seen.json"
    printed.write_bytes(msgspec.json.encode([plain(one) for one in (got, short, quota)]))
    other = str(tmp_path / "other.sqlite3")
    assert import_attempts(printed, other).added == 3
    assert attempts(other) == [got, short, quota]


def test_all_faults_are_told_and_nothing_comes_in(store: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(
        "offer,at,got,held_seconds,interrupted,purchase\n"
        "aws/us-east-1/g5.xlarge/spott,2026-11-30,true,,,\n"
        "g5.xlarge,2026-11-30,true,,,\n"
        "aws/us-east-1/g5.xlarge/spot,soon,true,,,\n"
        "aws/us-east-1/g5.xlarge/spot,2026-11-30,perhaps,,,\n"
        "aws/us-east-1/g5.xlarge/spot,2026-11-30,false,5,true,\n"
        "aws/us-east-1/g5.xlarge/spot,2026-11-30,true,-5,,\n"
    )
    with pytest.raises(TrialsError) as raised:
        import_attempts(path, store)
    for said in (
        "row 2, offer: There is no purchase option 'spott'",
        "row 3, offer: 'g5.xlarge' is no name of an offer",
        "row 4, at: 'soon' is not a number",
        "row 5, got: 'perhaps' is neither true nor false",
        "row 6, row: what was interrupted was got",
        "row 7, held",
    ):
        assert said in raised.value.message
    assert attempts(store) == []


def test_an_empty_file_and_a_wrong_name_are_told(store: str, tmp_path: Path) -> None:
    path = tmp_path / "none.csv"
    path.write_text("offer,at,got\n")
    with pytest.raises(TrialsError, match="the file has no attempt"):
        import_attempts(path, store)
    with pytest.raises(UsageError, match="no name of an offer"):
        place_of("g5.xlarge")


def test_json_of_another_kind_is_told(store: str, tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_text(json.dumps([{"at": 1.0, "got": True}]))
    with pytest.raises(TrialsError, match="row 1, provider: it is missing"):
        import_attempts(path, store)
