"""What puts a decision in doubt although its offer leads: only a test can tell."""

from __future__ import annotations

import math

import numpy as np

from underdog.core import next_tests
from underdog.core.choosing import COST_COLUMNS
from underdog.core.evidence import shape_of
from underdog.core.rescoring import Scores
from underdog.core.versions import is_newer
from underdog.core.watch_lead import machine_of, runner_up, standing_of
from underdog.core.watched import Finding, Machine, Seen, Standing, moment
from underdog.model import Decision, Trial
from underdog.units import format_seconds

GAIN = 0.05  # the least expected gain of a new type that is told: that of the search
MOST = 3  # contenders that are told


def contenders(scores: Scores, now: int, before: Standing | None, seen: Seen) -> list[Finding]:
    """Offers that are new or cheaper and could win by prediction.

    A new type counts by the expected gain of its test; one that was known counts where its middle
    prediction beats the offer that leads, and did not at its price of before.
    """
    rows, sign = scores.rows, scores.question.utility.first.sign
    if not rows.measured[now]:
        return []  # the best prediction leads already
    if not seen.compared:
        said = "its catalog is not kept any more, so what is new or cheaper cannot be told"
        return [Finding(code="not_compared", weight="note", message=said)]
    best = float(scores.value[now])
    new = np.isin(rows.row, list(seen.new_types))
    better = sign * scores.value > sign * best
    may = np.flatnonzero(scores.counts & ~rows.measured & (new | better)).tolist()
    may = [i for i in may if new[i] or _is_news(scores, i, before, seen)]
    if not may:
        return []
    among = np.array(may)
    ends = [part[among] for part in (scores.value, scores.low, scores.high)]
    gain = next_tests.expected_gain(*ends, best=best, sign=sign)
    cost = rows.price[among] * next_tests.TEST_MINUTES / 60
    family = [str(rows.family[i]) for i in may]
    chosen = next_tests.diverse(gain, cost, family, MOST, GAIN)
    return [_contender(scores, may[k], now, float(gain[k]), seen) for k in chosen]


def _is_news(scores: Scores, i: int, before: Standing | None, seen: Seen) -> bool:
    """Whether a cheaper offer did not beat the one that led then.

    A utility moves by the factor of the price at most, so it did where it would have even so.
    """
    row, term = int(scores.rows.row[i]), scores.question.utility.first
    was = seen.was.get(row)
    if was is None or not scores.question.utility.uses(*COST_COLUMNS):
        return False
    led = before.utility.get("value") if before is not None and before.utility else None
    if led is None or not was > 0:
        return True
    factor = float(scores.rows.price[i]) / (was * float(scores.rows.machines[i]))
    then = float(scores.value[i]) * (factor if term.sign > 0 else 1 / factor)
    return not term.sign * then > term.sign * float(led)


def _contender(scores: Scores, i: int, now: int, gain: float, seen: Seen) -> Finding:
    one, row = standing_of(scores, i), int(scores.rows.row[i])
    term = scores.question.utility.first
    unit = term.unit or term.expression.text
    said = (
        f"predicted at {scores.value[i]:,.4g} ({scores.low[i]:,.4g} to {scores.high[i]:,.4g}) "
        f"{unit}, against {scores.value[now]:,.4g} measured on {scores.rows.offer[now]}; a test "
        f"gains {gain:.0%} on average"
    )
    if row in seen.new_types:
        code, about = "new_type", f"{one.offer} is new: {said}"
    else:
        was, price = seen.was[row], float(scores.rows.price[i]) / one.machine.nodes
        before = f"from {was:.4g} " if math.isfinite(was) else "from an unknown price "
        code, about = "cheaper", f"{one.offer} went {before}to {price:.4g} USD/h: {said}"
    return Finding(
        code=code,
        weight="open",
        message=about,
        about=one.machine.instance_type,
        tests=(one.machine,),
    )


def versions(scores: Scores, now: int, seen: Seen) -> list[Finding]:
    """Newer releases of the framework or driver among the recorded trials."""
    trial = _latest(scores, now, seen)
    if trial is None:
        return []
    software, found = trial.software, []
    framework = software.framework or ""
    for name, version in ((framework, software.framework_version), ("driver", software.driver)):
        newer = seen.versions.get(name)
        if version and newer and is_newer(newer, version):
            found.append(
                Finding(
                    code="new_release",
                    weight="open",
                    message=f"{name} {newer} is recorded; {scores.rows.offer[now]} was measured "
                    f"with {version}",
                    about=f"{name} {newer}",
                    tests=(machine_of(scores, now),),
                )
            )
    return found


def age(scores: Scores, now: int, seen: Seen) -> list[Finding]:
    """A measurement of the offer that leads that is too old, or of a time that cannot be."""
    trial = _latest(scores, now, seen)
    began = moment(trial.started_at) if trial else None
    if trial is None or began is None:
        return []
    seconds = (seen.now - began).total_seconds()
    name = scores.rows.offer[now]
    if seconds < -86400:
        said = f"the measurement of {name} is dated {trial.started_at[:10]}, in the future"
        return [Finding(code="clock", weight="note", message=said)]
    if seconds <= seen.oldest_seconds:
        return []
    return [
        Finding(
            code="old_measurement",
            weight="open",
            message=f"{name} was measured {format_seconds(seconds)} ago, on "
            f"{trial.started_at[:10]}; {format_seconds(seen.oldest_seconds)} is the limit",
            about=str(scores.rows.machine[now][1]),
            tests=(machine_of(scores, now),),
        )
    ]


def _latest(scores: Scores, now: int, seen: Seen) -> Trial | None:
    """The latest trial on the machine that leads, where it was measured."""
    if not scores.rows.measured[now]:
        return None
    kind = scores.rows.machine[now]
    on_it = [trial for trial in seen.trials if shape_of(trial)[:2] == kind]
    return max(on_it, key=lambda t: (t.started_at, t.id), default=None)


def expiry(decision: Decision, seen: Seen) -> list[Finding]:
    """A decision past its day: prices since then judge it anew, where there are any."""
    end, made = moment(decision.expires_at), moment(decision.created_at)
    if made is not None and (made - seen.now).total_seconds() > 86400:
        said = f"the decision is dated {decision.created_at[:10]}, in the future: a clock was wrong"
        return [Finding(code="clock", weight="note", message=said)]
    if end is None or end > seen.now:
        return []
    day = decision.expires_at[:10]
    if decision.snapshot == seen.catalog:
        said = f"it expired on {day}, and no newer prices are here: underdog catalog refresh"
        return [Finding(code="expired", weight="open", message=said, about="prices")]
    said = f"it expired on {day}; it is judged by the catalog of {seen.catalog_date}"
    return [Finding(code="expired", weight="note", message=said)]


def changes(scores: Scores, now: int, seen: Seen) -> list[Finding]:
    """Changes of level in the user's own throughput that the decision has not seen."""
    kind, found = scores.rows.machine[now], []
    for shift in seen.shifts:
        mine, fell = shift.shape[:2] == kind, shift.ratio.value < 1
        word = "fell" if fell else "rose"
        said = (
            f"throughput on {shift.machine} {word} by {abs(shift.ratio.value - 1):.0%} "
            f"({shift.ratio.low - 1:+.0%} to {shift.ratio.high - 1:+.0%}) from "
            f"{shift.since[:10]} on{_with(shift.changed)}"
        )
        tests: tuple[Machine, ...] = ()
        if mine and fell:
            other = runner_up(scores, now)
            if other is None:
                tests = (machine_of(scores, now),)
            elif not _measured_since(shift.since, other, seen):
                said += f"; {other.instance_type} was not measured since"
                tests = (other,)
        found.append(
            Finding(
                code="regression" if fell else "gain",
                weight="open" if tests else "note",
                message=said,
                about=f"{shift.machine} {shift.first}",
                tests=tests,
            )
        )
    return found


def _measured_since(moment_: str, machine: Machine, seen: Seen) -> bool:
    kind = machine[:2]
    return any(t.started_at >= moment_ and shape_of(t)[:2] == kind for t in seen.trials)


def _with(changed: dict[str, tuple[str, str]]) -> str:
    named = [f"{name} {old[:20]} to {new[:20]}" for name, (old, new) in changed.items()]
    if not named:
        return ", with no change of software that was recorded"
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    return f", with {', '.join(named[:3])}{more}"
