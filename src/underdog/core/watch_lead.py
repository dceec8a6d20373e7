"""Whether the offer that a decision put first still leads, and by how much another one does."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from underdog.core.constraints import shown
from underdog.core.rescoring import Scores
from underdog.core.watched import Finding, Machine, Seen, Standing

LEAST_GAIN = 0.01  # a smaller gain is not worth a change of machine
LEAST_MOVE = 0.01  # a smaller move of a price is not told


@dataclass(frozen=True, slots=True)
class Lead:
    """Rows of the scores: the offer that led, and the one that leads; None where it is gone."""

    before: int | None
    now: int | None


def lead(scores: Scores, before: Standing | None) -> Lead:
    """Find both among the offers of today."""
    now = scores.leader()
    if before is None:
        return Lead(None, now)
    rows = scores.rows
    named = np.flatnonzero((rows.offer == before.offer) & (rows.machines == before.machine.nodes))
    same = named.tolist()
    best = max(same, key=lambda i: (bool(scores.counts[i]), _worth(scores, i)), default=None)
    # two managed services may sell a machine under one name
    return Lead(now if now in same else best, now)


def _worth(scores: Scores, i: int) -> float:
    value = float(scores.terms[0][i])
    return value if math.isfinite(value) else -math.inf


def standing_of(scores: Scores, i: int) -> Standing:
    """A row as it stands today."""
    rows, known = scores.rows, math.isfinite(scores.value[i])
    ends = {"value": scores.value[i], "low": scores.low[i], "high": scores.high[i]}
    price = float(rows.price[i])
    return Standing(
        offer=str(rows.offer[i]),
        machine=machine_of(scores, i),
        source="measured" if rows.measured[i] else "predicted",
        utility={name: float(end) for name, end in ends.items()} if known else None,
        price_per_hour=price if price > 0 else None,
    )


def machine_of(scores: Scores, i: int) -> Machine:
    """What a test of a row is run on."""
    return Machine(*scores.rows.machine[i], int(scores.rows.machines[i]))


def gain_of(scores: Scores, place: Lead) -> float | None:
    """By how much the leading offer is better than the one that led, as a share of the latter.

    Of a rule of several terms it is that of the first term in which the two differ.
    """
    if place.now is None or place.before is None or not scores.counts[place.before]:
        return None
    if place.now == place.before:
        return 0.0
    for j, term in enumerate(scores.terms):
        new, old = float(term[place.now]), float(term[place.before])
        differ = not math.isclose(new, old, rel_tol=1e-9)
        within = j == 0 and len(scores.terms) > 1 and new < old
        if differ and not within and old != 0:
            # a cost is negated: half the cost is twice as good
            return new / old - 1 if old > 0 else old / new - 1 if new < 0 else None
    return 0.0


def findings(scores: Scores, before: Standing | None, place: Lead, seen: Seen) -> list[Finding]:
    """What is to be told of the lead."""
    if before is None:
        return [_now_there_is_one(scores, place.now)] if place.now is not None else []
    lost = _lost(scores, before, place.before, seen)
    if lost is not None:
        return [lost, *_heir(scores, place.now)]
    old, now = place.before, place.now
    assert old is not None
    moved = _moved(before, standing_of(scores, old))
    return moved if now in (None, old) else [_flip(scores, place, seen), *moved]


def _now_there_is_one(scores: Scores, now: int) -> Finding:
    best = standing_of(scores, now)
    return Finding(
        code="now_possible",
        weight="falls",
        message=f"no offer met the constraints; {best.offer} does now ({_utility(scores, now)})",
        about=best.machine.instance_type,
        tests=(best.machine,) if best.source == "predicted" else (),
    )


def _lost(scores: Scores, before: Standing, i: int | None, seen: Seen) -> Finding | None:
    """Why the offer that led is none any more."""
    name, kind = before.offer, before.machine.instance_type
    if i is None:
        if (before.machine.provider, kind) in seen.types:
            said = f"{name} is not in the catalog any more; {kind} is still sold otherwise"
            return Finding(code="offer_gone", weight="falls", message=said, about=name)
        said = f"{name} is not to be had any more: the catalog has no {kind}"
        return Finding(code="type_gone", weight="falls", message=said, about=kind)
    if scores.counts[i]:
        return None
    out = int(scores.excluded[i])
    if out < 0:
        said = f"{name} is not ranked any more: its utility is unknown, or it may miss a limit"
        return Finding(code="not_ranked", weight="falls", message=said, about=name)
    constraint = scores.question.constraints[out]
    if constraint.name == "price unknown":
        said = f"the price of {name} is unknown now"
    else:
        said = f"{name} is ruled out now, by {constraint.name}: {constraint.met}"
    return Finding(code="ruled_out", weight="falls", message=said, about=constraint.name)


def _heir(scores: Scores, now: int | None) -> list[Finding]:
    if now is None:
        said = "no other offer meets the constraints"
        return [Finding(code="none_left", weight="falls", message=said)]
    best = standing_of(scores, now)
    said = f"{best.offer} leads now, {best.source} at {_utility(scores, now)}"
    tests = (best.machine,) if best.source == "predicted" else ()
    return [Finding(code="leads_now", weight="note", message=said, about=best.offer, tests=tests)]


def _flip(scores: Scores, place: Lead, seen: Seen) -> Finding:
    """Another offer leads: for certain, within the noise, or by a prediction."""
    new, old = place.now, place.before
    assert new is not None
    assert old is not None
    rows, gain = scores.rows, gain_of(scores, place)
    one, other = standing_of(scores, new), standing_of(scores, old)
    said = (
        f"{one.offer} leads now with {_utility(scores, new)}, against {_utility(scores, old)} "
        f"of {other.offer}"
    )
    if gain is not None and gain > 0:  # what is measured leads what is predicted, at any value
        said += f": {gain:+.1%}"
    said += _because(scores, new, old, seen)
    about = f"{one.machine.instance_type} {rows.bought[new]}"
    both = (one.machine, other.machine)
    same = rows.shape[new] == rows.shape[old] and rows.machines[new] == rows.machines[old]
    several = len(scores.terms) > 1
    apart = scores.low[new] > scores.high[old] or scores.high[new] < scores.low[old]
    if gain is not None and gain < LEAST_GAIN and (same or one.source == other.source):
        return Finding(code="about_equal", weight="note", message=said, about=about)
    if one.source != other.source and not (rows.measured[new] and apart and (gain or 0) > 0):
        said += "; a measurement goes before a prediction, and only a test of both is certain"
        return Finding(code="lead_open", weight="open", message=said, about=about, tests=both)
    if same or (rows.measured[new] and (apart or several)):
        return Finding(code="lead_lost", weight="falls", message=said, about=about)
    why = "their intervals overlap" if rows.measured[new] else "both are predicted"
    said += f"; {why}, so only a test of both can tell"
    return Finding(code="lead_open", weight="open", message=said, about=about, tests=both)


def _because(scores: Scores, new: int, old: int, seen: Seen) -> str:
    """What moved: the price of the one, or of the other."""
    words = []
    for i in (new, old):
        name, service = str(scores.rows.offer[i]), scores.rows.service[i] or ""
        was, price = seen.prices.get(f"{name}{service}"), float(scores.rows.price[i])
        if int(scores.rows.row[i]) in seen.was:
            was = seen.was[int(scores.rows.row[i])]
        now = price / float(scores.rows.machines[i])
        if was and math.isfinite(was) and now > 0 and abs(now / was - 1) > LEAST_MOVE:
            words.append(f"{name} went from {was:.4g} to {now:.4g} USD/h")
    return f" ({'; '.join(words)})" if words else ""


def _moved(before: Standing, now: Standing) -> list[Finding]:
    """The price of the offer that led, where it moved without a flip."""
    was, price = before.price_per_hour, now.price_per_hour
    if was is None or price is None or abs(price / was - 1) <= LEAST_MOVE:
        return []
    said = f"{before.offer} went from {was:.4g} to {price:.4g} USD/h ({price / was - 1:+.1%})"
    return [Finding(code="price_moved", weight="note", message=said)]


def _utility(scores: Scores, i: int) -> str:
    term = scores.question.utility.first
    unit = term.unit or f"({term.expression.text})"
    value = float(scores.value[i])
    return f"{shown(value)} {unit}" if math.isfinite(value) else "an unknown utility"


def runner_up(scores: Scores, now: int) -> Machine | None:
    """The measured machine that comes next after the one that leads; None where there is none."""
    rows, found = scores.rows, None
    others: Mapping[int, float] = {
        i: float(scores.terms[0][i])
        for i in range(len(rows.row))
        if scores.counts[i] and rows.measured[i] and rows.shape[i] != rows.shape[now]
    }
    if others:
        found = machine_of(scores, max(others, key=lambda i: others[i]))
    return found
