"""What people see of an offer that a quality rule doubts: ranked, told of and listed."""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner
from offers_and_trials import offer, trial
from rich.console import Console

from underdog.catalog import quality
from underdog.cli.offers import command
from underdog.report.decision import decision_report
from underdog.store import open_store
from underdog.verbs.choose import Options, decide
from underdog.verbs.offers import listing


@pytest.fixture
def doubted(tmp_path: Path) -> dict[str, str]:
    """A store with one trial, and a file of offers of which the spot one is doubted."""
    rows = [offer(price=0.44), offer(price=0.43, purchase="spot", caveats="two_prices")]
    names = ["provider", "region", "instance_type", "purchase", "price_per_hour", "accelerator"]
    names += ["accelerator_count", "vcpus", "memory_gib", "caveats"]
    path = tmp_path / "offers.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, names, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    store = str(tmp_path / "store.sqlite3")
    with open_store(store) as opened:
        opened.save(trial())
    return {"offers": str(path), "store": store}


def test_a_decision_tells_the_doubts_of_what_it_ranks(doubted: dict[str, str]) -> None:
    answer = decide(Options(**doubted))
    told = {one.code: one for one in answer.decision.caveats}
    one, rule = told["two_prices"], quality.RULES["two_prices"]
    assert "aws/us-east-1/g5.xlarge/spot" in one.message
    assert rule.says in one.message
    assert one.remedy == rule.remedy
    offers = {entry["offer"]["purchase"]: entry["offer"] for entry in answer.decision.ranking}
    assert offers["spot"]["caveats"] == "two_prices"
    assert offers["on-demand"]["caveats"] is None
    assert answer.decision.best_measured == "aws/us-east-1/g5.xlarge/on-demand"


def test_the_report_marks_it_and_says_what_to_do(doubted: dict[str, str]) -> None:
    console = Console(width=160, record=True)
    console.print(decision_report(decide(Options(**doubted)).decision, 160))
    text = console.export_text()
    marked = [line for line in text.splitlines() if "g5.xlarge !" in line]
    assert len(marked) == 1
    assert "spot" in marked[0]
    assert "! doubted, see below" in text
    assert quality.RULES["two_prices"].remedy.split(":")[0] in text


def test_the_story_of_an_offer_names_its_doubts(doubted: dict[str, str]) -> None:
    answer = decide(Options(**doubted))
    assert "doubts it: two_prices" in answer.explain("aws/us-east-1/g5.xlarge/spot")
    assert "doubts" not in answer.explain("aws/us-east-1/g5.xlarge/on-demand")


def test_the_list_of_offers_marks_it(doubted: dict[str, str]) -> None:
    shown = CliRunner().invoke(command, ["--offers", doubted["offers"]])
    assert shown.exit_code == 0
    assert "0.4300 !" in shown.output
    assert "0.4400 !" not in shown.output
    assert "caveats says why" in shown.output


def test_doubts_of_many_offers_are_one_caveat() -> None:
    offers = [{"id": f"aws/r{n}/m5.large/spot", "caveats": "stale_price,mine"} for n in range(5)]
    told = quality.doubts([*offers, {"id": "aws/r9/m5.large/spot", "caveats": None}])
    assert [one.code for one in told] == ["stale_price", "mine"]
    assert told[0].message.startswith("Doubted, as its price is old: aws/r0/m5.large/spot, ")
    assert told[0].message.endswith("aws/r2/m5.large/spot and 2 more.")


@pytest.mark.parametrize(
    ("purchase", "day", "stale"),
    [
        ("spot", "2026-07-20", False),
        ("spot", "2026-06-01", True),
        ("on-demand", "2026-06-01", False),
        ("on-demand", "2025-06-01", True),
        ("on-demand", "", False),
    ],
)
def test_a_price_that_is_old_by_now_is_doubted(purchase: str, day: str, stale: bool) -> None:
    row = offer(purchase=purchase, price_date=day, caveats="two_prices")
    told = quality.with_age(row, date(2026, 7, 25))
    assert told == ("stale_price,two_prices" if stale else "two_prices")
    unknown = row | {"price_per_hour": None}
    assert quality.with_age(unknown, date(2026, 7, 25)) == "two_prices"
    day_of_rule = quality.check([row], today="2026-07-25")
    assert stale == ("stale_price" in [one.rule for one in day_of_rule])


def test_the_bundled_doubts_are_found_by_a_condition() -> None:
    found = listing("caveats is not null", limit=5)
    assert found.total > 0
    for row in found.rows:
        assert set(row["caveats"].split(",")) <= set(quality.RULES)
    assert listing("caveats is null").total + found.total == found.source.rows
