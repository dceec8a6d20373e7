"""Any record comes back equal, or is refused; nothing is turned into something else."""

from __future__ import annotations

import json
import math
import string
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.errors import StoreError
from underdog.model import (
    Accelerator,
    Caveat,
    Decision,
    Estimate,
    Machine,
    Measurement,
    Offer,
    Price,
    Profile,
    Software,
    Timeline,
    Trial,
)
from underdog.store import document
from underdog.testing.store import bare_trial, full_decision, full_trial

# all code points: halves of surrogate pairs and the mark included
texts = st.text(st.characters(categories=None) | st.sampled_from("\ud83d\ude00\udcff\uffff\x00\\"))
numbers = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
for kind in (Accelerator, Caveat, Estimate, Measurement, Profile):
    st.register_type_strategy(kind, st.builds)
prices = st.builds(
    Price,
    per_hour=st.floats(min_value=1e-9, max_value=1e9),
    unknown_reason=st.none(),
    source=texts,
    date=texts,
) | st.builds(Price, per_hour=st.none(), unknown_reason=texts, source=texts, date=texts)
tables = st.dictionaries(texts, values, max_size=3)
optional_numbers = st.dictionaries(texts, st.none() | numbers, max_size=3)
estimates = st.builds(Estimate, value=numbers, low=numbers, high=numbers, n=st.integers())
trials = st.builds(
    Trial,
    id=texts,
    workload=texts,
    command=st.lists(texts, max_size=3),
    knobs=st.dictionaries(texts, texts, max_size=3),
    status=st.sampled_from(["ok", "failed", "running"]),
    reason=st.none() | texts,
    exit_code=st.none() | st.integers(),
    offer=st.none()
    | st.builds(
        Offer,
        provider=texts,
        region=texts,
        instance_type=texts,
        price=prices,
        vcpus=st.none() | numbers,
        accelerator_count=numbers,
        accelerator_memory_gib=st.none() | numbers,
    ),
    price=prices,
    measurement=st.none()
    | st.builds(
        Measurement,
        samples_per_second=st.none() | estimates,
        step_seconds=st.none() | estimates,
        samples_per_second_with_pauses=st.none() | numbers,
        samples=st.none() | st.integers(),
        batch_size=st.none() | numbers,
        pauses=st.dictionaries(texts, numbers, max_size=3),
        warmup_seconds=numbers,
        seconds=numbers,
    ),
    phases=st.dictionaries(texts, numbers, max_size=3),
    peak_memory_gib=optional_numbers,
    usage=optional_numbers,
    caveats=st.lists(st.builds(Caveat, code=texts, message=texts, remedy=texts), max_size=2),
    machine=st.builds(Machine, hostname=texts, provider=st.none() | texts, cpu_ghz=st.none()),
    software=st.builds(
        Software, settings=tables, dirty=st.none() | st.booleans(), commit=st.none() | texts
    ),
    profile=st.none() | st.builds(Profile, parameters=st.none() | st.integers()),
    owner=tables,
)
decisions = st.builds(
    Decision,
    id=texts,
    workload=texts,
    created_at=texts,
    utility=texts,
    better=st.sampled_from(["higher", "lower"]),
    constraints=st.lists(texts, max_size=3),
    ranking=st.lists(tables, max_size=2),
    ledger=st.lists(tables, max_size=2),
    test_next=st.lists(tables, max_size=2),
)


@given(trials)
def test_any_trial_comes_back_equal(trial: Trial) -> None:
    text = document.encode(trial)
    assert document.decode(Trial, text) == trial
    text.encode()  # a database takes it
    assert "\x00" not in text
    assert json.loads(text)["status"] == trial.status


timelines = st.builds(
    Timeline,
    steps=st.dictionaries(texts, st.lists(st.none() | numbers, max_size=4), max_size=3),
    usage=st.dictionaries(texts, st.lists(st.none() | numbers, max_size=4), max_size=3),
    pauses=st.dictionaries(texts, st.lists(st.lists(numbers, max_size=2), max_size=2), max_size=2),
)


@given(timelines)
def test_any_timeline_comes_back_equal_and_apart_from_its_trial(timeline: Timeline) -> None:
    bare = bare_trial("w")
    trial = replace(bare, timeline=timeline)
    assert document.encode(trial) == document.encode(bare)
    text = document.encode_timeline(trial)
    assert text is not None
    assert document.decode(Timeline, text) == timeline
    assert document.encode_timeline(bare) is None


@pytest.mark.parametrize("column", [[1.0, math.nan], [math.inf, -math.inf], [1.5, None, math.inf]])
def test_a_timeline_that_is_not_finite_is_refused(column: list[float | None]) -> None:
    trial = bare_trial("w", timeline=Timeline(usage={"seconds": [1.0], "cores": column}))
    with pytest.raises(StoreError, match=r"usage\.cores\.'\d' is (nan|inf)"):
        document.encode_timeline(trial)


def test_large_numbers_of_a_timeline_are_kept() -> None:
    timeline = Timeline(usage={"x": [1e308, 1e308, None]})  # their sum is not finite
    text = document.encode_timeline(bare_trial("w", timeline=timeline))
    assert document.decode(Timeline, text or "") == timeline


@given(decisions)
def test_any_decision_comes_back_equal(decision: Decision) -> None:
    assert document.decode(Decision, document.encode(decision)) == decision


@given(st.lists(texts, min_size=2, max_size=2))
def test_keys_are_as_apart_as_their_texts(pair: list[str]) -> None:
    keys = [document.key(text) for text in pair]
    assert (keys[0] == keys[1]) == (pair[0] == pair[1])
    for key in keys:
        assert "\x00" not in key
        assert len(key.encode()) < 1200  # what an index of PostgreSQL takes


@given(st.text(string.ascii_letters + "\ud800\\\x00", max_size=6), st.integers(190, 210))
def test_keys_of_long_texts(text: str, length: int) -> None:
    long = "a" * length
    assert len({document.key(t) for t in (long + text, long + text + "b", text)}) == 3


def test_text_of_a_megabyte_comes_back_equal() -> None:
    trial = bare_trial("w" * 2**20, reason="\x00<🐕\udcff" * 2**18)
    assert document.decode(Trial, document.encode(trial)) == trial


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, np.float64("nan")])
@pytest.mark.parametrize(
    ("fields", "path"),
    [
        (lambda x: {"usage": {"cpu": x}}, "usage.cpu"),
        (
            lambda x: {
                "measurement": Measurement(step_seconds=Estimate(value=1, low=x, high=2, n=1))
            },
            "measurement.step_seconds.low",
        ),
        (
            lambda x: {"software": Software(settings={"a": [1, {"b": x}]})},
            "software.settings.a.'1'.b",
        ),
    ],
)
def test_what_is_not_finite_is_refused_with_its_place(
    fields: Any, path: str, number: float
) -> None:
    with pytest.raises(StoreError) as raised:
        document.encode(bare_trial("w", **fields(number)))
    assert f"{path} is {number}" in raised.value.message
    assert "finite" in raised.value.message


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object(), {1: 2}, 1j])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises(StoreError, match=r"software\.settings\.x is "):
        document.encode(bare_trial("w", software=Software(settings={"x": value})))


def test_numbers_of_numpy_are_numbers() -> None:
    settings = {"float": np.float64(1.5), "small": np.float32(0.5), "int": np.int64(7)}
    read = document.decode(
        Trial, document.encode(bare_trial("w", software=Software(settings=settings)))
    )
    assert read.software.settings == {"float": 1.5, "small": 0.5, "int": 7}


def test_unknown_fields_take_no_room() -> None:
    assert "null" not in document.encode(bare_trial("w"))
    assert '"unknown":null' in document.encode(full_trial("w")), "a table's None is kept"
    assert '"low":null' in document.encode(full_decision("w"))
