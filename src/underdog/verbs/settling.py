"""Running the tests that would settle a decision, where they can be run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from underdog.core.evidence import shape_of, shape_of_machine
from underdog.core.watched import Test
from underdog.errors import UnderdogError
from underdog.measuring.machine import describe
from underdog.measuring.nvml import Nvml
from underdog.model import Trial
from underdog.store import open_store
from underdog.verbs.measure import Settings, measure_all

_STANDARD_ERROR = 2  # the script's output is no data of ours


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What came of a test: the id of its trial and what it cost, or why it was not run."""

    test: Test
    trial: str | None = None
    status: str | None = None
    dollars: float = 0.0
    reason: str | None = None


def this_machine() -> tuple[str, str]:
    """Provider and instance type of this machine, as its trials have them."""
    nvml = Nvml()
    machine = describe(nvml)
    nvml.close()
    provider, kind, _ = shape_of_machine(machine)
    return provider, kind


def settle(
    tests: Sequence[Test], budget: float, store: str | None, tell: Callable[[str], None]
) -> list[Done]:
    """Run the tests that are on this machine, the cheapest first, as far as the budget goes.

    Raises:
        KeyboardInterrupt: the user ended one; what was measured is kept.
    """
    spent, done = 0.0, []
    for test in tests:
        example = _example(test, store)
        reason = _why_not(test, example, budget - spent)
        if reason is not None or example is None:
            tell(f"not run: {test.workload} on {test.offer}: {reason}")
            done.append(Done(test=test, reason=reason))
            continue
        tell(f"measuring {test.workload} on this machine")
        one = _run(test, example, store)
        spent += one.dollars
        done.append(one)
        if one.status == "interrupted":
            raise KeyboardInterrupt
    return done


def _example(test: Test, store: str | None) -> Trial | None:
    """The latest trial of the workload that tells its command, of that machine if there is one."""
    with open_store(store) as opened:
        trials = [t for t in opened.trials(workload=test.workload) if t.command]
    alike = [t for t in trials if shape_of(t)[:2] == test.machine[:2]]
    return max(alike or trials, key=lambda t: (t.started_at, t.id), default=None)


def _why_not(test: Test, example: Trial | None, left: float) -> str | None:
    if example is None:
        return "no trial of it tells its command"
    if not test.here:
        command = shlex.join(example.command)
        return (
            "it is not this machine. There, with this store: "
            f"underdog measure --workload {shlex.quote(test.workload)} -- {command}"
        )
    if test.dollars is None:
        return "its price is unknown, so no budget can be kept"
    if test.dollars > left:
        return f"it may cost ${test.dollars:.4g}, and ${max(left, 0):.4g} of the budget is left"
    return None


def _run(test: Test, example: Trial, store: str | None) -> Done:
    assert test.dollars is not None
    per_hour = test.dollars / test.minutes * 60
    try:
        (trial,) = measure_all(
            Settings(
                command=example.command,
                seconds=test.minutes * 60,
                workload=test.workload,
                price=per_hour,
                store=store,
            ),
            stdout_to=_STANDARD_ERROR,
        )
    except UnderdogError as error:
        return Done(test=test, reason=error.message)
    elapsed = trial.usage.get("elapsed_seconds") or test.minutes * 60
    trial = replace(trial, knobs=example.knobs, dollars=per_hour * elapsed / 3600)
    with open_store(store) as opened:
        opened.save(trial)
    return Done(
        test=test,
        trial=trial.id,
        status=trial.status,
        dollars=trial.dollars or 0.0,
        reason=trial.reason,
    )
