"""What a decision rests on, and what it was asked, so that it can be asked again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from underdog.core.evidence import shape_of
from underdog.core.metrics import NEED_SAMPLES
from underdog.core.regression import software_of
from underdog.core.utility import parse_utility
from underdog.errors import UnderdogError
from underdog.model import Decision, Trial

# of what is asked: where things are kept and how many are shown changes no answer
_APART = frozenset({"workload", "store", "save", "as_of", "limit", "all_regions"})
_BY = "samples_per_dollar"


def asked(options: Any) -> dict[str, Any]:
    """The options of a question as JSON has them, those left out that say nothing.

    Args:
        options: a dataclass such as ``underdog.verbs.choose.Options``.
    """
    found: dict[str, Any] = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name not in _APART and value != field.default:
            found[field.name] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple | set | frozenset) else value


def rests_on(
    asked: Mapping[str, Any], decision: Decision, trials: Sequence[Trial]
) -> dict[str, Any]:
    """What is stored as ``Decision.rests_on``; ``docs/reference/decision.md`` describes it.

    Args:
        asked: of the function of that name.
        trials: of the workload.
    """
    counted = [t for t in trials if t.status == "ok" and t.measurement is not None]
    days = sorted({str(e["offer"].get("price_date") or "") for e in decision.ranking} - {""})
    latest = _of_leader(decision, counted)
    moments = sorted(t.started_at for t in counted if t.started_at)
    return {
        "asked": dict(asked),
        "tests": len(counted),
        "measured": [moments[0], moments[-1]] if moments else [],
        "prices": [days[0], days[-1]] if days else [],
        "software": software_of(latest) if latest else {},
        "framework": latest.software.framework if latest else None,
        "driver": latest.software.driver if latest else None,
    }


def _of_leader(decision: Decision, counted: Sequence[Trial]) -> Trial | None:
    """The latest trial on the machine that leads, else the latest of all."""
    offer = decision.ranking[0]["offer"] if decision.ranking else {}
    kind = (offer.get("provider"), offer.get("instance_type"))
    on_it = [t for t in counted if shape_of(t)[:2] == kind]
    return max(on_it or counted, key=lambda t: (t.started_at, t.id), default=None)


def question(decision: Decision) -> tuple[dict[str, Any], str | None]:
    """What a stored decision was asked, and why that is not known in full, if so.

    One of before ``rests_on`` was kept tells it by its utility and its constraints.
    """
    kept = decision.rests_on.get("asked")
    if isinstance(kept, Mapping):
        return {str(name): value for name, value in kept.items()}, None
    found: dict[str, Any] = {} if decision.utility == _BY else {"by": decision.utility}
    for line in decision.constraints:
        name, _, said = line.partition(": ")
        if name == "where":
            found["where"] = said
        elif name == "purchase":
            options = said.removeprefix("purchase is ").split(" or ")
            if set(options) != {"on-demand", "spot"}:
                found["purchase"] = options
    try:
        terms = parse_utility(decision.utility, has_samples=True).terms
    except UnderdogError as error:
        return found, error.message
    if len(terms) > 1:
        return found, "the tolerance of its rule was not kept"
    if {"deadline", "budget"} & {line.partition(": ")[0] for line in decision.constraints} or any(
        name in decision.utility for name in NEED_SAMPLES
    ):
        return found, "the samples of its job were not kept"
    if any(entry.get("nodes", 1) != 1 for entry in decision.ranking):
        return found, "the numbers of machines were not kept"
    if decision.better == "lower" or found.get("by"):
        found["better"] = decision.better
    return found, None


def key(decision: Decision) -> str:
    """The name of a question: decisions of one key answer the same, the later one counts."""
    said, _ = question(decision)
    if said.get("better") == decision.better:
        said.pop("better")
    told = [decision.workload, decision.utility, decision.better, said]
    return json.dumps(told, sort_keys=True, default=str)


def latest(decisions: Sequence[Decision]) -> list[Decision]:
    """Of each question the decision that was made last, in the order of their making.

    Args:
        decisions: in the order in which they were saved.
    """
    found: dict[str, Decision] = {}
    for decision in decisions:
        name = key(decision)
        found.pop(name, None)
        found[name] = decision
    return list(found.values())
