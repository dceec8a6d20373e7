"""Knobs: the largest batch that fits, then neighbours, and never the whole grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.knobs import (
    OUT_OF_MEMORY,
    Tried,
    batch_knob,
    first_setting,
    neighbours,
    to_fit,
    to_improve,
    to_work,
)

VALUES = {"batch": ["8", "16", "32", "64"], "fmt": ["fp32", "bf16"], "workers": ["2", "4", "8"]}


def tuned(values: Mapping[str, list[str]], run: Callable[[dict[str, str]], Tried]) -> list[Tried]:
    """All that is tried on one machine."""
    tried: list[Tried] = []
    setting: dict[str, str] | None = first_setting(values)
    while setting is not None:
        tried.append(run(setting))
        setting = to_fit(values, tried) or to_improve(values, tried)
    return tried


def machine(limit: int) -> Callable[[dict[str, str]], Tried]:
    """A machine that fits batches up to ``limit`` and is fastest at bf16 and 4 workers."""

    def run(setting: dict[str, str]) -> Tried:
        batch = int(setting["batch"]) * (1 if setting["fmt"] == "bf16" else 2)
        if batch > limit:
            return Tried(setting, None, OUT_OF_MEMORY)
        workers = 1.2 - 0.1 * abs(math.log2(int(setting["workers"])) - 2)
        return Tried(setting, batch / (batch + 8) * workers)

    return run


@pytest.mark.parametrize("limit", [16, 32, 64, 128])
def test_the_best_setting_is_found_in_few_tries(limit: int) -> None:
    tried = tuned(VALUES, machine(limit))
    every = [dict(zip(VALUES, v, strict=True)) for v in itertools.product(*VALUES.values())]
    best = max((machine(limit)(setting).rate or 0.0) for setting in every)
    assert max(one.rate or 0.0 for one in tried) >= 0.9 * best
    assert len(tried) <= len(every) / 2


def test_the_largest_batch_comes_first_and_shrinks_until_it_fits() -> None:
    tried = tuned(
        {"batch": VALUES["batch"]}, lambda s: machine(16)({"fmt": "bf16", "workers": "4", **s})
    )
    assert [one.setting["batch"] for one in tried][:3] == ["64", "32", "16"]


def test_another_machine_begins_with_the_best_of_the_first() -> None:
    slow = Tried({"batch": "64", "fmt": "fp32", "workers": "2"}, 3.0)
    best = Tried({"batch": "16", "fmt": "bf16", "workers": "4"}, 9.0)
    assert first_setting(VALUES, [slow, best], room=8.0) == best.setting


def test_a_machine_with_more_memory_begins_with_the_batch_that_should_fit() -> None:
    full = Tried({"batch": "32", "fmt": "bf16", "workers": "4"}, None, OUT_OF_MEMORY)
    best = Tried({"batch": "16", "fmt": "bf16", "workers": "4"}, 9.0)
    for room, batch in ((0.5, "16"), (1.0, "16"), (3.0, "32"), (100.0, "64")):
        setting = first_setting(VALUES, [full, best], room)
        assert setting == {**best.setting, "batch": batch}


def test_what_ran_out_of_memory_is_not_tried_larger() -> None:
    tried = [
        Tried({"batch": "32", "fmt": "fp32"}, None, OUT_OF_MEMORY),
        Tried({"batch": "16", "fmt": "fp32"}, 10.0),
    ]
    values = {"batch": ["16", "32", "64"], "fmt": ["fp32"]}
    assert to_improve(values, tried, most=9) is None


def test_other_failures_do_not_shrink_the_batch() -> None:
    assert to_fit(VALUES, [Tried(first_setting(VALUES), None, "failed")]) is None
    assert to_fit(VALUES, []) is None
    smallest = {**first_setting(VALUES), "batch": "8"}
    assert to_fit(VALUES, [Tried(smallest, None, OUT_OF_MEMORY)]) is None


@pytest.mark.parametrize(
    ("values", "known"),
    [
        ({"batch_size": ["8", "16"]}, "batch_size"),
        ({"per_device_batch": ["8"]}, "per_device_batch"),
        ({"batch": ["small", "large"]}, None),
        ({"lr": ["1e-3"]}, None),
    ],
)
def test_which_knob_is_the_batch(values: dict[str, list[str]], known: str | None) -> None:
    assert batch_knob(values) == known


names = st.sampled_from(["batch", "fmt", "workers", "compile"])
some = st.lists(st.sampled_from(["1", "2", "4", "8", "16"]), min_size=1, max_size=5, unique=True)


@given(st.dictionaries(names, some, min_size=1), st.randoms(use_true_random=False))
def test_tuning_ends_and_repeats_nothing(values: dict[str, list[str]], random: object) -> None:
    outcomes = [OUT_OF_MEMORY, "ok", "failed"]

    def run(setting: dict[str, str]) -> Tried:
        status = random.choice(outcomes)  # type: ignore[attr-defined]
        return Tried(setting, 1.0 if status == "ok" else None, status)

    tried = tuned(values, run)
    settings = [tuple(sorted(one.setting.items())) for one in tried]
    assert len(settings) == len(set(settings))
    assert all(one.setting[knob] in values[knob] for one in tried for knob in values)


@given(st.dictionaries(names, some, min_size=1))
def test_neighbours_differ_in_one_knob(values: dict[str, list[str]]) -> None:
    here = first_setting(values)
    for setting in neighbours(values, here):
        assert sum(setting[knob] != here[knob] for knob in values) == 1


def test_where_nothing_works_other_settings_are_tried_but_not_all() -> None:
    values = {"batch": ["8", "16"], "fmt": ["bf16", "fp16", "fp32"], "jit": ["on", "off"]}
    tried = [Tried({"batch": "16", "fmt": "bf16", "jit": "on"}, None, "failed")]
    while (setting := to_work(values, tried)) is not None:
        assert setting not in [dict(one.setting) for one in tried]
        tried.append(Tried(setting, None, "failed"))
    assert {one.setting["fmt"] for one in tried} == {"bf16", "fp16", "fp32"}
    assert {one.setting["jit"] for one in tried} == {"on", "off"}
    assert len(tried) == 1 + 2 * len(values) < 12
    assert to_work(values, [*tried[:1], Tried(tried[1].setting, 3.0)]) is None
    assert to_work(values, []) is None
    assert to_work({}, [Tried({}, None, "failed")]) is None
