"""What a decision takes for granted, and what there is to doubt about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from underdog.core import shapes
from underdog.core.evidence import ACCELERATOR_UNUSED, has_interval
from underdog.core.metrics import METRICS
from underdog.model import Caveat

if TYPE_CHECKING:
    from underdog.core.choosing import Choice


def assumptions(choice: Choice) -> list[str]:
    """What the figures take for granted, in words."""
    request, utility = choice.request, choice.request.utility
    made = [
        "What was measured on an instance type holds for it in every region and however it is "
        "bought.",
        "Predictions count one accelerator of a machine; their 95 % intervals hold what more of "
        "them may do.",
    ]
    made += [
        f"Of '{term.expression.text}', {term.better} is better."
        for term in utility.terms
        if term.expression.text.lower() not in METRICS
    ]
    if max(request.machines) > 1:
        made.append(
            "Several machines on one job scale linearly at best (the upper end) and with an "
            f"efficiency of {shapes.LEAST_EFFICIENCY:.0%} at least (the lower end); the value is "
            "the middle."
        )
    if any(
        not has_interval(trial.measurement.samples_per_second)
        for found in choice.evidence
        for trial in found.trials
        if trial.measurement and trial.measurement.samples_per_second
    ):
        made.append("A single throughput that came without an interval is taken as ±5 %.")
    if utility.uses("samples_per_kwh", "kg_co2e"):
        made.append(
            "Where no power was measured, the accelerators draw their limit and the host nothing."
        )
    return made


def caveats(choice: Choice) -> list[Caveat]:
    """Doubts about the question, and trials that do not count."""
    found = []
    if choice.faster_is_worse():
        found.append(
            Caveat(
                code="faster_is_worse",
                message=f"By '{choice.request.utility.text}' the same machine would score worse "
                "if it were faster.",
                remedy="Add --minimize if less of it is better.",
            )
        )
    for evidence in choice.evidence:
        name = evidence.shape.instance_type
        if evidence.estimate is None and evidence.faults:
            if evidence.shape in choice.shapes.names:  # others are not asked about
                found.append(_does_not_count(name, evidence.faults))
        elif evidence.estimate is not None and evidence.shape not in choice.shapes.names:
            message = (
                f"{name} was measured at {evidence.estimate.value:.4g} samples/s, but its price is "
                "unknown, so it is no offer here."
            )
            remedy = "Give its price to the measurement: underdog measure --price."
            found.append(Caveat(code="price_unknown", message=message, remedy=remedy))
    return found


def _does_not_count(name: str, faults: list[str]) -> Caveat:
    several = f"None of {len(faults)} trials on {name} counts"
    what = several if len(faults) > 1 else f"A trial on {name} does not count"
    remedy = "Repeat it."
    if faults[-1] == ACCELERATOR_UNUSED:
        remedy = "Let the script use the accelerator, or take it out of the offer."
    return Caveat(code="trial_does_not_count", message=f"{what}: {faults[-1]}.", remedy=remedy)
