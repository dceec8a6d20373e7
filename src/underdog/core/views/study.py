"""The view of a search: its tests in order, what they came to, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from underdog.core.exploration import WHY, Why
from underdog.core.origin import price_of
from underdog.core.tested import doubt_of, rate_of, setting_of
from underdog.core.views.records import StudyView, TestLine
from underdog.core.views.trial import place
from underdog.core.views.words import finite, positive, text_of, unit_of
from underdog.model import Decision, Estimate, Trial

Better = Literal["higher", "lower"]
_PER_DOLLAR, _PER_SECOND, _PER_MILLION = (
    "samples_per_dollar",
    "samples_per_second",
    "dollars_per_million_samples",
)


@dataclass(slots=True)
class _Best:
    """The best so far."""

    better: Better
    offer: str | None = None
    knobs: Mapping[str, str] | None = None
    utility: float | None = None

    def see(self, line: TestLine) -> None:
        if line.utility is None:
            return
        sign = 1 if self.better == "higher" else -1
        if self.utility is None or sign * line.utility > sign * self.utility:
            self.offer, self.knobs, self.utility = line.offer, line.knobs, line.utility


def study_view(
    id: str, trials: Sequence[Trial], decision: Decision | None = None
) -> StudyView | None:
    """The view of a study from its trials and the decision that ended it.

    While it runs, and where nobody kept what it came to, nothing says what it maximises: then the
    figures are samples per dollar, or samples per second where a price is unknown.

    Args:
        trials: of the study, in any order.
        decision: the last one of the study.

    Returns:
        None where nothing at all is known of it.
    """
    if not trials and decision is None:
        return None
    ordered = sorted(trials, key=lambda trial: (trial.started_at, trial.id))
    kept = {} if decision is None else decision.exploration
    utility = text_of(kept.get("utility")) or (decision.utility if decision else _shown_by(ordered))
    better: Better = decision.better if decision else "higher"
    lines, best = _lines(ordered, kept, utility, better)
    running = any(trial.status == "running" for trial in ordered)
    named = text_of(kept.get("best")) or None
    own = named is not None and not _went_on(ordered, kept)
    return StudyView(
        id=id,
        workload=ordered[-1].workload if ordered else decision.workload if decision else "",
        utility=utility,
        unit=unit_of(utility),
        better=better,
        running=running,
        candidates=_count(kept.get("candidates")),
        tests=lines,
        spent=lines[-1].spent if lines else 0.0,
        saved=sum(line.saved or 0.0 for line in lines if line.number),
        ended=None if running else _ended(kept.get("ended")),
        expected_loss=finite(kept.get("expected_loss")),
        high_loss=finite(kept.get("high_loss")),
        best=named if own else best.offer,
        best_knobs=_texts(kept.get("best_knobs")) if own else dict(best.knobs or {}),
        best_utility=finite(kept.get("best_utility")) if own else best.utility,
        command=[text for text in _items(kept.get("command")) if isinstance(text, str)],
        beliefs=[dict(b) for b in _items(kept.get("beliefs")) if isinstance(b, Mapping)],
        references=_weights(kept.get("references")),
        decision=decision.id if decision else None,
    )


def _shown_by(trials: Sequence[Trial]) -> str:
    priced = all(price_of(trial) for trial in trials if rate_of(trial) is not None)
    return _PER_DOLLAR if priced else _PER_SECOND


def _lines(
    trials: Sequence[Trial], kept: Mapping[str, Any], utility: str, better: Better
) -> tuple[list[TestLine], _Best]:
    """The tests in the order in which they began, with what they cost up to then."""
    told = {text_of(one.get("trial")): one for one in _tables(kept.get("tests"))}
    told |= {text_of(one.get("trial")): one for one in _tables(kept.get("before"))}
    known = {trial.id for trial in trials}
    rows: list[tuple[Trial | None, Mapping[str, Any]]] = [
        (None, one) for one in told.values() if text_of(one.get("trial")) not in known
    ]
    rows += [(trial, told.get(trial.id, {})) for trial in trials]
    rows.sort(key=lambda row: _order(*row, told=len(told)))
    best, lines, spent, number = _Best(better), [], 0.0, 0
    for trial, one in rows:
        earlier = bool(one) and _count(one.get("number")) == 0
        number += not earlier
        line = _line(0 if earlier else number, trial, one, utility)
        spent += 0.0 if earlier else line.dollars or 0.0
        best.see(line)
        lines.append(_up_to(line, one, best, spent))
    return lines, best


def _order(trial: Trial | None, one: Mapping[str, Any], *, told: int) -> tuple[int, str]:
    """Earlier trials first, then what the search numbered, then what came since."""
    number = _count(one.get("number")) if one else None
    return (told + 1 if number is None else number), trial.started_at if trial else ""


def _line(number: int, trial: Trial | None, one: Mapping[str, Any], utility: str) -> TestLine:
    """One test: what the search kept of it, else what its trial says."""
    rate = _estimate(one.get("rate")) if one else rate_of(trial) if trial else None
    missed = one.get("missed") is True
    return TestLine(
        number=number,
        trial=trial.id if trial else text_of(one.get("trial")),
        offer=text_of(one.get("offer")) or (_named(trial) if trial else "unknown"),
        knobs=_texts(one.get("knobs")) if one else setting_of(trial) if trial else {},
        status=trial.status if trial else text_of(one.get("status")),
        reason=text_of(one.get("reason")) or (trial.reason or doubt_of(trial) if trial else None),
        why=trial.why if trial else None,
        rate=rate,
        # a test that misses a limit of the job is no candidate for the best
        utility=None if missed else _utility(trial, one, rate, utility),
        dollars=finite(trial.dollars if trial else one.get("dollars")),
        saved=positive(trial.usage.get("saved_dollars") if trial else one.get("saved")),
    )


def _up_to(line: TestLine, one: Mapping[str, Any], best: _Best, spent: float) -> TestLine:
    named = text_of(one.get("best")) if one else ""
    utility = finite(one.get("best_utility")) if one else None
    return replace(
        line,
        spent=spent,
        best=named or best.offer,
        best_utility=best.utility if utility is None else utility,
    )


def _named(trial: Trial) -> str:
    """The candidate of a trial; offers of one kind are told apart by a knob."""
    return trial.knobs.get("offer") or place(trial)


def _utility(
    trial: Trial | None, one: Mapping[str, Any], rate: Estimate | None, utility: str
) -> float | None:
    if one:
        return finite(one.get("utility"))
    if trial is None or rate is None:
        return None
    if utility == _PER_SECOND:
        return finite(rate.value)
    price, per_hour = price_of(trial), positive(rate.value * 3600)
    if price is None or per_hour is None:
        return None
    by = {_PER_DOLLAR: per_hour / price, _PER_MILLION: price * 1e6 / per_hour}
    return finite(by.get(utility))


def _went_on(trials: Sequence[Trial], kept: Mapping[str, Any]) -> bool:
    """Whether the study has trials that what was kept does not know."""
    told = {text_of(one.get("trial")) for one in _tables(kept.get("tests"))}
    return any(trial.id not in told for trial in trials)


def _ended(why: Any) -> str | None:
    return WHY[why] if why in get_args(Why) else None


def _estimate(found: Any) -> Estimate | None:
    if not isinstance(found, Mapping):
        return None
    value, low, high = (finite(found.get(name)) for name in ("value", "low", "high"))
    if value is None:
        return None
    return Estimate(
        value=value,
        low=value if low is None else low,
        high=value if high is None else high,
        n=_count(found.get("n")) or 0,
    )


def _weights(found: Any) -> dict[str, float]:
    given = found.items() if isinstance(found, Mapping) else ()
    known = {str(name): finite(weight) for name, weight in given}
    return {name: weight for name, weight in known.items() if weight is not None}


def _texts(found: Any) -> dict[str, str]:
    given = found.items() if isinstance(found, Mapping) else ()
    return {str(name): str(value) for name, value in given}


def _count(found: Any) -> int | None:
    number = finite(found)
    return None if number is None or number < 0 else int(number)


def _items(found: Any) -> Sequence[Any]:
    return found if isinstance(found, list | tuple) else ()


def _tables(found: Any) -> list[Mapping[str, Any]]:
    return [one for one in _items(found) if isinstance(one, Mapping)]
