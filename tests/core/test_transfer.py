"""Predictions from other workloads and machines: exact where they can be, honest elsewhere."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from underdog.core.transfer import LEAST_GROUPS, Machines, extrapolate, transfer
from underdog.core.transfer_features import Runs, told
from underdog.errors import UsageError

Floats = NDArray[np.float64]
BATCHES = np.array([8.0, 32.0, 128.0])
SPEEDS = np.array([1.0, 1.7, 2.6, 8.0])
LAUNCHES = np.array([1.0, 0.8, 1.5, 0.7])


def workloads(seed: int, count: int, odd: float = 0.1) -> Runs:
    """``count`` workloads at three batch sizes on four machines.

    A step is launches and work, and each workload is faster or slower on each machine than these
    say by a normal log of deviation ``odd``, and each run by a tenth of it.
    """
    draw = np.random.default_rng(seed)
    launch, work = draw.lognormal(-5, 1, count), draw.lognormal(-7, 1, count)
    series = np.repeat(np.arange(count), len(BATCHES))
    batch = np.tile(BATCHES, count)
    seconds = launch[series, None] * LAUNCHES + (work[series] * batch)[:, None] / SPEEDS
    own = draw.normal(0, odd, (count, len(SPEEDS)))[series]
    own += draw.normal(0, odd / 10, seconds.shape)
    rates = batch[:, None] / (seconds * np.exp(own))
    return Runs.of(rates, series, batch=batch)


def parted(runs: Runs, sources: list[int], out: int = 0) -> tuple[Runs, Runs]:
    """The rows without a group, and those of it as far as the sources tell."""
    mine = runs.groups == out
    shown = np.isin(np.arange(runs.rates.shape[1]), sources)
    targets = runs.take(mine)
    return runs.take(~mine), replace(targets, rates=np.where(shown, targets.rates, np.nan))


def proportional(count: int) -> Runs:
    draw = np.random.default_rng(count)
    rates = draw.lognormal(3, 1, count)[:, None] * np.array([1.0, 2.5])
    return Runs.of(rates, np.arange(count))


def test_a_constant_ratio_is_found() -> None:
    references, targets = parted(proportional(9), [0])
    made = transfer(references, targets, 1)
    assert made.value == pytest.approx(2.5 * targets.rates[:, 0], rel=1e-6)
    assert made.low == pytest.approx(made.value, rel=1e-3)
    assert made.references == 8


def test_launches_and_work_are_told_apart() -> None:
    runs = workloads(seed=1, count=30, odd=1e-4)
    references, targets = parted(runs, [0])
    made = transfer(references, targets, 3)
    true = runs.rates[runs.groups == 0, 3]
    ratios = runs.rates[:, 3] / runs.rates[:, 0]
    # a constant ratio would be far off
    assert ratios.max() / ratios.min() > 5
    assert made.value == pytest.approx(true, rel=0.1)


def test_the_part_of_a_step_that_is_fixed() -> None:
    batch = np.tile([4.0, 16.0, 64.0], 2)
    seconds = np.where(np.arange(6) < 3, 0.3, 0.1) + 0.02 * batch
    runs = Runs.of(batch[:, None] / seconds[:, None], np.repeat([0, 1], 3), batch=batch)
    of_row, of_series = told(runs, 0)
    assert of_row[:, 0] == pytest.approx(np.log(seconds))
    assert of_row[:, 1] == pytest.approx(np.repeat([0.3, 0.1], 3) / seconds)
    assert of_series[:, 1] == pytest.approx(np.log(np.repeat([0.3, 0.1], 3)))


@settings(deadline=None, max_examples=10)
@given(st.randoms(use_true_random=False))
def test_the_order_of_rows_and_machines_means_nothing(random: object) -> None:
    runs = workloads(seed=2, count=8)
    references, targets = parted(runs, [0, 2])
    rows, machines = list(range(len(references))), list(range(4))
    for part in (rows, machines):
        random.shuffle(part)  # type: ignore[attr-defined]
    shuffled = references.take(np.array(rows))
    shuffled = replace(shuffled, rates=shuffled.rates[:, machines])
    moved = replace(targets, rates=targets.rates[:, machines])
    one, other = transfer(references, targets, 3), transfer(shuffled, moved, machines.index(3))
    for end in ("value", "low", "high"):
        assert getattr(other, end) == pytest.approx(getattr(one, end), rel=1e-6)


@settings(deadline=None, max_examples=10)
@given(st.lists(st.floats(1e-3, 1e3), min_size=4, max_size=4))
def test_a_unit_of_its_own_for_each_machine_only_scales(units: list[float]) -> None:
    references, targets = parted(workloads(seed=3, count=8), [0, 2])
    scaled = [replace(part, rates=part.rates * np.array(units)) for part in (references, targets)]
    one, other = transfer(references, targets, 3), transfer(scaled[0], scaled[1], 3)
    for end in ("value", "low", "high"):
        assert getattr(other, end) == pytest.approx(units[3] * getattr(one, end), rel=1e-5)


def test_what_is_to_be_predicted_is_not_looked_at() -> None:
    runs = workloads(seed=4, count=8)
    references, targets = parted(runs, [0])
    known = replace(targets, rates=np.where(np.arange(4) == 3, 1e6, targets.rates))
    assert (transfer(references, known, 3).value == transfer(references, targets, 3).value).all()
    # nor are rows of the same group among the references
    assert (transfer(runs, targets, 3).value == transfer(references, targets, 3).value).all()


@pytest.mark.parametrize("sources", [[0], [0, 1]])
def test_intervals_hold_what_they_say(sources: list[int]) -> None:
    inside = []
    for seed in range(40):
        runs = workloads(seed=100 + seed, count=12)
        references, targets = parted(runs, sources)
        made, true = transfer(references, targets, 3), runs.rates[runs.groups == 0, 3]
        inside += list((made.low <= true) & (true <= made.high))
    assert 0.8 < np.mean(inside) < 0.98


def test_more_measured_machines_do_not_widen() -> None:
    widths = []
    for seed in range(12):
        runs = workloads(seed=200 + seed, count=12)
        made = [transfer(*parted(runs, sources), 3) for sources in ([0], [0, 1], [0, 1, 2])]
        widths.append([float(np.log(m.high / m.low).mean()) for m in made])
    one, two, three = np.mean(widths, axis=0)
    assert three <= two <= one


def test_an_odd_group_does_not_bend_the_rest() -> None:
    references, targets = parted(proportional(20), [0])
    rates = references.rates.copy()
    rates[7, 1] *= 5
    made = transfer(replace(references, rates=rates), targets, 1)
    assert made.value == pytest.approx(2.5 * targets.rates[:, 0], rel=0.15)


def test_too_few_groups_tell_nothing() -> None:
    references, targets = parted(proportional(LEAST_GROUPS), [0])
    made = transfer(references, targets, 1)
    assert np.isnan([made.value, made.low, made.high]).all()
    assert made.references == 0
    unmeasured = replace(targets, rates=np.full_like(targets.rates, np.nan))
    assert np.isnan(transfer(proportional(9), unmeasured, 1).value).all()


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.inf])
def test_what_is_no_positive_number_is_rejected(wrong: float) -> None:
    rates = np.ones((4, 2))
    rates[2, 1] = wrong
    with pytest.raises(UsageError, match=f"'rates' holds {wrong}") as caught:
        Runs.of(rates, np.arange(4), batch=np.array([1.0, 2.0, 3.0, wrong]))
    assert "'batch'" in str(caught.value)


def test_shapes_that_do_not_fit_are_rejected() -> None:
    runs = proportional(5)
    with pytest.raises(UsageError, match="no column 2 in 2 machines"):
        transfer(runs, runs, 2)
    with pytest.raises(UsageError, match="'batch' has 4 rows, not 5"):
        Runs.of(runs.rates, runs.groups, batch=np.ones(4))


def chips(count: int, seed: int = 0) -> tuple[Machines, Floats]:
    """Chips in machines of one, two and four; the rate follows the bandwidth, hardly the count."""
    draw = np.random.default_rng(seed)
    bandwidth, peak = draw.normal(6, 1, count), draw.normal(3, 1, count)
    chip, number = np.repeat(np.arange(count), 3), np.tile(np.log([1.0, 2.0, 4.0]), count)
    rates = np.exp(0.9 * bandwidth[chip] - 0.1 * number + draw.normal(0, 0.05, count)[chip])
    features = np.column_stack([bandwidth[chip], peak[chip], number])
    shape = np.column_stack([bandwidth[chip], peak[chip]])
    return Machines(features=features, shape=shape, groups=chip, units=chip), rates


def test_a_new_chip_is_predicted_from_its_facts() -> None:
    inside, errors = [], []
    for seed in range(20):
        machines, rates = chips(12, seed)
        mine = machines.groups == 0
        made = extrapolate(machines.take(~mine), rates[~mine], machines.take(mine))
        errors += list(np.abs(np.log(made.value / rates[mine])))
        inside += list((made.low <= rates[mine]) & (rates[mine] <= made.high))
    assert np.median(errors) < 0.12
    assert 0.8 < np.mean(inside) <= 1


def test_a_known_chip_in_another_machine_is_predicted_better() -> None:
    machines, rates = chips(12)
    rates *= np.exp(np.random.default_rng(9).normal(0, 0.5, 12))[machines.groups]
    last = np.arange(len(rates)) == 2
    whole = machines.groups == 0
    by_machine = replace(machines, units=np.arange(len(rates)))
    near = extrapolate(by_machine.take(~last), rates[~last], by_machine.take(last))
    far = extrapolate(machines.take(~whole), rates[~whole], machines.take(last))
    assert abs(np.log(near.value[0] / rates[2])) < abs(np.log(far.value[0] / rates[2]))
    assert near.high[0] / near.low[0] < far.high[0] / far.low[0]


def test_an_unknown_fact_is_no_number() -> None:
    machines, rates = chips(12)
    features = machines.features.copy()
    features[::5, 1] = np.nan
    machines = replace(machines, features=features)
    mine = machines.groups == 0
    made = extrapolate(machines.take(~mine), rates[~mine], machines.take(mine))
    assert np.isfinite(made.value).all()
    with pytest.raises(UsageError, match="'rates' holds NaN"):
        extrapolate(machines, np.where(mine, np.nan, rates), machines)
    few = machines.groups < LEAST_GROUPS - 1
    assert np.isnan(extrapolate(machines.take(few), rates[few], machines).value).all()
