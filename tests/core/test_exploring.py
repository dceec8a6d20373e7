"""From attempts to the next tests: knobs and machines together, whatever was cut short."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from underdog.core.exploring import Attempt, Explorer, Planned
from underdog.core.search import Candidates, samples_per_dollar
from underdog.model import Estimate

PRICES = [1.0, 2.0, 4.0, 8.0]
SPEED = [10.0, 30.0, 50.0, 60.0]
KNOBS = {"batch": ["8", "16", "32"], "fmt": ["fp32", "bf16"]}
FITS = [8, 16, 32, 32]  # the largest batch of each machine


def explorer(values: Mapping[str, list[str]] = KNOBS, **search: Any) -> Explorer:
    names = [f"m{i}" for i in range(len(PRICES))]
    vcpus = {"vcpus": np.array([2.0, 4.0, 8.0, 16.0])}
    candidates = Candidates(names, np.array(PRICES), vcpus, {"arch": ["x86_64"] * 4})
    return Explorer(
        candidates,
        samples_per_dollar,
        values=values,
        test_seconds=120.0,
        search={"seed": 0, **search},
    )


def outcome(test: Planned) -> Attempt:
    """What a test gives: more with a larger batch and in bf16, until memory runs out."""
    batch = int(test.setting.get("batch", "8"))
    if batch > FITS[test.index]:
        return Attempt(test.index, test.setting, "out_of_memory", None)
    rate = SPEED[test.index] * math.sqrt(batch) * (2 if test.setting.get("fmt") == "bf16" else 1)
    estimate = Estimate(value=rate, low=rate * 0.99, high=rate * 1.01, n=30)
    return Attempt(test.index, test.setting, "ok", estimate)


def explored(found: Explorer, most: int = 40) -> list[Attempt]:
    attempts = []
    while len(attempts) < most:
        tests = found.next(1) or found.next(1, closing=True)
        if not tests:
            break
        attempts.append(outcome(tests[0]))
        found.record(attempts[-1])
    return attempts


def test_everything_ends_and_nothing_is_tested_twice() -> None:
    attempts = explored(explorer())
    keys = [(one.index, tuple(sorted(one.setting.items()))) for one in attempts]
    assert len(keys) == len(set(keys)) < len(PRICES) * 6  # never the whole grid
    assert {one.index for one in attempts} == set(range(len(PRICES)))


def test_a_dear_machine_gets_the_best_knobs_of_a_cheap_one_first() -> None:
    attempts = explored(explorer())
    first = {}
    for one in attempts:
        first.setdefault(one.index, one.setting)
    cheap = min(first, key=lambda index: PRICES[index])
    later = [setting for index, setting in first.items() if index != cheap]
    assert any(setting["fmt"] == "bf16" for setting in later)


def test_knobs_are_tried_on_one_cheap_machine_and_at_the_end_on_the_best() -> None:
    attempts = explored(explorer())
    times = [sum(one.index == index for one in attempts) for index in range(len(PRICES))]
    several = [index for index, count in enumerate(times) if count > 2]
    assert len(several) <= 2
    assert max(times) <= 1 + sum(len(given) - 1 for given in KNOBS.values())


def test_a_smaller_batch_comes_before_another_machine() -> None:
    found = explorer()
    found.record(Attempt(0, {"batch": "32", "fmt": "fp32"}, "out_of_memory", None))
    (test,) = found.next(1)
    assert (test.index, test.setting) == (0, {"batch": "16", "fmt": "fp32"})
    # while that one runs, others may, but not on the same machine
    (other,) = found.next(1, running=[(test.index, test.setting)])
    assert other.index != 0


def test_the_best_is_by_value_not_by_speed() -> None:
    found = explorer({})
    for index in range(4):
        found.record(outcome(Planned(index, {}, "", 0.1)))
    best = found.best()
    assert best is not None
    assert best.index == 1
    assert best.low < best.value == pytest.approx(30 * math.sqrt(8) * 3600 / 2)


def test_no_test_costs_more_than_is_left() -> None:
    found = explorer({})
    dollars = [price * 120 / 3600 for price in PRICES]
    assert {test.index for test in found.next(4, dollars_left=dollars[1] * 1.01)} <= {0, 1}
    assert found.next(4, dollars_left=dollars[0] / 2) == []
    both = found.next(4, dollars_left=dollars[0] + dollars[1])
    assert sum(test.dollars for test in both) <= dollars[0] + dollars[1] + 1e-12


def test_a_price_that_is_unknown_fits_in_no_budget() -> None:
    found = explorer({})
    found.candidates.price_per_hour[:] = np.nan
    found = Explorer(
        found.candidates, samples_per_dollar, values={}, test_seconds=120.0, search={"seed": 0}
    )
    assert found.next(1, dollars_left=1e9) == []


def test_several_at_once_are_on_different_machines() -> None:
    found = explorer({})
    tests = found.next(3)
    assert len({test.index for test in tests}) == 3
    rest = found.next(3, running=[(test.index, test.setting) for test in tests])
    assert len(rest) == 1


def test_a_search_that_was_cut_short_goes_on_as_if_it_was_not() -> None:
    whole = explored(explorer())
    for cut in (1, 3, 6):
        again = explorer()
        for one in whole[:cut]:
            again.record(one)
        rest = explored(again, len(whole) - cut)
        assert [(o.index, o.setting) for o in rest] == [(o.index, o.setting) for o in whole[cut:]]


def test_repeats_of_a_setting_are_taken_together() -> None:
    found = explorer({})
    for rate in (90.0, 110.0):
        estimate = Estimate(value=rate, low=rate - 1, high=rate + 1, n=20)
        found.record(Attempt(0, {}, "ok", estimate))
    best = found.best()
    assert best is not None
    assert best.rate.value == pytest.approx(100.0)
    assert best.rate.high - best.rate.low > 20  # the repeats differ by more than each admits


def test_a_machine_that_works_at_last_is_no_failure() -> None:
    found = explorer()
    found.record(Attempt(0, {"batch": "32", "fmt": "fp32"}, "no_capacity", None))
    assert found.search.beliefs().failed[0] in (True, False)
    found.record(outcome(Planned(0, {"batch": "8", "fmt": "fp32"}, "", 0.1)))
    best = found.best()
    assert best is not None
    assert best.index == 0


def test_a_machine_that_was_measured_without_the_knobs_is_tried_with_them() -> None:
    found = explorer()
    rate = Estimate(value=40.0, low=39.0, high=41.0, n=30)
    found.record(Attempt(0, {}, "ok", rate))
    (test,) = found.next(1)
    assert test.index == 0
    assert set(test.setting) == set(KNOBS)
    (closing,) = found.next(1, closing=True)
    assert closing.setting == test.setting


def test_what_is_believed_has_the_interval_of_measurements() -> None:
    found = explorer({})
    found.record(outcome(Planned(1, {}, "", 0.1)))
    narrow, wide = found.search.beliefs(), found.beliefs()
    middle = np.log(narrow.throughput)
    for name, side in (("throughput_low", -1), ("throughput_high", 1)):
        ninety, ninety_five = (np.log(getattr(held, name)) - middle for held in (narrow, wide))
        np.testing.assert_allclose(ninety_five, ninety * 1.96 / 1.645, rtol=1e-9)
        assert (np.sign(ninety_five) == side).all()
    np.testing.assert_allclose(wide.value_low, wide.throughput_low * 3600 / np.array(PRICES))
    np.testing.assert_allclose(wide.value_high, wide.throughput_high * 3600 / np.array(PRICES))


def test_settings_that_were_not_tried_are_counted() -> None:
    found = explorer()
    assert (found.settings, found.settings_left(0)) == (6, 6)
    found.record(outcome(Planned(0, {"batch": "8", "fmt": "fp32"}, "", 0.1)))
    found.record(outcome(Planned(0, {"batch": "8", "fmt": "fp32"}, "", 0.1)))
    found.record(Attempt(0, {"batch": "999", "fmt": "fp32"}, "failed", None))  # of another study
    assert found.settings_left(0) == 5
    assert found.settings_left(1) == 6
    many = explorer({f"k{i}": [str(v) for v in range(9)] for i in range(30)})
    assert many.settings_left(0) == 9**30
    assert (explorer({}).settings, explorer({}).settings_left(0)) == (1, 1)


def test_where_nothing_works_anywhere_other_knobs_are_the_last_resort() -> None:
    values = {"fmt": ["bf16", "fp32"]}
    found, tried = explorer(values), []
    while tests := found.next(1, closing=False):
        tried.append((tests[0].index, tests[0].setting["fmt"]))
        found.record(Attempt(tests[0].index, tests[0].setting, "failed", None))
    assert sorted(tried[:4]) == [(i, "bf16") for i in range(4)]
    assert tried[4:] == [(i, "fp32") for i in range(4)]  # the cheapest machine first


def test_the_only_candidate_needs_no_other_reason() -> None:
    one = Candidates(["m"], np.array([1.0]), {}, {})
    alone = Explorer(one, samples_per_dollar, values=KNOBS, test_seconds=60.0, search={"seed": 0})
    assert alone.next(1)[0].reason == "The only candidate: the largest batch first."
