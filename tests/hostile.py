"""Records as other hands and older versions may have left them in a store, for property tests."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from underdog.model import (
    Accelerator,
    Bound,
    Caveat,
    Decision,
    Estimate,
    Machine,
    Measurement,
    Offer,
    Price,
    Software,
    Status,
    Timeline,
    Trial,
)

ODD = (
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b[0m\r\x07",
    "\u202egnp.exe",
    "שלום עולם",
    "日本語の名前 🐕",
    "half \udcff",
    "a|b*c_d`e[f](g)",
    "",
    "long " * 2000,
)
texts = st.sampled_from(ODD) | st.text(st.characters(categories=None), max_size=8)
# NaN and infinity are in no store, but a view may be made of a record at hand
numbers = st.floats() | st.sampled_from([0.0, -1.0, 1.5, 1e-300, 1e300, 5e-324])
counts = st.integers(-1, 10**9)
moments = st.sampled_from(["2026-08-01T12:00:00+00:00", "2026-09-01", "", "no time"]) | texts
values: Any = st.recursive(
    st.none() | st.booleans() | counts | numbers | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
estimates = st.builds(Estimate, value=numbers, low=numbers, high=numbers, n=counts)
prices = st.builds(
    Price, per_hour=st.floats(1e-9, 1e9), unknown_reason=st.none(), source=texts, date=texts
) | st.builds(Price, per_hour=st.none(), unknown_reason=texts)
offers = st.builds(
    Offer, provider=texts, region=texts, instance_type=texts, price=prices, purchase=texts,
    nodes=counts, accelerator=st.none() | texts, accelerator_count=numbers,
)  # fmt: skip
measurements = st.builds(
    Measurement,
    samples_per_second=st.none() | estimates,
    samples_per_second_with_pauses=st.none() | numbers,
    step_seconds=st.none() | estimates,
    steps=counts,
    samples=st.none() | counts,
    batch_size=st.none() | numbers,
    ranks=counts,
    warmup_steps=counts,
    warmup_seconds=numbers,
    pauses=st.dictionaries(texts, numbers, max_size=2),
)
readings = st.dictionaries(
    st.sampled_from(["seconds", "samples_per_second", "cores", "memory_gib", "step"]) | texts,
    st.lists(st.none() | numbers, max_size=4),
    max_size=3,
)
usages = st.dictionaries(
    st.sampled_from(["cores", "accelerators_busy", "accelerator_power_w", "saved_dollars"]) | texts,
    st.none() | numbers,
    max_size=3,
)
shares = st.dictionaries(
    st.sampled_from(["data", "forward", "backward", "other"]) | texts, numbers, max_size=4
)
caveats = st.lists(st.builds(Caveat, code=texts, message=texts, remedy=texts), max_size=2)
trials = st.builds(
    Trial,
    id=texts,
    workload=texts,
    command=st.lists(texts, max_size=2),
    knobs=st.dictionaries(texts, texts, max_size=2),
    status=st.sampled_from(get_args(Status)),
    reason=st.none() | texts,
    exit_code=st.none() | counts,
    started_at=moments,
    ended_at=st.none() | moments,
    offer=st.none() | offers,
    price=prices,
    measurement=st.none() | measurements,
    phases=shares,
    bound_by=st.sampled_from(get_args(Bound)),
    bound_reason=st.none() | texts,
    peak_memory_gib=st.dictionaries(
        st.sampled_from(["host", "accelerator"]), st.none() | numbers, max_size=2
    ),
    usage=usages,
    caveats=caveats,
    machine=st.builds(
        Machine,
        hostname=texts,
        provider=st.none() | texts,
        instance_type=st.none() | texts,
        vcpus=st.none() | numbers,
        memory_gib=st.none() | numbers,
        accelerators=st.lists(st.builds(Accelerator, name=texts), max_size=2),
    ),
    software=st.builds(
        Software,
        framework=st.none() | texts,
        framework_version=st.none() | texts,
        commit=st.none() | texts,
        libraries=st.dictionaries(texts, texts, max_size=2),
    ),
    study=st.none() | texts,
    dollars=st.none() | numbers,
    why=st.none() | texts,
    timeline=st.none() | st.builds(Timeline, steps=readings, usage=readings),
)


def tables(*named: str, of: Any = values) -> Any:
    """Tables with some of the fields that are looked for, and what else."""
    return st.dictionaries(st.sampled_from(named) | texts, of, max_size=len(named) + 1)


ends = tables("value", "low", "high", of=st.none() | numbers | texts) | values
listed = tables("id", "provider", "region", "instance_type", "price_per_hour", "caveats")
_METRICS = ("utility", "samples_per_second", "hours_to_train", "dollars_per_million_samples")
entries = st.builds(
    lambda offer, source, nodes, metrics, more: (
        {"offer": offer, "source": source, "nodes": nodes} | metrics | more
    ),
    listed | texts | values,
    st.sampled_from(["measured", "predicted"]) | values,
    counts | values,
    st.dictionaries(st.sampled_from(_METRICS), ends, max_size=4),
    tables("rank", "pareto", "tied_with", "useful_share"),
)
tests_kept = tables("number", "trial", "offer", "knobs", "rate", "utility", "best", "missed")
explorations = tables(
    "utility", "best", "best_knobs", "ended", "beliefs", "command", "references", "candidates"
) | st.builds(
    lambda tests, before, more: {"tests": tests, "before": before} | more,
    st.lists(tests_kept, max_size=2) | values,
    st.lists(tests_kept, max_size=2) | values,
    tables("utility", "best", "ended"),
)
decisions = st.builds(
    Decision,
    id=texts,
    workload=texts,
    created_at=moments,
    utility=st.sampled_from(["samples_per_dollar", "hours_to_train, price_per_hour", ","]) | texts,
    better=st.sampled_from(["higher", "lower"]),
    constraints=st.lists(texts, max_size=2),
    candidates=counts,
    ranking=st.lists(entries, max_size=3),
    ledger=st.lists(tables("offer", "verdict", "reason"), max_size=2),
    test_next=st.lists(tables("offer", "expected_gain", "dollars"), max_size=2),
    caveats=caveats,
    best_measured=st.none() | texts,
    funnel=st.lists(tables("verdict", "cause", "offers"), max_size=2),
    expires_at=moments,
    rests_on=tables("asked") | st.fixed_dictionaries(
        {"asked": tables("samples", "deadline", "budget", "by", "nodes", "offers")}
    ),
    study=st.none() | texts,
    exploration=explorations,
)  # fmt: skip
