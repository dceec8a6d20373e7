"""Trials that ran on the processor although their machine has an accelerator (case C3)."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from underdog.core.suspects import CODE, Run, unused_accelerators

DATA = Path(__file__).parents[2] / "../shared/data/search/llm_three_clouds"
Labelled = tuple[Run, bool]


def plain(throughput: float, vcpus: float = 8, workload: str = "w") -> Run:
    return Run(workload, f"cpu-{throughput}", throughput, vcpus)


def fast(
    name: str, throughput: float, vcpus: float = 8, workload: str = "w", count: float = 1
) -> Run:
    return Run(workload, name, throughput, vcpus, "H100", count)


def test_no_faster_than_machines_without_one() -> None:
    company = [plain(50), plain(60), plain(70)]
    assert unused_accelerators([*company, fast("slow", 58)]).keys() == {"slow"}
    assert unused_accelerators([*company, fast("used", 350)]) == {}


def test_far_slower_than_its_sibling() -> None:
    found = unused_accelerators([fast("one", 58), fast("two", 350, count=2)])
    assert found.keys() == {"one"}
    assert found["one"].code == CODE
    assert "17%" in found["one"].message
    assert "two" in found["one"].message
    assert unused_accelerators([fast("one", 200), fast("two", 350, count=2)]) == {}


def test_a_part_of_an_accelerator_is_slow_by_right() -> None:
    assert unused_accelerators([fast("eighth", 40, count=1 / 8), fast("whole", 350)]) == {}


def test_one_workload_at_which_it_shines_clears_a_machine() -> None:
    runs = [plain(x, workload=w) for w in ("a", "b", "c") for x in (50, 60, 70)]
    slow = [fast("m", 55, workload=w) for w in ("a", "b")]
    assert unused_accelerators([*runs, *slow, fast("m", 65, workload="c")]).keys() == {"m"}
    assert unused_accelerators([*runs, *slow, fast("m", 300, workload="c")]) == {}


def test_without_company_nothing_is_said() -> None:
    assert unused_accelerators([]) == {}
    assert unused_accelerators([fast("alone", 1)]) == {}
    assert unused_accelerators([fast("m", 1, vcpus=8), plain(50, 64), plain(60, 64)]) == {}
    unknown = Run("w", "m", 1.0, None, "H100", 1)
    assert unused_accelerators([plain(50), plain(60), plain(70), unknown]) == {}


def test_machines_without_accelerator_are_no_suspects() -> None:
    assert unused_accelerators([plain(1), plain(100), plain(100), fast("m", 1000)]) == {}


def published() -> list[Labelled]:
    """All published results, and whether each is known to have run on the processor."""
    if not DATA.exists():
        pytest.skip("no published results: there is no folder 'shared' beside the checkout")
    with gzip.open(DATA / "offers.csv.gz", "rt") as file:
        offers = {row["offer"]: row for row in csv.DictReader(file)}

    def run(row: dict[str, str], throughput: str) -> Run:
        offer = offers[row["offer"]]
        count = float(offer["accelerator_count"])
        name = offer["accelerator"] or None
        vcpus = float(offer["vcpus"])
        return Run(row["workload"], row["offer"], float(row[throughput]), vcpus, name, count)

    with gzip.open(DATA / "trials.csv.gz", "rt") as file:
        good = [(run(row, "throughput"), False) for row in csv.DictReader(file)]
    with (DATA / "ran_on_cpu_though_it_has_an_accelerator.csv").open() as file:
        bad = [(run(row, "tokens_per_s"), True) for row in csv.DictReader(file)]
    return good + bad


def score(sets: Iterable[list[Labelled]]) -> Counter[str]:
    counted: Counter[str] = Counter()
    for rows in sets:
        found = unused_accelerators(run for run, _ in rows)
        for run, on_processor in rows:
            if run.accelerator is not None:
                flagged = run.machine in found
                kind = ("right" if on_processor else "false") if flagged else None
                counted[kind or ("missed" if on_processor else "cleared")] += 1
    return counted


def by_workload(rows: list[Labelled]) -> Iterator[list[Labelled]]:
    names = dict.fromkeys(run.workload for run, _ in rows)
    for name in names:
        yield [(run, label) for run, label in rows if run.workload == name]


def test_published_results() -> None:
    rows = published()
    together = score([rows])
    # 246 of the 556 are of machines for which the offers name no accelerator: nothing to go by
    assert together["right"] + together["missed"] == 310
    assert together["false"] == 0
    assert together["missed"] == 0
    apart = score(by_workload(rows))
    precision = apart["right"] / (apart["right"] + apart["false"])
    recall = apart["right"] / 310
    print(f"together: {dict(together)}; one workload at a time: {precision:.1%}, {recall:.1%}")
    assert precision > 0.55
    assert recall > 0.85


def test_the_case_of_the_single_h100() -> None:
    """58 tokens/s on one H100, 350 on two: told even where no processor is there to compare."""
    rows = [(r, label) for r, label in published() if r.accelerator == "H100"]
    workload = "gemma-2b/generate-16"
    runs = [r for r, _ in rows if r.workload == workload]
    found = unused_accelerators(runs)
    assert "gcp/a3-highgpu-1g" in found
    assert "gcp/a3-highgpu-2g" not in found
