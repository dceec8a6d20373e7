"""The answer of a decision and its runner-up, one sentence each."""

from __future__ import annotations

from collections.abc import Sequence

from underdog.core.views.records import Point, Range
from underdog.core.views.words import amount, brief, plain, text_of, unit_words, with_interval
from underdog.model import Decision


def answer(decision: Decision, points: Sequence[Point]) -> str:
    """What to run where, what that gives, and how sure it is.

    Args:
        points: the ranked ones, the best first.
    """
    if not points:
        return _nothing(decision)
    best = points[0]
    told = f"Run {brief(decision.workload, 60)} on {machine(best)}"
    figures = _figures(decision, best.utility)
    if figures:
        told += f": {figures}"
    if best.source == "measured":
        return f"{told}, measured."
    if best.source == "predicted":
        return _only_predicted(decision, best, figures)
    return f"{told}."


def _only_predicted(decision: Decision, best: Point, figures: str) -> str:
    """Where nothing measured leads: what to test, and not what to run."""
    about = f" ({figures})" if figures else ""
    return (
        f"Test {machine(best)} for {brief(decision.workload, 60)}: by prediction alone it comes "
        f"first{about}, and no machine that was measured can be ranked here."
    )


def runner_up(decision: Decision, points: Sequence[Point]) -> str | None:
    """How far the second is behind, or that it cannot be told apart; None where there is none."""
    if len(points) < 2:
        return None
    best, second = points[:2]
    told = f"The runner-up, {machine(second)}"
    figures = _figures(decision, second.utility)
    about = f" ({figures}, {second.source})" if figures and second.source != "unknown" else ""
    if best.source == "measured" and second.source == "predicted":
        return f"{told}, was not tested: {_promise(decision, best.utility, second.utility)}{about}."
    if best.offer in second.tied_with or second.offer in best.tied_with:
        return f"{told}, cannot be told apart: the intervals overlap{about}."
    behind = _behind(decision, best.utility, second.utility)
    return f"{told}, {behind}{about}."


def machine(point: Point) -> str:
    """``aws g5.xlarge in us-east-1 (spot)``, with the number of machines where it is not one."""
    many = f"{point.nodes} × " if point.nodes > 1 else ""
    if not point.instance_type:
        return f"{many}{brief(point.offer)}"
    if point.provider == "local" and point.region in ("here", ""):
        return f"this machine ({brief(point.instance_type, 60)})"
    said = f"{many}{brief(point.provider, 40)} {brief(point.instance_type, 60)}"
    if point.region:
        said += f" in {brief(point.region, 40)}"
    return said if point.purchase == "on-demand" else f"{said} ({brief(point.purchase, 40)})"


def _figures(decision: Decision, utility: Range | None) -> str:
    return "" if utility is None else with_interval(utility, unit_words(decision.utility))


def _behind(decision: Decision, best: Range | None, second: Range | None) -> str:
    if best is None or second is None:
        return "comes next"
    if "," in decision.utility:
        return "comes next by the rule"
    loss = _ahead(decision, second, best)
    if loss is None or loss <= 0:
        return "comes next"
    return f"is {plain(100 * loss, 2)} % {'behind' if decision.better == 'higher' else 'above'}"


def _promise(decision: Decision, best: Range | None, second: Range | None) -> str:
    gain = _gain(decision, best, second)
    if gain is None:
        return "only a test can tell"
    if gain <= 1:
        return "it is predicted to be no better"
    return f"it is predicted to be {amount(gain, 2)} times as good, which only a test can tell"


def _ahead(decision: Decision, worse: Range, better: Range) -> float | None:
    """By which share of the better one the worse one is off."""
    if better.value == 0:
        return None
    sign = 1 if decision.better == "higher" else -1
    return sign * (better.value - worse.value) / abs(better.value)


def _gain(decision: Decision, best: Range | None, other: Range | None) -> float | None:
    """How many times as good the other one is; None where a value is unknown or not positive."""
    if best is None or other is None or best.value <= 0 or other.value <= 0:
        return None
    ratio = other.value / best.value
    return ratio if decision.better == "higher" else 1 / ratio


def _nothing(decision: Decision) -> str:
    out = [line for line in decision.funnel if line.get("verdict") == "excluded"]
    if not out:
        return (
            f"No offer can be ranked for {brief(decision.workload, 60)}: nothing could be "
            "predicted from what was measured."
        )
    cause = text_of(out[0].get("cause"))
    said = next((c for c in decision.constraints if c.startswith(f"{cause}:")), cause)
    count = out[0].get("offers")
    among = f"{count:,} of {decision.candidates:,}" if isinstance(count, int) else "most"
    return f"No offer meets the constraints: {among} are out by {brief(said, 160)}."
