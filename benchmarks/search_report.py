"""The figures of ``benchmarks/search.py``: summed up over workloads, printed beside the bars."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from search_data import Task

TESTS = 10
SHOWN = (1, 3, 5, 10)
GOOD = 0.9  # of the best: what "tests to 90 %" waits for
# set -> (bar at 5 tests, bar at 10, goal at 5, goal at 10, bar of the worst workload at 10)
BARS: dict[str, tuple[float | None, ...]] = {
    "llm_three_clouds/aws": (0.82, 0.94, 0.95, 0.99, 0.60),
    "llm_three_clouds": (0.80, 0.93, 0.95, 0.99, 0.60),
    "llm_three_clouds/at least 10": (0.70, 0.90, None, None, None),
    "scout": (0.92, 0.97, 0.95, 0.99, 0.85),
    "cherrypick": (0.92, 0.985, 0.96, 1.0, None),
}
DOLLARS_BAR = 0.5
STOP_BARS = {"scout": (0.03, 0.12), "cherrypick": (0.03, 0.12)}  # median, ninetieth percentile
OURS, RIVAL = "underdog", "gaussian process"


def summary(
    name: str, tasks: Sequence[Task], runs: dict[str, list[list[dict[str, Any]]]], folder: Path
) -> dict[str, Any]:
    """All figures of one set: of each policy, over its workloads."""
    policies = {policy: _of_policy(found) for policy, found in runs.items()}
    recorded = folder / "recorded_searches.csv"
    if recorded.exists():
        policies |= _recorded(recorded)
    if RIVAL in policies:
        for policy, figures in policies.items():
            if policy != RIVAL and "dollars" in figures:
                figures["dollars_against"] = _against(figures, policies[RIVAL])
    return {
        "set": name,
        "workloads": len(tasks),
        "offers": max(len(task.quality) for task in tasks),
        "policies": policies,
        "runs": {policy: list(itertools.chain(*found)) for policy, found in runs.items()},
    }


def _of_policy(found: Sequence[Sequence[dict[str, Any]]]) -> dict[str, Any]:
    """Means over the seeds of each workload first; then over the workloads."""
    best, spent = (
        np.array([np.mean([_padded(run[name]) for run in seeds], axis=0) for seeds in found])
        for name in ("best", "dollars")
    )
    every = list(itertools.chain(*found))
    figures = _curves(best)
    figures["dollars"] = [float(value) for value in spent.mean(axis=0)]
    figures["optimum_found"] = float(
        np.mean([np.mean([run["best"][:TESTS][-1] > 1 - 1e-9 for run in seeds]) for seeds in found])
    )
    figures["tests_to_90"] = float(np.median([_tests_to(run["best"], GOOD) for run in every]))
    figures["reached_90"] = float(np.mean([_tests_to(run["best"], GOOD) <= TESTS for run in every]))
    figures["seconds_per_decision"] = float(np.mean([r["seconds_per_decision"] for r in every]))
    figures["stop"] = _stops(every)
    return figures


def _curves(best: np.ndarray[Any, Any]) -> dict[str, Any]:
    """From best-so-far of shape (workloads, tests)."""
    return {
        "mean": [float(value) for value in best.mean(axis=0)],
        "tenth_percentile": [float(value) for value in np.quantile(best, 0.1, axis=0)],
        "worst": [float(value) for value in best.min(axis=0)],
        "by_workload": [[float(value) for value in row] for row in best],
    }


def _padded(values: Sequence[float]) -> list[float]:
    """The first ten; where there were fewer candidates, the last one stands."""
    return [values[min(k, len(values) - 1)] for k in range(TESTS)]


def _tests_to(best: Sequence[float], share: float) -> float:
    return next((k + 1 for k, value in enumerate(best) if value >= share), np.inf)


def _stops(runs: Sequence[dict[str, Any]]) -> dict[str, float] | None:
    stopped = [run for run in runs if run["stopped_after"] is not None]
    if not stopped:
        return None
    loss = [run["loss_where_stopped"] for run in stopped]
    expected = [run["expected_loss"] for run in stopped if run["expected_loss"] is not None]
    return {
        "share": len(stopped) / len(runs),
        "tests": float(np.median([run["stopped_after"] for run in stopped])),
        "most_tests": float(max(run["stopped_after"] for run in stopped)),
        "loss_median": float(np.median(loss)),
        "loss_90": float(np.quantile(loss, 0.9)),
        "loss_mean": float(np.mean(loss)),
        "expected_loss_mean": float(np.mean(expected)) if expected else float("nan"),
    }


def _recorded(path: Path) -> dict[str, Any]:
    """Searches that their authors recorded: best so far over best, by policy."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = {}
    for policy in dict.fromkeys(row["policy"] for row in rows):
        mine = [row for row in rows if row["policy"] == policy]
        curve = np.array([[float(row[f"k{k}"]) for k in range(1, TESTS + 1)] for row in mine])
        found[f"{policy} (recorded)"] = _curves(curve)
    return found


def _against(mine: dict[str, Any], rival: dict[str, Any]) -> dict[str, float | None]:
    """Dollars to the quality that the rival has after 5 and 10 tests, over what it spent."""
    found: dict[str, float | None] = {}
    for k in (5, 10):
        reached = _tests_to(mine["mean"], rival["mean"][k - 1])
        ratio = None
        if reached <= TESTS:
            ratio = mine["dollars"][int(reached) - 1] / rival["dollars"][k - 1]
        found[str(k)] = ratio
    return found


def print_set(result: dict[str, Any], each: bool = False) -> None:
    """One table for people."""
    offers, workloads = result["offers"], result["workloads"]
    print(f"\n{result['set']}: {workloads} workloads, up to {offers:,} offers")
    heads = [f"@{k}" for k in SHOWN] + ["p10@5", "p10@10", "worst@10"]
    print(f"{'policy':<22}" + "".join(f"{head:>9}" for head in heads), end="")
    print(f"{'optimum':>9}{'to 90 %':>9}{'$ of 10':>9}{'$/GP @5':>9}{'@10':>7}{'ms each':>9}")
    for policy, figures in result["policies"].items():
        _print_policy(policy, figures)
    _print_bars(result)
    _print_stops(result)
    if each and OURS in result["policies"]:
        names = list(dict.fromkeys(run["workload"] for run in result["runs"][OURS]))
        for name, row in zip(names, result["policies"][OURS]["by_workload"], strict=True):
            print(f"  {name:<32}" + "".join(f"{value:>7.3f}" for value in row))


def _print_policy(policy: str, figures: dict[str, Any]) -> None:
    cells = [f"{figures['mean'][k - 1]:.3f}" for k in SHOWN]
    cells += [f"{figures['tenth_percentile'][k - 1]:.3f}" for k in (5, 10)]
    cells.append(f"{figures['worst'][9]:.3f}")
    if "dollars" in figures:
        cells += [f"{figures['optimum_found']:.0%}", f"{figures['tests_to_90']:.3g}"]
        cells.append(f"{figures['dollars'][9]:.2f}")
    else:
        cells += [""] * 3
    ratios = figures.get("dollars_against", {})
    shown = ["" if ratios.get(k) is None else f"{ratios[k]:.2f}" for k in ("5", "10")]
    milliseconds = figures.get("seconds_per_decision")
    last = "" if milliseconds is None else f"{1000 * milliseconds:.1f}"
    print(f"{policy:<22}" + "".join(f"{cell:>9}" for cell in cells), end="")
    print(f"{shown[0]:>9}{shown[1]:>7}{last:>9}")


def _print_bars(result: dict[str, Any]) -> None:
    bars = BARS.get(result["set"])
    if bars is None:
        return
    five, ten, goal_five, goal_ten, worst = bars
    goals = "" if goal_five is None else f"{goal_five:>9.3f}{goal_ten:>9.3f}"
    print(f"{'bar':<22}{'':>18}{five:>9.3f}{ten:>9.3f}", end="")
    print(f"{'':>18}{worst:>9.2f}" if worst else "")
    if goals:
        print(f"{'goal':<22}{'':>18}{goals}")
    if OURS not in result["policies"]:
        return
    mine = result["policies"][OURS]
    pairs = [("@5", mine["mean"][4], five), ("@10", mine["mean"][9], ten)]
    pairs += [("worst@10", mine["worst"][9], worst)] if worst else []
    said = [f"{name} {value - bar:+.3f}" for name, value, bar in pairs if bar is not None]
    ratios = mine.get("dollars_against", {})
    said += [f"$ @{k} {'never' if r is None else f'{r:.2f}'} (bar .5)" for k, r in ratios.items()]
    print(f"{OURS} against the bar: {', '.join(said)}")


def _print_stops(result: dict[str, Any]) -> None:
    for policy, figures in result["policies"].items():
        stop = figures.get("stop")
        if stop is None:
            continue
        line = (
            f"{policy} stops by itself in {stop['share']:.0%} of searches, after "
            f"{stop['tests']:g} tests (most {stop['most_tests']:g}): loss median "
            f"{stop['loss_median']:.1%}, p90 {stop['loss_90']:.1%}, mean {stop['loss_mean']:.1%}"
        )
        if policy == OURS:
            line += f", it expected {stop['expected_loss_mean']:.1%}"
            bars = STOP_BARS.get(result["set"])
            line += f" (bar {bars[0]:.0%}, {bars[1]:.0%})" if bars else ""
        print(line)


def print_timing(found: Iterable[dict[str, Any]]) -> None:
    """Processor seconds of one decision."""
    titles = (
        f"{'candidates':>10}{'references':>12}{'start':>9}{'median':>9}{'worst':>9}{'target':>9}"
    )
    print(titles)
    for row in found:
        cells = "".join(f"{row[name]:>8.3f}s" for name in ("start", "median", "worst"))
        print(f"{row['candidates']:>10,}{row['references']:>12}{cells}{row['target']:>8.1f}s")
