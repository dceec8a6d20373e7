"""Machines by the hour against prices per unit: costs, and where they meet."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from underdog.core import services
from underdog.core.services import HOURS_PER_MONTH, Api, Rented, Tokens

PRICES = st.floats(0.01, 100)
RATES = st.floats(0.1, 1e5)
SHARES = st.floats(0.01, 1)
UNITS = st.floats(1e-9, 1e-2)
H = HOURS_PER_MONTH


def rented(price: float, rate: float, share: float = 1.0, idle: float = 0.0) -> Rented:
    return Rented(price_per_hour=price, samples_per_second=rate, utilisation=share, idle_hours=idle)


def test_a_month_by_hand() -> None:
    machine = rented(1.0, 1.0, 0.5)  # 1.314 million samples in a month at half its time
    assert machine.capacity(H) == 1_314_000
    assert services.machines(machine, 1_314_000, H) == 1
    assert services.machines(machine, 1_314_001, H) == 2
    assert services.kept(machine, 1.0, H) == 730
    assert services.kept(machine, 2_000_000, H) == 1460
    assert services.given_back(machine, 3600) == 1.0
    assert services.given_back(rented(2.0, 1.0, idle=0.25), 3600) == 2.5


def test_the_break_even_by_hand() -> None:
    # an API at $1,000 per million samples against $730 a month
    meeting = services.meets_kept(rented(1.0, 1.0), 1e-3, H)
    assert meeting is not None
    assert meeting.first == pytest.approx(730_000)
    assert services.meets_kept(rented(1.0, 0.1), 1e-3, H) is None  # 262,800 a month is its most
    given_back = services.meets_given_back(rented(3.6, 1.0, idle=1.0), 2e-3)
    assert given_back is not None
    assert given_back.first == pytest.approx(3600)


@given(PRICES, RATES, SHARES, UNITS)
@settings(deadline=None)
def test_at_the_break_even_both_cost_the_same(
    price: float, rate: float, share: float, unit: float
) -> None:
    machine = rented(price, rate, share)
    meeting = services.meets_kept(machine, unit, H)
    if meeting is None:
        # one more machine never earns its price
        assert price * H > unit * machine.capacity(H) * (1 - 1e-9)
        return
    below = min(meeting.first, machine.capacity(H))
    assert services.kept(machine, below, H) == pytest.approx(unit * meeting.first)


@given(PRICES, RATES, SHARES, UNITS, st.floats(0, 1))
@settings(deadline=None)
def test_below_it_the_unit_is_cheaper(
    price: float, rate: float, share: float, unit: float, part: float
) -> None:
    machine = rented(price, rate, share)
    meeting = services.meets_kept(machine, unit, H)
    assume(meeting is not None and meeting.first > 0)
    assert meeting is not None
    volume = part * meeting.first
    assert unit * volume <= services.kept(machine, volume, H) * (1 + 1e-9)


@given(PRICES, RATES, SHARES, UNITS, st.floats(1, 50))
@settings(deadline=None)
def test_from_always_on_the_machines_are_cheaper(
    price: float, rate: float, share: float, unit: float, times: float
) -> None:
    machine = rented(price, rate, share)
    meeting = services.meets_kept(machine, unit, H)
    assume(meeting is not None and meeting.always is not None)
    assert meeting is not None
    assert meeting.always is not None
    assert meeting.always >= meeting.first
    volume = meeting.always * times * (1 + 1e-9)
    assume(volume / machine.capacity(H) < 1e9)  # beyond, the steps drown in rounding
    assert services.kept(machine, volume, H) <= unit * volume * (1 + 1e-6)


@given(PRICES, RATES, UNITS, st.floats(1.01, 10), SHARES)
@settings(deadline=None)
def test_it_moves_the_right_way(
    price: float, rate: float, unit: float, more: float, share: float
) -> None:
    def first(machine: Rented, cost: float) -> float:
        meeting = services.meets_kept(machine, cost, H)
        return math.inf if meeting is None else meeting.first

    base = first(rented(price, rate, share), unit)
    assert first(rented(price * more, rate, share), unit) >= base  # a dearer machine: later
    assert first(rented(price, rate, share), unit * more) <= base  # a dearer unit: sooner
    assert first(rented(price, rate * more, share), unit) <= base  # faster: never later
    assert first(rented(price, rate, share / more), unit) >= base  # idle more: never sooner


@given(PRICES, RATES, UNITS, st.floats(0, 100))
@settings(deadline=None)
def test_a_machine_that_is_given_back(price: float, rate: float, unit: float, idle: float) -> None:
    machine = rented(price, rate, idle=idle)
    meeting = services.meets_given_back(machine, unit)
    if meeting is None:
        assert unit <= machine.working
        return
    gain = (unit - machine.working) / unit
    assume(gain > 1e-6)
    assert services.given_back(machine, meeting.first) == pytest.approx(unit * meeting.first)
    assert (meeting.first == 0) == (idle == 0)


@given(RATES, SHARES, st.floats(1, 1e9), st.floats(1, 1e9))
@settings(deadline=None)
def test_more_work_never_costs_less(rate: float, share: float, one: float, two: float) -> None:
    low, high = sorted((one, two))
    machine = rented(1.0, rate, share, 0.5)
    assert services.kept(machine, low, H) <= services.kept(machine, high, H)
    assert services.given_back(machine, low) <= services.given_back(machine, high)
    # kept, it is never cheaper than given back without idle hours
    bare = rented(1.0, rate, share)
    assert services.kept(bare, high, H) >= services.given_back(bare, high) * (1 - 1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"price_per_hour": 0.0},
        {"price_per_hour": math.nan},
        {"samples_per_second": math.inf},
        {"samples_per_second": -1.0},
        {"utilisation": 0.0},
        {"utilisation": 1.1},
        {"utilisation": math.nan},
        {"idle_hours": -1.0},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    right = {"price_per_hour": 1.0, "samples_per_second": 1.0}
    with pytest.raises(ValueError, match="not"):
        Rented(**{**right, **wrong})


def test_prices_of_apis() -> None:
    all_alike = Api(name="a", per_million_tokens=2.0)
    apart = Api(name="b", per_million_input_tokens=1.0, per_million_output_tokens=4.0)
    request = Api(name="c", per_request=0.01)
    tokens = Tokens(600, 200)
    assert services.per_sample(all_alike, tokens) == pytest.approx(1.6e-3)
    assert services.per_sample(apart, tokens) == pytest.approx(1.4e-3)
    assert services.per_sample(request, None) == 0.01
    assert services.per_sample(all_alike, None) is None  # unknown, never 0
    assert services.per_sample(Api(name="d", per_million_output_tokens=1.0), Tokens(5)) is None
