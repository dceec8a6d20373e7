"""Whether a stored decision still stands in the world of today."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from underdog.core import watch_doubts, watch_lead
from underdog.core.next_tests import TEST_MINUTES
from underdog.core.rescoring import Scores
from underdog.core.versions import newest
from underdog.core.watched import (
    Finding,
    Judged,
    Machine,
    Seen,
    Settled,
    Sold,
    Test,
    judged,
    standing,
)
from underdog.model import Decision, Trial


def judge(decision: Decision, asked: Mapping[str, Any], scores: Scores, seen: Seen) -> Judged:
    """Judge a decision by the answer that its question gets today.

    Args:
        asked: its question, as ``underdog.core.footing.question`` gives it.
        scores: of the same question, with the catalog, the trials and the prices of today. They
            hold the measured offers, the one that led, and those that are new or cheaper; all
            offers where none of the measured ones may lead.
        seen: the world.
    """
    try:
        before = standing(decision)
    except ValueError as error:
        return unknown(decision, asked, str(error))
    place = watch_lead.lead(scores, before)
    findings = watch_lead.findings(scores, before, place, seen)
    if place.now is not None:
        findings += watch_doubts.contenders(scores, place.now, before, seen)
        for doubts in (watch_doubts.versions, watch_doubts.age, watch_doubts.changes):
            findings += doubts(scores, place.now, seen)
    findings += watch_doubts.expiry(decision, seen)
    return judged(
        decision,
        asked,
        findings,
        before=before,
        now=None if place.now is None else watch_lead.standing_of(scores, place.now),
        gain=watch_lead.gain_of(scores, place),
    )


def unknown(decision: Decision, asked: Mapping[str, Any], why: str) -> Judged:
    """A decision that cannot be judged, and why."""
    finding = Finding(code="cannot_tell", weight="note", message=why)
    return judged(decision, asked, [finding], "unknown")


def newest_versions(trials: Iterable[Trial]) -> dict[str, str]:
    """The newest recorded release of each framework, and of the ``driver``."""
    by_name: dict[str, set[str]] = {}
    for trial in trials:
        software = trial.software
        for name, version in (
            (software.framework, software.framework_version),
            ("driver", software.driver),
        ):
            if name and version:
                by_name.setdefault(name, set()).add(version)
    found = {name: newest(versions) for name, versions in by_name.items()}
    return {name: version for name, version in found.items() if version is not None}


def wanted(found: Judged) -> list[Machine]:
    """The machines whose test would settle what is open about a decision, each once."""
    return list(dict.fromkeys(machine for f in found.findings for machine in f.tests))


def priced(
    found: Judged, sold: Mapping[Machine, Sold], here: tuple[str, str] = ("", "")
) -> list[Test]:
    """The tests that would settle a decision, each where it costs least.

    A measurement of a machine holds wherever it is bought, so the cheapest offer of it will do.

    Args:
        sold: where each machine is to be had.
        here: provider and instance type of this machine.
    """
    places = {s.machine: s for s in (found.before, found.now) if s is not None}
    tests = []
    for machine in wanted(found):
        place, known = sold.get(machine), places.get(machine)
        if place is None and known is not None:
            place = Sold(known.offer, known.price_per_hour)
        place = place or Sold("/".join(machine[:2]), None)
        dollars = None if place.price is None else place.price * TEST_MINUTES / 60
        tests.append(
            Test(
                workload=found.workload,
                offer=place.offer,
                machine=machine,
                minutes=TEST_MINUTES,
                dollars=dollars,
                here=machine[:2] == here and machine.nodes == 1,
                offers=place.offers,
                runner=place.runner,
            )
        )
    return tests


def cheapest_set(found: Sequence[Judged]) -> list[Test]:
    """The tests of all decisions together: one test of a workload on a machine serves them all."""
    once: dict[tuple[str, Machine], Test] = {}
    for test in (test for one in found for test in one.tests):
        other = once.setdefault((test.workload, test.machine), test)
        if _cost(test) < _cost(other):
            once[test.workload, test.machine] = test
    return sorted(once.values(), key=lambda t: (_cost(t), t.workload, t.offer))


def _cost(test: Test) -> float:
    return math.inf if test.dollars is None else test.dollars


def settled(
    before: Iterable[Judged], after: Iterable[Judged], tests: Iterable[Test]
) -> list[Settled]:
    """What tests that were run did to the decisions that asked for them."""
    run = {(test.workload, test.machine) for test in tests}
    now = {one.id: one.verdict for one in after}
    return [
        Settled(
            id=one.id,
            workload=one.workload,
            utility=one.utility,
            was=one.verdict,
            verdict=now.get(one.id, one.verdict),
        )
        for one in before
        if any((one.workload, machine) in run for machine in wanted(one))
    ]
