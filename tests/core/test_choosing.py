"""Choosing as a whole: the known cases."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from offers_and_trials import UNUSED, c1_offers, c1_trials, chosen, offer, plain, table, trial

from underdog.core.choosing import Choice, Request, choose
from underdog.core.columns import BY_NAME
from underdog.core.evidence import gather
from underdog.core.expression import parse
from underdog.core.utility import parse_utility
from underdog.errors import ExpressionError, UsageError


def types(choice: Choice) -> list[str]:
    return [entry["offer"]["instance_type"] for entry in choice.ranking()]


def ledger(choice: Choice) -> dict[str, dict[str, str]]:
    return {line["offer"]: line for line in choice.ledger()}


# C1: seconds per step and dollars per step of four accelerators


def test_c1_the_a10g_wins_on_cost_and_on_time() -> None:
    by_cost, by_time = (
        chosen(c1_offers(), c1_trials(), by) for by in ("samples_per_dollar", "samples_per_second")
    )
    assert types(by_cost) == ["g5.xlarge", "p2.xlarge", "g4dn.xlarge", "p3.2xlarge"]
    assert types(by_time)[:2] == ["g5.xlarge", "p3.2xlarge"]
    first, second = by_cost.ranking()[:2]
    assert second["utility"]["value"] > 0.88 * first["utility"]["value"]
    ratio = first["samples_per_second"]["value"] / second["samples_per_second"]["value"]
    assert ratio == pytest.approx(6.2, abs=0.1)
    assert [entry["pareto"] for entry in by_cost.ranking()] == [True, False, False, False]


def test_c1_a_deadline_rules_out_the_k80_and_the_t4() -> None:
    samples = 1.75 * 3600 / 0.1859  # 1.75 h on the A10G
    choice = chosen(c1_offers(), c1_trials(), samples=samples, deadline_hours=5.0)
    assert types(choice) == ["g5.xlarge", "p3.2xlarge"]
    for kind, hours in (("p2.xlarge", "10.87"), ("g4dn.xlarge", "6.052")):
        line = ledger(choice)[f"aws/us-east-1/{kind}/on-demand"]
        assert line["verdict"] == "excluded"
        assert line["reason"] == f"deadline: takes {hours} h, the deadline is 5 h"


def test_c1_the_cheapest_within_a_tenth_then_the_fastest() -> None:
    rows, trials = c1_offers(), c1_trials()
    rows.append(offer("slow.cheap", rows[2]["price_per_hour"] / 2.1))
    trials.append(trial("slow.cheap", 1 / 0.1859 / 2))
    rule = "samples_per_dollar, samples_per_second"
    assert types(chosen(rows, trials, rule))[0] == "slow.cheap"
    assert types(chosen(rows, trials, rule, tolerance=0.1))[0] == "g5.xlarge"


# C2: more accelerators or processors may be slower


def test_c2_the_interval_holds_both() -> None:
    rows = [offer("one"), offer("four", 4.0, accelerator_count=4)]
    choice = chosen(rows, [trial("one", 21125)], "samples_per_second")
    (four,) = [e for e in choice.ranking() if e["offer"]["instance_type"] == "four"]
    assert four["source"] == "predicted"
    assert four["samples_per_second"]["low"] < 10964
    assert four["samples_per_second"]["high"] > 4 * 21125


# C3: the accelerator was not used


def test_c3_a_trial_that_left_the_accelerator_alone_is_flagged() -> None:
    rows = [offer("g5.xlarge"), offer("h100", 5.0, accelerator="H100", fp32_tflops=67)]
    choice = chosen(rows, [trial("g5.xlarge", 350), trial("h100", 58, caveats=[UNUSED])])
    line = ledger(choice)["aws/us-east-1/h100/on-demand"]
    assert line["verdict"] == "untested"
    assert "the accelerator was not used" in line["reason"]
    (h100,) = [e for e in choice.ranking() if e["offer"]["instance_type"] == "h100"]
    assert h100["source"] == "predicted"
    assert h100["samples_per_second"]["value"] > 58


# C5: repeats that vary by 37 %


def test_c5_a_noisy_leader_is_not_distinguishable() -> None:
    noisy = [trial("noisy", rate, id=f"r{rate}") for rate in (50.0, 90.0, 110.0, 150.0)]
    choice = chosen([offer("noisy"), offer("calm")], [*noisy, trial("calm", 95)])
    first, second = choice.ranking()
    assert first["tied_with"] == [second["offer"]["id"]]
    assert ledger(choice)[second["offer"]["id"]]["verdict"] == "tied"
    assert "not distinguishable" in ledger(choice)[second["offer"]["id"]]["reason"]


# constraints


def test_memory_rules_out_what_is_clearly_too_small() -> None:
    rows = [
        offer("g5.xlarge"),
        offer("t4", accelerator="T4", accelerator_usable_gib=14.6),
        offer("unknown", accelerator_usable_gib=None, accelerator_memory_gib=None),
        plain("m5.large", memory_gib=8),
    ]
    peak = {"accelerator": 15.5, "host": 3.0}
    found = ledger(chosen(rows, [trial(peak_memory_gib=peak)]))
    reason = found["aws/us-east-1/t4/on-demand"]["reason"]
    assert reason == (
        "memory: needs 15.5 GiB on one accelerator (measured), T4 has 14.6 GiB usable"
    )
    verdicts = {name.split("/")[2]: line["verdict"] for name, line in found.items()}
    assert verdicts == {
        "g5.xlarge": "best",
        "t4": "excluded",
        "unknown": "untested",
        "m5.large": "untested",
    }


def test_no_more_memory_than_where_it_ran_out() -> None:
    rows = [
        offer("big", accelerator_usable_gib=40),
        offer("small", accelerator_usable_gib=15),
        offer("smaller", accelerator_usable_gib=11),
        offer("several", accelerator_usable_gib=15, accelerator_count=4),
    ]
    failed = trial("small", None, status="out_of_memory")
    found = ledger(chosen(rows, [trial("big"), failed]))
    verdicts = {name.split("/")[2]: line["verdict"] for name, line in found.items()}
    assert verdicts["small"] == verdicts["smaller"] == "excluded"
    assert verdicts["several"] == "untested"
    assert "ran out of memory when tried" in found["aws/us-east-1/small/on-demand"]["reason"]


def test_number_formats_and_software_stacks() -> None:
    from underdog.model import Profile

    rows = [
        offer("g5.xlarge"),
        offer("t4", accelerator="T4", compute_capability=7.5),
        offer("mi300x", accelerator="MI300X", software="rocm", compute_capability=None),
        offer("trn2", accelerator="Trainium2", software="neuron", compute_capability=None),
        offer("new", accelerator="X1", software=None, compute_capability=None),
    ]
    measured = [trial(profile=Profile(number_format="bfloat16"))]
    found = ledger(chosen(rows, measured))
    out = {n.split("/")[2]: x["cause"] for n, x in found.items() if x["verdict"] == "excluded"}
    assert out == {"t4": "number format", "trn2": "software"}
    told = ledger(chosen(rows, measured, stacks=("cuda", "neuron")))
    out = {n.split("/")[2]: x["cause"] for n, x in told.items() if x["verdict"] == "excluded"}
    assert out == {"t4": "number format", "mi300x": "software"}


def test_an_unknown_satisfies_no_condition() -> None:
    rows = [offer("g5.xlarge"), offer("bare", memory_gib=None)]
    where = parse("memory_gib >= 4", BY_NAME)
    found = ledger(chosen(rows, [trial()], where=where))
    reason = found["aws/us-east-1/bare/on-demand"]["reason"]
    assert reason == "where: not memory_gib >= 4: memory_gib is unknown"


def test_a_budget_rules_out_and_names_the_nearest_miss() -> None:
    choice = chosen([offer()], [trial(rate=1.0)], samples=3.6e5, budget=50.0)
    assert choice.ranking() == []
    (miss,) = choice.near_misses()
    assert miss == (
        "nearest miss: aws/us-east-1/g5.xlarge/on-demand, budget: takes 100 $, the budget is 50 $"
    )


# several machines


def test_several_machines_reach_a_deadline() -> None:
    samples = 100 * 3600 * 10.0  # ten hours on one
    request: dict[str, Any] = {"samples": samples, "deadline_hours": 4.0}
    assert chosen([offer()], [trial()], "dollars_to_train", **request).ranking() == []
    choice = chosen([offer()], [trial()], "dollars_to_train", machines=(1, 2, 4), **request)
    (entry,) = choice.ranking()
    assert (entry["nodes"], entry["source"]) == (4, "predicted")
    # linear at best, an efficiency of 60 % at worst, 80 % between them
    assert entry["hours_to_train"]["value"] == pytest.approx(10 / 3.2)
    assert entry["hours_to_train"]["low"] == pytest.approx(10 / 4 / 1.02)
    assert entry["hours_to_train"]["high"] == pytest.approx(10 / 2.4 / 0.98)
    assert entry["dollars_to_train"]["value"] == pytest.approx(4 * 10 / 3.2)


def test_a_prediction_that_may_miss_the_deadline_is_not_ranked() -> None:
    rows = [offer("g5.xlarge"), offer("four", 1.0, accelerator_count=4)]
    choice = chosen(rows, [trial()], samples=100 * 3600 * 10.0, deadline_hours=5.0)
    line = ledger(choice)["aws/us-east-1/four/on-demand"]
    assert choice.ranking() == []
    assert line["verdict"] == "untested"
    assert "predicted to miss a limit" in line["reason"]


# the same machine at several places


def test_the_best_region_leads_and_the_others_are_counted() -> None:
    rows = [
        offer(price=1.0),
        offer(price=0.9, region="eu-west-1"),
        offer(price=0.3, region="eu-west-1", purchase="spot"),
    ]
    entries = chosen(rows, [trial()]).ranking()
    assert [(e["offer"]["purchase"], e["other_regions"]) for e in entries] == [
        ("spot", 0),
        ("on-demand", 1),
    ]
    assert entries[0]["tied_with"] == []
    assert len(chosen(rows, [trial()], all_regions=True).ranking()) == 3


# utilities


def test_an_expression_over_metrics_and_columns() -> None:
    rows = [offer("g5.xlarge", 1.0), offer("big", 1.0, memory_gib=64)]
    trials = [trial("g5.xlarge", 100), trial("big", 90)]
    by = "samples_per_dollar + 1e4 * memory_gib"
    assert types(chosen(rows, trials, by)) == ["big", "g5.xlarge"]
    assert types(chosen(rows, trials, "price_per_hour / samples_per_second", better="lower")) == [
        "g5.xlarge",
        "big",
    ]


def test_a_wrong_direction_is_noticed() -> None:
    assert chosen([offer()], [trial()], "1 / samples_per_second").faster_is_worse()
    assert not chosen([offer()], [trial()], "samples_per_dollar").faster_is_worse()


def test_a_division_by_zero_is_told_with_the_offer() -> None:
    rows = [offer(), plain("m5.large")]
    with pytest.raises(ExpressionError, match=r"m5\.large"):
        chosen(rows, [trial()], "samples_per_second / accelerator_count")
    where = parse("accelerator_count > 0", BY_NAME)
    choice = chosen(rows, [trial()], "samples_per_second / accelerator_count", where=where)
    assert types(choice) == ["g5.xlarge"]


def test_a_dearer_price_never_helps() -> None:
    rows = [offer("g5.xlarge", 1.0), offer("other", 1.1)]
    trials = [trial("g5.xlarge"), trial("other")]
    assert types(chosen(rows, trials))[0] == "g5.xlarge"
    dearer = [rows[0] | {"price_per_hour": 1.2}, rows[1]]
    assert types(chosen(dearer, trials))[0] == "other"


def test_two_choices_over_one_table_do_not_meet() -> None:
    offers = table(c1_offers())
    utility = parse_utility("samples_per_dollar")
    one = choose(offers, gather(c1_trials()), Request(utility=utility))
    before = one.ledger()
    choose(offers, gather(c1_trials()[:1]), Request(utility=utility))
    assert one.ledger() == before


def test_the_story_of_one_offer() -> None:
    from underdog.core.story import tell

    choice = chosen(c1_offers(), c1_trials())
    told = tell(choice, "P2.xlarge")
    assert told.startswith("aws/us-east-1/p2.xlarge/on-demand: 1 × K80")
    assert "is beaten" in told
    assert "g5.xlarge" in told
    assert tell(choice, "aws/us-east-1/p2.xlarge/on-demand") == told
    with pytest.raises(UsageError, match=r"g5\.xlarge"):
        tell(choice, "g5.xlrage")
    with pytest.raises(UsageError, match=r"aws/us-east-1/g5\.xlarge/on-demand"):
        tell(choice, "aws/us-east1/g5.xlarge/on-demand")


def test_what_to_test_next_is_untested_and_said_with_its_cost() -> None:
    rows = [offer("g5.xlarge", 1.0), offer("h100", 6.0, accelerator="H100", fp32_tflops=670)]
    (entry,) = chosen(rows, [trial()]).test_next()
    assert entry["offer"] == "aws/us-east-1/h100/on-demand"
    assert entry["dollars"] == pytest.approx(1.0)
    assert entry["expected_gain"] > 0.1


def test_nothing_that_counts_predicts_nothing() -> None:
    failed = trial(rate=None, status="failed", reason="exit status 1")
    choice = chosen([offer(), offer("other")], [failed])
    assert choice.ranking() == []
    line = ledger(choice)["aws/us-east-1/g5.xlarge/on-demand"]
    assert line["verdict"] == "untested"
    assert "exit status 1" in line["reason"]


def test_power_that_was_measured_counts() -> None:
    measured = trial(usage={"cpu_power_w": 100.0})
    (entry,) = chosen([offer()], [measured], "samples_per_kwh").ranking()
    assert entry["samples_per_kwh"]["value"] == pytest.approx(100 * 3.6e6 / 100)
    unread = dataclasses.replace(measured, usage={})
    (entry,) = chosen([offer()], [unread], "samples_per_kwh").ranking()
    assert entry["samples_per_kwh"]["value"] == pytest.approx(100 * 3.6e6 / 150)
