"""What rules offers out because they cannot be had, not be kept, or not work together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from underdog.core.constraints import Constraint, figure, text
from underdog.core.shapes import LEAST_EFFICIENCY
from underdog.core.table import Table
from underdog.model import Trial


@dataclass(frozen=True, slots=True)
class Apart:
    """Types of a provider that cannot be placed side by side, with the source of that.

    ``pattern`` is a regular expression over the whole name of the instance type.
    """

    provider: str
    pattern: str
    why: str


# AWS: the types whose PlacementGroupInfo (EC2 API, DescribeInstanceTypes) lacks the strategy
# ``cluster``, of the 1,395 that it lists in 2026; no family is split. Google Cloud: Compute Engine,
# "Placement policies overview", lists the series that take a compact policy; these shared and
# older ones are not among them.
APART = (
    Apart(
        "aws",
        r"(t1|t2|t3|t3a|t4g|t8i)\..*",
        "burstable types cannot be in a cluster placement group",
    ),
    Apart(
        "aws",
        r"(c7i|c8i|m7i|m8i|r8i)-flex\..*",
        "flex types cannot be in a cluster placement group",
    ),
    Apart(
        "aws",
        r"(c1|m1|m2|m3|vt1|mac.*)\..*",
        "this family cannot be in a cluster placement group",
    ),
    Apart(
        "gcp",
        r"(e2|n1|f1|g1|t2a|t2d)-.*",
        "this series takes no compact placement policy",
    ),
)


# of the constraints made here, in the order in which they are tested
NAMES = ("not offered", "spot price", "interruptions", "co-location", "interconnect")


def co_location(machines: Sequence[int]) -> list[Constraint]:
    """Several machines on one job need one placement group."""
    if max(machines) < 2:
        return []
    tests = [
        f"(provider = {text(a.provider)} AND regexp_full_match(instance_type, {text(a.pattern)}))"
        for a in APART
    ]
    cases = " ".join(
        f"WHEN {test} THEN {text(apart.why)}" for test, apart in zip(tests, APART, strict=True)
    )
    reason = f"instance_type || ' cannot stand beside its like: ' || CASE {cases} END"
    met = "several machines stand in one placement group"
    return [Constraint("co-location", met, f"machines > 1 AND ({' OR '.join(tests)})", reason)]


def interconnect(machines: Sequence[int], trials: Sequence[Trial]) -> list[Constraint]:
    """A network on which several machines cannot reach the efficiency that is assumed of them.

    Each step every machine sends and receives the gradients about once (a ring: 2 (n - 1) / n
    times their size in all). Out is only where that alone takes longer than the slowest step that
    is predicted, which is one at ``LEAST_EFFICIENCY``, however well it is hidden behind it. What
    was measured on several machines stands.
    """
    found = [
        (trial.profile.gradient_bytes, trial.measurement.batch_size)
        for trial in trials
        if trial.profile and trial.profile.gradient_bytes
        if trial.measurement and trial.measurement.batch_size
    ]
    if max(machines) < 2 or not found:
        return []
    # the least of what the trials say: an offer is out only where it clearly cannot
    size, batch = min(found, key=lambda pair: pair[0] / pair[1])
    sending = f"(2 * (machines - 1) / machines * {8 * size!r} / (network_gbps * 1e9))"
    out = (
        "machines > 1 AND network_gbps > 0 AND source IS DISTINCT FROM 'measured' "
        f"AND {sending} > {batch!r} * machines / rate_low"
    )
    said = (
        f" s to add up {size / 1e6:,.0f} MB of gradients, longer than a whole step at an "
        f"efficiency of {LEAST_EFFICIENCY:.0%}"
    )
    reason = (
        f"'its network of ' || {figure('network_gbps')} || ' Gbit/s needs ' || {figure(sending)} "
        f"|| {text(said)}"
    )
    met = f"the network adds up {size / 1e6:,.0f} MB of gradients within a step"
    return [Constraint("interconnect", met, out, reason)]


def find_dear(table: Table) -> None:
    """The table ``dear``: spot offers that cost no less than the same machine on demand there."""
    table.run(
        "CREATE OR REPLACE TEMP TABLE dear AS SELECT s.row, d.price_per_hour AS on_demand "
        "FROM candidates AS s JOIN candidates AS d USING (instance_type, region, provider, nodes) "
        "WHERE s.purchase = 'spot' AND d.purchase = 'on-demand' "
        "AND s.price_per_hour >= d.price_per_hour AND s.service IS NOT DISTINCT FROM d.service"
    )


def of_spot() -> list[Constraint]:
    """Spot that costs no less than on demand, or on which the job would never be done."""
    dear = (
        f"'its price of $' || {figure('price_per_hour')} || ' an hour is no lower than the $' || "
        f"{figure('(SELECT min(on_demand) FROM dear WHERE dear.row = c.row)')} || "
        "' of the same machine on demand there'"
    )
    never = "'interrupted as often as is expected, it would never be done'"
    return [
        Constraint(
            "spot price",
            "spot is cheaper than the same machine on demand",
            "purchase = 'spot' AND row IN (SELECT row FROM dear)",
            dear,
        ),
        Constraint(
            "interruptions",
            "it is done some day, interruptions and all",
            "purchase = 'spot' AND rate IS NOT NULL AND useful IS NULL",
            never,
        ),
    ]


def offered() -> Constraint:
    """What is told not to be sold there."""
    return Constraint(
        "not offered",
        "it is sold there",
        "offered = FALSE",
        "'it is told not to be sold in ' || coalesce(zone, region)",
    )
