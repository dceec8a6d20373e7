"""What a watch finds out about a stored decision."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from underdog.core import footing
from underdog.core.history import Shift
from underdog.model import Decision, Trial

# note: it changes nothing; open: only a test can tell; falls: it does not stand any more
Weight = Literal["note", "open", "falls"]
Verdict = Literal["stands", "open", "falls", "unknown"]
WEIGHTS: tuple[Weight, ...] = ("note", "open", "falls")


class Machine(NamedTuple):
    """A kind of machine and how many of it: what a test is run on."""

    provider: str
    instance_type: str
    nodes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing that changed; ``docs/how-to/watch.md`` lists the codes.

    ``about`` names what it is about without figures that move from day to day; ``tests`` are the
    machines whose test would settle it.
    """

    code: str
    weight: Weight
    message: str
    about: str = ""
    tests: tuple[Machine, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """An offer in a ranking. ``utility`` has value, low and high; prices are of all machines."""

    offer: str
    machine: Machine
    source: str
    utility: Mapping[str, float] | None = None
    price_per_hour: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Test:
    """A test that would settle something, where it costs least.

    ``dollars`` is None where the price is unknown; ``here`` says whether it is this machine.
    ``offers`` is the file that has the offer, None where the catalog has it; ``runner`` is whose
    table it has there, None where nothing says how to get at it.
    """

    workload: str
    offer: str
    machine: Machine
    minutes: float
    dollars: float | None
    here: bool = False
    offers: str | None = None
    runner: str | None = None


class Sold(NamedTuple):
    """Where a machine is to be had for a test: an offer, and USD per hour of all its nodes."""

    offer: str
    price: float | None
    offers: str | None = None
    runner: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """What tests did to a decision: its verdict before them, and after."""

    id: str
    workload: str
    utility: str
    was: Verdict
    verdict: Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class Judged:
    """A stored decision, judged anew; ``question`` names what it answers, whichever it is.

    ``before`` is the offer that it put first, ``now`` the one that leads; ``gain`` is by how much
    the latter is better, as a share, None where the two cannot be compared. ``asked`` are the
    options of ``choose``, ``rests_on`` what the decision keeps of its footing.
    """

    id: str
    question: str
    workload: str
    created_at: str
    expires_at: str
    utility: str
    better: str
    asked: Mapping[str, Any]
    rests_on: Mapping[str, Any]
    verdict: Verdict
    findings: Sequence[Finding]
    before: Standing | None = None
    now: Standing | None = None
    gain: float | None = None
    tests: Sequence[Test] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """The world as a watch sees it.

    Attributes:
        now: the time.
        catalog, catalog_date: hash and day of the catalog.
        types: the machines of the catalog, as provider and instance type.
        was: price before, by row of the catalog, of the offers that are new or cheaper since the
            decision; NaN where it was unknown.
        new_types: the rows of those whose type is new.
        prices: what the offers that the decision lists cost then, by name.
        compared: whether that catalog is still there to be compared with.
        trials: of the workload, those that count.
        versions: the newest recorded version of each framework, and of the ``driver``.
        shifts: changes of level in the workload's throughput that the decision has not seen.
        oldest_seconds: a measurement that is older asks for another one.
    """

    now: datetime
    catalog: str = ""
    catalog_date: str = ""
    types: frozenset[tuple[str, str]] = frozenset()
    was: Mapping[int, float] = field(default_factory=dict)
    new_types: frozenset[int] = frozenset()
    prices: Mapping[str, float] = field(default_factory=dict)
    compared: bool = True
    trials: Sequence[Trial] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    shifts: Sequence[Shift] = ()
    oldest_seconds: float = 90 * 86400.0


def judged(
    decision: Decision,
    asked: Mapping[str, Any],
    findings: Sequence[Finding],
    verdict: Verdict | None = None,
    **more: Any,
) -> Judged:
    """What was found of a decision; the verdict is that of the weightiest finding."""
    weight = max((WEIGHTS.index(f.weight) for f in findings), default=0)
    by_weight: tuple[Verdict, ...] = ("stands", "open", "falls")
    return Judged(
        id=decision.id,
        question=hashlib.sha256(footing.key(decision).encode(errors="replace")).hexdigest()[:16],
        workload=decision.workload,
        created_at=decision.created_at,
        expires_at=decision.expires_at,
        utility=decision.utility,
        better=decision.better,
        asked=asked,
        rests_on=decision.rests_on,
        verdict=verdict or by_weight[weight],
        findings=sorted(findings, key=lambda f: -WEIGHTS.index(f.weight)),
        **more,
    )


def standing(decision: Decision) -> Standing | None:
    """The offer that a decision put first, None where it found none.

    Raises:
        ValueError: its ranking is not one that this version knows.
    """
    if not decision.ranking:
        return None
    first = decision.ranking[0]
    try:
        offer = first["offer"]
        nodes = int(first.get("nodes") or 1)
        price = offer.get("price_per_hour")
        return Standing(
            offer=str(offer["id"]),
            machine=Machine(str(offer["provider"]), str(offer["instance_type"]), nodes),
            source=str(first.get("source", "")),
            utility=first.get("utility"),
            price_per_hour=price * nodes if price and price > 0 else None,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"its ranking cannot be read ({type(error).__name__}: {error})") from error


def mark(found: Judged) -> str:
    """What is the same as long as nothing is new about a decision, whatever its figures do."""
    told = sorted(f"{f.code} {f.about}" for f in found.findings if f.weight != "note")
    return " | ".join([found.verdict, *told])


def moment(text: str) -> datetime | None:
    """A time as records have it, None where it is none."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
