"""What a person sees of a decision: nothing cut, nothing obeyed, every sentence true."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from underdog.core.metrics import METRICS
from underdog.model import Decision
from underdog.report.decision import decision_report, interval, number, to_markdown
from underdog.report.ranking import NARROWEST

WIDTHS = (NARROWEST, 60, 80, 100, 120, 200)


def entry(rank: int, kind: str, rate: float, price: float, **more: Any) -> dict[str, Any]:
    figures = {"value": rate, "low": rate / 4, "high": rate * 4}
    offer = {
        "id": f"gcp/northamerica-northeast2/{kind}/spot",
        "provider": "gcp",
        "region": "northamerica-northeast2",
        "zone": None,
        "instance_type": kind,
        "purchase": "spot",
        "price_per_hour": price,
        "accelerator": "A100-80GB",
        "accelerator_count": 8,
    }
    made: dict[str, Any] = {"rank": rank, "offer": offer, "source": "predicted", "nodes": 1}
    made |= {"other_regions": 39, "pareto": True, "tied_with": [], "utility": figures}
    return made | dict.fromkeys(METRICS, None) | {"samples_per_second": figures} | more


def decision(*entries: dict[str, Any], **more: Any) -> Decision:
    given: dict[str, Any] = {
        "id": "decision",
        "workload": "gpt",
        "created_at": "2026-08-01T00:00:00+00:00",
        "utility": "samples_per_dollar",
        "better": "higher",
        "candidates": len(entries),
        "ranking": list(entries),
        "funnel": [{"verdict": "untested", "cause": "predicted", "offers": len(entries)}],
        "expires_at": "2026-09-01T00:00:00+00:00",
    }
    return Decision(**(given | more))


def printed(made: Decision, width: int) -> str:
    page = Console(file=io.StringIO(), width=width, highlight=False, color_system=None)
    with page.capture() as captured:
        page.print(decision_report(made, width))
    return captured.get()


ENTRIES = (
    entry(1, "n2-highcpu-2", 1234.5, 0.00712),
    entry(2, "a2-ultragpu-8g-with-a-long-name", 109.0, 0.0142),
    entry(12, "e2", 3.2e7, 1234.5),
)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_figure_is_cut_and_no_line_too_long(width: int) -> None:
    lines = printed(decision(*ENTRIES), width).splitlines()
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if re.match(r"\s*\d+  ○", line)]
    assert len(rows) == len(ENTRIES)
    for row, told in zip(rows, ENTRIES, strict=True):
        assert f" {told['rank']} " in row
        assert " ◆ " in row
        assert interval(told["utility"], True) in row
        # a column that does not fit is left out whole
        header = next(line for line in lines if "samples/$" in line and "#" in line)
        assert (number(told["offer"]["price_per_hour"]) in row) == ("$/h" in header)
        assert ("+39" in row) == ("where" in header)


def test_a_wide_terminal_shows_all_of_every_name() -> None:
    text = printed(decision(*ENTRIES), 200)
    assert "…" not in text
    assert "spot northamerica-northeast2 +39" in text
    assert "8× A100-80GB" in text


@pytest.mark.parametrize("width", WIDTHS)
def test_names_to_be_pasted_are_whole(width: int) -> None:
    one = {
        "offer": ENTRIES[1]["offer"]["id"],
        "nodes": 1,
        "expected_gain": 2.9,
        "against": {"offer": "aws/x/y/spot", "nodes": 2, "source": "measured", "value": 360_000.0},
        "minutes": 10.0,
        "dollars": 0.00119,
    }
    text = printed(decision(*ENTRIES, test_next=[one]), width)
    told = text[text.index("Test next") : text.index("3 candidates")]
    assert "…" not in told
    words = " ".join(told.split())
    assert "on average, over the 360k samples/$ measured on 2 × aws/x/y/spot:" in words
    if width >= 120:
        assert f"{one['offer']}    expected 3.9 times as good    10 min, $0.00119" in told


def test_the_gain_over_a_guess_is_said_to_be_so() -> None:
    against = {"offer": ENTRIES[0]["offer"]["id"], "source": "predicted", "value": 7.8e6}
    against["nodes"] = 1
    one = {
        "offer": "o",
        "nodes": 3,
        "expected_gain": 0.2,
        "against": against,
        "minutes": 10,
        "dollars": None,
    }
    words = " ".join(printed(decision(*ENTRIES, test_next=[one]), 120).split())
    assert "no measured machine can be ranked, so the gain is on average over the 7.8M" in words
    assert f"{against['offer']} gives at the bad end of its prediction" in words
    assert "3 × o expected 20% better" in words
    assert "price unknown" in words


def test_a_terminal_is_not_obeyed() -> None:
    evil = "\x1b[31mred\x1b[0m\n\u202e[bold]x"
    made = decision(
        entry(1, evil, 2.0, 1.0),
        workload=evil,
        utility=evil,
        funnel=[{"verdict": "excluded", "cause": evil, "offers": 1}],
    )
    for text in (printed(made, 200), to_markdown(made)):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\\x1b[31mred" in text.replace("\\\\", "\\")
        assert "[bold]x" in text
    rows = [line for line in to_markdown(made).splitlines() if line.startswith("| 1 |")]
    assert len(rows) == 1
