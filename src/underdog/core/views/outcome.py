"""What a search came to and what it cost, in sentences."""

from __future__ import annotations

from underdog.core.exploration import WHY
from underdog.core.views.facts import knob_text
from underdog.core.views.records import StudyView, TestLine
from underdog.core.views.words import amount, brief, interval, plain, plural, range_of, unit_words

_COMPLETE = (WHY["enough"], WHY["exhausted"])  # ends after which nothing is left to hope for


def outcome(view: StudyView) -> list[str]:
    """The sentences, what was found first."""
    tests = [test for test in view.tests if test.number]
    among = "" if view.candidates is None else f" of {plural(view.candidates, 'candidate')}"
    told = [_found(view), f"{plural(len(tests), 'test')}{among}{_cost(view, tests)}."]
    if view.saved:
        told.append(f"${plain(view.saved)} saved by stopping tests that could not win.")
    if view.running:
        running = sum(test.status == "running" for test in tests)
        told.append(f"{running:,} of them run{'s' * (running == 1)}.")
    elif view.ended:
        told.append(f"Ended: {view.ended}.")
    if view.expected_loss is not None and view.best is not None:
        said = f"Expected loss of stopping now: {100 * view.expected_loss:.2g} % of the best there"
        told.append(f"{said} may be.")
    return told


def _found(view: StudyView) -> str:
    if view.best is None:
        return "No candidate works." if view.ended in _COMPLETE else "Nothing works so far."
    knobs = f" ({brief(knob_text(view.best_knobs), 200)})" if view.best_knobs else ""
    said = f"Best found: {brief(view.best)}{knobs}"
    if view.best_utility is not None:
        said += f": {amount(view.best_utility)} {unit_words(view.utility)}"
    test = next((test for test in view.tests if _is_best(view, test)), None)
    rate = None if test is None else range_of(test.rate)
    if rate is None:
        return f"{said}."
    return f"{said}, at {amount(rate.value)} samples per second{interval(rate)}."


def _is_best(view: StudyView, test: TestLine) -> bool:
    return test.offer == view.best and test.knobs == view.best_knobs and test.rate is not None


def _cost(view: StudyView, tests: list[TestLine]) -> str:
    ended = [test for test in tests if test.status != "running"]
    unpriced = sum(test.dollars is None for test in ended)
    if not ended:
        return ""
    if unpriced and not view.spent:
        return ", cost unknown"
    more = f" beside {unpriced:,} of unknown cost" if unpriced else ""
    return f", ${plain(view.spent)} spent{more}"
