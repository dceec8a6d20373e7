"""Rows of a file become trials; every fault is named by row and field."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.problems import Problems, raise_if_any
from underdog.core.trials_file import build_trial, parse_trials, suspects, trial_id
from underdog.core.trials_offers import Known, bare, parse_offers
from underdog.errors import TrialsError
from underdog.model import Trial

OFFER = {
    "offer": "o",
    "provider": "aws",
    "region": "us-east-1",
    "instance_type": "g5.xlarge",
    "price_per_hour": "1.006",
    "vcpus": "4",
    "memory_gib": "16.0",
    "arch": "x86_64",
    "accelerator": "A10G",
    "accelerator_count": "1",
    "accelerator_memory_gib_total": "22.352",
}


def rows(*fields: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(fields, start=2))


def offers(*fields: dict[str, Any]) -> dict[str, Known]:
    problems = Problems("offers.csv")
    found = parse_offers(rows(*fields), problems, "file")
    raise_if_any(problems)
    return found


def trials(*fields: dict[str, Any], known: dict[str, Known] | None = None) -> list[Trial]:
    problems = Problems("trials.csv")
    found = parse_trials(rows(*fields), problems, known)
    raise_if_any(problems)
    doubts = suspects(found, known or {})
    return [
        build_trial(key, repeats, (known or {}).get(key.offer), doubts.get(key.offer), "file")
        for key, repeats in found.items()
    ]


def row(throughput: Any = "10", **more: Any) -> dict[str, Any]:
    return {"workload": "w", "offer": "o", "throughput": throughput} | more


def faults(*fields: dict[str, Any], known: dict[str, Known] | None = None) -> str:
    with pytest.raises(TrialsError) as raised:
        trials(*fields, known=known)
    return raised.value.message


def codes(trial: Trial) -> list[str]:
    return [caveat.code for caveat in trial.caveats]


def value(trial: Trial) -> float:
    assert trial.measurement is not None
    assert trial.measurement.samples_per_second is not None
    return trial.measurement.samples_per_second.value


def test_one_row() -> None:
    (trial,) = trials(row("12.5"), known=offers(OFFER))
    assert (trial.status, trial.workload, value(trial)) == ("ok", "w", 12.5)
    assert trial.offer is not None
    assert trial.offer.id == "aws/us-east-1/g5.xlarge/on-demand"
    assert trial.offer.accelerator_memory_gib == 22.352
    assert trial.price == trial.offer.price
    assert (trial.price.per_hour, trial.price.source) == (1.006, "file")
    assert trial.machine.instance_type == "g5.xlarge"
    assert [a.name for a in trial.machine.accelerators] == ["A10G"]
    assert trial.source == "file"


def test_rows_of_one_workload_and_offer_are_repeats() -> None:
    made = trials(row("10"), row("11", offer="p"), row("10.2"), row("9.9"), row("5", workload="v"))
    assert [(t.workload, t.offer.instance_type) for t in made if t.offer] == [
        ("w", "o"),
        ("w", "p"),
        ("v", "o"),
    ]
    assert value(made[0]) == pytest.approx(10.03, abs=0.02)


def test_a_slow_first_repeat_is_warm_up() -> None:
    (trial,) = trials(*[row(x) for x in ("75", "100", "101", "99", "100")])
    assert value(trial) == pytest.approx(100, rel=0.005)
    assert "warmup_repeat" in codes(trial)


def test_repeats_that_vary_by_37_percent_say_so() -> None:
    spread = ["40", "60", "100", "110", "130"]
    (trial,) = trials(*[row(x) for x in spread])
    assert "high_variance" in codes(trial)
    assert trial.measurement is not None
    estimate = trial.measurement.samples_per_second
    assert estimate is not None
    assert estimate.low < 60
    assert estimate.high > 115


def test_an_empty_throughput_is_a_failed_trial() -> None:
    (trial,) = trials(row(""))
    assert (trial.status, trial.measurement) == ("failed", None)
    assert trial.reason
    (trial,) = trials(row(None, status="out_of_memory", reason="it asked for 90 GiB"))
    assert (trial.status, trial.reason) == ("out_of_memory", "it asked for 90 GiB")


def test_some_failed_repeats_are_a_doubt() -> None:
    (trial,) = trials(row("10"), row(""), row("11"))
    assert trial.status == "ok"
    assert "repeats_failed" in codes(trial)


def test_knobs_set_trials_apart() -> None:
    made = trials(row("1", **{"knob.batch": "8"}), row("2", **{"knob.batch": "16"}))
    assert [t.knobs for t in made] == [{"batch": "8"}, {"batch": "16"}]
    made = trials(row(1.0, knobs={"batch": 8}), row(2.0, knobs={"batch": 8}))
    assert [t.knobs for t in made] == [{"batch": "8"}]


def test_an_interval_of_the_file_is_kept() -> None:
    (trial,) = trials(row("10", low="9", high="12", n="40"))
    assert trial.measurement is not None
    estimate = trial.measurement.samples_per_second
    assert estimate is not None
    assert (estimate.low, estimate.high, estimate.n) == (9, 12, 40)
    assert "row 2, low: 10 is not between 11 and 12" in faults(row("10", low="11", high="12"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("0", "0 is not a value that can be"),
        ("-3", "'-3' is not a positive finite number"),
        ("nan", "'nan' is not a positive finite number"),
        ("inf", "'inf' is not a positive finite number"),
        ("1e999", "'1e999' is not a positive finite number"),
        ("1e308", "'1e308' is beyond anything that can be"),
        ("1e-320", "'1e-320' is beyond anything that can be"),
        ("fast", "'fast' is not a number"),
        ("1_000", "'1_000' is not a number"),
        ("1,000", "'1,000' is not a number"),
        (True, "'True' is not a number"),
        ([1], "'[1]' is not a number"),
    ],
)
@pytest.mark.parametrize("field", ["throughput", "price_per_hour", "memory_gib", "vcpus"])
def test_numbers_that_cannot_be(given: Any, told: str, field: str) -> None:
    def read() -> Any:
        if field == "throughput":
            return trials(row(given))
        return offers(OFFER | {field: given})

    with pytest.raises(TrialsError) as raised:
        read()
    assert f"row 2, {field}: {told}" in raised.value.message


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"low": 9, "high": 11, "n": "2.5"}, "n: 2.5 is no number of observations"),
        ({"low": 9, "high": 11, "n": "1e30"}, "n: 1e+30 is no number of observations"),
        ({"low": 9}, "low: an interval has both ends"),
        ({"high": 11}, "low: an interval has both ends"),
        ({"started_at": "yesterday"}, "started_at: 'yesterday' is not ISO 8601"),
    ],
)
def test_what_would_be_passed_over_in_silence_is_told(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(TrialsError) as raised:
        trials(row(10) | fields)
    assert told in raised.value.message


@given(st.text(max_size=12) | st.floats() | st.integers() | st.none() | st.booleans())
def test_no_value_becomes_another_number(given: Any) -> None:
    problems = Problems("f")
    number = problems.number(1, "x", given)
    if number is None:
        assert (given in (None, "")) != bool(problems.count)
    else:
        assert number > 0
        assert float(given) == number


def test_all_faults_are_told_at_once_and_counted() -> None:
    message = faults(
        row("-1"), row("1", offer=""), row("1", status="okay"), *[row("x")] * 20, known=None
    )
    assert "row 2, throughput" in message
    assert "row 3, offer: it is empty" in message
    assert "row 4, status: 'okay': Did you mean 'ok'?" in message
    assert message.count("row ") == 10
    assert message.endswith("and 13 more")


def test_an_offer_that_is_not_in_the_file_of_offers() -> None:
    assert "row 2, offer: 'q' is not in the file" in faults(row(offer="q"), known=offers(OFFER))


def test_faults_of_offers() -> None:
    with pytest.raises(TrialsError) as raised:
        offers(
            OFFER,
            OFFER,
            OFFER | {"offer": ""},
            OFFER | {"offer": "p", "accelerator": ""},
            OFFER | {"offer": "q", "purchase": "spott"},
            OFFER | {"offer": "r", "nodes": "1.5"},
            OFFER | {"offer": "s", "currency": "EUR"},
        )
    told = raised.value.message
    assert "row 3, offer: 'o' is there twice" in told
    assert "row 4, offer: it is empty" in told
    assert "row 5, accelerator: it is empty, with a count of 1" in told
    assert "row 6, purchase: 'spott': Did you mean 'spot'?" in told
    assert "row 7, nodes: 1.5 is not a whole number" in told
    assert "row 8, currency: 'EUR'" in told


def test_an_unknown_price_stays_unknown() -> None:
    known = offers(OFFER | {"price_per_hour": ""})
    assert known["o"].offer.price.per_hour is None
    assert known["o"].offer.price.unknown_reason
    (trial,) = trials(row())
    assert trial.price.per_hour is None


def test_a_cluster_keeps_its_nodes_and_its_whole_price() -> None:
    known = offers(OFFER | {"nodes": "10", "price_per_hour": "10.06"})
    assert known["o"].offer.id == "aws/us-east-1/10xg5.xlarge/on-demand"
    assert known["o"].offer.price.per_hour == 10.06


def test_a_part_of_an_accelerator_is_told_by_its_memory() -> None:
    part = OFFER | {"accelerator_count": "0", "accelerator_memory_gib_total": "2.794"}
    known = offers(OFFER, part | {"offer": "part", "instance_type": "g5f.large"})
    assert known["part"].offer.accelerator_count == pytest.approx(1 / 8)
    assert known["part"].offer.accelerator_memory_gib == 2.794
    assert known["part"].caveats == ()


@pytest.mark.parametrize("count", ["0", ""])
def test_an_accelerator_without_a_count_is_a_doubt(count: str) -> None:
    (trial,) = trials(row(), known=offers(OFFER | {"accelerator_count": count}))
    assert trial.offer is not None
    assert trial.offer.accelerator == "A10G"
    assert "accelerator_count_unknown" in codes(trial)


def test_offers_of_one_shape_are_told_apart() -> None:
    known = offers(OFFER, OFFER | {"offer": "p"}, OFFER | {"offer": "q", "zone": "us-east-1a"})
    made = trials(row(), row(offer="p"), row(offer="q"), known=known)
    assert [t.knobs for t in made] == [{"offer": "o"}, {"offer": "p"}, {}]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("aws/us-east-1/g5.xlarge/spot", ("aws", "us-east-1", "g5.xlarge", "spot", 1)),
        ("gcp/r/4xa2-highgpu-1g/on-demand", ("gcp", "r", "a2-highgpu-1g", "on-demand", 4)),
        ("my machine", ("unknown", "unknown", "my machine", "on-demand", 1)),
        ("aws/g5.xlarge", ("unknown", "unknown", "aws/g5.xlarge", "on-demand", 1)),
    ],
)
def test_our_own_ids_are_taken_apart(name: str, expected: tuple[Any, ...]) -> None:
    offer = bare(name, "file").offer
    assert (
        offer.provider,
        offer.region,
        offer.instance_type,
        offer.purchase,
        offer.nodes,
    ) == expected
    if expected[0] != "unknown":
        assert offer.id == name


def test_ids_come_from_the_content() -> None:
    variants = [
        [row("1")],
        [row("1"), row("1")],
        [row("2")],
        [row("1", workload="v")],
        [row("1", offer="p")],
        [row("1", **{"knob.a": "1"})],
        [row("")],
        [row("", status="hung")],
        [row("1", started_at="2026-01-01")],
    ]
    ids = []
    for fields in variants:
        found = parse_trials(rows(*fields), Problems("f"))
        again = parse_trials(rows(*fields), Problems("another name"))
        ids.append([trial_id(key, repeats) for key, repeats in found.items()])
        assert ids[-1] == [trial_id(key, repeats) for key, repeats in again.items()]
    flat = list(itertools.chain(*ids))
    assert len(set(flat)) == len(variants)


def test_one_workload_only() -> None:
    both = rows(row("1"), row("2", workload="v"), {"offer": "o", "throughput": "3"})
    found = parse_trials(both, Problems("f"), workload="v")
    assert [(key.workload, repeats.throughputs) for key, repeats in found.items()] == [
        ("v", [2.0, 3.0])
    ]
