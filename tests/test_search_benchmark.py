"""The benchmark of the search counts right: figures that can be worked out by hand."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PUBLIC = ROOT.parent / "shared" / "data" / "search"
# price, throughput of each workload (None: it fails); two jobs on common machines, one on its own
MACHINES = {
    "a": (1.0, {"job/one": 1.0, "job/two": 2.0, "rest": 4.0}),
    "b": (2.0, {"job/one": 8.0, "job/two": None, "rest": 2.0}),
    "c": (4.0, {"job/one": 8.0, "job/two": 80.0, "rest": None}),
    "alone": (3.0, {"own": 3.0}),
    "never": (0.5, {}),
}


def write(folder: Path) -> Path:
    made = folder / "small"
    made.mkdir()
    with (made / "offers.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["offer", "provider", "instance_type", "nodes", "price_per_hour", "vcpus"])
        rows.writerows([[n, "x", n, 1, price, 2] for n, (price, _) in MACHINES.items()])
    with (made / "trials.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["workload", "group", "offer", "throughput"])
        for name, (_, rates) in MACHINES.items():
            rows.writerows([w, w.partition("/")[0], name, rate] for w, rate in rates.items())
    return folder


def result(data: Path, *flags: str) -> list[dict[str, Any]]:
    command = [sys.executable, ROOT / "benchmarks" / "search.py", "--data", data, "--json", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=250)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def curves(found: dict[str, Any], policy: str) -> dict[str, list[float]]:
    runs = found["runs"][policy]
    return {run["workload"]: run["best"] for run in runs}


def test_best_so_far_over_the_best_and_dollars(tmp_path: Path) -> None:
    (found,) = result(write(tmp_path), "--policies", "cheapest,dearest,order of others")
    # samples per dollar: one 3600, 14400, 7200; two 7200, -, 72000; rest 14400, 3600, -
    cheapest = curves(found, "cheapest")
    assert cheapest["job/one"] == pytest.approx([0.0, 0.25, 1.0, 1.0])  # never, a, b, c
    assert cheapest["job/two"] == pytest.approx([0.0, 0.1, 0.1, 1.0])
    assert cheapest["own"] == pytest.approx([0.0, 1.0])  # the others' machines are not its own
    assert curves(found, "dearest")["rest"] == pytest.approx([0.0, 0.25, 1.0, 1.0])  # c, b, a
    # of other groups only: for rest the mean of one (.25, 1, .5) and two (.1, 0, 1): c first
    assert curves(found, "order of others")["rest"][0] == 0.0
    first = {run["workload"]: run["offers"][0] for run in found["runs"]["order of others"]}
    assert first == {"job/one": "a", "job/two": "a", "rest": "c", "own": "never"}
    dollars = {run["workload"]: run["dollars"] for run in found["runs"]["cheapest"]}
    assert dollars["job/one"] == pytest.approx([d / 30 for d in (0.5, 1.5, 3.5, 7.5)])
    assert found["policies"]["cheapest"]["mean"][1] == pytest.approx((0.25 + 0.1 + 1 + 1) / 4)
    assert found["policies"]["cheapest"]["worst"][2] == pytest.approx(0.1)


def test_our_policy_is_replayed_as_the_product_asks_it(tmp_path: Path) -> None:
    (found,) = result(write(tmp_path), "--policies", "underdog,gaussian process", "--seeds", "2")
    for policy in ("underdog", "gaussian process"):
        for run in found["runs"][policy]:
            assert len(set(run["offers"])) == len(run["offers"])
            assert run["best"] == sorted(run["best"])
            assert run["best"][-1] == pytest.approx(1.0) or run["stopped_after"] is not None


def test_a_fraction_and_a_pattern_choose_workloads(tmp_path: Path) -> None:
    data = write(tmp_path)
    (half,) = result(data, "--policies", "cheapest", "--workloads", "1/2")
    assert half["workloads"] == 2
    (jobs,) = result(data, "--policies", "cheapest", "--workloads", "job/*")
    assert set(curves(jobs, "cheapest")) == {"job/one", "job/two"}


def test_without_data_it_says_so(tmp_path: Path) -> None:
    command = [sys.executable, ROOT / "benchmarks" / "search.py", "--data", tmp_path / "none"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0
    assert done.stdout.startswith("skipped: there is no set in")


@pytest.mark.slow
@pytest.mark.skipif(not PUBLIC.is_dir(), reason="no shared/data/search beside the checkout")
@pytest.mark.parametrize(
    ("name", "policy", "known"),
    [
        ("llm_three_clouds/aws", "cheapest", (0.04, 0.11, 0.11)),
        ("llm_three_clouds/aws", "one per accelerator", (0.04, 0.52, 0.70)),
        ("llm_three_clouds/aws", "order of others", (0.37, 0.61, 0.73)),
        ("scout", "cheapest", (0.46, 0.71, 0.77)),
        ("scout", "order of others", (0.51, 0.65, 0.77)),
        ("cherrypick", "cheapest", (0.78, 0.81, 0.92)),
        ("scout", "gaussian process", (0.51, 0.75, 0.88)),
    ],
)
def test_published_figures_of_simple_policies(
    name: str, policy: str, known: tuple[float, float, float]
) -> None:
    (found,) = result(PUBLIC, "--sets", name, "--policies", policy)
    mean = found["policies"][policy]["mean"]
    near = 0.08 if policy == "gaussian process" else 0.006  # chance plays a part in the first
    assert [mean[0], mean[4], mean[9]] == pytest.approx(known, abs=near)
