"""Whatever the offers are: the rules never raise, lose nothing, and say the same of any order."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from underdog.catalog import quality
from underdog.core.columns import OFFER_COLUMNS

Row = dict[str, Any]

quick = settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)

FIGURES = st.one_of(
    st.none(),
    st.sampled_from([0.0, -1.0, 0.25, 0.5, 1.0, 2.0, 8.0, 80.0, 1e-300, 1e300]),
    st.floats(),
    st.integers(-(10**400), 10**400),
)
ODD = st.one_of(st.text(max_size=4), st.booleans(), st.binary(max_size=2), st.just([]))
NAMES = {
    "provider": ["aws", "azure", "gcp", "lambda"],
    "region": ["us-east-1", "eastus"],
    "zone": ["us-east-1a", None],
    "instance_type": ["g5.xlarge", "n1-highmem-8", "Standard_D4as_v5", "Standard_D8as_v5", "8x"],
    "purchase": ["on-demand", "spot", "reserved"],
    "term": ["1y", None],
    "service": ["sagemaker", None],
    "currency": ["USD", "EUR", None],
    "price_date": ["2026-07-01", "0001-01-01", "9999-12-31", "2026-02-30", "today", None],
    "accelerator": ["L4", "A100-80GB", "Warp-9000", None],
    "price_unknown_reason": ["no price", None],
    "caveats": ["two_prices", "another", "", None],
}


def value(name: str, kind: str) -> st.SearchStrategy[Any]:
    if kind == "number":
        return st.one_of(FIGURES, FIGURES, FIGURES, ODD)
    known: list[Any] = NAMES.get(name, [None])
    texts = st.text(st.characters(), max_size=4)  # surrogates too
    return st.one_of(*[st.sampled_from(known)] * 4, st.none(), st.just(""), texts, FIGURES)


ROW = st.fixed_dictionaries(
    {}, optional={c.name: value(c.name, c.kind) for c in OFFER_COLUMNS if c.name != "software"}
)
ROWS = st.lists(ROW, max_size=20).flatmap(
    # some of them twice
    lambda rows: (
        st.lists(st.sampled_from(rows), max_size=6).map(lambda more: rows + more)
        if rows
        else st.just(rows)
    )
)


def findings(rows: list[Row], before: list[Row] | None = None) -> list[quality.Finding]:
    return quality.check(rows, before, today="2026-07-21")


@quick
@given(ROWS, ROWS)
def test_no_offers_make_the_rules_raise_and_none_is_lost(
    rows: list[Row], before: list[Row]
) -> None:
    found = findings(rows, before)
    kept, left = quality.apply(rows, found)
    assert len(kept) + len(left) == len(rows)
    out = {f.row for f in found if f.severity == "quarantine"}
    doubted = {f.row for f in found if f.severity == "caveat"}
    assert len(left) == len(out)
    assert out.isdisjoint(doubted - {None})
    for one in found:
        assert quality.explain(one)


@quick
@given(ROWS)
def test_no_price_that_is_none_passes(rows: list[Row]) -> None:
    kept, _ = quality.apply(rows, findings(rows))
    for row in kept:
        price = row.get("price_per_hour")
        known = price is not None and price == price
        assert (0 < price < float("inf")) if known else row.get("price_unknown_reason")


@quick
@given(ROWS, ROWS)
def test_what_has_passed_passes_again(rows: list[Row], before: list[Row]) -> None:
    kept, _ = quality.apply(rows, findings(rows, before))
    again, left = quality.apply(kept, findings(kept, before))
    assert left == []
    assert repr(again) == repr(kept)  # NaN is not equal to itself


@quick
@given(ROWS, ROWS, st.randoms(use_true_random=False))
def test_the_order_of_the_offers_says_nothing(
    rows: list[Row], before: list[Row], chance: random.Random
) -> None:
    mixed = list(rows)
    chance.shuffle(mixed)
    told = [
        Counter((f.rule, f.offer, f.message) for f in findings(some, before))
        for some in (rows, mixed)
    ]
    assert told[0] == told[1]


@st.composite
def clean(draw: st.DrawFn) -> list[Row]:
    """A catalog in which a machine costs what its parts cost, by a factor for each region."""
    rows: list[Row] = []
    regions = draw(st.dictionaries(st.sampled_from("abcdef"), st.floats(0.7, 1.8), min_size=1))
    cards = draw(st.lists(st.sampled_from(["L4", "A100-80GB", "H100"]), unique=True))
    rate = draw(st.floats(0.01, 0.2))
    each = {"L4": (24, 0.6), "A100-80GB": (80, 3.0), "H100": (80, 8.0)}
    for region, factor in regions.items():
        for number in (1, 2, 4, 8):
            plain = {"vcpus": 8.0 * number, "memory_gib": 32.0 * number, "accelerator_count": 0.0}
            machines = [(f"m9.{number}xlarge", plain, 8 * number * rate)]
            for card in cards:
                memory, usd = each[card]
                with_card = {
                    "vcpus": 8.0 * number,
                    "memory_gib": 60.0 * number,
                    "accelerator": card,
                    "accelerator_count": float(number),
                    "accelerator_memory_gib": float(memory),
                    "accelerator_memory_gib_total": float(memory * number),
                }
                price = number * (8 * rate + usd)
                machines.append((f"{card.lower()}.{number}xlarge", with_card, price))
            for name, hardware, price in machines:
                for purchase, share in (("on-demand", 1.0), ("spot", 0.4)):
                    rows.append(
                        {
                            "provider": "aws",
                            "region": region,
                            "instance_type": name,
                            "purchase": purchase,
                            "price_per_hour": round(price * factor * share, 6),
                            "price_date": "2026-07-20",
                            "currency": "USD",
                            "arch": "x86_64",
                            **hardware,
                        }
                    )
    return rows


@quick
@given(clean())
def test_in_a_catalog_of_even_prices_nothing_is_found(rows: list[Row]) -> None:
    assert findings(rows, rows) == []
