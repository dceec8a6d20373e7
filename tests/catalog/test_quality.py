"""Every quality rule on the fault that it is for, and on what comes close to it and is right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from underdog.catalog import quality, snapshot
from underdog.catalog.facts import accelerators
from underdog.catalog.hardware import Hardware, offer_row
from underdog.core.table import Table
from underdog.model import Price

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "quality.md"
Row = dict[str, Any]
Rows = list[Row]


def offer(name: str = "m5.large", usd: float | None = 0.1, **given: Any) -> Row:
    """An offer; what is given by the name of a column stands."""
    at = {"provider": "aws", "region": "us-east-1", "purchase": "on-demand"} | given
    reason = None if usd is not None else "the list has none"
    price = Price(per_hour=1.0, source="a list", date="2026-07-20")
    hardware = Hardware(vcpus=2, memory_gib=8)
    row = offer_row(at["provider"], at["region"], name, at["purchase"], hardware, price=price)
    return {**row, "price_per_hour": usd, "price_unknown_reason": reason, **at}


def gpu(name: str, usd: float | None, model: str, count: float = 1, **given: Any) -> Row:
    """An offer with accelerators."""
    memory = accelerators()[model].memory_gib if model in accelerators() else None
    each = None if memory is None else memory * min(count, 1)
    made: Row = {
        "vcpus": 8 * max(count, 1),
        "memory_gib": 61 * max(count, 1),
        "accelerator": model,
        "accelerator_count": count,
        "accelerator_memory_gib": each,
        "accelerator_usable_gib": None,
        "accelerator_memory_gib_total": None if each is None else each * max(count, 1),
    }
    return offer(name, usd, **(made | given))


def azure(size: int, rate: float, suffix: str = "as_v5", **given: Any) -> Row:
    """A size of a family at so much for each vCPU."""
    name = f"Standard_D{size}{suffix}"
    return (
        offer(name, size * rate, provider="azure", region="eastus", vcpus=size, memory_gib=4 * size)
        | given
    )


def sizes(rate: float = 0.048, **given: Any) -> Rows:
    """A family of plain machines."""
    names = {2: "large", 4: "xlarge", 8: "2xlarge", 16: "4xlarge", 32: "8xlarge", 64: "16xlarge"}
    return [
        offer(f"m5.{name}", rate * n, vcpus=n, memory_gib=4 * n, **given)
        for n, name in names.items()
    ]


def a100(usd: float, **given: Any) -> Row:
    name = given.pop("name", "a2-highgpu-1g")
    host = {"provider": "gcp", "region": "us-central1", "vcpus": 12, "memory_gib": 85}
    return gpu(name, usd, "A100-40GB", **(host | given))


def hosts() -> Rows:
    """Plain machines of the size of an A2's host, at Google's prices of us-central1."""
    return [
        offer(
            f"n2-highmem-{n}", 0.0655 * n,
            provider="gcp", region="us-central1", vcpus=n, memory_gib=8 * n,
        )
        for n in (2, 4, 8, 16, 32)
    ]  # fmt: skip


def many(count: int, change: Callable[[int], float | None] = lambda n: 0.1) -> Rows:
    """As many types, one offer each."""
    return [offer(f"m{n}.large", change(n)) for n in range(count)]


SPOT = {"provider": "vast", "purchase": "spot"}

# Of each rule: the offers of which the last is at fault, and those before them where it needs some.
EXAMPLES: dict[str, tuple[Rows, Rows]] = {
    "nameless_offer": ([offer(instance_type="")], []),
    "unsafe_text": ([offer(instance_type="m5\x1b[2J.large")], []),
    "unknown_purchase": ([offer(purchase="Spot")], []),
    "not_a_number": ([offer(vcpus="two")], []),
    "impossible_price": ([offer(usd=0.0)], []),
    "unexplained_price": ([offer(usd=None, price_unknown_reason=None)], []),
    "foreign_currency": ([offer(currency="EUR")], []),
    "undated_price": ([offer(price_date="last week")], []),
    "future_price": ([offer(price_date="2027-01-01")], []),
    "stale_price": ([offer(purchase="spot", price_date="2026-06-01")], []),
    "impossible_hardware": ([offer(vcpus=-2)], []),
    "memory_unit": ([offer(memory_gib=45097156608.0)], []),
    "implausible_hardware": ([offer(cpu_ghz=3400.0)], []),
    "missing_hardware": ([offer(memory_gib=None)], []),
    "nameless_accelerator": ([offer(accelerator_count=2)], []),
    "accelerator_without_count": ([gpu("g5.xlarge", 1.0, "A10G", 0)], []),
    "impossible_pair": ([gpu("n1-highmem-8", 2.5, "RTX-PRO-6000", provider="gcp")], []),
    "accelerator_memory_unit": (
        [gpu("g6e.12xlarge", 10.5, "L40S", 4, accelerator_memory_gib=45776)], []
    ),
    "total_memory_as_each": (
        [gpu("g6e.12xlarge", 10.5, "L40S", 4, accelerator_memory_gib=178.8)], []
    ),
    "accelerator_memory_differs": (
        [gpu("nd96", 30, "MI300X", 8, accelerator_memory_gib=80)], []
    ),
    "total_memory_differs": (
        [gpu("gpu_8x_v100", 4.4, "V100-16GB", 8, accelerator_memory_gib_total=16)], []
    ),
    "unknown_accelerator": ([gpu("x1", 3, "Warp-9000", accelerator_memory_gib=80)], []),
    "host_memory_is_accelerators": (
        [*sizes(), gpu("1x_A100-80GB", 1.9, "A100-80GB", memory_gib=80, provider="runpod")], []
    ),
    "accelerator_price_too_low": (
        [a100(3.67), a100(3.8, region="europe-west4"), a100(0.01, region="asia-east1")], []
    ),
    "family_price_too_low": ([*sizes(), offer("m5.12xlarge", 0.02, vcpus=48, memory_gib=192)], []),
    "price_of_one_accelerator": (
        [gpu("1x", 1.28, "RTX-A4000"), gpu("8x", 1.28, "RTX-A4000", 8)], []
    ),
    "host_only_price": ([*hosts(), a100(3.67, region="europe-west4"),
                         gpu("p4d", 22, "A100-40GB", 8), a100(0.94)], []),
    "windows_price": ([azure(2, 0.043), azure(4, 0.043), azure(8, 0.043), azure(16, 0.089)], []),
    "two_prices": ([offer(usd=0.178), offer(usd=0.086)], []),
    "duplicate_offer": ([offer(usd=0.086), offer(usd=0.178)], []),
    "accelerator_price_too_high": (
        [a100(3.67), a100(3.8, region="europe-west4"), a100(99, region="asia-east1")], []
    ),
    "family_price_too_high": ([*sizes(), offer("m5.24xlarge", 99, vcpus=96, memory_gib=384)], []),
    "spot_above_on_demand": ([offer(usd=0.44), offer(usd=0.49, purchase="spot")], []),
    "reserved_above_on_demand": (
        [offer(usd=0.44), offer(usd=0.49, purchase="reserved", term="1y")], []
    ),
    "more_for_less": (
        [
            gpu("1x_4090", 0.3, "RTX-4090", 1, **SPOT),
            gpu("2x_4090", 0.6, "RTX-4090", 2, **SPOT),
            gpu("4x_4090", 1.2, "RTX-4090", 4, **SPOT),
            gpu("8x_4090", 1.0, "RTX-4090", 8, **SPOT),
        ],
        [],
    ),
    "price_moved": ([offer(usd=0.3)], [offer(usd=0.1)]),
    "type_vanished": (many(9), [*many(9), offer("m99.large")]),
    "source_shrank": (many(70), many(100)),
    "source_moved": (many(100, lambda n: 0.3 if n < 30 else 0.1), many(100)),
    "source_unpriced": (many(100, lambda n: None if n < 30 else 0.1), many(100)),
    "source_faulty": (many(100, lambda n: 0.0 if n < 30 else 0.1), []),
}  # fmt: skip


def found(rows: quality.Offers, before: quality.Offers | None = None) -> list[quality.Finding]:
    return quality.check(rows, before or None, today="2026-07-21")


def rules(rows: quality.Offers, before: quality.Offers | None = None) -> list[str]:
    return [one.rule for one in found(rows, before)]


def test_every_rule_has_an_example() -> None:
    assert set(EXAMPLES) == set(quality.RULES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_fault_of_each_rule_is_found_and_no_other_offer_blamed(name: str) -> None:
    rows, before = EXAMPLES[name]
    findings = found(rows, before)
    hits = [one for one in findings if one.rule == name]
    assert len(hits) == 1, findings
    if quality.RULES[name].rows and name not in ("two_prices", "duplicate_offer"):
        assert {one.row for one in findings} <= {len(rows) - 1, None}
    rule, hit = quality.RULES[name], hits[0]
    assert hit.severity == rule.severity
    assert hit.message
    assert hit.row == (len(rows) - 1 if rule.rows else None)
    assert rule.remedy in quality.explain(hit)
    assert hit.message[1:] in quality.explain(hit)
    assert hit.message in PAGE.read_text()


RIGHT: dict[str, tuple[Rows, Rows]] = {
    "a bursting machine of 0.25 GiB for a vCPU": (
        [offer("t4g.nano", 0.0042, vcpus=2, memory_gib=0.5)], []
    ),
    "a constrained size with 122 GiB for a vCPU": (
        [offer("Standard_M128-32ms", 26.7, vcpus=32, memory_gib=3892, provider="azure")], []
    ),
    "the largest machine": ([offer("u7inh-32tb", 407, vcpus=1920, memory_gib=32768)], []),
    "a price that is unknown with a reason": ([offer(usd=None)], []),
    "spot at a tenth of on-demand": ([offer(usd=1.0), offer(usd=0.09, purchase="spot")], []),
    "spot at the price of on-demand": ([offer(usd=1.0), offer(usd=1.0, purchase="spot")], []),
    "a part of an accelerator": ([gpu("g6f.large", 0.2, "L4", 0.125, vcpus=2, memory_gib=8)], []),
    "a card with ECC off": ([gpu("a", 1, "L40S", accelerator_usable_gib=47.99)], []),
    "a card with ECC on": ([gpu("a", 1, "L40S", accelerator_usable_gib=44.99)], []),
    "one T4 with a large host against four": (
        [
            gpu("g4dn.16xlarge", 4.352, "T4", 1, vcpus=64, memory_gib=256),
            gpu("g4dn.12xlarge", 3.912, "T4", 4, vcpus=48, memory_gib=192),
        ],
        [],
    ),
    "a host as large as its accelerator, as all of its family": (
        [
            gpu("trn1.2xlarge", 1.34, "Trainium", 1, vcpus=8, memory_gib=32),
            gpu("trn1.32xlarge", 21.5, "Trainium", 16, vcpus=128, memory_gib=512),
            offer("m6i.32xlarge", 6.1, vcpus=128, memory_gib=512),
            offer("m6i.2xlarge", 0.38, vcpus=8, memory_gib=32),
        ],
        [],
    ),
    "an old accelerator at little more than its host": (
        [
            offer("m5.16xlarge", 3.07, vcpus=64, memory_gib=256),
            gpu("g4dn.16xlarge", 4.35, "T4", 1, vcpus=64, memory_gib=256),
        ],
        [],
    ),
    "a region that is twice as dear": (
        [azure(2, 0.043), azure(2, 0.086, region="brazilsouth"), azure(4, 0.043)], []
    ),
    "a family with three rates": (
        [azure(2, 0.043), azure(4, 0.066), azure(8, 0.075), azure(16, 0.089)], []
    ),
    "reservations of Azure whose terms differ by as much as the licence of Windows": (
        [
            azure(size, rate, purchase="reserved", term=term)
            for size in (2, 4, 8)
            for term, rate in (("1y", 0.075), ("3y", 0.029))
        ],
        [],
    ),
    "a price cut by 44 %": ([offer(usd=0.056)], [offer(usd=0.1)]),
    "a spot price that doubles": (
        [offer(usd=0.04, purchase="spot")], [offer(usd=0.02, purchase="spot")]
    ),
    "types of a region that was not asked": (
        many(30), [*many(30), *(r | {"region": "eu-west-1"} for r in many(90)[30:])]
    ),
    "another provider of the snapshot before": (
        many(30), [r | {"provider": "gcp"} for r in many(60)]
    ),
    "the same type sold by a service": (
        [offer(usd=0.1), offer(usd=0.12, service="sagemaker")], []
    ),
    "two terms of one reservation": (
        [offer(usd=0.06, purchase="reserved", term=t) for t in ("1y", "3y")], []
    ),
    "a cluster of eight": ([gpu("8x", 80, "H100", 8, nodes=8), gpu("8x", 10, "H100", 8)], []),
    "a series that Google adds": ([gpu("n5-standard-8", 2.5, "L4", provider="gcp")], []),
    "an accelerator that Google attaches": ([gpu("n1-highmem-8", 0.9, "T4", provider="gcp")], []),
}  # fmt: skip


@pytest.mark.parametrize("what", RIGHT)
def test_what_is_right_is_not_blamed(what: str) -> None:
    assert rules(*RIGHT[what]) == []


def test_of_two_machines_out_of_order_the_one_out_of_line_is_blamed() -> None:
    family = sizes()
    dear = [*family[:4], family[4] | {"price_per_hour": 4.0}, family[5]]
    cheap = [*family[:4], family[4] | {"price_per_hour": 0.3}, family[5]]
    for rows in (dear, cheap):
        assert [(f.rule, f.row) for f in found(rows)] == [("more_for_less", 4)]


def test_a_bad_price_does_not_make_the_good_ones_look_bad() -> None:
    rows = [a100(3.67), *(a100(0.01, region=f"r{n}") for n in range(2)), a100(3.7, region="x")]
    assert [(f.rule, f.row) for f in found(rows) if f.severity == "quarantine"] == [
        ("accelerator_price_too_low", 1),
        ("accelerator_price_too_low", 2),
    ]


def test_the_prices_of_other_providers_tell_what_an_accelerator_costs() -> None:
    mine = [gpu("1x_H100", 0.01, "H100", provider="vast")]
    others = [gpu("p5.4xlarge", 6.88, "H100"), gpu("a3-highgpu-1g", 11.06, "H100", provider="gcp")]
    assert rules(mine) == []
    assert rules(mine, others) == ["accelerator_price_too_low"]


def test_a_spot_price_is_held_against_on_demand_where_there_is_no_other() -> None:
    rows = [a100(3.67), a100(0.3, purchase="spot")]
    assert rules(rows) == []
    assert rules([rows[0], rows[1] | {"price_per_hour": 0.01}]) == ["accelerator_price_too_low"]


def test_apply_takes_out_and_doubts_and_loses_nothing() -> None:
    rows = [offer(), offer("m5.xlarge", usd=0.0), offer("m6.large", memory_gib=None)]
    rows[2]["caveats"] = "two_prices"
    kept, left = quality.apply(rows, found(rows))
    assert [row["instance_type"] for row in kept] == ["m5.large", "m6.large"]
    assert [row["caveats"] for row in kept] == [None, "missing_hardware,two_prices"]
    assert [(one.instance_type, one.reason) for one in left] == [
        ("m5.xlarge", "impossible_price: its price is zero, negative or infinite")
    ]
    assert rows[0]["caveats"] is None  # the rows that were given are as they were


def test_a_rejected_source_is_named_with_the_reason() -> None:
    rows, before = EXAMPLES["source_shrank"]
    assert list(quality.rejected(found(rows, before))) == ["aws"]
    why = quality.rejected(found(rows, before))["aws"][0]
    assert why.message == "30 of its 100 instance types are gone (30 %)"
    assert "The last good prices stand." in quality.explain(why)
    assert quality.rejected(found(many(100), many(100))) == {}


@pytest.mark.parametrize(
    ("rows", "rule"),
    [
        (many(8, lambda n: 0.8), "source_moved"),  # eight times: a total read as of each
        (many(8, lambda n: 0.0125), "source_moved"),
        (many(8, lambda n: None), "source_unpriced"),
        ([one | {"region": "0.1"} for one in many(8, lambda n: None)], "source_unpriced"),
        (many(8, lambda n: 0.0), "source_faulty"),
        ([offer(f"x{n}.large") for n in range(8)], "source_shrank"),
        # no region of before is in the answer, and so are none of its types
        ([offer(f"x{n}.large", region="US East") for n in range(8)], "source_shrank"),
    ],
)
def test_a_small_source_of_which_all_is_wrong_is_rejected(rows: Rows, rule: str) -> None:
    why = quality.rejected(found(rows, many(8)))["aws"]
    assert [one.rule for one in why] == [rule]


def test_a_price_that_is_gone_has_not_moved() -> None:
    rows = many(8, lambda n: None if n == 0 else 0.1)
    assert quality.rejected(found(rows, many(8))) == {}
    assert "price_moved" not in rules(rows, many(8))


def test_a_few_faults_of_a_small_source_do_not_reject_it() -> None:
    rows = [offer(f"m{n}.large", 0.0 if n < 3 else 0.1) for n in range(5)]
    assert quality.rejected(found(rows)) == {}


def test_offers_may_come_as_rows_columns_or_a_table() -> None:
    rows = [row for one, _ in EXAMPLES.values() for row in one if row["vcpus"] != "two"]
    names = rows[0].keys()
    columns = {name: [row.get(name) for row in rows] for name in names}
    arrays = {
        name: np.array(values, dtype=float if name in ("vcpus", "price_per_hour") else object)
        for name, values in columns.items()
    }
    assert found(columns) == found(rows)
    assert found(arrays) == found(rows)
    assert found(Table.from_arrays(columns)) == found(rows)


def test_nothing_is_no_fault() -> None:
    assert found([]) == []
    assert found({}) == []


def test_the_bundled_snapshot_passes() -> None:
    bundled = snapshot.load()
    # the age of a price is of the day of its use
    findings = quality.check(bundled.table)
    assert [quality.explain(f) for f in findings if f.severity != "caveat"] == []
    listed = bundled.table.run("SELECT caveats FROM offers ORDER BY rowid").fetchall()
    doubts: dict[int, set[str]] = {}
    for one in findings:
        if one.row is not None:
            doubts.setdefault(one.row, set()).add(one.rule)
    missing = Counter(
        rule
        for row, names in doubts.items()
        for rule in names - set((listed[row][0] or "").split(","))
    )
    assert missing == Counter()


def test_the_page_of_rules_has_every_rule_and_what_it_does() -> None:
    text = PAGE.read_text()
    told = re.findall(r"^\| `(\w+)` \| (\w+)", text, flags=re.M)
    words = {"quarantine": "out", "caveat": "caveat", "reject_source": "refused"}
    assert told == [(rule.name, words[rule.severity]) for rule in quality.RULES.values()]
    for rule in quality.RULES.values():
        assert rule.remedy in text, rule.name
