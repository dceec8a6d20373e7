"""Views as a store would give them, for the tests of what is made of them."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

from underdog.core.views.page import Page
from underdog.core.views.records import (
    DecisionView,
    FunnelLine,
    HistoryPoint,
    HistoryView,
    LedgerLine,
    Marker,
    Point,
    Range,
    StudyView,
    TestLine,
    TrialView,
)
from underdog.model import Caveat, Estimate, Timeline

MACHINES = (
    ("aws", "g5.xlarge", "A10G", 1, 4, 16, 1.006, 1850.0),
    ("aws", "g6.xlarge", "L4", 1, 4, 16, 0.8048, 1320.0),
    ("aws", "g6e.xlarge", "L40S", 1, 4, 32, 1.861, 4020.0),
    ("aws", "p4d.24xlarge", "A100", 8, 96, 1152, 21.96, 35100.0),
    ("aws", "p5.4xlarge", "H100", 1, 16, 256, 6.88, 9750.0),
    ("gcp", "g2-standard-4", "L4", 1, 4, 16, 0.7069, 1315.0),
    ("gcp", "a2-highgpu-1g", "A100", 1, 12, 85, 3.673, 4560.0),
    ("gcp", "a3-highgpu-8g", "H100", 8, 208, 1872, 88.25, 76200.0),
    ("azure", "Standard_NC24ads_A100_v4", "A100-80", 1, 24, 220, 3.673, 4610.0),
    ("azure", "Standard_NC4as_T4_v3", "T4", 1, 4, 28, 0.526, 560.0),
    ("azure", "Standard_ND96isr_H100_v5", "H100", 8, 96, 1900, 98.32, 75300.0),
    ("azure", "Standard_NV36ads_A10_v5", "A10", 1, 36, 440, 3.2, 1620.0),
    ("aws", "g4dn.xlarge", "T4", 1, 4, 16, 0.526, 548.0),
    ("aws", "p3.2xlarge", "V100", 1, 8, 61, 3.06, 1980.0),
    ("aws", "g5.12xlarge", "A10G", 4, 48, 192, 5.672, 6800.0),
    ("aws", "c7i.48xlarge", None, 0, 192, 384, 8.568, 260.0),
    ("gcp", "n1-standard-8-p100", "P100", 1, 8, 30, 1.84, 890.0),
    ("gcp", "a2-ultragpu-8g", "A100-80", 8, 96, 1360, 40.55, 36900.0),
)
MEASURED = ("g6e.xlarge", "g5.xlarge", "g6.xlarge", "a2-highgpu-1g")
SAMPLES = 300e6


def spread(value: float, share: float) -> Range:
    """A value with an interval of so large a share to either side, on the logarithm."""
    return Range(value=value, low=value * math.exp(-share), high=value * math.exp(share))


def point(machine: tuple[Any, ...], samples: float = SAMPLES, **given: Any) -> Point:
    """A candidate by what its machine does in a second."""
    provider, name, accelerator, count, vcpus, memory, price, rate = machine
    source = "measured" if name in MEASURED else "predicted"
    share = 0.012 if source == "measured" else 0.28
    region = {"aws": "us-east-1", "gcp": "us-central1", "azure": "eastus"}[provider]
    values = {
        "offer": f"{provider}/{region}/{name}/on-demand",
        "provider": provider,
        "region": region,
        "instance_type": name,
        "accelerator": accelerator,
        "accelerator_count": count,
        "vcpus": vcpus,
        "memory_gib": memory,
        "price_per_hour": price,
        "source": source,
        "samples_per_second": spread(rate, share),
        "samples_per_dollar": spread(rate * 3600 / price, share),
        "utility": spread(rate * 3600 / price, share),
        "hours": spread(samples / rate / 3600, share),
        "dollars": spread(samples / rate / 3600 * price, share),
    }
    return Point(**(values | given))


def points(samples: float = SAMPLES) -> list[Point]:
    """Ranked candidates, measured ones first, then excluded and untested ones."""
    made = [point(machine, samples) for machine in MACHINES]
    made.sort(key=lambda p: (p.source != "measured", -p.utility.value))
    ranked = []
    for rank, one in enumerate(made, start=1):
        faster = [
            o
            for o in made
            if o.hours.value < one.hours.value and o.dollars.value < one.dollars.value
        ]
        tied = [o.offer for o in made if o is not one and _overlap(o.utility, one.utility)]
        verdict = "best" if rank == 1 else "beaten" if one.source == "measured" else "untested"
        ranked.append(
            dataclasses.replace(
                one, rank=rank, verdict=verdict, pareto=not faster, tied_with=tied, reason="…"
            )
        )
    doubt = ["Its processor was shared while it was measured."]
    ranked[1] = dataclasses.replace(ranked[1], caveats=doubt)
    out = point(("aws", "p3.16xlarge", "V100", 8, 64, 488, 24.48, 14200.0), samples)
    reason = "budget: 143 dollars at best, over 100 dollars"
    return [*ranked, dataclasses.replace(out, verdict="excluded", reason=reason)]


def _overlap(one: Range, other: Range) -> bool:
    return one.low <= other.high and other.low <= one.high


def ledger(lines: int = 400) -> list[LedgerLine]:
    """So many lines, in the words of a real one."""
    chance = random.Random(4)
    kinds = ("m7i", "c7g", "r6a", "g5", "p4d", "Standard_D", "n2-standard-", "inf2", "x2idn", "g6e")
    made = []
    for number in range(lines):
        provider = chance.choice(("aws", "gcp", "azure"))
        place = (
            f"{chance.choice(('us', 'eu', 'ap'))}-{chance.choice(('east', 'west'))}-{number % 7}"
        )
        name = f"{chance.choice(kinds)}.{number % 97}xlarge"
        offer = f"{provider}/{place}/{name}/{chance.choice(('on-demand', 'spot'))}"
        low, value = chance.uniform(1e5, 1e6), chance.uniform(1e6, 9e6)
        reasons = {
            "excluded": f"memory: needs 21.4 GiB of accelerator memory, it has {number % 24}",
            "untested": f"not tested; predicted {value:.4g} ({low:.4g}–{9 * value:.4g}) samples/$",
        }
        verdict = "excluded" if number % 4 else "untested"
        made.append(LedgerLine(offer=offer, verdict=verdict, reason=reasons[verdict]))
    return made


def decision_view(**given: Any) -> DecisionView:
    """A decision over the machines above."""
    lines = given.pop("ledger", None) or ledger()
    values: dict[str, Any] = {
        "id": "d-20261130-7f3a",
        "workload": "train_gpt.py",
        "created_at": "2026-11-30T16:45:00+00:00",
        "expires_at": "2026-12-30T16:45:00+00:00",
        "utility": "samples_per_dollar",
        "unit": "samples/$",
        "better": "higher",
        "answer": "aws g6e.xlarge in us-east-1 gives the most samples per dollar of what was "
        "measured: 7.78 million, 95 % interval 7.68 to 7.87 million.",
        "runner_up": "Next is gcp g2-standard-4, predicted: 6.7 million samples per dollar, 95 % "
        "interval 5.06 to 8.86 million; only a test can tell it apart from the first.",
        "samples": SAMPLES,
        "candidates": len(lines),
        "snapshot": "9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c5b4a39281706f5e4d3c2b1a0",
        "snapshot_date": "2026-11-28",
        "constraints": ["purchase: on-demand or spot", "memory: 21.4 GiB of accelerator memory"],
        "assumptions": [
            "The job runs as fast to its end as it did while it was measured.",
            "Prices stay what they were on 28 November 2026.",
        ],
        "caveats": [
            Caveat(
                code="shared_processor",
                message="Other programs used the processor of g5.xlarge while it was measured.",
                remedy="Measure again on an idle machine.",
            )
        ],
        "points": points(),
        "funnel": [
            FunnelLine(verdict="excluded", cause="memory", offers=3 * len(lines) // 4),
            FunnelLine(verdict="untested", cause="predicted", offers=len(lines) // 4 - 4),
            FunnelLine(verdict="beaten", cause="measured", offers=3),
            FunnelLine(verdict="best", cause="measured", offers=1),
        ],
        "ledger": lines,
        "whole": True,
        "trials": ["t-1", "t-2", "t-3"],
        "study": "s-1",
    }
    values |= given
    ranked = [p.offer for p in values["points"] if p.rank is not None]
    values.setdefault("groups", [ranked[:1], ranked[1:4], ranked[4:5]])
    values.setdefault("test_next", _test_next(ranked))
    return DecisionView(**values)


def _test_next(ranked: list[str]) -> list[dict[str, Any]]:
    return [
        {"offer": name, "nodes": 1, "expected_gain": gain, "minutes": 10.0, "dollars": 0.14}
        for name, gain in zip(ranked[4:7], (0.11, 0.042, 0.003), strict=False)
    ]


def timeline(rate: float = 1850.0, points: int = 120, seed: int = 1) -> Timeline:
    """A trial of ten minutes: a warm-up, then a steady rate, with one pause."""
    chance = random.Random(seed)
    seconds = [5.0 * (i + 1) for i in range(points)]
    rates = [rate * (1 - math.exp(-(i + 1) / 3)) * chance.gauss(1, 0.02) for i in range(points)]
    usage = {
        "seconds": seconds,
        "cores": [3.1 + chance.gauss(0, 0.1) for _ in seconds],
        "accelerator_utilization": [min(1.0, 0.93 + chance.gauss(0, 0.02)) for _ in seconds],
        "host_memory_gib": [6.0 + i / 100 for i in range(points)],
        "accelerator_memory_gib": [18.2 for _ in seconds],
    }
    steps = {"seconds": seconds, "step": [14.0 * (i + 1) for i in range(points)]}
    return Timeline(
        steps=steps | {"samples_per_second": rates},
        usage=usage,
        pauses={"evaluation": [[300, 318]]},
    )


def trial_view(number: int = 1, **given: Any) -> TrialView:
    """A trial that went well."""
    rate = 1850.0 + 10 * number
    values: dict[str, Any] = {
        "id": f"t-{number}",
        "workload": "train_gpt.py",
        "offer": f"aws/us-east-1/{MACHINES[number % len(MACHINES)][1]}/on-demand",
        "status": "ok",
        "headline": f"{rate:,.0f} samples per second, 95 % interval {rate - 12:,.0f} to "
        f"{rate + 12:,.0f}.",
        "started_at": "2026-11-30T15:10:00+00:00",
        "ended_at": "2026-11-30T15:20:30+00:00",
        "runner": "ssh",
        "command": ["python", "train_gpt.py", "--data", "my corpus"],
        "knobs": {"batch": "64", "dtype": "bf16"},
        "rate": Estimate(value=rate, low=rate - 12, high=rate + 12, n=1640),
        "price_per_hour": 1.006,
        "samples_per_dollar": spread(rate * 3600 / 1.006, 0.01),
        "dollars": 0.17,
        "steps": 1680,
        "samples": 107520,
        "warmup_seconds": 42.0,
        "warmup_steps": 40,
        "phases": {
            "data": 0.08,
            "forward": 0.31,
            "backward": 0.52,
            "optimizer": 0.07,
            "other": 0.02,
        },
        "bound_by": "accelerator_compute",
        "bound_reason": "The accelerator's arithmetic limits it: busy 93 % of the time.",
        "peak_memory_gib": {"host": 7.2, "accelerator": 18.2},
        "facts": [
            ("machine", "aws, g5.xlarge, 4 vCPU, AMD EPYC 7R32, 1 × NVIDIA A10G, 16 GiB"),
            ("step", "64 samples a step · 35.1 ms a step · 1,680 steps"),
            ("memory", "peak 7.20 GiB host · peak 18.20 GiB each accelerator"),
            ("price", "$1.006 per hour · 6,620,000 samples per dollar"),
            ("software", "torch 2.13.0 · Python 3.11.9 · driver 570.86"),
        ],
        "timeline": timeline(rate, seed=number),
        "study": "s-1",
    }
    return TrialView(**(values | given))


def failed_trial(number: int = 4) -> TrialView:
    """A trial that ran out of memory before its first step."""
    return trial_view(
        number,
        status="out_of_memory",
        headline="It ran out of the accelerator's memory before the first step.",
        reason="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
        "GPU 0 has a total capacity of 14.56 GiB.",
        rate=None,
        samples_per_dollar=None,
        steps=0,
        samples=None,
        warmup_seconds=0.0,
        warmup_steps=0,
        phases={},
        bound_by="unknown",
        bound_reason=None,
        timeline=None,
        facts=[("machine", "aws, g4dn.xlarge, 4 vCPU, 1 × Tesla T4, 16 GiB")],
        caveats=[
            Caveat(
                code="out_of_memory",
                message="The batch did not fit.",
                remedy="Try a smaller batch, or gradient accumulation.",
            )
        ],
    )


def study_view(**given: Any) -> StudyView:
    """A search of five tests, one of which was stopped early and one of which failed."""
    made, spent, best = [], 0.0, 0.0
    for number, (name, utility, status) in enumerate(
        (
            ("g5.xlarge", 6.62e6, "ok"),
            ("g4dn.xlarge", None, "out_of_memory"),
            ("g6e.xlarge", 7.78e6, "ok"),
            ("p5.4xlarge", 5.1e6, "stopped"),
            ("g6.xlarge", 5.9e6, "ok"),
        ),
        start=1,
    ):
        spent += 0.08 * number
        best = max(best, utility or 0.0)
        rate = None if utility is None else Estimate(value=1850, low=1830, high=1870, n=900)
        made.append(
            TestLine(
                number=number,
                trial=f"t-{number}",
                offer=f"aws/us-east-1/{name}/on-demand",
                knobs={"batch": "64"},
                status=status,
                reason="clearly behind after 90 s" if status == "stopped" else None,
                why="it may beat the best by the most for its cost",
                rate=rate,
                utility=utility,
                dollars=0.08 * number,
                saved=0.21 if status == "stopped" else None,
                spent=spent,
                best="aws/us-east-1/g6e.xlarge/on-demand",
                best_utility=best or None,
            )
        )
    values: dict[str, Any] = {
        "id": "s-1",
        "workload": "train_gpt.py",
        "utility": "samples_per_dollar",
        "unit": "samples/$",
        "better": "higher",
        "candidates": 41230,
        "tests": made,
        "spent": spent,
        "saved": 0.21,
        "ended": "It ended because no further test is worth its cost.",
        "expected_loss": 0.004,
        "high_loss": 0.031,
        "best": "aws/us-east-1/g6e.xlarge/on-demand",
        "best_utility": 7.78e6,
        "beliefs": [
            {
                "offer": "gcp/us-central1/g2-standard-4/on-demand",
                "utility": 6.7e6,
                "low": 5.1e6,
                "high": 8.9e6,
                "chance_of_failure": 0.04,
            }
        ],
        "decision": "d-20261130-7f3a",
    }
    return StudyView(**(values | given))


def history_view() -> HistoryView:
    """Nine months on two machines, with a change, a move of a price and a new version."""
    chance, made = random.Random(2), []
    for month in range(3, 12):
        for machine, rate, price in (("g5.xlarge", 1800.0, 1.006), ("g6e.xlarge", 3900.0, 1.861)):
            now = rate * (1.11 if month > 7 else 1) * chance.gauss(1, 0.01)
            made.append(
                HistoryPoint(
                    trial=f"t-{month}-{machine}",
                    at=f"2026-{month:02}-14T10:00:00+00:00",
                    machine=machine,
                    samples_per_second=spread(now, 0.012),
                    price_per_hour=price,
                    samples_per_dollar=spread(now * 3600 / price, 0.012),
                    version="torch 2.13.0" if month > 7 else "torch 2.12.0",
                )
            )
    marks = [
        ("2026-08-01T00:00:00+00:00", "version", "torch 2.12.0 → torch 2.13.0"),
        ("2026-08-14T10:00:00+00:00", "change", "11 % faster since then"),
        ("2026-10-02T00:00:00+00:00", "price", "1.9 % cheaper in us-east-1"),
    ]
    return HistoryView(
        workload="train_gpt.py",
        points=made,
        markers=[Marker(at=at, machine="g5.xlarge", kind=k, text=t) for at, k, t in marks],
        machines=["g5.xlarge", "g6e.xlarge"],
    )


def page(**given: Any) -> Page:
    """All there is."""
    values: dict[str, Any] = {
        "title": "Which machine for train_gpt.py",
        "created_at": "2026-11-30T16:53:00+00:00",
        "decision": decision_view(),
        "study": study_view(),
        "trials": [trial_view(1), trial_view(2), trial_view(3), failed_trial(4)],
        "history": history_view(),
        "more_trials": 2,
    }
    return Page(**(values | given))
