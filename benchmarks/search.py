"""How good the search is: every set of recorded measurements replayed, beside simple policies.

    python benchmarks/search.py --data ../shared/data/search
    python benchmarks/search.py --sets scout --workloads 1/4 --policies underdog,random
    python benchmarks/search.py --timing

Replays each folder with ``offers.csv`` and ``trials.csv`` (or ``.csv.gz``). For each workload the
best value found so far over the best there is, after 1 to 10 tests: mean, tenth percentile and
worst over workloads. The value is samples per dollar; in "at least 10" it is the cheapest offer of
10 tokens per second. One test costs two minutes of the offer. What the other workloads of a set
say may be used where they are of another group. Where a policy stops by itself, what it leaves on
the table. Public data: llama.cpp on three clouds (Spare Cores, CC BY-SA 4.0), scout (Hsu et al.,
with the recorded searches of the Ruya authors), cherrypick (Alipourfard et al., NSDI'17).

A policy that does the same for two seeds is run once for each workload.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import search_report as report
from search_data import Task, has, read_set, synthetic
from search_policies import POLICIES, Question

TESTS = 10
MOST_TESTS = 40  # a policy that has not stopped by then is taken as one that does not

Run = dict[str, Any]


def replay(policy: str, task: Task, others: Sequence[Task], seed: int) -> Run:
    """One search: what it tested, how good the best was after each test, where it would stop."""
    most = min(MOST_TESTS, len(task.quality))
    question = Question(task.offers, task.least, others, task.workload)
    search = POLICIES[policy](question, seed)
    tested: list[int] = []
    stopped: int | None = None
    expected = math.nan
    began = time.perf_counter()
    step = next(search)
    while len(tested) < most:
        if step.stop and stopped is None:
            stopped, expected = len(tested), step.expected_loss
        if len(tested) >= TESTS and (stopped is not None or not step.stops):
            break
        tested.append(step.index)
        if len(tested) < len(task.quality):
            step = search.send(float(task.throughput[step.index]))
    seconds = (time.perf_counter() - began) / len(tested)
    best = [max(task.quality[tested[: k + 1]]) for k in range(len(tested))]
    spent = [float(task.dollars[tested[: k + 1]].sum()) for k in range(len(tested))]
    loss = None if stopped is None else 1 - (best[stopped - 1] if stopped else 0.0)
    return {
        "workload": task.workload,
        "seed": seed,
        "offers": [task.offers.names[i] for i in tested],
        "best": [float(value) for value in best],
        "dollars": spent,
        "stopped_after": stopped,
        "loss_where_stopped": loss,
        "expected_loss": None if math.isnan(expected) else expected,
        "seconds_per_decision": seconds,
    }


def replay_all(policy: str, task: Task, others: Sequence[Task], seeds: int) -> list[Run]:
    """The searches of all seeds; one alone where chance plays no part."""
    runs = [replay(policy, task, others, seed) for seed in range(min(seeds, 2))]
    if len(runs) == 2 and runs[0]["offers"] == runs[1]["offers"]:
        return runs[:1]
    return runs + [replay(policy, task, others, seed) for seed in range(2, seeds)]


_THREADS = "OPENBLAS_NUM_THREADS"  # times are those of one core
_TASKS: dict[str, list[Task]] = {}  # a forked worker has them without a copy


def _job(job: tuple[str, str, int, int]) -> list[Run]:
    name, policy, place, seeds = job
    task = _TASKS[name][place]
    others = [other for other in _TASKS[name] if other.group != task.group]
    return replay_all(policy, task, others, seeds)


def run_set(
    name: str, policies: Sequence[str], places: Sequence[int], seeds: int, jobs: int
) -> dict[str, list[list[Run]]]:
    """By policy, for each workload the searches of its seeds."""
    work = [(name, policy, place, seeds) for policy in policies for place in places]
    if jobs > 1:
        forked = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(jobs, mp_context=forked) as pool:
            found = list(pool.map(_job, work))
    else:
        found = [_job(job) for job in work]
    by_policy: dict[str, list[list[Run]]] = {policy: [] for policy in policies}
    for job, runs in zip(work, found, strict=True):
        by_policy[job[1]].append(runs)
    return by_policy


def chosen(tasks: Sequence[Task], wanted: str | None) -> list[int]:
    """The workloads to replay: those like a pattern, or a fraction of them such as 1/4."""
    if wanted is None:
        return list(range(len(tasks)))
    part, _, whole = wanted.partition("/")
    if part.isdigit() and whole.isdigit():
        every = int(whole) / int(part)
        return sorted({int(i * every) for i in range(math.ceil(len(tasks) / every))})
    pattern = wanted if "*" in wanted else f"*{wanted}*"
    return [i for i, task in enumerate(tasks) if fnmatch.fnmatch(task.workload, pattern)]


def timing(folder: Path, seed: int) -> Iterator[dict[str, Any]]:
    """Processor seconds of one decision over many candidates, other workloads as references.

    ``start`` is the first one, which looks through the references; the others are after a test,
    whether to stop included.
    """
    tasks = read_set(folder)[folder.name]
    for count, target in ((2_500, 0.3), (100_000, 3.0)):
        task, *rest = synthetic(tasks, count, seed)
        others = [other for other in rest if other.group != task.group]
        search = POLICIES["underdog"](Question(task.offers, None, others, "timing"), seed)
        began = time.process_time()
        step = next(search)
        times = [time.process_time() - began]
        for _ in range(TESTS):
            began = time.process_time()
            step = search.send(float(task.throughput[step.index]))
            times.append(time.process_time() - began)
        later = sorted(times[1:])
        row = {"candidates": count, "references": len(others), "target": target}
        yield row | {"start": times[0], "median": later[len(later) // 2], "worst": later[-1]}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    beside = Path(__file__).parents[2] / "shared" / "data" / "search"
    default = "[default: ../shared/data/search]"
    parser.add_argument("--data", type=Path, default=beside, help=default)
    parser.add_argument("--sets", help="only these, with commas: scout,llm_three_clouds/aws")
    parser.add_argument("--policies", help=f"only these, with commas: {','.join(POLICIES)}")
    parser.add_argument("--workloads", help="only those like this pattern, or a fraction: 1/4")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--each", action="store_true", help="a line for each workload too")
    parser.add_argument("--json", action="store_true", help="every search, as JSON")
    parser.add_argument("--timing", action="store_true", help="time one decision, and no more")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if _THREADS not in os.environ:  # numpy reads it when it is loaded, which is too late for us
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, _THREADS: "1"})
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a set is told at once
    folders = [path for path in sorted(options.data.glob("*")) if has(path, "trials.csv")]
    if not folders:
        print(f"skipped: there is no set in '{options.data}'; give a folder with --data")
        return
    if options.timing:
        many = max(folders, key=lambda path: len(read_set(path)[path.name][0].offers.price))
        report.print_timing(timing(many, 0))
        return
    policies = options.policies.split(",") if options.policies else list(POLICIES)
    if unknown := [policy for policy in policies if policy not in POLICIES]:
        raise SystemExit(f"There is no policy '{unknown[0]}'. Known: {', '.join(POLICIES)}.")
    wanted = options.sets.split(",") if options.sets else None
    results = []
    for folder in folders:
        for name, tasks in read_set(folder).items():
            places = chosen(tasks, options.workloads)
            if (wanted and name not in wanted) or not places:
                continue
            _TASKS[name] = tasks
            runs = run_set(name, policies, places, options.seeds, options.jobs)
            result = report.summary(name, [tasks[i] for i in places], runs, folder)
            results.append(result)
            if not options.json:
                report.print_set(result, each=options.each)
    if options.json:
        print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
